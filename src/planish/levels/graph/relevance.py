"""Relevance of passes for a model: which ones change it, alone or after each other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from planish.core import PlanishError, content_hash
from planish.levels.graph.installed import versions
from planish.levels.graph.pass_probe import PassProbe, PassProbeError
from planish.levels.graph.passes import EXACT, find_pass, passes, passes_of_kind
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
        problems: what could not be found out, and why; what it concerns counts as what may matter.
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
    """Return what is known of a model, in such a session; None where nothing is."""
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
    """Return what is known of a model; find it out and keep it, where nothing is.

    Args:
        program: the model; its content, the libraries' versions and the catalogue decide what is known.
        settings: of the session; so do its level and its provider.
        find_out: is called where nothing is known.
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
"""On a machine that is busy with other work, so many times as long by the clock."""


class CpuBudget:
    """Budget of processor time, so that a busy machine leaves nothing out.

    Args:
        probe: its time is counted.
        seconds: of a processor.
    """

    def __init__(self, probe: PassProbe, seconds: float) -> None:
        self._probe, self._seconds = probe, seconds
        self._before, self._start = probe.spent, time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds of a processor, so far."""
        return self._probe.spent - self._before

    def __call__(self, share: float, things: Sequence[T], work: Callable[[T], None]) -> int:
        """Work through things while there is time; return how many were done.

        Args:
            share: of the time, after which it is over.
            things: what to work through.
            work: on one of them.
        """
        for done, thing in enumerate(things):
            # Both: a process that hangs uses no processor, and would never be over.
            spent = max(self.spent, (time.monotonic() - self._start) / _BUSY)
            if spent > share * self._seconds:
                return done
            work(thing)
        return len(things)


class Rewriting:
    """Rewriting passes that matter, as far as is known.

    Attributes:
        problems: questions that got no answer, and why.
    """

    def __init__(self, probe: PassProbe) -> None:
        self._probe = probe
        self._counts: dict[tuple[str, ...], Mapping[str, int] | None] = {}
        self._original = probe.model_key(())
        self.alone: list[str] = []
        self.after: dict[str, str] = {}
        self.failing: dict[str, str] = {}
        self.problems: list[str] = []

    def is_known(self, name: str) -> bool:
        """Return whether a pass is known to do something, be it to fail."""
        return name in self.alone or name in self.after or name in self.failing

    def may_matter(self, name: str, *before: str) -> bool:
        """Return whether the model has operators that a pass looks for, as it came or after another pass."""
        seen = self._seen(before)
        return seen is None or find_pass(name).may_matter(frozenset(seen))

    def ranked(self) -> list[str]:
        """List what matters alone; first what leaves the fewest nodes."""
        return sorted(self.alone, key=lambda name: sum((self._seen((name,)) or {}).values()))

    def try_alone(self, name: str) -> None:
        """Try a pass on the model as it came."""
        if not self.may_matter(name):
            return
        try:
            if self._probe.model_key((name,)) != self._original:
                self._probe.load((name,))
                self.alone.append(name)
        except PassProbeError as error:
            self.failing[name] = error.message

    def pairs(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """List what is to be tried after what."""
        rest = [name for name in names if not self.is_known(name)]
        return [(first, name) for first in self.ranked() for name in rest if self.may_matter(name, first)]

    def try_after(self, pair: tuple[str, str]) -> None:
        """Try a pass after another one, unless it is known to matter."""
        first, name = pair
        if self.is_known(name):
            return
        try:
            if self._probe.model_key(pair) != self._probe.model_key((first,)):
                self._probe.load(pair)
                self.after[name] = first
        except PassProbeError as error:
            self.failing[name] = f"after {first}: {error.message}"

    def _seen(self, rewrites: tuple[str, ...]) -> Mapping[str, int] | None:
        """Count the nodes after some passes; None where they cannot be counted."""
        if rewrites not in self._counts:
            try:
                self._counts[rewrites] = self._probe.counts(rewrites)
            except PassProbeError as error:
                self._counts[rewrites] = None
                self.problems.append(f"nodes after {', '.join(rewrites) or 'no pass'}: {error.message}")
        return self._counts[rewrites]


class Runtime:
    """The runtime's own passes that matter, as far as is known.

    Attributes:
        problems: questions that got no answer, and why.
    """

    def __init__(self, probe: PassProbe) -> None:
        self._probe = probe
        self._there: set[str] = set()
        self._fired: set[str] = set()
        self._whole: str | None = None
        self.problems: list[str] = []

    def look(self, rewrites: tuple[str, ...]) -> None:
        """Note the transformers that change the model after some rewriting passes."""
        try:
            found = self._probe.effective(rewrites)
        except PassProbeError as error:
            self.problems.append(
                f"the runtime's passes after {', '.join(rewrites) or 'none'}: {error.message}"
            )
            return
        self._there |= found.keys()
        self._fired |= {name for name, modified in found.items() if modified}

    def try_rule(self, name: str) -> None:
        """Note a rule without which the runtime makes something else of the model as it came."""
        if self._whole is None:
            self._whole = self._optimised()
        try:
            rest = self._probe.optimised((), [name]).key
        except PassProbeError:  # to leave it out is a candidate's failure, in its turn
            rest = ""
        # Without an answer the rule may matter.
        if not rest or rest != self._whole:
            self._fired.add(name)

    def _optimised(self) -> str:
        """Name what the runtime makes of the model as it came; empty where that cannot be found out."""
        try:
            return self._probe.optimised(()).key
        except PassProbeError as error:
            self.problems.append(f"the model that the runtime makes: {error.message}")
            return ""

    def missing(self) -> tuple[str, ...]:
        """List the transformers that the runtime did not report, if it reported any."""
        known = [each.name for each in passes_of_kind("transformer")] if self._there else []
        return tuple(name for name in known if name not in self._there)

    def names(self, untried: Sequence[str]) -> tuple[str, ...]:
        """List what matters, and the rules that there was no time for."""
        known = self._fired | set(untried)
        return tuple(each.name for each in passes_of_kind("rule", "transformer") if each.name in known)


BUDGET_S = 6.0
"""Seconds of a processor after which what is not yet looked at stays unknown."""
THOROUGH_S = 20.0
"""The same where no search waits for it."""
_RULES, _ALONE = 0.2, 0.7
"""The shares of them after which the runtime's rules, and passes alone, stay unknown."""
_AFTER = 3
"""After so many rewriting passes, those that leave the fewest nodes, the runtime's passes are looked at."""


