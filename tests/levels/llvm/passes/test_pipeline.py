"""Pass lists as pipelines, against LLVM's own reader and as a property."""

import random
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels.llvm.passes.opt import need_opt, run_opt
from planish.core import ProgramError
from planish.levels.llvm.passes.catalogue import elements, exclusions, load_coreset
from planish.levels.llvm.passes.pipeline import parse_pipeline, print_pipeline

TEXTS = tuple(elements())
LISTS = st.lists(st.sampled_from(TEXTS), max_size=20)


@pytest.mark.parametrize(
    ("passes", "pipeline"),
    [
        ([], ""),
        (["gvn"], "function(gvn)"),
        (["gvn", "dce"], "function(gvn,dce)"),
        (["gvn", "default<Oz>", "dce"], "function(gvn),default<Oz>,function(dce)"),
        (["indvars", "loop-deletion"], "function(loop(indvars),loop(loop-deletion))"),
        (["gvn", "lnicm", "dce"], "function(gvn,loop-mssa(lnicm),dce)"),
        (["argpromotion", "function-attrs"], "cgscc(argpromotion),cgscc(function-attrs)"),
        (["globalopt", "ipsccp"], "globalopt,ipsccp"),
    ],
)
def test_a_list_is_printed_with_its_managers(passes: list[str], pipeline: str) -> None:
    assert print_pipeline(passes) == pipeline
    assert parse_pipeline(pipeline) == tuple(passes)


@given(LISTS)
def test_what_is_printed_is_read_back(passes: list[str]) -> None:
    assert parse_pipeline(print_pipeline(passes)) == tuple(passes)


@given(LISTS)
def test_bare_names_mean_the_same(passes: list[str]) -> None:
    assert parse_pipeline(" , ".join(passes)) == tuple(passes)


@given(LISTS, LISTS)
def test_the_canonical_form_is_unique(one: list[str], other: list[str]) -> None:
    assert (print_pipeline(one) == print_pipeline(other)) == (one == other)


@given(LISTS)
def test_any_grouping_of_function_passes_is_read_alike(passes: list[str]) -> None:
    apart = ",".join(print_pipeline([text]) for text in passes)
    assert print_pipeline(parse_pipeline(apart)) == print_pipeline(passes)
    assert parse_pipeline(f"module({apart})" if apart else "") == tuple(passes)


@given(st.text(st.sampled_from("(),<>; agvn"), max_size=30) | st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    read: tuple[str, ...] = ()
    with suppress(ProgramError):
        read = parse_pipeline(text)
    assert set(read) <= set(TEXTS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("function(gvn", "character 13: found its end. Expected a closing bracket"),
        ("gvn)", r"character 4: found '\)'. Expected a comma or the end"),
        ("gvn,,dce", "character 5: found ','. Expected the name of a pass"),
        ("gvn<no-pre", "character 4: found '<no-pre'. Expected a name, a comma or a bracket"),
        ("function()", r"character 10: found '\)'. Expected the name"),
        ("module(" * 5_000, "character 63: found '\\('. Expected at most 8 managers within each other"),
        ("function(globalopt)", r"'globalopt' is in function\(...\). Write globalopt"),
        ("function(indvars)", r"Write function\(loop\(indvars\)\)"),
        ("loop(licm)", r"is in loop\(...\). Write function\(loop-mssa\(licm<allowspeculation>\)\)"),
        ("cgscc(function(gvn))", r"function\(...\) is in cgscc\(...\)"),
        ("function(module(ipsccp))", r"module\(...\) is in function\(...\)"),
        (
            "loop(indvars,loop-deletion)",
            r"holds 2 passes, not one. Write loop\(indvars\),loop\(",
        ),
        ("devirt(gvn)", r"unknown pass manager 'devirt\(...\)'. Known: module"),
        ("gvn,function(sorra)", "unknown pass 'sorra'. Did you mean"),
    ],
)
def test_a_faulty_pipeline_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        parse_pipeline(text)


def test_llvm_takes_every_element_and_prints_one_that_is_read_back() -> None:
    """One run of `opt` for all: LLVM's own pipelines, which it prints in full, are left to the next test."""
    opt = need_opt()
    passes = [text for text, element in elements().items() if not element.is_pipeline]
    shown = run_opt(opt, print_pipeline(passes), "-print-pipeline-passes")
    assert shown.returncode == 0, shown.stderr
    printed = shown.stdout.splitlines()[0].removesuffix(",verify,print")
    assert parse_pipeline(printed) == tuple(passes)


def test_llvm_runs_random_lists() -> None:
    opt, draw = need_opt(), random.Random(7)
    lists = [draw.choices(TEXTS, k=draw.randint(1, 20)) for _ in range(20)]
    for passes in [*lists, [text for text in TEXTS if elements()[text].is_pipeline], *load_coreset()[::6]]:
        done = run_opt(opt, print_pipeline(passes))
        assert done.returncode == 0, f"{print_pipeline(passes)}: {done.stderr}"


def test_sharing_a_function_manager_changes_nothing() -> None:
    opt, draw = need_opt(), random.Random(8)
    inside = [t for t, e in elements().items() if e.nesting not in ("module", "cgscc")]
    for _ in range(10):
        passes = draw.choices(inside, k=12)
        apart = ",".join(print_pipeline([text]) for text in passes)
        assert run_opt(opt, print_pipeline(passes)).stdout == run_opt(opt, apart).stdout, passes


def test_what_is_kept_out_is_known_to_llvm() -> None:
    """A name that LLVM does not have would be kept out for nothing."""
    opt = need_opt()
    listed = set(re.findall(r"^  ([\w-]+)", run_opt(opt, "", "--print-passes").stdout, re.MULTILINE))
    assert set(exclusions()) <= listed
