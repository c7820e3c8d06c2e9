"""Every pass of the catalogue keeps what programs mean: the short form of `make soundness`."""

from collections.abc import Iterable
from pathlib import Path

from planish.core import PlanishError
from planish.levels.llvm.backend import Backend
from planish.levels.llvm.clang import Compiler
from planish.levels.llvm.passes import available
from planish.train.corpus.programs import find_csmith
from soundness.campaign import try_cases
from soundness.cases import Case, coreset_lists, random_lists
from soundness.csmith import csmith_program
from soundness.needs import lacking
from soundness.subject import Subject

CSMITH_SEED = 1


def assert_sound(subject: Subject, cases: Iterable[Case], backend: Backend, out: Path) -> None:
    tally = try_cases(subject, cases, backend, out)
    assert not tally.failures
    assert set(tally.kinds) == {"right"}


def test_each_pass_keeps_the_answers_of_the_small_programs(
    typed: Subject, backend: Backend, tmp_path: Path
) -> None:
    texts = [element.text for element in available(backend)]
    fours = [Case(("sroa<modify-cfg>", *texts[place : place + 4])) for place in range(0, len(texts), 4)]
    assert_sound(typed, fours, backend, tmp_path)


def test_lists_of_many_passes_keep_the_answers_of_the_small_programs(
    typed: Subject, backend: Backend, tmp_path: Path
) -> None:
    elements = available(backend)
    lists = [*list(coreset_lists(elements))[:8], *random_lists(elements, 8, 0, 0)]
    assert_sound(typed, lists, backend, tmp_path)


def test_lists_of_many_passes_keep_the_answer_of_a_random_program(
    compiler: Compiler, backend: Backend, tmp_path: Path
) -> None:
    try:
        program, headers = find_csmith()
    except PlanishError as error:
        lacking(str(error))
        raise
    elements = available(backend)
    lists = [*coreset_lists(elements), *random_lists(elements, 10, 0, 1)]
    subject = csmith_program(program, headers, CSMITH_SEED, compiler, "typed")
    assert_sound(subject, lists, backend, tmp_path)
