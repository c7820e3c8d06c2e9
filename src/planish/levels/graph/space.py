"""Space of selections: rewriting passes in their order, disabled passes of ONNX Runtime, settings.

`space_of` makes the space of a task, whose sessions, passes and seeds depend on what the user asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, partial
from math import log2
from typing import TYPE_CHECKING

from planish.core import EMPTY_CONTEXT, Candidate, FeatureSchema, SearchContext, Space, Step, Task
from planish.levels.graph.architecture.features import Features
from planish.levels.graph.installed import OPENVINO, OPENVINO_BFLOAT16
from planish.levels.graph.pass_probe import PassProbe
from planish.levels.graph.passes import (
    BY_OPENVINO,
    EXACT,
    IN_BFLOAT16,
    REWRITING,
    RUNTIME,
    SETTABLE,
    VALUES,
    ApplyPass,
    Disable,
    Offline,
    Selection,
    Set,
    passes_of_kind,
    selection_of,
)
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.relevance import analyze, remembered
from planish.levels.graph.sessions import SessionSettings
from planish.levels.graph.starting_lists import GOOD_LISTS, class_lists, recognition_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

OF_SELECTION = (
    "rewrites",  # rewriting passes, those that come again too
    "left out",  # passes of ONNX Runtime
    "offline",  # 1 where its work is kept as a file
    "threads",  # that the session is set to; 0 for the target's own
)
OF_REWRITE = (
    "times",  # that the pass comes
    "first",  # its first index, from 1; 0 where it does not come
    "after last",  # rewriting passes after its last index, and 1; 0 where it does not come
)
SHARES = ("depthwise_share", "pointwise_share", "residual_share")
COUNTS = tuple(field.name for field in fields(Features) if field.name != "operations")
"""Of the model's architecture, as log2(1 + x); `planish.levels.graph.architecture.Features` says what they
are."""


@cache
def selection_schema() -> FeatureSchema:
    """Name the columns: of the selection, each pass, each setting, and the model as it came."""
    rewrites = [f"{name} {each.name}" for each in passes_of_kind(*REWRITING) for name in OF_REWRITE]
    out = [f"without {each.name}" for each in passes_of_kind(*RUNTIME)]
    # Of settings that are not numbers; none is 1 where the target's own holds.
    values = [f"{name}={value}" for name in SETTABLE if name != "threads" for value in VALUES[name]]
    return FeatureSchema("graph/selection", 2, (*OF_SELECTION, *rewrites, *out, *values, *COUNTS, *SHARES))


def selection_features(model: Features | None, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
    """Describe selections; (selections, width of `selection_schema()`).

    Raises:
        ScheduleError: one is not in the order of the steps.
        ProgramError: one has an unknown pass.
    """
    import numpy as np  # here: to import it takes long

    found = np.zeros((len(candidates), selection_schema().width), np.float32)
    if model is not None:
        counts = [log2(1 + getattr(model, name)) for name in COUNTS]
        shares = [getattr(model, name) for name in SHARES]
        found[:, -len(counts) - len(shares) :] = [*counts, *shares]
    for row, candidate in zip(found, candidates, strict=True):
        _describe(row, selection_of(candidate))
    return found


def _describe(row: NDArray[np.float32], chosen: Selection) -> None:
    names, settings = chosen.rewrites, chosen.session
    threads = int(settings.get("threads", 0))
    row[: len(OF_SELECTION)] = len(names), len(chosen.disabled), chosen.offline, threads
    for index, name in enumerate(names):
        column = _column()[f"times {name}"]
        row[column] += 1
        row[column + 1] = row[column + 1] or index + 1
        # Overwritten each time it comes: what stays is of the last index.
        row[column + 2] = len(names) - index
    for name in chosen.disabled:
        row[_column()[f"without {name}"]] = 1
    for name, value in settings.items():
        if name != "threads":
            row[_column()[f"{name}={value}"]] = 1


@cache
def _column() -> dict[str, int]:
    return {name: index for index, name in enumerate(selection_schema().names)}


LONGEST = 8
"""Rewriting passes of the longest list."""

_MORE = 0.3
"""The chance that a sample has no further rewriting pass; so it has some two."""

_OUT = 0.5
"""The chance that a sample leaves out another one of the runtime's passes; so it mostly leaves out one."""


@dataclass(frozen=True)
class PassVocabulary:
    """Vocabulary of selections: the passes and settings that they are made of."""

    rewrites: tuple[str, ...]
    disables: tuple[str, ...]
    offline: bool = False
    settings: tuple[Set, ...] = ()


