"""Passes of ONNX Runtime with which its defaults answer wrongly on a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planish.core import Executor, Measured, Task, evaluate
from planish.graph.evaluator_spec import settings_of
from planish.graph.passes import Selection, passes_of_kind
from planish.graph.passes.catalogue import Kind
from planish.graph.program import GraphProgram


def without_culprits(task: Task[GraphProgram], executor: Executor) -> GraphProgram | None:
    """Find the fewest passes without which the runtime answers rightly.

    Args:
        task: its baseline is wrong.
        executor: evaluates its candidates, each of which is verified.

    Returns:
        The program whose baseline leaves them out; None where they are not to blame.
    """
    if settings_of(task).elsewhere:
        return None

    def is_right(names: Sequence[str]) -> bool:
        (answer,) = evaluate(executor, [Selection(disabled=frozenset(names)).candidate])
        return isinstance(answer.outcome, Measured)

    # Transformers first: they are tried first, and one of them runs all rules, so that a rule is named alone.
    kinds: tuple[Kind, ...] = ("transformer", "rule")
    every = [each.name for kind in kinds for each in passes_of_kind(kind)]
    if task.program.without or not is_right(every):
        return None
    return replace(task.program, without=tuple(sorted(fewest(every, is_right))), stored="")


def fewest(names: Sequence[str], is_enough: Callable[[Sequence[str]], bool]) -> Sequence[str]:
    """Leave out of names what is not needed: parts of half of them, of a quarter, and so on to single ones.

    That is the minimising of delta debugging (Zeller and Hildebrandt, 2002) without its tries of single
    parts: of n names one of which is needed it takes some 2 log n tries.

    Args:
        names: all of them are enough.
        is_enough: tells whether some are.
    """
    kept, size = list(names), len(names) // 2
    while size:
        start = 0
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if is_enough(rest):
                kept = rest
            else:
                start += size
        size //= 2
    return kept
