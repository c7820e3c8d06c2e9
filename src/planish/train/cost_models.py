"""Fitting of a global cost model to a store.

The model learns the order of candidates of all programs of a level. Searches ask it together with the shipped
one, unless that makes predictions for held-back programs no better. Random programs of `loops`
are what a store is filled with to learn from; tests and benchmarks have others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
from numpy.random import Generator

from planish.core import (
    Candidate,
    CanFeaturize,
    FeatureSchema,
    PlanishError,
    ScheduleError,
    Trial,
    rng,
    unknown,
)
from planish.core.ranks import rank_correlation
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.workloads import RESNET18, convolution
from planish.models.combined import Pooled
from planish.models.cost_model import Dataset, Floats, Predicts, dataset_of, top_recall
from planish.models.model_files import (
    SavedModel,
    in_words,
    made_model,
    models_folder,
    shipped_model,
    suffix_of,
    write_model,
)
from planish.models.provenance import OBJECTIVE, OWN, HeldOut, Stated, Value, stated
from planish.models.tree_gru import TreeGru
from planish.models.trees import BoostedTrees, XgboostTrees
from planish.train.samples import hash_number
from planish.tuning.transfer import KnownTask

FEWEST = 8
"""Trials of a program, below which there is little to learn of their order."""
TOP = 8
HELD = 5
"""Every fifth program, by its name's hash, is held back, to measure how good the model is."""


