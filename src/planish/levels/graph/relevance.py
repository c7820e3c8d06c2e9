"""Relevance of passes for a model: which ones change it, alone or after each other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from planish.core import PlanishError, content_hash
from planish.levels.graph.installed import versions
from planish.levels.graph.pass_probe import PassProbe, PassProbeError
from planish.levels.graph.passes import EXACT, RUNTIME, Kind, find_pass, passes, passes_of_kind
from planish.levels.graph.program import GraphProgram, user_cache
from planish.levels.graph.sessions import SessionSettings


@dataclass(frozen=True)
class Relevance:
    """Relevance of a catalogue's passes for one model.

    Args:
        alone: rewriting passes that change the model as it came.
        after: rewriting passes that do not, and change it after others: name to those others.
        failing: rewriting passes that fail on it: name to reason.
        runtime: the runtime's passes that change it, as it came or after a rewriting pass.
        without: passes that change nothing, of all kinds.
        untried: rewriting passes that there was no time for; they may matter.
        pairs: how many pairs of passes were looked at.
        unknown: how many were not, since the time was over.
        seconds: of a processor that it took.
        missing: transformers of the catalogue that the installed runtime does not have; it would ignore them.
        problems: what was not determined, and why; the passes that it concerns count as relevant.
    """

    alone: tuple[str, ...]
    after: Mapping[str, str] = field(default_factory=dict[str, str])
    failing: Mapping[str, str] = field(default_factory=dict[str, str])
    runtime: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    pairs: int = 0
    unknown: int = 0
    seconds: float = 0.0
    missing: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether there was time for everything, and an answer."""
        return not self.untried and not self.unknown and not self.problems

    @property
    def rewrites(self) -> tuple[str, ...]:
        """The rewriting passes that matter, those that matter alone first, and those that may."""
        return (*self.alone, *self.after, *self.untried)

    @property
    def kept(self) -> int:
        """Return how many passes matter."""
        return len(self.rewrites) + len(self.runtime)

    @property
    def known(self) -> int:
        """Return how many passes there are."""
        return self.kept + len(self.without) + len(self.failing)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; `from_json` is its inverse."""
        return dict(vars(self))

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Relevance:
        """Read the JSON form."""
        read: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        return Relevance(**read)


def known_relevance(program: GraphProgram, settings: SessionSettings) -> Relevance | None:
    """Return the stored relevance of passes for a model, in such a session; None where there is none."""
    known = user_cache().get_json(f"{cache_key(program, settings)}.json")
    try:
        return None if known is None else Relevance.from_json(known)
    except (TypeError, AttributeError):  # of another version of planish
        return None


def remembered(
    program: GraphProgram,
    settings: SessionSettings,
    find_out: Callable[[], Relevance],
    *,
    complete: bool = False,
) -> Relevance:
    """Return the relevance of passes for a model; determine and store it where none is stored.

    Args:
        program: the model; its content, the libraries' versions and the catalogue decide what is known.
        settings: of the session; so do its level and its provider.
        complete: whether it is called too where there was no time for all.
    """
    known = known_relevance(program, settings)
    if known is not None and (known.is_complete or not complete):
        return known
    found = find_out()
    # Where it cannot be kept, as on a full disk, the next run finds it out again.
    user_cache().put_json(f"{cache_key(program, settings)}.json", found.to_json())
    return found


def cache_key(program: GraphProgram, settings: SessionSettings) -> str:
    """Return the key of what is known of a model's passes, in the user's cache."""
    session = (settings.optimization, settings.provider)
    # Another library, catalogue or session may change other things: what is known of one is not known of the
    # next.
    made_by = content_hash(json.dumps([dict(versions()), list(passes()), session]))[:8]
    return f"{program.digest}-{made_by}"


T = TypeVar("T")

_BUSY = 2.5
"""Wall time allowed on a busy machine, as a multiple of the processor time."""


BUDGET_S = 6.0
"""Seconds of a processor after which what is not yet looked at stays unknown."""
THOROUGH_S = 20.0
"""The same where no search waits for it."""
_RULES, _ALONE = 0.2, 0.7
"""The shares of them after which the runtime's rules, and passes alone, stay unknown."""
_AFTER = 3
"""Rewriting passes, those that leave the fewest nodes, after which the runtime's passes are looked at."""


def analyze(probe: PassProbe, budget_s: float = BUDGET_S) -> Relevance:
    """Find out which passes change a model at all, alone and after each other (section 3.2 of the paper).

    First each rewriting pass is tried alone; then each that changed nothing, after those that did. A pass is
    not tried on a model that lacks its operators, and counts as failing where the runtime refuses its result.
    Whatever goes wrong is noted, and passes about which too little is known may matter.

    Args:
        budget_s: seconds of a processor for all.
    """
    try:
        return _Analysis(probe, budget_s).run()
    except Exception as error:  # noqa: BLE001
        every, runtime = _names(*EXACT), _names(*RUNTIME)
        reason = error.message if isinstance(error, PlanishError) else f"{type(error).__name__}: {error}"
        return Relevance((), runtime=runtime, untried=every, problems=(f"the model as it came: {reason}",))


def _names(*kinds: Kind) -> tuple[str, ...]:
    return tuple(each.name for each in passes_of_kind(*kinds))


