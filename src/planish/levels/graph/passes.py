"""Catalogue of graph passes, steps of the level, and selections of passes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from planish.core import Candidate, ProgramError, ScheduleError, Step, did_you_mean
from planish.levels.graph.installed import OPENVINO, OPENVINO_BFLOAT16, SETTINGS

Kind = Literal["onnxoptimizer", "onnxscript", "planish", "intent", "rule", "transformer"]
"""Whose pass it is; `rule` and `transformer` are ONNX Runtime's. What a user must intend changes results."""

EXACT: tuple[Kind, ...] = ("onnxoptimizer", "onnxscript", "planish")
"""Those that make a model which computes the same."""
REWRITING: tuple[Kind, ...] = (*EXACT, "intent")
RUNTIME: tuple[Kind, ...] = ("rule", "transformer")


@dataclass(frozen=True)
class GraphPass:
    """One pass.

    Args:
        name: names it everywhere: "onnxoptimizer.fuse_bn_into_conv", "NchwcTransformer".
        what: what it does, in one line.
        when: types of operators, without one of which it changes nothing; empty: it may always matter.
        opset: the oldest that has all operators which it makes.
    """

    name: str
    kind: Kind
    what: str
    when: tuple[str, ...] = ()
    opset: int = 1

    @property
    def is_rewriting(self) -> bool:
        """Return whether it makes another model of a model; the others work inside ONNX Runtime."""
        return self.kind in REWRITING

    @property
    def is_intended(self) -> bool:
        """Return whether it changes results, and is off unless a user asks for it."""
        return self.kind == "intent"

    def may_matter(self, operators: frozenset[str]) -> bool:
        """Return whether it may change a model of operators of these types."""
        return not self.when or not operators.isdisjoint(self.when)


@cache
def passes() -> Mapping[str, GraphPass]:
    """Return the catalogue: name to pass, in a fixed order."""
    return {row["name"]: GraphPass(**row | {"when": tuple(row["when"])}) for row in _data()["passes"]}


@cache
def passes_of_kind(*kinds: Kind) -> tuple[GraphPass, ...]:
    """List the passes of some kinds, in the catalogue's order."""
    return tuple(each for each in passes().values() if each.kind in kinds)


@cache
def exclusions() -> Mapping[str, str]:
    """Return the passes that are kept out: name to reason."""
    return _data()["excluded"]


def find_pass(name: str) -> GraphPass:
    """Look a pass up.

    Raises:
        ProgramError: it is unknown, or kept out; with the reason.
    """
    if found := passes().get(name):
        return found
    if name in exclusions():
        raise ProgramError(f"pass '{name}' is kept out", f"Reason: {exclusions()[name]}.")
    raise ProgramError(f"unknown pass '{name}'", did_you_mean(name, passes()))


