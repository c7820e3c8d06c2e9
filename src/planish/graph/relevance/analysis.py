"""Finding out which passes change a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from planish.graph.passes import find_pass, passes_of_kind
from planish.graph.relevance.examiner import Examiner, ExaminerError

T = TypeVar("T")

PATIENCE_S = 6.0
"""Seconds of a processor after which what is not yet looked at stays unknown."""
THOROUGH_S = 20.0
"""The same where nobody waits for it to begin a search."""
_BUSY = 2.5
"""On a machine that is busy with other work, so many times as long by the clock."""
_RULES, _ALONE = 0.2, 0.7
"""The shares of them after which the runtime's rules, and passes alone, stay unknown."""
_AFTER = 3
"""After so many rewriting passes, those that leave the fewest nodes, the runtime's passes are looked at."""


@dataclass(frozen=True)
class Relevance:
    """What is known of a catalogue's passes for one model.

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

    @property
    def is_complete(self) -> bool:
        """Whether there was time for everything."""
        return not self.untried and not self.unknown

    @property
    def rewrites(self) -> tuple[str, ...]:
        """The rewriting passes that matter, those that matter alone first, and those that may."""
        return (*self.alone, *self.after, *self.untried)

    @property
    def kept(self) -> int:
        """How many passes matter."""
        return len(self.rewrites) + len(self.runtime)

    @property
    def known(self) -> int:
        """How many passes there are."""
        return self.kept + len(self.without) + len(self.failing)

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form; `from_json` is its inverse."""
        return dict(vars(self))

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Relevance:
        """Read the JSON form."""
        read: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        return Relevance(**read)


def analyse(examiner: Examiner, patience_s: float = PATIENCE_S) -> Relevance:
    """Find out which passes change a model at all, alone and after each other (section 3.2 of the paper).

    First each rewriting pass is tried alone; then each that changed nothing, after those that did. A pass is
    not tried on a model that lacks its operators.

    Args:
        examiner: of the model.
        patience_s: seconds of a processor for all.
    """
    until = _Clock(examiner, patience_s)
    found = _Found(examiner)
    runtime = _Runtime(examiner, found)
    runtime.look(())
    rules = [each.name for each in passes_of_kind("rule") if found.may_matter(each.name)]
    looked = until(_RULES, rules, runtime.try_rule)
    names = [each.name for each in passes_of_kind("onnxscript", "onnxoptimizer")]
    tried = until(_ALONE, names, found.try_alone)
    until(1, found.strongest()[:_AFTER], lambda name: runtime.look((name,)))
    pairs = found.pairs(names[:tried])
    done = until(1, pairs, found.try_after)
    matter = runtime.names(rules[looked:])
    untried = [name for name in names[tried:] if found.may_matter(name)]
    silent = [name for name in names if not found.has_said(name) and name not in untried]
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
    )


class _Found:
    """What was found so far."""

    def __init__(self, examiner: Examiner) -> None:
        self._examiner = examiner
        self._counts: dict[tuple[str, ...], Mapping[str, int]] = {}
        self._original = examiner.made(())
        self.alone: list[str] = []
        self.after: dict[str, str] = {}
        self.failing: dict[str, str] = {}

    def has_said(self, name: str) -> bool:
        """Whether a pass is known to do something, be it to fail."""
        return name in self.alone or name in self.after or name in self.failing

    def may_matter(self, name: str, *before: str) -> bool:
        """Whether the model has operators that a pass looks for, as it came or after another pass."""
        return find_pass(name).may_matter(frozenset(self._seen(before)))

    def strongest(self) -> list[str]:
        """List what matters alone; first what leaves the fewest nodes."""
        return sorted(self.alone, key=lambda name: sum(self._seen((name,)).values()))

    def try_alone(self, name: str) -> None:
        """Try a pass on the model as it came."""
        if not self.may_matter(name):
            return
        try:
            if self._examiner.made((name,)) != self._original:
                self.alone.append(name)
        except ExaminerError as error:
            self.failing[name] = error.message

    def pairs(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """List what is to be tried after what."""
        rest = [name for name in names if not self.has_said(name)]
        return [(first, name) for first in self.strongest() for name in rest if self.may_matter(name, first)]

    def try_after(self, pair: tuple[str, str]) -> None:
        """Try a pass after another one, unless it is known to matter."""
        first, name = pair
        if self.has_said(name):
            return
        try:
            if self._examiner.made(pair) != self._examiner.made((first,)):
                self.after[name] = first
        except ExaminerError as error:
            self.failing[name] = f"after {first}: {error.message}"

    def _seen(self, rewrites: tuple[str, ...]) -> Mapping[str, int]:
        if rewrites not in self._counts:
            self._counts[rewrites] = self._examiner.counts(rewrites)
        return self._counts[rewrites]


class _Clock:
    """Tells whether there is time left: by the processor, so that a busy machine leaves nothing out.

    Args:
        examiner: whose time it is.
        patience_s: seconds of a processor.
    """

    def __init__(self, examiner: Examiner, patience_s: float) -> None:
        self._examiner, self._patience = examiner, patience_s
        self._before, self._start = examiner.spent, time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds of a processor, so far."""
        return self._examiner.spent - self._before

    def __call__(self, share: float, things: Sequence[T], work: Callable[[T], None]) -> int:
        """Work through things while there is time; gives how many were.

        Args:
            share: of the time, after which it is over.
            things: what to work through.
            work: on one of them.
        """
        for done, thing in enumerate(things):
            spent = max(self.spent, (time.monotonic() - self._start) / _BUSY)
            if spent > share * self._patience:
                return done
            work(thing)
        return len(things)


class _Runtime:
    """Which of the runtime's own passes matter."""

    def __init__(self, examiner: Examiner, found: _Found) -> None:
        self._examiner, self._found = examiner, found
        self._there: set[str] = set()
        self._fired: set[str] = set()
        self._whole = ""

    def look(self, rewrites: tuple[str, ...]) -> None:
        """Note the transformers that change the model after some rewriting passes."""
        try:
            told = self._examiner.fired(rewrites)
        except ExaminerError:  # what a pass made may be refused: that is a candidate's failure, in its turn
            return
        self._there |= told.keys()
        self._fired |= {name for name, modified in told.items() if modified}

    def try_rule(self, name: str) -> None:
        """Note a rule without which the runtime makes something else of the model as it came."""
        self._whole = self._whole or self._examiner.optimised(())["name"]
        try:
            rest = self._examiner.optimised((), [name])["name"]
        except ExaminerError:  # to leave it out is a candidate's failure, in its turn
            rest = ""
        if rest != self._whole:
            self._fired.add(name)

    def missing(self) -> tuple[str, ...]:
        """List the transformers that the runtime did not tell of, if it told of any."""
        known = [each.name for each in passes_of_kind("transformer")] if self._there else []
        return tuple(name for name in known if name not in self._there)

    def names(self, untried: Sequence[str]) -> tuple[str, ...]:
        """List what matters, and the rules that there was no time for."""
        known = self._fired | set(untried)
        return tuple(each.name for each in passes_of_kind("rule", "transformer") if each.name in known)