class SelectionSpace(Space):
    """Selections of graph passes; every one is legal.

    Args:
        vocabulary: makes the vocabulary; it is called at the first draw, since finding out which
            passes matter takes time.
        name: names the model that some rewriting passes make: equal names mean equal models. It takes the
            passes' time; None: lists name themselves, and an evaluator finds out which models are equal.
        seeds: returns selections that are known to be good for models like this one, the best first, among
            them those transferred from other models.
        start: the selection to begin with; what it leaves out of the runtime, every one does.
    """

    def __init__(
        self,
        vocabulary: Callable[[], PassVocabulary],
        name: Callable[[tuple[str, ...]], str] | None = None,
        seeds: Callable[[Sequence[Candidate]], Sequence[Selection]] = lambda _: (),
        longest: int = LONGEST,
        model: Callable[[], Features | None] = lambda: None,
        start: Selection = Selection(),  # noqa: B008
    ) -> None:
        self._start, self._name = start, name
        self._make_vocabulary, self._model_features, self._seeds_with = vocabulary, cache(model), seeds
        self._builtin_seeds = frozenset(self.seeds())
        self._longest = longest

    @cached_property
    def vocabulary(self) -> PassVocabulary:
        """Return the passes and settings that selections are made of."""
        made = self._make_vocabulary()
        return replace(made, disables=tuple(n for n in made.disables if n not in self._start.disabled))

    def start(self) -> Candidate:
        """Return the file as it came, under the runtime's defaults."""
        return self._start.candidate

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> Sequence[Candidate]:
        """List what is known to be good for models like this one, the best first."""
        return tuple(dict.fromkeys(seed.candidate for seed in self._seeds_with(context.warm_start)))

    def focused(self, candidates: Sequence[Candidate]) -> SelectionSpace:
        """Return this space: it draws all passes alike."""
        del candidates
        return self

    def state_key(self, candidate: Candidate) -> str:
        """Name the rewritten model and how the runtime loads it, where the space names models; else the list.

        Seeds are named by their lists, so that the first is measured sooner; but not those transferred
        from other models.
        """
        if self._name is None or candidate in self._builtin_seeds:
            return candidate.hash
        chosen = selection_of(candidate)
        rest = replace(chosen, rewrites=()).candidate.hash
        return f"{self._name(chosen.rewrites)}:{rest}"

    def steps(self, candidate: Candidate) -> Sequence[Step]:
        """List every pass that can be added or left out, and every setting that is still the target's."""
        chosen, vocabulary = selection_of(candidate), self.vocabulary
        more = vocabulary.rewrites if len(chosen.rewrites) < self._longest else ()
        out = [name for name in vocabulary.disables if chosen.optimizes and name not in chosen.disabled]
        offline = [Offline()] if vocabulary.offline and not chosen.offline and not chosen.elsewhere else []
        # A setting may make others idle, which leave the candidate then: that is not a step further.
        settings = [
            each
            for each in vocabulary.settings
            if each.name not in chosen.session
            and len(_having(chosen, each).candidate.steps) > len(candidate.steps)
        ]
        return [*map(ApplyPass, more), *map(Disable, out), *offline, *settings]

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        """Append a rewriting pass to the others, leave out one more of the runtime's, or set the session."""
        chosen = selection_of(candidate)
        match step:
            case ApplyPass(name):
                return replace(chosen, rewrites=(*chosen.rewrites, name)).candidate
            case Disable(name):
                return replace(chosen, disabled=chosen.disabled | {name}).candidate
            case Set():
                return _having(chosen, step).candidate
            case _:
                return replace(chosen, offline=True).candidate

    def sample(self, rng: Generator) -> Candidate:
        """Draw a length, the longer the rarer, the passes, what is left out, and few or no settings."""
        vocabulary = self.vocabulary
        count = min(int(rng.geometric(_MORE)) - 1, self._longest) if vocabulary.rewrites else 0
        out = min(int(rng.geometric(_OUT)), len(vocabulary.disables))
        chosen = Selection(
            tuple(_drawn(vocabulary.rewrites, count, rng)),
            frozenset(rng.choice(vocabulary.disables, out, replace=False).tolist() if out else ()),
            vocabulary.offline and bool(rng.random() < _OUT),
        )
        for _ in range(int(rng.geometric(_OUT)) - 1 if vocabulary.settings else 0):
            chosen = _set(chosen, vocabulary, rng)
        return self._made(chosen)

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Insert, replace, delete or swap a rewriting pass, or change what the runtime does: each alike."""
        chosen, vocabulary = selection_of(candidate), self.vocabulary
        changes: list[Callable[[], Selection]] = []
        if vocabulary.rewrites and len(chosen.rewrites) < self._longest:
            changes.append(partial(_spliced, chosen, vocabulary, rng, removed=0, added=1))
        if vocabulary.rewrites and chosen.rewrites:
            changes.append(partial(_spliced, chosen, vocabulary, rng, removed=1, added=1))
            changes.append(partial(_spliced, chosen, vocabulary, rng, removed=1, added=0))
        # Of equal passes, a swap makes the same list.
        if len(set(chosen.rewrites)) > 1:
            changes.append(partial(_swapped, chosen, rng))
        if vocabulary.disables and chosen.optimizes:
            disables = vocabulary.disables
            toggle = lambda: replace(chosen, disabled=chosen.disabled ^ {*_drawn(disables, 1, rng)})  # noqa: E731
            changes += [toggle] * 2
        if vocabulary.offline:
            changes.append(lambda: replace(chosen, offline=not chosen.offline))
        if vocabulary.settings:
            changes.append(partial(_set, chosen, vocabulary, rng))
        return self._made(changes[int(rng.integers(len(changes)))]()) if changes else candidate

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Cut each list at a point and swap the rests; deal out what only one leaves out, and settings."""
        one, other = selection_of(a), selection_of(b)
        cut, other_cut = (int(rng.integers(len(each.rewrites) + 1)) for each in (one, other))
        both = one.disabled & other.disabled
        # Sorted: the order of a set of strings is another in each process, and the draws would be.
        dealt = {name for name in sorted(one.disabled ^ other.disabled) if rng.random() < _OUT}
        rest = (one.disabled ^ other.disabled) - dealt
        first = one.rewrites[:cut] + other.rewrites[other_cut:]
        second = other.rewrites[:other_cut] + one.rewrites[cut:]
        first_settings, second_settings = _dealt(one.settings, other.settings, rng)
        return (
            self._made(Selection(first[: self._longest], both | dealt, one.offline, first_settings)),
            self._made(Selection(second[: self._longest], both | rest, other.offline, second_settings)),
        )

    def selected(self, candidate: Candidate, indices: Sequence[int]) -> Candidate:
        """Return the steps at these indices alone; every list is legal."""
        return Candidate(tuple(candidate.steps[index] for index in indices))

    @property
    def schema(self) -> FeatureSchema:
        """Return the schema of `features`; see `planish.levels.graph.space`."""
        return selection_schema()

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe selections, and the model that they are for."""
        return selection_features(self._model_features(), candidates)

    def _made(self, chosen: Selection) -> Candidate:
        return chosen.leaving_out(self._start.disabled).candidate


def _drawn(names: Sequence[str], count: int, rng: Generator) -> list[str]:
    return [names[int(index)] for index in rng.integers(len(names), size=count)] if count else []


def _spliced(
    chosen: Selection, vocabulary: PassVocabulary, rng: Generator, *, removed: int, added: int
) -> Selection:
    """Remove and add a number of rewriting passes at one index."""
    names = chosen.rewrites
    index = int(rng.integers(len(names) + 1 - removed))
    new = _drawn(vocabulary.rewrites, added, rng)
    return replace(chosen, rewrites=(*names[:index], *new, *names[index + removed :]))


def _swapped(chosen: Selection, rng: Generator) -> Selection:
    names = list(chosen.rewrites)
    here, there = rng.integers(len(names), size=2).tolist()
    names[here], names[there] = names[there], names[here]
    return replace(chosen, rewrites=tuple(names))


def _having(chosen: Selection, setting: Set) -> Selection:
    return replace(chosen, settings=chosen.settings | {setting})


def _set(chosen: Selection, vocabulary: PassVocabulary, rng: Generator) -> Selection:
    """Change one setting of the session; the target's own is one of them."""
    names = list(dict.fromkeys(each.name for each in vocabulary.settings))
    name = _drawn(names, 1, rng)[0]
    rest = frozenset(each for each in chosen.settings if each.name != name)
    values = [rest, *(rest | {each} for each in vocabulary.settings if each.name == name)]
    others = [each for each in values if each != chosen.settings]
    return replace(chosen, settings=others[int(rng.integers(len(others)))])


