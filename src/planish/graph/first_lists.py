"""What a search begins with, before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from planish.graph.architecture import Recognition, recognise
from planish.graph.architecture.paper_lists import ORDERS, starting_list
from planish.graph.passes import Selection, find_pass, selection_of
from planish.graph.program import GraphProgram
from planish.graph.source import load_checked

GOOD_LISTS: Sequence[Selection] = (
    Selection(("onnxscript.optimize",)),
    Selection(("onnxscript.optimize_for_ort",)),
)
"""What is good for most models that come from exporters."""


def recognition_of(program: GraphProgram) -> Recognition:
    """Recognise a model's class by its graph; raises ProgramError where its file was moved or changed."""
    return _looked_at(program)[0]


@lru_cache(maxsize=4)
def _looked_at(program: GraphProgram) -> tuple[Recognition, int]:
    """Recognise a model's class, and read the version of the standard operators that it uses."""
    model = load_checked(program)
    opsets = [each.version for each in model.opset_import if each.domain in ("", "ai.onnx")]
    return recognise(model), max(opsets, default=1)


def class_lists(program: GraphProgram) -> Sequence[Selection]:
    """Give the lists that the model's class begins with, the best first; none for a model of no class."""
    found, opset = _looked_at(program)
    lists = [selection_of(starting_list(found, order)) for order in range(len(ORDERS))]
    valid = [replace(each, rewrites=_of_opset(each.rewrites, opset)) for each in lists]
    return [each for each in dict.fromkeys(valid) if each != Selection()]


def _of_opset(rewrites: Sequence[str], opset: int) -> tuple[str, ...]:
    """Keep the passes whose operators an opset has: of another one the model would be invalid."""
    return tuple(name for name in rewrites if find_pass(name).opset <= opset)
