import re
import subprocess
from pathlib import Path

import pytest

from planish.cc.arguments import Invocation, ResponseError, code_options, expand, is_known, split, translated
from planish.cc.clang import Compiler
from planish.cc.settings import UsageError, read_settings

EVERYDAY = {
    "autotools": """-DHAVE_CONFIG_H -I. -I.. -g -Oz -Wall -Wno-unused -fPIC -DPIC -MT x.lo -MD -MP
        -MF .deps/x.Tpo -c x.c -o x.o""",
    "cmake": """-DNDEBUG -Os -std=gnu++17 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden
        -fcolor-diagnostics -MD -MT d/a.cpp.o -MF d/a.cpp.o.d -o d/a.cpp.o -c a.cpp -isystem /usr/include/x
        -Werror=return-type -pthread""",
    "linux": """-Wp,-MMD,.x.o.d -nostdinc -I./arch/x86/include -include ./kconfig.h -D__KERNEL__
        -fmacro-prefix-map=./= -std=gnu11 -fshort-wchar -funsigned-char -fno-common -fno-PIE -mno-sse
        -fno-strict-aliasing -mno-80387 -fcf-protection=none -m64 -falign-loops=1 -mno-fp-ret-in-387
        -mstack-alignment=8 -mtune=generic -mno-red-zone -mcmodel=kernel -fno-asynchronous-unwind-tables
        -mretpoline-external-thunk -Oz -mfunction-return=thunk-extern -fpatchable-function-entry=16,16
        -fno-delete-null-pointer-checks -fno-allow-store-data-races -fstack-protector-strong -fno-lto
        -ftrivial-auto-var-init=zero -fstrict-flex-arrays=3 -Wframe-larger-than=2048 -fms-extensions
        -fzero-call-used-regs=used-gpr -gdwarf-5 --target=x86_64-linux-gnu -fintegrated-as -c -o x.o x.c""",
    "debian": """-g -Oz -ffile-prefix-map=/build=. -fstack-protector-strong -fstack-clash-protection -Wformat
        -Werror=format-security -fcf-protection -Wdate-time -D_FORTIFY_SOURCE=2 -c a.c""",
    "fedora": """-Oz -pipe -Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=3 -Wp,-D_GLIBCXX_ASSERTIONS -fexceptions
        -m64 -march=x86-64 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -c a.c""",
    "arm": """-Oz -fno-rtti -fno-exceptions -fno-threadsafe-statics -fdata-sections -ffunction-sections
        -mthumb -march=armv7-a -mfpu=neon -mfloat-abi=hard -Wa,--noexecstack --sysroot=/x -fno-builtin-memcpy
        -fdiagnostics-color=always -fuse-ld=lld -Wl,--gc-sections -ansi -fno-tree-vectorize
        -ftemplate-depth=1024 -c a.c""",
}


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
        "-ffat-lto-objects",
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


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_command_lines_are_known(name: str) -> None:
    assert Invocation(translated(EVERYDAY[name].split())).keeps == ""


@pytest.mark.parametrize(
    "word",
    [
        *("-Wp,-MD", "-Wp,-DX,-include,file", "-Wa,-I,.", "-fno-integrated-as", "-include-pch", "-I-", "-H"),
        *("-fbasic-block-sections=list=file", "-fprofile-list=file", "-fplugin=file", "-Xassembler", "-###x"),
        *("-fsanitize-ignorelist=file", "-fxray-attr-list=file", "-fmodule-map-file=file", "--config=file"),
        *("-ivfsoverlay", "-fa-flag-of-a-later-clang", "-Wsystem-headers-in-module=x", "--driver-mode=cl"),
        *(
            "-object-file-name=x",
            "-fdebug-prefix-mapfile=x",
            "-fprofile-sample-use=x",
            "-fmemory-profile-use=x",
        ),
    ],
)
def test_options_that_are_not_known_are_left_to_clang(word: str) -> None:
    assert read(f"-Oz -c {word} x.c").keeps == word


def clangs_options(clang: Compiler) -> dict[str, str]:
    """Return the options of clang's driver, with all that it and its front end say of each."""
    found: dict[str, str] = {}
    for words in (["--help-hidden"], ["--autocomplete=-"], ["-cc1", "--help"]):
        said = subprocess.run([clang.path, *words], capture_output=True, text=True, check=True).stdout
        for row in re.finditer(r"^ *(-[^\s<\[]+)((?:.*\n)(?: {8,}.*\n)*)", said, re.MULTILINE):
            if "-cc1" not in words or row[1] in found:
                found[row[1]] = found.get(row[1], "") + row[2]
    return found


HEADERS_AND_LINKING = """-I -L -B -T -o -MF -MT -MQ -include -imacros -isystem -isystem-after -iquote
    -idirafter -isysroot -iwithsysroot -cxx-isystem -stdlib++-isystem -resource-dir --gcc-install-dir=
    --gcc-toolchain= --gcc-triple= --ld-path= --sysroot= -fuse-ld= -Xlinker"""
TEXT_IN_THE_OBJECT = """-fdebug-prefix-map= -ffile-prefix-map= -fmacro-prefix-map= -fcoverage-prefix-map=
    -fdebug-compilation-dir= -fdebug-compilation-dir -fcoverage-compilation-dir= -ffile-compilation-dir="""


def test_no_option_of_clangs_that_takes_a_file_is_known(clang: Compiler) -> None:
    """But for those whose files are listed with the headers, or are the linker's."""
    options = clangs_options(clang)
    assert len(options) > 2000
    takes = re.compile(r"^=? ?<[^>]*(file|path|dir)|\b[Ff]iles? (holding|with|containing|of)|[Pp]ath to")
    files = {
        name
        for name, said in options.items()
        if is_known(f"{name}x" if name.endswith("=") else name) and takes.search(said.split("\n\n")[0])
    }
    assert "-isystem" in files
    assert files - {*HEADERS_AND_LINKING.split(), *TEXT_IN_THE_OBJECT.split()} == set()
    for name in ("-frandomize-layout-seed-file=", "-fprofile-list=", "--warning-suppression-mappings="):
        assert name in options
        assert not is_known(f"{name}x")


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
def test_seconds_that_are_no_number_are_a_warning_and_the_default(
    text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    usual = read_settings([])[0].seconds
    monkeypatch.setenv("PLANISH_SECONDS", text)
    assert read_settings([])[0].seconds == usual > 0
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"planish: warning: PLANISH_SECONDS cannot be '{text}': ")