@dataclass(frozen=True)
class Learnt:
    """Trials of some programs.

    Args:
        schema: of the features.
        data: a row for each trial; groups are indices of the programs.
        programs: their canonical texts.
        conditions: of the trials: the objective, what the spaces have as `conditions`, the processors, and
            the peaks of those whose features have it.
    """

    schema: FeatureSchema
    data: Dataset
    programs: Sequence[str]
    conditions: Stated

    @property
    def held(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which rows are of programs that are held back."""
        # By the text's hash: the same programs are held back whatever else the store has, and in which order.
        chosen = [hash_number(text) % HELD == 0 for text in self.programs]
        assert self.data.groups is not None
        return np.array(chosen, bool)[self.data.groups]


def read_trials(tasks: Sequence[KnownTask], level: str, objective: str = "") -> Learnt:
    """Read a store's trials on a level's programs, by the leading objective of each task.

    Args:
        tasks: of the level, as `known_tasks` returns them.
        level: its name.
        objective: which leads; empty where the store has runs of only one such objective.

    Raises:
        PlanishError: it knows nothing of the level that can be learnt from, or has several leading
            objectives and none was named.
    """
    schema: FeatureSchema | None = None
    features, costs, groups, programs = list[Floats](), list[float | None](), list[int](), list[str]()
    conditions = list[Mapping[str, Value]]()
    for task in _of_objective(tasks, level, objective):
        space = task.space(CanFeaturize)
        # Columns of another schema mean other things: they cannot stand in one table.
        if space is None or (schema is not None and space.schema != schema):
            continue
        schema = space.schema
        trials, found = _described(space, task.trials())
        mine = [trial.cost(task.objective) for trial in trials]
        # Where all failed, or all are equal, there is no order to learn.
        different = {cost for cost in mine if cost is not None and np.isfinite(cost)}
        if len(trials) < FEWEST or len(different) < 2:
            continue
        features.append(found)
        costs += mine
        groups += [len(programs)] * len(trials)
        programs.append(task.program)
        machine: dict[str, Value] = {"processor": task.processor} if task.processor else {}
        machine |= _peak_of(schema, found)
        conditions.append({**space.conditions, OBJECTIVE: task.objective.name, **machine})
    if schema is None or not features:
        raise PlanishError(
            f"the store has no trials of the level '{level}' with features and costs that differ",
            f"Tune some programs first, with {FEWEST} trials each at least.",
        )
    data = dataset_of(np.concatenate(features), costs, groups)
    return Learnt(schema, data, programs, stated(conditions))


def _peak_of(schema: FeatureSchema, features: Floats) -> dict[str, Value]:
    """Return the peak of the machine of some trials in GFLOPS, where it is one of their features."""
    if "peak" not in schema.names:
        return {}
    peak = round(2 ** float(features[0, schema.names.index("peak")])) - 1
    return {"peak": peak} if peak else {}


def _of_objective(tasks: Sequence[KnownTask], level: str, objective: str) -> Sequence[KnownTask]:
    """Return the tasks that an objective leads: costs of different objectives make no order to learn."""
    names = Counter(task.objective.name for task in tasks)
    if not objective and len(names) > 1:
        counts = ", ".join(f"{name} ({count} tasks)" for name, count in sorted(names.items()))
        what = f"the store has tasks of the level '{level}' with several leading objectives: {counts}"
        raise PlanishError(what, 'Name one: objective="NAME".')
    if objective and tasks and objective not in names:
        raise unknown(
            f"no task of the level '{level}' in the store has the leading objective", objective, names
        )
    return [task for task in tasks if objective in ("", task.objective.name)]


def fit_model(
    level: str, learnt: Learnt, objective: str = "rank", seed: int = 0, kind: str = "trees"
) -> SavedModel:
    """Fit a model on all programs; its metrics are of one that was fitted without those that are held back.

    Args:
        level: of the programs.
        learnt: what is known of them.
        objective: "rank" or "regression".
        seed: of all randomness.
        kind: "trees" or "tree-gru".

    Raises:
        PlanishError: XGBoost, or for a TreeGRU PyTorch, is not installed.
    """
    held, metrics, held_out = learnt.held, dict[str, float](), None
    made = partial(made_model, level, learnt.schema, objective, conditions=learnt.conditions)
    if held.any() and not held.all():
        rest, asked = learnt.data.rows(~held), learnt.data.rows(held)
        partial_model = _fitted(learnt, rest, objective, seed, kind)
        metrics = evaluate(partial_model, asked)
        held_out = compare_models(made({}, rest, partial_model), asked, learnt.conditions)
    # With all that is known; the metrics above are those of a model that had seen less.
    predicts = _fitted(learnt, learnt.data, objective, seed, kind)
    return replace(made(metrics, learnt.data, predicts), held_out=held_out)


def compare_models(model: SavedModel, asked: Dataset, conditions: Stated) -> HeldOut | None:
    """Compare the shipped model alone with the pool of it and another, as searches ask both.

    Args:
        model: learnt from other programs.
        asked: trials of held-back programs.
        conditions: of these; only a shipped model of their objective is compared.

    Returns:
        The comparison; None where no shipped model is for these features and this objective.
    """
    objective: dict[str, Value] = {OBJECTIVE: conditions[OBJECTIVE][0]}
    shipped = shipped_model(model.schema, objective)
    if shipped is None or model.training == shipped[1].training:
        return None
    name, rival = shipped
    together = evaluate(Pooled.of([model, rival], asked.features), asked)
    alone = evaluate(rival.predicts, asked)
    measure = "rank correlation"
    return HeldOut(int(alone["programs"]), measure, together[measure], in_words(name), alone[measure])


def _fitted(learnt: Learnt, data: Dataset, objective: str, seed: int, kind: str) -> BoostedTrees | TreeGru:
    if kind == "tree-gru":
        network = TreeGru(objective, seed=seed, names=learnt.schema.names)
        network.fit(data)
        return network
    grown = XgboostTrees(objective, rounds=200, depth=5, rate=0.15, seed=seed)
    grown.fit(data)
    return grown.trees


def evaluate(model: Predicts, data: Dataset) -> dict[str, float]:
    """Return how well a model orders the trials of programs: means over the programs."""
    predicted, measured = model.predict(data.features).mean[:, 0], data.targets[:, 0]
    assert data.groups is not None
    mine = [data.groups == number for number in np.unique(data.groups)]
    best = [measured[rows][np.argsort(predicted[rows], kind="stable")[:TOP]].min() for rows in mine]
    return {
        "programs": float(len(mine)),
        "rank correlation": float(np.mean([rank_correlation(predicted[r], measured[r]) for r in mine])),
        f"top {TOP} recall": float(np.mean([top_recall(predicted[r], measured[r], TOP) for r in mine])),
        f"best of {TOP} over best": float(
            np.exp(np.mean(np.array(best) - [measured[r].min() for r in mine]))
        ),
    }


def _described(space: CanFeaturize, trials: Sequence[Trial]) -> tuple[Sequence[Trial], Floats]:
    """Return the trials whose candidates have features, with these; calls of a library have none."""
    try:
        return trials, space.features([trial.candidate for trial in trials])
    except ScheduleError:
        known = [trial for trial in trials if _has_features(space, trial.candidate)]
        return known, space.features([trial.candidate for trial in known])


def _has_features(space: CanFeaturize, candidate: Candidate) -> bool:
    try:
        space.features([candidate])
    except ScheduleError:
        return False
    return True


NAME = f"{OWN}loops-time_s-learned"


def model_path() -> Path:
    """Return the file of the model."""
    return models_folder() / f"{NAME}{suffix_of('trees')}"


def fit_recorded(tasks: Sequence[KnownTask]) -> SavedModel:
    """Fit a model to all recorded programs, and write it for searches.

    Raises:
        PlanishError: there are no trials, XGBoost is not installed, or the file cannot be written.
    """
    model, path = fit_model("loops", read_trials(tasks, "loops", "time_s")), model_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_model(model, path)
    except OSError as error:
        raise PlanishError(f"cannot write {path}: {error.strerror}", "Free space there.") from error
    return model


# Random programs

LEAST, MOST = 2e5, 1.5e8
"""Additions and multiplications of a program: what takes longer costs more than it teaches."""
PRODUCTS = ("C[m,n] += A[m,k] * B[k,n]", "C[m,n] += A[m,k] * B[n,k]", "C[m,n] += A[k,m] * B[k,n]")
SHIPPED = 1804
"""Seed of the programs that the shipped model has learnt from."""


def random_programs(seed: int) -> Iterator[Program]:
    """Draw programs without end: alternately a product and a convolution."""
    for number in count():
        generator = rng(seed, number)
        drawn = _product(generator) if number % 2 else _convolution(generator)
        if drawn is not None and LEAST <= drawn.flops <= MOST:
            yield drawn


def _product(generator: Generator) -> Program | None:
    """Draw a product; no power of two, and no multiple of 16, as those of tests and experiments are."""
    m, n, k = (int(2 ** generator.uniform(3, 10.5)) for _ in range(3))
    if any(extent % 16 == 0 for extent in (m, n, k)):
        return None
    text = PRODUCTS[int(generator.choice(3, p=(0.6, 0.2, 0.2)))]
    program = parse(text, {"m": m, "n": n, "k": k})
    return program.with_constants(["B"]) if generator.random() < 0.3 else program


def _convolution(generator: Generator) -> Program | None:
    size = int(2 ** generator.uniform(2.6, 7.2))
    inputs, outputs = (8 * int(2 ** generator.uniform(0, 6)) for _ in range(2))
    inputs = 3 if size > 90 else inputs
    kernel = int(generator.choice((1, 3, 5, 7), p=(0.35, 0.45, 0.1, 0.1)))
    drawn = (size, inputs, outputs, kernel, int(generator.integers(1, 3)))
    return None if drawn in RESNET18.values() or kernel > size else convolution(*drawn)
