"""The search for unsound LLVM passes: its lists, verdicts, counts and reproducers."""

import subprocess
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.clang import Compiler
from planish.levels.llvm.execution import NotRunnableError, find_linker
from planish.levels.llvm.hot.lists import BEGIN, LAST, first_lists
from planish.levels.llvm.passes.catalogue import elements, load_coreset
from planish.levels.llvm.passes.pipeline import print_pipeline
from soundness.campaign import Tally, minimized, try_cases, write_table
from soundness.cases import Case, coreset_lists, hot_lists, in_contexts, random_lists
from soundness.examiner import Examiner
from soundness.subject import Form, Subject, compile_subject, samples
from tools.broken_bindings import BrokenBindings

ALL = tuple(elements().values())


def test_each_context_adds_the_pass_to_what_stands_without_it() -> None:
    cases = list(in_contexts(elements()["gvn"], "default<Oz>"))
    assert [case.passes for case in cases] == [
        ("gvn",),
        ("sroa<modify-cfg>", "gvn"),
        ("sroa<modify-cfg>", "gvn", "gvn"),
        ("gvn", "default<Oz>"),
        ("default<Oz>", "gvn"),
    ]
    for case in cases:
        assert case.without == tuple(text for text in case.passes if text != "gvn")


def test_random_lists_have_2_to_20_passes_and_come_again() -> None:
    lists = [case.passes for case in random_lists(ALL, 300, 7, 1)]
    assert {len(passes) for passes in lists} == set(range(2, 21))
    assert len({text for passes in lists for text in passes}) == len(ALL)
    assert lists == [case.passes for case in random_lists(ALL, 300, 7, 1)]
    assert lists != [case.passes for case in random_lists(ALL, 300, 7, 2)]
    assert all(map(print_pipeline, lists))


def test_the_coresets_are_tried_without_what_the_back_end_lacks() -> None:
    tried = [case.passes for case in coreset_lists(ALL)]
    assert tried[: len(load_coreset())] == list(load_coreset())
    assert set(tried) == {*load_coreset(), *load_coreset("text_bytes")}
    assert len(tried) == len(set(tried))
    few = [element for element in ALL if element.text != "default<Oz>"]
    assert all("default<Oz>" not in case.passes for case in coreset_lists(few))
    assert any(True for _ in coreset_lists(few))


def test_lists_of_hot_functions_stand_where_minus_o3_has_its_own() -> None:
    cases = list(hot_lists(20, 0, 0))
    assert [case.passes for case in cases[:3]] == list(first_lists())[:3]
    assert len({case.passes for case in cases}) == len(cases) > 25
    whole, short = cases[0].pipeline(cases[0].passes), cases[0].pipeline(("gvn",))
    assert "loop-versioning" in "".join(whole for case in cases[:12] for whole in case.passes)
    assert short == f"{BEGIN},function<eager-inv>(gvn),{LAST}"
    assert whole.startswith(BEGIN)
    assert [case.passes for case in hot_lists(20, 0, 0)] == [case.passes for case in cases]


@pytest.fixture
def examiner(typed: Subject, bindings: Bindings, tmp_path: Path) -> Generator[Examiner]:
    with closing(Examiner(typed, bindings, tmp_path)) as made:
        yield made


@pytest.mark.slow
def test_llvm_s_own_pipelines_keep_the_answer(examiner: Examiner) -> None:
    assert b"== volatiles\n" in examiner.expected.output
    for level in ("Oz", "O3"):
        verdict = examiner.examine(f"default<{level}>")
        assert (verdict.kind, verdict.detail) == ("right", "")
        assert verdict.answer
        assert verdict.answer.output == examiner.expected.output


@pytest.mark.slow
@pytest.mark.parametrize("form", ["size", "typed", "plain"])
def test_the_attributor_is_caught(form: Form, compiler: Compiler, bindings: Bindings, tmp_path: Path) -> None:
    with closing(Examiner(samples(compiler, form), bindings, tmp_path)) as examiner:
        verdict = examiner.examine("attributor")
    assert verdict.kind == "wrong"
    assert verdict.answer
    assert verdict.answer.output != examiner.expected.output


def test_equal_code_is_run_once_and_a_list_examined_once(examiner: Examiner) -> None:
    once, again = (
        examiner.examine("function(sroa<modify-cfg>)"),
        examiner.examine("function(sroa<modify-cfg>,dce)"),
    )
    assert (once.code, examiner.executed) == (again.code, 1)
    assert examiner.examine("function(sroa<modify-cfg>)") is once
    assert examiner.examine("function(sroa<modify-cfg>)", [0]).code != once.code


def test_what_llvm_does_not_do_has_a_kind_of_its_own(examiner: Examiner) -> None:
    assert examiner.examine("no-such-pass").kind == "refused"
    crashed = examiner.examine("function(codegenprepare)")
    assert (crashed.kind, crashed.detail) == ("crashed", "killed by SIGSEGV")
    assert "fixpoint" in examiner.examine("function(sroa<modify-cfg>,instcombine<max-iterations=1>)").detail
    assert examiner.examine("function(sroa<modify-cfg>)").kind == "right"