def _dealt(
    one: frozenset[Set], other: frozenset[Set], rng: Generator
) -> tuple[frozenset[Set], frozenset[Set]]:
    """Swap settings of some names."""
    swapped = {name for name in sorted({each.name for each in one | other}) if rng.random() < _OUT}
    moved = frozenset(each for each in one ^ other if each.name in swapped)
    return one ^ moved, other ^ moved


def settings_of(task: Task[GraphProgram]) -> SessionSettings:
    """Return the settings of a task's sessions, where a candidate does not change them."""
    return SessionSettings.of(task.target.cores, task.target.toolchain)


def widest_settings(task: Task[GraphProgram]) -> SessionSettings:
    """Return the settings with which ONNX Runtime runs as many passes as for any candidate of a task."""
    settings = settings_of(task).of_onnxruntime
    return replace(settings, optimization="all") if task.program.session else settings


def settable(task: Task[GraphProgram]) -> tuple[Set, ...]:
    """List the settings that candidates may change; none where the user did not ask for that."""
    own, program = settings_of(task), task.program
    # Where results may change, another runtime may compute in bfloat16.
    narrow = (program.providers or own.elsewhere) and _may_change(task) and not program.allow
    runtimes = ((OPENVINO,) if program.providers else ()) + ((OPENVINO_BFLOAT16,) if narrow else ())
    threads = tuple(str(count) for count in range(1, own.cores))
    values = {**VALUES, "threads": threads, "provider": runtimes}
    if own.cores == 1:
        values["execution"] = ()
    asked = {name for name in SETTABLE if name == "provider" or program.session}
    if own.elsewhere:
        asked &= {"threads", "provider"}  # the others are settings of ONNX Runtime
    return tuple(
        Set(name, value)
        for name in SETTABLE
        for value in values[name]
        if name in asked and value != own.values[name]
    )