class _Analysis:
    """Passes that matter, as far as is known; a question without an answer is a problem, and not the end."""

    def __init__(self, probe: PassProbe, budget_s: float) -> None:
        self._probe, self._budget_s = probe, budget_s
        self._before, self._start = probe.spent, time.monotonic()
        self._counts: dict[tuple[str, ...], Mapping[str, int] | None] = {}
        self._original = probe.model_key(())
        self._alone: list[str] = []
        self._after: dict[str, str] = {}
        self._failing: dict[str, str] = {}
        self._there: set[str] = set()
        self._runtime: set[str] = set()
        self._problems: list[str] = []

    def run(self) -> Relevance:
        """Try all passes."""
        self._look_at_runtime()
        rules = [name for name in _names("rule") if self._may_matter(name)]
        looked = self._within(_RULES, rules, self._try_rule)
        names = _names(*EXACT)
        # Alone before after each other: there are as many of these as passes, and of pairs their square.
        tried = self._within(_ALONE, names, self._try_alone)
        # First what leaves the fewest nodes.
        ranked = sorted(self._alone, key=lambda name: sum((self._seen(name) or {}).values()))
        self._within(1, ranked[:_AFTER], self._look_at_runtime)
        # Only those that were tried alone: of the others nothing is known yet.
        rest = [name for name in names[:tried] if not self._is_known(name)]
        pairs = [(first, name) for first in ranked for name in rest if self._may_matter(name, first)]
        done = self._within(1, pairs, self._try_after)
        # Without an answer a rule may matter.
        matter = self._runtime.union(rules[looked:])
        untried = tuple(name for name in names[tried:] if self._may_matter(name))
        silent = [name for name in names if not self._is_known(name) and name not in untried]
        missing = [name for name in _names("transformer") if self._there and name not in self._there]
        return Relevance(
            alone=tuple(self._alone),
            after=self._after,
            failing=self._failing,
            runtime=tuple(name for name in _names(*RUNTIME) if name in matter),
            without=(*silent, *(name for name in _names(*RUNTIME) if name not in matter)),
            untried=untried,
            pairs=done,
            unknown=len(pairs) - done,
            seconds=self._probe.spent - self._before,
            missing=tuple(missing),
            problems=tuple(self._problems),
        )

    def _within(self, share: float, things: Sequence[T], work: Callable[[T], None]) -> int:
        """Work through things until a share of the time is over; return how many were done."""
        for done, thing in enumerate(things):
            # Both: a process that hangs uses no processor, and would never be over.
            spent = max(self._probe.spent - self._before, (time.monotonic() - self._start) / _BUSY)
            if spent > share * self._budget_s:
                return done
            work(thing)
        return len(things)

    def _is_known(self, name: str) -> bool:
        return name in self._alone or name in self._after or name in self._failing

    def _seen(self, *rewrites: str) -> Mapping[str, int] | None:
        """Count the nodes after some passes; None where they cannot be counted."""
        if rewrites not in self._counts:
            try:
                self._counts[rewrites] = self._probe.counts(rewrites)
            except PassProbeError as error:
                self._counts[rewrites] = None
                self._problems.append(f"nodes after {', '.join(rewrites) or 'no pass'}: {error.message}")
        return self._counts[rewrites]

    def _may_matter(self, name: str, *before: str) -> bool:
        """Return whether the model has operators that a pass looks for, as it came or after another pass."""
        seen = self._seen(*before)
        return seen is None or find_pass(name).may_matter(frozenset(seen))

    def _try_alone(self, name: str) -> None:
        if not self._may_matter(name):
            return
        try:
            if self._probe.model_key((name,)) != self._original:
                self._probe.load((name,))
                self._alone.append(name)
        except PassProbeError as error:
            self._failing[name] = error.message

    def _try_after(self, pair: tuple[str, str]) -> None:
        first, name = pair
        if self._is_known(name):
            return
        try:
            if self._probe.model_key(pair) != self._probe.model_key((first,)):
                self._probe.load(pair)
                self._after[name] = first
        except PassProbeError as error:
            self._failing[name] = f"after {first}: {error.message}"

    def _look_at_runtime(self, *rewrites: str) -> None:
        """Note the transformers that change the model after some rewriting passes."""
        try:
            found = self._probe.effective(rewrites)
        except PassProbeError as error:
            after = ", ".join(rewrites) or "none"
            self._problems.append(f"the runtime's passes after {after}: {error.message}")
            return
        self._there |= found.keys()
        self._runtime |= {name for name, modified in found.items() if modified}

    @cached_property
    def _optimized(self) -> str:
        """The identity of what the runtime makes of the model as it came; empty where there is no answer."""
        try:
            return self._probe.optimized(()).key
        except PassProbeError as error:
            self._problems.append(f"the model that the runtime makes: {error.message}")
            return ""

    def _try_rule(self, name: str) -> None:
        """Note a rule without which the runtime makes something else of the model as it came."""
        whole = self._optimized
        try:
            matters = not whole or self._probe.optimized((), [name]).key != whole
        except PassProbeError:  # to leave it out is a candidate's failure, in its turn
            matters = True
        if matters:
            self._runtime.add(name)
