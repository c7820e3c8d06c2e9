"""What `planish cc` saves, remembers and reports."""

import json
import sys

from cc.conftest import Place, text

ENOUGH = {"PLANISH_SECONDS": "60", "PLANISH_EVALUATIONS": "60"}
HEAVY = (
    "typing",
    "re",
    "pathlib",
    "dataclasses",
    "subprocess",
    "json",
    "numpy",
    "sqlalchemy",
    "typer",
)


def test_code_is_smaller_than_clangs_and_does_the_same(words: Place) -> None:
    words.as_clang("-Oz", "-c", "words.c", "-o", "clang.o")
    done = words.cc("-Oz", "-c", "words.c", "-o", "ours.o", "--planish-report", **ENOUGH)
    assert done.returncode == 0
    assert text(words.folder / "ours.o") < text(words.folder / "clang.o")
    assert "main: " in done.stderr
    answers: list[str] = []
    for name in ("clang", "ours"):
        words.as_clang(f"{name}.o", "-o", name)
        answers.append(words.run([f"./{name}"], "some words and words").stdout)
    assert answers[0] == answers[1] != ""


def test_a_second_time_it_is_known(words: Place) -> None:
    words.cc("-Oz", "-c", "words.c", "-o", "first.o")
    again = words.cc("-Oz", "-c", "words.c", "-o", "second.o", "--planish-report")
    assert "known" in again.stderr
    made = words.files()
    assert made["first.o"] == made["second.o"]


def test_more_time_is_a_new_search_and_less_is_none(words: Place) -> None:
    words.cc("-Oz", "-c", "words.c")
    assert "searched" in words.cc("-Oz", "-c", "words.c", "--planish-report", PLANISH_SECONDS="0.2").stderr
    assert "known" in words.cc("-Oz", "-c", "words.c", "--planish-report", PLANISH_SECONDS="0.05").stderr


def test_other_options_are_another_object(words: Place) -> None:
    words.cc("-Oz", "-c", "words.c", "-o", "plain.o")
    words.cc("-Oz", "-c", "words.c", "-o", "sections.o", "-ffunction-sections")
    assert b".text.main" in words.files()["sections.o"]


def test_what_is_known_loads_nothing_heavy(words: Place) -> None:
    words.cc("-Oz", "-c", "words.c")
    code = (
        "import sys; from planish.cc.command import main; main(sys.argv[1:], plus=False); print(*sys.modules)"
    )
    done = words.run([sys.executable, "-c", code, "-Oz", "-c", "words.c"])
    bare = words.run([sys.executable, "-c", "import sys; print(*sys.modules)"])
    loaded = set(done.stdout.split()) - set(bare.stdout.split())
    assert "planish.cc.object_cache" in loaded
    assert not loaded & set(HEAVY)


def test_a_build_is_reported_by_file_and_function(words: Place) -> None:
    report = [sys.executable, "-c", "from planish.cli import main; main()", "report", "."]
    words.cc("-Oz", "-c", "words.c", **ENOUGH)
    words.cc("-Oz", "-c", "-flto=thin", "mixed.c")
    done = words.run(report)
    assert "words.o" in done.stdout
    assert "words.c: main" in done.stdout
    assert "clang does more than -Oz for -flto=thin" in done.stdout
    (one, _) = json.loads(words.run([*report, "--format", "json"]).stdout)["sources"]
    assert one["text"][1] < one["text"][0]
    assert one["functions"][0]["passes"]


def test_a_folder_that_nothing_was_compiled_into_has_no_report(place: Place) -> None:
    done = place.run([sys.executable, "-c", "from planish.cli import main; main()", "report", "."])
    assert done.returncode == 2
    assert "planish cc" in done.stderr


def test_probes_of_build_systems_are_not_searched(place: Place) -> None:
    place.write("conftest.c", "int main(void) { return 0; }\n")
    assert place.cc("-Oz", "conftest.c", "-o", "conftest").returncode == 0
    assert not place.cache.exists()
