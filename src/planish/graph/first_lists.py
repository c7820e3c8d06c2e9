"""What a search begins with, before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from planish.graph.architecture import Recognition, recognise
from planish.graph.architecture.paper_lists import ORDERS, starting_list
from planish.graph.passes import Selection, selection_of
from planish.graph.program import GraphProgram
from planish.graph.source import load_checked

GOOD_LISTS: Sequence[Selection] = (
    Selection(("onnxscript.optimize",)),
    Selection(("onnxscript.optimize_for_ort",)),
)
"""What is good for most models that come from exporters."""


@lru_cache(maxsize=4)
def recognition_of(program: GraphProgram) -> Recognition:
    """Recognise a model's class by its graph; raises ProgramError where its file was moved or changed."""
    return recognise(load_checked(program))


def class_lists(program: GraphProgram) -> Sequence[Selection]:
    """Give the lists that the model's class begins with, the best first; none for a model of no class."""
    found = recognition_of(program)
    lists = [selection_of(starting_list(found, order)) for order in range(len(ORDERS))]
    return [each for each in dict.fromkeys(lists) if each != Selection()]
