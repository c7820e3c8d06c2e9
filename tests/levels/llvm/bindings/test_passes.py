"""Random pass lists, by all bindings and by `opt`."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels.llvm.bindings.samples import SAMPLES
from planish.levels.llvm.bindings.libraries import available as installed
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.lite_reduced import count
from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.passes.catalogue import PassElement, elements
from planish.levels.llvm.passes.pipeline import available, print_pipeline

LISTS = st.lists(st.sampled_from(sorted(elements())), max_size=12)
OPT_LISTS = [
    ["default<Oz>"],
    ["sroa<modify-cfg>", "early-cse<memssa>", "simplifycfg", "instcombine<no-verify-fixpoint>", "gvn"],
    ["mem2reg", "loop-rotate", "licm", "indvars", "loop-unroll<O2>", "adce"],
    ["default<O3>", "mergereturn", "reg2mem"],
    ["globalopt", "function-attrs", "argpromotion", "newgvn", "loop-vectorize"],
]


@given(st.sampled_from(sorted(SAMPLES)), LISTS)
def test_counts_agree_with_the_printed_module(sample: str, passes: list[str]):
    for name in installed():
        module = open_bindings(name).parse(SAMPLES[sample])
        module.run(print_pipeline(passes))
        assert module.verify() == ""
        assert module.instructions() == count(module.text())
        module.close()


@pytest.mark.parametrize("passes", OPT_LISTS, ids=lambda passes: passes[0])
@pytest.mark.parametrize("ir", SAMPLES.values(), ids=SAMPLES)
def test_opt_makes_the_same_of_it(libllvm: Bindings, opt: str, ir: str, passes: list[str]):
    module = libllvm.parse(ir, "<stdin>")
    pipeline = print_pipeline(passes)
    command = [opt, "-S", f"-passes={pipeline}"]
    theirs = subprocess.run(command, input=module.text(), capture_output=True, text=True, check=True)
    module.run(pipeline)
    assert module.text() == theirs.stdout


def test_whole_back_ends_run_the_catalogue(whole: Bindings):
    assert [element.text for element in available(whole)] == list(elements())


def reduced_elements() -> tuple[PassElement, ...]:
    return available(open_bindings("llvmlite-reduced"))


@pytest.mark.parametrize("element", reduced_elements(), ids=lambda element: element.text)
def test_the_reduced_back_end_runs_what_it_says(element: PassElement):
    """The public interface's passes, with the parameters that their text names, do as the text does."""
    # Without a size's attributes LLVM's own pipelines for size differ from O2; with them hardly.
    text = {"default<Oz>": "default<O2>", "default<Os>": "default<O2>"}.get(element.text, element.text)
    prepared = [[], ["sroa<preserve-cfg>", "loop-simplify", "lcssa", "loop-rotate"]]
    for ir in SAMPLES.values():
        for first in prepared:
            reduced, whole = (open_bindings(name).parse(ir) for name in ("llvmlite-reduced", "llvmlite"))
            reduced.run(print_pipeline([*first, element.text]))
            whole.run(print_pipeline([*first, text]))
            assert reduced.text().partition("target")[2] == whole.text().partition("target")[2]


@pytest.mark.parametrize(
    ("pipeline", "runs"),
    [
        ("function(sroa<preserve-cfg>)", True),
        ("function(sroa<modify-cfg>)", False),
        ("function(sroa)", False),
        ("function(simplifycfg,instcombine<no-verify-fixpoint>),globalopt", True),
        ("function(instcombine)", False),
        ("function(instcombine<no-verify-fixpoint;max-iterations=8>)", False),
        ("module(function(adce),cgscc(argpromotion))", True),
        ("function(loop(loop-rotate))", True),
        ("function(loop(loop-rotate,loop-deletion))", False),
        ("function(loop-mssa(loop-rotate))", False),
        ("function(loop-unroll<O3;full-unroll-max=8>)", False),
        ("default<Oz>", True),
        ("function(default<Oz>)", False),
        ("function(function-simplification<Oz>)", False),
        ("globalopt)", False),
        ("function(adce", False),
        ("", True),
    ],
)
def test_the_reduced_back_end_is_honest(pipeline: str, *, runs: bool):
    assert open_bindings("llvmlite-reduced").runs(pipeline) is runs