def analyse(probe: PassProbe, budget_s: float = BUDGET_S) -> Relevance:
    """Find out which passes change a model at all, alone and after each other (section 3.2 of the paper).

    First each rewriting pass is tried alone; then each that changed nothing, after those that did. A pass is
    not tried on a model that lacks its operators, and counts as failing where the runtime refuses its result.
    Whatever goes wrong is noted, and passes about which too little is known may matter.

    Args:
        probe: of the model.
        budget_s: seconds of a processor for all.
    """
    try:
        return _analyse(probe, budget_s)
    except Exception as error:  # noqa: BLE001
        every = tuple(each.name for each in passes_of_kind(*EXACT))
        runtime = tuple(each.name for each in passes_of_kind("rule", "transformer"))
        reason = error.message if isinstance(error, PlanishError) else f"{type(error).__name__}: {error}"
        return Relevance((), runtime=runtime, untried=every, problems=(f"the model as it came: {reason}",))


def _analyse(probe: PassProbe, budget_s: float) -> Relevance:
    until = CpuBudget(probe, budget_s)
    found = Rewriting(probe)
    runtime = Runtime(probe)
    runtime.look(())
    rules = [each.name for each in passes_of_kind("rule") if found.may_matter(each.name)]
    looked = until(_RULES, rules, runtime.try_rule)
    names = [each.name for each in passes_of_kind(*EXACT)]
    # Alone before after each other: there are as many of these as passes, and of pairs their square.
    tried = until(_ALONE, names, found.try_alone)
    until(1, found.ranked()[:_AFTER], lambda name: runtime.look((name,)))
    # Only those that were tried alone: of the others nothing is known yet.
    pairs = found.pairs(names[:tried])
    done = until(1, pairs, found.try_after)
    matter = runtime.names(rules[looked:])
    untried = [name for name in names[tried:] if found.may_matter(name)]
    silent = [name for name in names if not found.is_known(name) and name not in untried]
    others = [each.name for each in passes_of_kind("rule", "transformer") if each.name not in matter]
    return Relevance(
        alone=tuple(found.alone),
        after=found.after,
        failing=found.failing,
        runtime=matter,
        without=(*silent, *others),
        untried=tuple(untried),
        pairs=done,
        unknown=len(pairs) - done,
        seconds=until.spent,
        missing=runtime.missing(),
        problems=(*found.problems, *runtime.problems),
    )
