from pathlib import Path

import pytest

from planish.cc.arguments import Invocation, code_options
from planish.cc.cc_settings import UsageError, read_settings
from planish.cc.response import ResponseError, expand, split


def read(text: str) -> Invocation:
    return Invocation(text.split())


def test_values_of_options_are_no_inputs() -> None:
    found = read("-c -o out.c -I inc.c -include pre.c -MF dep.c -D x.c -isystem sys.c real.c -Oz")
    assert [(source.path, source.language) for source in found.sources] == [("real.c", "c")]
    assert (found.output, found.dependency_file, found.compiles) == ("out.c", "dep.c", True)


def test_joined_values_are_read_too() -> None:
    found = read("-oout.o -MFdeps.d -MD -MTname -c x.c")
    assert (found.output, found.dependency_file) == ("out.o", "deps.d")
    assert found.makes_dependencies
    assert found.has_target


@pytest.mark.parametrize(
    ("line", "level", "small"),
    [("-O2 -Oz", "-Oz", True), ("-Os -O3", "-O3", False), ("-Os", "-Os", True), ("-c", "", False)],
)
def test_the_last_level_counts(line: str, level: str, small: bool) -> None:
    found = read(line)
    assert (found.level, found.is_small) == (level, small)


@pytest.mark.parametrize(
    "line", ["-E x.c", "-S x.c", "--version", "-print-search-dirs", "-M x.c", "-### x.c"]
)
def test_questions_are_left_to_clang(line: str) -> None:
    assert read(f"-Oz {line}").asks


@pytest.mark.parametrize(
    "option",
    [
        "-flto=thin",
        "-fsanitize=address",
        "--coverage",
        "-fprofile-generate",
        "-mllvm x",
        "-Xclang y",
        "-MJ z",
    ],
)
def test_what_clang_does_besides_must_stay(option: str) -> None:
    assert read(f"-Oz -c x.c {option}").keeps == option.partition(" ")[0]


def test_the_language_holds_for_what_follows() -> None:
    found = read("a.c -x c++ b.c -x none c.c d.S -x assembler e.c")
    assert [source.language for source in found.sources] == ["c", "c++", "c", None, None]


def test_objects_and_libraries_are_for_the_linker() -> None:
    found = read("-o prog a.c b.o libc.a -lm")
    assert found.linked == {3, 4}


def test_options_of_the_preprocessor_make_no_code() -> None:
    line = "-c -Oz -Iinc -I inc -DX=1 -D X -isystem d -include f -fPIC -o x.o -MD -MF x.d -std=c99 x.c -x c"
    assert code_options(read(line).words) == ["-Oz", "-fPIC", "-std=c99"]


def test_response_files_are_read_as_clang_does(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.write_text("-DNAME='a b' \"x y.c\"\n")
    outer = tmp_path / "outer"
    outer.write_text(f"-Oz @{inner} a\\ b.c ''")
    assert expand([f"@{outer}", "@missing"]) == ["-Oz", "-DNAME=a b", "x y.c", "a b.c", "", "@missing"]


def test_backslashes_in_single_quotes_stay() -> None:
    assert split(r"""'a\b' "c\"d" """) == ["a\\b", 'c"d']


def test_response_files_that_name_each_other_are_clangs_trouble(tmp_path: Path) -> None:
    file = tmp_path / "self"
    file.write_text(f"@{file}")
    with pytest.raises(ResponseError):
        expand([f"@{file}"])


def test_options_of_planish_are_taken_out() -> None:
    settings, rest = read_settings(["-c", "--planish-report", "x.c", "--planish-objective", "time"])
    assert rest == ["-c", "x.c"]
    assert (settings.reports, settings.for_time, settings.strict) == (True, True, False)


@pytest.mark.parametrize("word", ["--planish-nonsense", "--planish-objective=speed", "--planish-report=x"])
def test_options_that_are_not_there_are_refused(word: str) -> None:
    with pytest.raises(UsageError):
        read_settings([word])


@pytest.mark.parametrize("text", ["many", "-1", "nan", "inf"])
def test_seconds_are_a_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANISH_SECONDS", text)
    with pytest.raises(UsageError, match="PLANISH_SECONDS"):
        read_settings([])