def inexact(task: Task[GraphProgram]) -> tuple[str, ...]:
    """List the passes that change results which candidates may have.

    Those that the user named; or, where accuracy is an objective or has a tolerance, all of them.
    """
    every = tuple(each.name for each in passes_of_kind("intent"))
    return task.program.allow or (every if _may_change(task) else ())


def _may_change(task: Task[GraphProgram]) -> bool:
    # Accuracy is an objective, or has a tolerance.
    return task.program.tolerance is not None or any(each.name == "accuracy" for each in task.objectives)


def space_of(task: Task[GraphProgram], name: str) -> SelectionSpace:
    """Make a space of a task.

    Args:
        task: the model; by its objectives, files may be optimized offline or not.
        name: "relevant": of the passes that change this model; "exact": the same, where models are equal that
            some lists make, and to find that out takes the passes' time; "all": of every pass.
    """
    program = task.program
    elsewhere = settings_of(task).elsewhere
    offline = any(objective.name == "compile_time" for objective in task.objectives) and not elsewhere
    settings, changes = widest_settings(task), settable(task)
    probe = PassProbe(program, settings)

    def vocabulary() -> PassVocabulary:
        if name == "all":
            rewrites, out = ([each.name for each in passes_of_kind(*kinds)] for kinds in (EXACT, RUNTIME))
        else:
            found = remembered(program, settings, partial(analyze, probe))
            rewrites, out = found.rewrites, found.runtime
        # Another runtime runs none of ONNX Runtime's passes.
        return PassVocabulary((*rewrites, *inexact(task)), () if elsewhere else tuple(out), offline, changes)

    return SelectionSpace(
        vocabulary,
        probe.state_key if name == "exact" else None,
        partial(seeds_of, task),
        model=lambda: recognition_of(program).features,
        start=program.baseline,
    )


def seeds_of(task: Task[GraphProgram], transferred: Sequence[Candidate] = ()) -> Sequence[Selection]:
    """List what a search begins with.

    That is the baseline, what was transferred from other models of the class, the class's lists, what is good
    for most models, and each setting that candidates may change, alone; but threads, which are many.
    """
    lists = class_lists(task.program)
    settings = settable(task)
    changes = [Selection(settings=frozenset({each})) for each in settings if each.name != "threads"]
    found = [Selection(), *map(selection_of, transferred), *lists, *GOOD_LISTS, *changes]
    narrow = [Selection((*first, name)) for name in inexact(task) for first in ((), GOOD_LISTS[0].rewrites)]
    found += narrow
    for runtime, more in ((BY_OPENVINO, narrow), (IN_BFLOAT16, ())):
        if runtime in settings:
            found += [replace(each, settings=frozenset({runtime})) for each in (*GOOD_LISTS, *lists, *more)]
    if any(objective.name == "compile_time" for objective in task.objectives):
        found += [replace(each, offline=True) for each in found]
    return fitting(task, found)


def fitting(task: Task[GraphProgram], found: Sequence[Selection]) -> Sequence[Selection]:
    """Keep of selections the rewriting passes alone where the target is another runtime.

    Of ONNX Runtime's passes those are left out with which it answers wrongly.
    """
    if not settings_of(task).elsewhere:
        return list(dict.fromkeys(each.leaving_out(task.program.without) for each in found))
    return list(dict.fromkeys(Selection(each.rewrites, settings=each.settings) for each in found))