def test_invalid_code_is_not_run(typed: Subject, bindings: Bindings, tmp_path: Path) -> None:
    broken = cast("Bindings", BrokenBindings(bindings, "gvn", invalid=True))
    with closing(Examiner(typed, broken, tmp_path)) as examiner:
        verdict = examiner.examine("function(gvn)")
        assert (verdict.kind, verdict.detail) == ("invalid", "a use without a definition")
        assert examiner.executed == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [("int main(void) { for (;;); }", "2 s"), ("int main(void) { __builtin_trap(); }", "signal")],
)
def test_a_program_that_does_not_run_is_no_subject(
    text: str, why: str, compiler: Compiler, bindings: Bindings, tmp_path: Path
) -> None:
    (tmp_path / "odd.c").write_text(text)
    subject = compile_subject("odd", [tmp_path / "odd.c"], compiler, "plain")
    with pytest.raises(NotRunnableError, match=why):
        Examiner(subject, bindings, tmp_path)


LETTERS = st.lists(st.sampled_from("abcdefgh"), max_size=20)


def holds(passes: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    rest = iter(passes)
    return all(one in rest for one in wanted)


@given(LETTERS, LETTERS, LETTERS)
def test_only_the_passes_to_blame_are_left(before: list[str], between: list[str], behind: list[str]) -> None:
    passes = [*before, "X", *between, "Y", *behind]
    assert minimized(passes, lambda these: holds(these, ("X", "Y"))) == ("X", "Y")


@given(LETTERS, st.sets(st.integers(0, 20)))
def test_no_single_pass_can_be_dropped_whatever_fails(passes: list[str], lengths: set[int]) -> None:
    def fails(these: tuple[str, ...]) -> bool:
        return these == tuple(passes) or len(these) in lengths

    short = minimized(passes, fails)
    assert fails(short)
    assert holds(tuple(passes), short)
    assert not any(fails(short[:index] + short[index + 1 :]) for index in range(len(short)))


GUILTY = "flatten-cfg"
LISTS = (("dce", "sccp", GUILTY, "adce"), ("gvn", "dce"), ("dce", GUILTY))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def tally(typed: Subject, bindings: Bindings, out: Path) -> Tally:
    """Return the tally over a back end where one pass is made unsound."""
    broken = cast("Bindings", BrokenBindings(bindings, GUILTY))
    return try_cases(typed, map(Case, LISTS), broken, out)


def test_each_failure_is_counted_and_one_pass_is_blamed(tally: Tally) -> None:
    assert tally.kinds == {"right": 1, "wrong": 2}
    assert [failure.short for failure in tally.unsound] == [(GUILTY,), (GUILTY,)]
    assert (tally.lists["dce", "lists"], tally.lists[GUILTY, "lists"]) == (3, 2)


def test_a_failure_of_the_same_cause_leaves_nothing_more_behind(tally: Tally, out: Path) -> None:
    assert {failure.folder for failure in tally.failures} == set(out.iterdir())
    assert len(list(out.iterdir())) == 1


def test_what_is_left_behind_shows_the_failure_again(tally: Tally, typed: Subject, tmp_path: Path) -> None:
    folder = tally.failures[0].folder
    lists = (folder / "list.txt").read_text().splitlines()
    assert lists == ["function(dce,sccp,flatten-cfg,adce)", "function(flatten-cfg)"]
    expected = (folder / "expected.txt").read_bytes()
    assert (folder / "got.txt").read_bytes() != expected
    assert [(folder / f"program{n}.ll").read_text() for n in range(len(typed.modules))] == list(typed.modules)
    assert "opt -passes='function(flatten-cfg)'" in (folder / "README.txt").read_text()
    assert "fails: program" in (folder / "README.txt").read_text()
    assert expected == _answer(typed, folder, tmp_path)


def _answer(subject: Subject, folder: Path, build: Path) -> bytes:
    """Run what lies in the folder, compiled without any pass."""
    from planish.levels.llvm.bindings.libraries import open_bindings

    objects = [build / f"{number}.o" for number in range(len(subject.modules))]
    for number, path in enumerate(objects):
        module = open_bindings().parse((folder / f"program{number}.ll").read_text())
        path.write_bytes(module.object_code())
        module.close()
    subprocess.run([*find_linker(), *map(str, objects), "-o", str(build / "run"), "-lm"], check=True)
    return subprocess.run([build / "run"], check=True, capture_output=True).stdout


def test_a_pass_is_counted_in_its_contexts_and_where_it_changes_the_code(
    typed: Subject, bindings: Bindings, tmp_path: Path
) -> None:
    cases = [
        case for text in ("dce", "lower-expect") for case in in_contexts(elements()[text], "default<O2>")
    ]
    tally = try_cases(typed, cases[4:7], bindings, tmp_path)
    assert tally.kinds == {"right": 3}
    assert tally.lists == {
        ("dce", "after default<O2>"): 1,
        ("lower-expect", "alone"): 1,
        ("lower-expect", "after sroa"): 1,
    }
    assert tally.changed["dce"] == 0  # -O2 leaves nothing to it
    assert tally.changed["lower-expect"] == 2
    assert tally.executed == 5  # these three, and what the last two are compared with


def test_the_table_names_each_pass_and_each_failure_once(tally: Tally) -> None:
    lines = list(write_table(tally))
    assert [line.split() for line in lines if line.startswith(("dce ", "flatten-cfg "))] == [
        ["dce", "1", "0", "0", "3", "0", "0"],
        ["flatten-cfg", "2", "0", "0", "2", "0", "2"],
    ]
    assert any(line.startswith("3 lists: 2 wrong, 1 right; ") for line in lines)
    assert sum(line.startswith("wrong: samples-typed: flatten-cfg: ") for line in lines) == 1


def test_tallies_add_up(tally: Tally) -> None:
    total = Tally()
    total.add(tally)
    total.add(tally)
    assert total.kinds.total() == 6
    assert total.executed == 2 * tally.executed
    assert total.failures == tally.failures * 2
