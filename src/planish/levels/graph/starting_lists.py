"""Lists of passes that a search begins with, before anything is measured.

Each class of networks begins with its passes of the paper's table 4. What trials on other models of the class
showed comes before them: a ridge regression learns the effect of each step. TVM Relay's passes are mapped to
ONNX's in table4.json, some to several and some to none. What the paper selects, it selects from nothing; here
a class's passes are run, and all others of ONNX Runtime's are disabled, which is the same.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from statistics import fmean

from planish.core import Candidate, ProgramError, Step
from planish.levels.graph.architecture.recognition import CLASSES, Recognition, recognize, recognize_file
from planish.levels.graph.passes import (
    RUNTIME,
    ApplyPass,
    Disable,
    Offline,
    Selection,
    Set,
    find_pass,
    passes_of_kind,
    selection,
    selection_of,
)
from planish.levels.graph.program import GraphProgram, user_cache, with_own_files
from planish.levels.graph.source import load_checked

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
with ONNX Runtime's skip layer normalization and 5.2 ms without it, on one core of an x86-64 (Zen 5)."""

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
def _analyze(program: GraphProgram) -> tuple[Recognition, int]:
    """Recognize a model's class, and read the version of the standard operators that it uses."""
    model = load_checked(program)
    opsets = [each.version for each in model.opset_import if each.domain in ("", "ai.onnx")]
    return recognize(model), max(opsets, default=1)


def recognition_of(program: GraphProgram) -> Recognition:
    """Recognize a model's class by its graph; raises ProgramError where its file was moved or changed."""
    return _analyze(program)[0]


def class_lists(program: GraphProgram) -> Sequence[Selection]:
    """Return the lists that the model's class begins with, the best first; none for a model of no class."""
    found, opset = _analyze(program)
    lists = [selection_of(starting_list(found, order)) for order in range(len(ORDERS))]
    # Without the passes whose operators the opset lacks: with them the model would be invalid.
    valid = [
        replace(each, rewrites=tuple(name for name in each.rewrites if find_pass(name).opset <= opset))
        for each in lists
    ]
    return [each for each in dict.fromkeys(valid) if each != Selection()]


PENALTY = 2.0
"""Trials without any change that are added for each step of a model, so that few trials say little."""
PRIOR_MODELS = 0.5
"""Models without any change that are added for each step of a class, so that one model says less than two."""
FAR = math.log(8)
"""A ratio counts as no more than this, in its logarithm: one outlier is not to outweigh the rest."""
OFTEN = 0.5
"""The share of failures from which a step counts as one that fails."""


@dataclass(frozen=True)
class RidgeRow:
    """A trial, as far as learning is concerned.

    Args:
        ratio: its cost over the baseline's, above 0; less is better. None where it failed.
    """

    program: str
    classes: tuple[str, ...]
    candidate: Candidate
    ratio: float | None


@dataclass(frozen=True)
class StepEffect:
    """Effect of one step on the models of a class.

    Args:
        change: of the logarithm of the cost; negative for a gain. It is shrunk towards 0 by the evidence.
        fails: whether most trials with it fail, and fewer without it.
    """

    step: Step
    change: float
    models: int
    trials: int
    fails: bool = False

    @property
    def ratio(self) -> float:
        """By what the cost is multiplied."""
        return math.exp(self.change)


def effects(records: Iterable[RidgeRow]) -> Mapping[Step, StepEffect]:
    """Estimate each step's effect on the models of some records, as if steps did not depend on each other.

    Within a model it is a ridge regression of the ratios' logarithms on which steps a candidate has; the
    models' estimates are then averaged, each weighted by its evidence, and shrunk towards no effect.

    Returns:
        Step to effect, the greatest gain first.
    """
    by_program: defaultdict[str, list[RidgeRow]] = defaultdict(list)
    for record in records:
        by_program[record.program].append(record)
    sums: defaultdict[Step, list[float]] = defaultdict(lambda: [0.0, 0.0, 0])
    for group in by_program.values():
        for step, (change, weight) in _of_program(group).items():
            sums[step] = [a + b for a, b in zip(sums[step], (weight * change, weight, 1), strict=True)]
    everything = [record for group in by_program.values() for record in group]
    counts = Counter(step for record in everything for step in set(record.candidate.steps))
    failing = _failing(everything, counts)
    found = [
        StepEffect(step, total / (weight + PRIOR_MODELS), int(models), counts[step], step in failing)
        for step, (total, weight, models) in sums.items()
    ]
    # Steps of which every trial failed have no ratio, but must be known as failing all the same.
    found += [StepEffect(step, 0.0, 0, counts[step], fails=True) for step in failing if step not in sums]
    return {effect.step: effect for effect in sorted(found, key=lambda e: (e.change, str(e.step)))}


