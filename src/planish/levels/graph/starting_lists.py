"""Lists of passes that a search begins with, before anything is measured.

Each class of networks begins with its passes of the paper's table 4; `planish.levels.graph.prior` has what
trials on other models showed. TVM Relay's passes are mapped to ONNX's in table4.json, some to several and
some to none. What the paper selects, it selects from nothing; here a class's passes are run, and all others
of ONNX Runtime's are disabled, which is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from planish.levels.graph.architecture.recognition import CLASSES, Recognition, recognise
from planish.levels.graph.passes import RUNTIME, Selection, find_pass, passes_of_kind, selection_of
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.source import load_checked

if TYPE_CHECKING:
    from planish.core import Candidate

ORDERS: tuple[tuple[str, ...], ...] = (
    (
        *("AlterOpLayout", "FuseOps", "SimplifyExpr", "FoldConstant", "DeadCodeElimination"),
        *("MergeComposite", "FastMath", "RemoveUnusedFunctions"),
    ),
    (
        *("SimplifyExpr", "FuseOps", "AlterOpLayout", "MergeComposite", "FastMath"),
        *("DeadCodeElimination", "FoldConstant", "RemoveUnusedFunctions"),
    ),
)
"""The orders of AS-0 and AS-1 in the paper's table 5; what is not in them comes after, as in table 4."""

LEFT_OUT = {"BR": frozenset({"SkipLayerNormFusion", "BiasSkipLayerNormFusion"})}
"""Of table 4's passes, those that made a class slower where it was measured: a BERT of 4 layers took 6.3 ms
with ONNX Runtime's skip layer normalisation and 5.2 ms without it, on one core of an x86-64 (Zen 5)."""

_RULES = ("Level1_RuleBasedTransformer", "Level2_RuleBasedTransformer")


@dataclass(frozen=True)
class PaperPass:
    """A row of the paper's table 4, and what stands for it here.

    Args:
        name: TVM's.
        classes: RN, MN, SSD and BR; BL for the baseline's, AD for what depends on the user.
        extra_classes: classes that it is run for here beyond those.
        rewrites: rewriting passes that do the same, the one that starting lists run first.
        runtime: passes of ONNX Runtime that do the same.
        note: why nothing stands for it, or what is different.
    """

    name: str
    classes: tuple[str, ...]
    extra_classes: tuple[str, ...]
    rewrites: tuple[str, ...]
    runtime: tuple[str, ...]
    note: str


@cache
def table4() -> tuple[PaperPass, ...]:
    """Return the paper's table 4, in its order."""
    text = (files("planish.levels.graph") / "table4.json").read_text(encoding="utf-8")
    lists = ("classes", "extra_classes", "rewrites", "runtime")
    return tuple(
        PaperPass(row["pass"], *(tuple(row[name]) for name in lists), note=row["note"])
        for row in json.loads(text)
    )


def starting_list(recognition: Recognition, order: int = 0) -> Candidate:
    """Return the list that a network begins with, before anything is measured or learnt.

    A mixture begins with the passes of all of its classes (the paper's section 3.2). Passes whose operators
    the network lacks are left out.

    Args:
        recognition: what the network was recognised as.
        order: 0 for the paper's AS-0, 1 for AS-1.

    Returns:
        The candidate; the unchanged file for a network of no class.
    """
    symbols = [CLASSES[name].paper for name in recognition.classes if name in CLASSES]
    if not symbols:
        return Selection().candidate
    operators = frozenset(recognition.features.operations)
    chosen = class_selection(symbols, order)
    idle = {each.name for each in passes_of_kind(*RUNTIME) if not each.may_matter(operators)}
    rewrites = tuple(name for name in chosen.rewrites if find_pass(name).may_matter(operators))
    return Selection(rewrites, chosen.disabled | idle).candidate


def class_selection(symbols: Iterable[str], order: int = 0) -> Selection:
    """Select the passes of classes of table 4, by their symbols."""
    wanted = set(symbols)
    rows = [row for row in table4() if wanted & {*row.classes, *row.extra_classes}]
    indices = {name: index for index, name in enumerate(ORDERS[order])}
    ordered = sorted(rows, key=lambda row: indices.get(row.name, len(indices)))
    out = frozenset[str]().union(*(LEFT_OUT.get(letter, frozenset()) for letter in wanted))
    kept = {name for row in rows for name in row.runtime} - out
    if any(find_pass(name).kind == "rule" for name in kept):
        # The rules run within these: without them, none would.
        kept |= set(_RULES)
    first = (row.rewrites[0] for row in ordered if row.rewrites)
    return Selection(
        tuple(name for name in first if not find_pass(name).is_intended),
        frozenset(each.name for each in passes_of_kind(*RUNTIME) if each.name not in kept),
    )


GOOD_LISTS: Sequence[Selection] = (
    Selection(("onnxscript.optimize",)),
    Selection(("onnxscript.optimize_for_ort",)),
)
"""Selections that are good for most models that come from exporters."""


@lru_cache(maxsize=4)
def _analyse(program: GraphProgram) -> tuple[Recognition, int]:
    """Recognise a model's class, and read the version of the standard operators that it uses."""
    model = load_checked(program)
    opsets = [each.version for each in model.opset_import if each.domain in ("", "ai.onnx")]
    return recognise(model), max(opsets, default=1)


def recognition_of(program: GraphProgram) -> Recognition:
    """Recognise a model's class by its graph; raises ProgramError where its file was moved or changed."""
    return _analyse(program)[0]


def class_lists(program: GraphProgram) -> Sequence[Selection]:
    """Return the lists that the model's class begins with, the best first; none for a model of no class."""
    found, opset = _analyse(program)
    lists = [selection_of(starting_list(found, order)) for order in range(len(ORDERS))]
    # Without the passes whose operators the opset lacks: with them the model would be invalid.
    valid = [
        replace(each, rewrites=tuple(name for name in each.rewrites if find_pass(name).opset <= opset))
        for each in lists
    ]
    return [each for each in dict.fromkeys(valid) if each != Selection()]