def _data() -> dict[str, Any]:
    return json.loads((files("planish.levels.graph") / "catalogue.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class ApplyPass(Step):
    """Make another model by a rewriting pass."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Disable(Step):
    """Keep ONNX Runtime from a pass of its own; all others it runs as it does by default."""

    name: str

    def __str__(self) -> str:
        return f"without {self.name}"


@dataclass(frozen=True)
class Offline(Step):
    """Optimize once: what ONNX Runtime makes is kept as a file, and loaded as it is."""

    def __str__(self) -> str:
        return "offline"


SETTABLE = ("optimization", "execution", "arena", "threads", "provider")
"""The settings of a session that a candidate may change."""
VALUES = {**SETTINGS, "provider": (OPENVINO, OPENVINO_BFLOAT16)}
"""Values that it may set them to; threads are a number."""


@dataclass(frozen=True)
class Set(Step):
    """Run in a session that has one setting other than the target's."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


UNOPTIMIZED = Set("optimization", "none")
"""Sets ONNX Runtime to do nothing of its own."""
ONE_THREAD = Set("threads", "1")
BY_OPENVINO = Set("provider", OPENVINO)
"""Runs in another runtime, to which no setting of ONNX Runtime matters."""
IN_BFLOAT16 = Set("provider", OPENVINO_BFLOAT16)
"""The same, with numbers of 16 bits inside: results change."""

STEPS: Mapping[str, type[Step]] = {"ApplyPass": ApplyPass, "Disable": Disable, "Offline": Offline, "Set": Set}


@dataclass(frozen=True)
class Selection:
    """Selection of passes and settings; `Selection()` is the file as it came, under ONNX Runtime's defaults.

    Args:
        rewrites: rewriting passes in their order; one may come again.
        disabled: ONNX Runtime's passes that are left out.
        offline: whether the runtime's work is done once, and kept.
        settings: of the session, where they are not the target's; one of a name.
    """

    rewrites: tuple[str, ...] = ()
    disabled: frozenset[str] = frozenset()
    offline: bool = False
    settings: frozenset[Set] = frozenset()

    @property
    def candidate(self) -> Candidate:
        """The candidate: the rewriting passes, then what is left out in the catalogue's order, then the rest.

        Where the session is set to optimize nothing, there is nothing to leave out; where it is set to one
        thread, ONNX Runtime runs nothing in parallel; another runtime has none of these settings.
        """
        out = sorted(self.disabled, key=_positions().__getitem__) if self.optimizes else []
        offline = [Offline()] if self.offline and not self.elsewhere else []
        idle = ["execution"] if ONE_THREAD in self.settings else []
        idle += ["optimization", "execution", "arena"] if self.elsewhere else []
        settings = sorted((s for s in self.settings if s.name not in idle), key=lambda each: each.name)
        return Candidate((*map(_rewrite, self.rewrites), *map(_disable, out), *offline, *settings))

    @property
    def session(self) -> Mapping[str, str]:
        """The settings that are not the target's: name to value."""
        return {each.name: each.value for each in self.settings}

    @property
    def optimizes(self) -> bool:
        """Return whether ONNX Runtime optimizes: it is not set to do nothing, nor another runtime chosen."""
        return UNOPTIMIZED not in self.settings and not self.elsewhere

    @property
    def elsewhere(self) -> bool:
        """Return whether it is set to another runtime than ONNX Runtime."""
        return not self.settings.isdisjoint((BY_OPENVINO, IN_BFLOAT16))

    def leaving_out(self, names: Collection[str]) -> Selection:
        """Leave out more of the runtime's passes, where it is ONNX Runtime that optimizes."""
        return replace(self, disabled=self.disabled.union(names)) if self.optimizes else self

    @property
    def changes(self) -> tuple[str, ...]:
        """Return the choices that may change results: the rewriting passes, and the values of settings."""
        return (*self.rewrites, *self.session.values())


def selection(
    rewrites: Iterable[str] = (),
    disabled: Collection[str] = (),
    *,
    offline: bool = False,
    settings: Collection[Set] = (),
) -> Selection:
    """Make a selection of names.

    Raises:
        ProgramError: a pass is unknown or kept out; a setting or its value is unknown.
        ScheduleError: a pass is not of the kind that its position takes; a setting is there twice.
    """
    chosen = Selection(tuple(rewrites), frozenset(disabled), offline, frozenset(settings))
    for name in (*chosen.rewrites, *chosen.disabled):
        if find_pass(name).is_rewriting == (name in chosen.disabled):
            where = "left out of ONNX Runtime" if name in chosen.disabled else "run before ONNX Runtime"
            raise ScheduleError(f"pass '{name}' cannot be {where}")
    for each in chosen.settings:
        name, value = each.name, each.value
        if name not in SETTABLE:
            raise ProgramError(f"unknown setting '{name}'", did_you_mean(name, SETTABLE))
        if name == "threads" and not re.fullmatch("[1-9][0-9]*", value):
            raise ProgramError(f"threads cannot be '{value}'", "Give a number from 1.")
        if name != "threads" and value not in VALUES[name]:
            raise ProgramError(f"{name} cannot be '{value}'", did_you_mean(value, VALUES[name]))
    if len(chosen.session) < len(chosen.settings):
        raise ScheduleError(f"a setting is there twice: {', '.join(sorted(map(str, settings)))}")
    return chosen


def selection_of(candidate: Candidate) -> Selection:
    """Read a candidate.

    Raises:
        ProgramError: a pass is unknown or kept out; a setting or its value is unknown.
        ScheduleError: the steps are not in their order: `ApplyPass`, `Disable`, `Offline`, `Set`.
    """
    steps = candidate.steps
    found = selection(
        [step.name for step in steps if isinstance(step, ApplyPass)],
        [step.name for step in steps if isinstance(step, Disable)],
        offline=Offline() in steps,
        settings=[step for step in steps if isinstance(step, Set)],
    )
    # One selection has one candidate: else the store would know it under several hashes.
    if found.candidate != candidate:
        raise ScheduleError(f"not in canonical order: {candidate}", f"Write it so: {found.candidate}.")
    return found


_rewrite, _disable = cache(ApplyPass), cache(Disable)


@cache
def _positions() -> Mapping[str, int]:
    return {name: index for index, name in enumerate(passes())}
