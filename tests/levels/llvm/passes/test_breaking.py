"""Modules that a pass is known to break."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import pytest

from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.machine import elements_of, llvm_target
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.pipeline import passes_of, print_pipeline
from planish.levels.llvm.passes.space import pass_space
from planish.sandbox.fork_pool import ForkLimits, in_child

MUSTTAIL = """\
define i32 @even(i32 %n, ptr %p) minsize optsize {
entry:
  %slot = alloca i32
  store i32 %n, ptr %slot
  %none = icmp eq i32 %n, 0
  br i1 %none, label %end, label %more
more:
  %left = load i32, ptr %slot
  %less = sub i32 %left, 1
  store i32 %less, ptr %p
  %found = musttail call i32 @odd(i32 %less, ptr %p)
  ret i32 %found
end:
  ret i32 1
}

define i32 @odd(i32 %n, ptr %p) minsize optsize {
entry:
  %none = icmp eq i32 %n, 0
  br i1 %none, label %end, label %more
more:
  %less = sub i32 %n, 1
  %found = musttail call i32 @even(i32 %less, ptr %p)
  ret i32 %found
end:
  ret i32 0
}
"""
PLAIN = MUSTTAIL.replace("musttail call", "call")


WRONG = list[tuple[str, ...]]


def wrong_after(ir: str, lists: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the lists after which a module is invalid."""
    found: list[tuple[str, ...]] = []
    with closing(open_bindings().parse(ir)) as module:
        for passes in lists:
            with closing(module.clone()) as copy:
                copy.run(print_pipeline(passes))
                found += [passes] if copy.verify() else []
    return found


def test_one_pass_breaks_musttail_calls() -> None:
    bindings = open_bindings()
    lists = [(text,) for text in elements() if bindings.runs(print_pipeline([text]))]
    found = in_child(partial(wrong_after, MUSTTAIL, lists), WRONG, ForkLimits(seconds=60.0))
    assert found == [("mergereturn",)]
    assert in_child(partial(wrong_after, PLAIN, [("mergereturn",)]), WRONG) == []


@pytest.mark.parametrize("name", ["passes", "uniform", "safe"])
def test_the_space_lacks_what_breaks_the_module(name: str) -> None:
    offered = elements_of(llvm_target(1))
    without, usual = (pass_space(name, offered, ir=ir) for ir in (MUSTTAIL, PLAIN))
    texts = {element.text for element in usual.elements}
    assert texts - {element.text for element in without.elements} == texts & {"mergereturn"}
    assert len(without.seeds()) == len(usual.seeds())
    assert all("mergereturn" not in passes_of(seed) for seed in without.seeds())
    assert [passes_of(seed) for seed in usual.seeds()] == [
        passes_of(seed) for seed in pass_space(name, offered).seeds()
    ]