def _logarithm(ratio: float) -> float:
    """Return a ratio's logarithm, clamped to the bounds that count."""
    return max(-FAR, min(FAR, math.log(ratio)))


def _of_program(records: Sequence[RidgeRow]) -> Mapping[Step, tuple[float, float]]:
    """Estimate, on one model, each step's change and how much the estimate weighs, from 0 to 1."""
    import numpy as np

    known = [(r.candidate, _logarithm(r.ratio)) for r in records if r.ratio is not None and r.ratio > 0]
    steps = sorted({step for candidate, _ in known for step in candidate.steps}, key=str)
    if not steps:
        return {}
    index = {step: i for i, step in enumerate(steps)}
    has = np.zeros((len(known), len(steps)))
    for row, (candidate, _) in enumerate(known):
        has[row, [index[step] for step in candidate.steps]] = 1
    # A ridge regression by its normal equations, without an intercept: no step means no change.
    square = has.T @ has + PENALTY * np.eye(len(steps))
    changes = np.linalg.solve(square, has.T @ np.array([change for _, change in known]))
    counts = has.sum(axis=0)
    # Without any trial that lacks the step there is only the baseline, whose ratio is 1, to compare with.
    fewer = np.minimum(counts, len(known) - counts + 1)
    # By the rarer of the two sides: many trials with a step say little where none lacks it.
    weights = fewer / (fewer + PENALTY)
    return {step: (float(changes[i]), float(weights[i])) for step, i in index.items()}


def _failing(records: Sequence[RidgeRow], counts: Mapping[Step, int]) -> frozenset[Step]:
    failed = [record for record in records if record.ratio is None]
    with_it = Counter(step for record in failed for step in set(record.candidate.steps))

    def fails(step: Step) -> bool:
        others = len(records) - counts[step]
        share, usual = with_it[step] / counts[step], (len(failed) - with_it[step]) / max(1, others)
        # More often than without it: else another step of the same lists may be what fails.
        return share >= OFTEN and share > usual

    return frozenset(step for step in with_it if fails(step))


MARGIN = 0.01
"""The least gain for which a step is taken into a list, in the logarithm of the cost."""
LONGEST = 8
"""Rewriting passes of the longest list."""
RANKED = 10
"""Lists that are kept of each class."""
MIXED = "+"


@dataclass(frozen=True)
class ClassList:
    """List of passes for a class of networks on one target.

    Args:
        name: of the class; of a mixture, the classes joined by "+".
        effects: step to what it does, the greatest gain first.
        ranked: the lists to begin with, the best first; the first is empty where nothing helps.
        expected: the first one's cost over the baseline's, as expected before it is measured.
    """

    name: str
    models: int
    trials: int
    effects: Mapping[Step, StepEffect]
    ranked: tuple[Candidate, ...]
    expected: float

    @property
    def best(self) -> Candidate:
        """The list to begin with."""
        return self.ranked[0]


def learn_lists(records: Iterable[RidgeRow]) -> Mapping[str, ClassList]:
    """Learn, for each class, which list a new model of it begins with.

    A model that is a mixture counts for the mixture, and for each of its classes.
    """
    groups: defaultdict[str, list[RidgeRow]] = defaultdict(list)
    for record in records:
        # A set, since the mixture of a single class is that class.
        for name in {_mixture(record.classes), *record.classes}:
            groups[name].append(record)
    return {name: _learnt(name, group) for name, group in sorted(groups.items())}


def learned_list(lists: Mapping[str, ClassList], classes: Sequence[str]) -> ClassList | None:
    """Look up what is known of a network's classes: of the mixture, else of the strongest that is known."""
    return next((lists[name] for name in (_mixture(classes), *classes) if name in lists), None)


def _mixture(classes: Sequence[str]) -> str:
    return MIXED.join(sorted(classes))


def _learnt(name: str, records: Sequence[RidgeRow]) -> ClassList:
    found = effects(records)
    by_trial: defaultdict[Candidate, defaultdict[str, list[float]]]
    by_trial = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.ratio:
            by_trial[record.candidate][record.program].append(_logarithm(record.ratio))
    # What each candidate did on each model, averaged over its trials.
    tried = {
        candidate: {program: fmean(changes) for program, changes in by_program.items()}
        for candidate, by_program in by_trial.items()
    }
    # No sum of effects promises more than the greatest change of any candidate, over its models.
    most = min((fmean(changes.values()) for changes in tried.values()), default=0.0)

    def expected(candidate: Candidate) -> float:
        """Return a candidate's change on a model that was not measured yet.

        What its steps promise, what it did on each model, and one model on which it did nothing, count
        alike: what few have seen is not believed whole.
        """
        known = [found[step] for step in dict.fromkeys(candidate.steps) if step in found]
        if any(effect.fails for effect in known):
            return math.inf
        # Gains are negative: the greater number is the smaller promise.
        promised = max(sum(effect.change for effect in known), most)
        measured = tried.get(candidate, {})
        return (promised + sum(measured.values())) / (2 + len(measured))

    changes = {each: expected(each) for each in (Candidate(), _composed(found, tried), *tried)}
    # Rounded, since sums in another order differ in their last digits: then the shorter list is first.
    order = sorted(changes, key=lambda c: (round(changes[c], 6), len(c.steps), c.text))
    ranked = tuple(candidate for candidate in order if math.isfinite(changes[candidate]))[:RANKED]
    models = len({record.program for record in records})
    return ClassList(name, models, len(records), found, ranked, math.exp(changes[ranked[0]]))


def _composed(found: Mapping[Step, StepEffect], tried: Mapping[Candidate, Mapping[str, float]]) -> Candidate:
    """Make a list of all steps that help, each rewriting pass where it stood in the lists that were good."""
    helpful = [e.step for e in found.values() if e.change < -MARGIN and not e.fails]
    rewrites = [step.name for step in helpful if isinstance(step, ApplyPass)][:LONGEST]
    out = [step.name for step in helpful if isinstance(step, Disable)]
    # Where in a good list each rewriting pass stood, from 0 to 1; what stood in none goes to the middle.
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for candidate, changes in tried.items():
        names = [step.name for step in candidate.steps if isinstance(step, ApplyPass)]
        if sum(changes.values()) < 0:
            for index, name in enumerate(names):
                shares[name].append(index / max(1, len(names) - 1))
    middles = {name: sum(each) / len(each) for name, each in shares.items()}
    ordered = sorted(rewrites, key=lambda name: (middles.get(name, 0.5), name))
    return selection(ordered, out, offline=Offline() in helpful).candidate


Outcomes = Sequence[tuple[Candidate, float | None]]
"""Selections that were tried on a model, with their cost over the baseline's; None where they failed."""


def known_list(tried: Mapping[str, Outcomes], classes: Sequence[str]) -> ClassList | None:
    """Learn from what was tried on other models what a network of some classes begins with."""
    records = (record for text, outcomes in tried.items() for record in records_of(text, outcomes))
    return learned_list(learn_lists(records), classes)


def records_of(text: str, outcomes: Outcomes) -> Iterator[RidgeRow]:
    """Yield the records of a model; none where its file is gone or not this user's: its class is unknown."""
    program = with_own_files(text)
    classes = _classes(Path(program.path), program.digest) if program.path else ()
    for candidate, ratio in outcomes if classes else ():
        # What changes results, or sets the session, is one user's wish: the next may not accept it.
        if not any(
            isinstance(step, Set) or (isinstance(step, ApplyPass) and find_pass(step.name).is_intended)
            for step in candidate.steps
        ):
            yield RidgeRow(program.digest, classes, candidate, ratio)


@lru_cache(maxsize=256)
def _classes(file: Path, digest: str) -> tuple[str, ...]:
    """Recognize a model's file, once: its classes are kept in the user's folder of caches.

    What the digest names may have changed since, which its class survives.
    """
    key = f"classes-{digest}-{version('planish')}.json"
    if known := user_cache().get_json(key):
        return tuple(known)
    try:
        classes = recognize_file(file).classes
    except ProgramError:  # it is gone
        return ()
    user_cache().put_json(key, classes)
    return classes
