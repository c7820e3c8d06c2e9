"""Which passes change a model, as they are tried one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planish.graph.passes import find_pass, passes_of_kind
from planish.graph.relevance.examiner import Examiner, ExaminerError


class Rewriting:
    """Which rewriting passes matter, so far.

    Attributes:
        problems: questions that got no answer, and why.
    """

    def __init__(self, examiner: Examiner) -> None:
        self._examiner = examiner
        self._counts: dict[tuple[str, ...], Mapping[str, int] | None] = {}
        self._original = examiner.made(())
        self.alone: list[str] = []
        self.after: dict[str, str] = {}
        self.failing: dict[str, str] = {}
        self.problems: list[str] = []

    def has_said(self, name: str) -> bool:
        """Whether a pass is known to do something, be it to fail."""
        return name in self.alone or name in self.after or name in self.failing

    def may_matter(self, name: str, *before: str) -> bool:
        """Whether the model has operators that a pass looks for, as it came or after another pass."""
        seen = self._seen(before)
        return seen is None or find_pass(name).may_matter(frozenset(seen))

    def strongest(self) -> list[str]:
        """List what matters alone; first what leaves the fewest nodes."""
        return sorted(self.alone, key=lambda name: sum((self._seen((name,)) or {}).values()))

    def try_alone(self, name: str) -> None:
        """Try a pass on the model as it came."""
        if not self.may_matter(name):
            return
        try:
            if self._examiner.made((name,)) != self._original:
                self._examiner.load((name,))
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
                self._examiner.load(pair)
                self.after[name] = first
        except ExaminerError as error:
            self.failing[name] = f"after {first}: {error.message}"

    def _seen(self, rewrites: tuple[str, ...]) -> Mapping[str, int] | None:
        """Count the nodes after some passes; None where they cannot be counted."""
        if rewrites not in self._counts:
            try:
                self._counts[rewrites] = self._examiner.counts(rewrites)
            except ExaminerError as error:
                self._counts[rewrites] = None
                self.problems.append(f"nodes after {', '.join(rewrites) or 'no pass'}: {error.message}")
        return self._counts[rewrites]


class Runtime:
    """Which of the runtime's own passes matter, so far.

    Attributes:
        problems: questions that got no answer, and why.
    """

    def __init__(self, examiner: Examiner) -> None:
        self._examiner = examiner
        self._there: set[str] = set()
        self._fired: set[str] = set()
        self._whole: str | None = None
        self.problems: list[str] = []

    def look(self, rewrites: tuple[str, ...]) -> None:
        """Note the transformers that change the model after some rewriting passes."""
        try:
            told = self._examiner.fired(rewrites)
        except ExaminerError as error:
            self.problems.append(
                f"the runtime's passes after {', '.join(rewrites) or 'none'}: {error.message}"
            )
            return
        self._there |= told.keys()
        self._fired |= {name for name, modified in told.items() if modified}

    def try_rule(self, name: str) -> None:
        """Note a rule without which the runtime makes something else of the model as it came."""
        if self._whole is None:
            self._whole = self._optimised()
        try:
            rest = self._examiner.optimised((), [name]).name
        except ExaminerError:  # to leave it out is a candidate's failure, in its turn
            rest = ""
        # Without an answer the rule may matter.
        if not rest or rest != self._whole:
            self._fired.add(name)

    def _optimised(self) -> str:
        """Name what the runtime makes of the model as it came; empty where that cannot be found out."""
        try:
            return self._examiner.optimised(()).name
        except ExaminerError as error:
            self.problems.append(f"the model that the runtime makes: {error.message}")
            return ""

    def missing(self) -> tuple[str, ...]:
        """List the transformers that the runtime did not tell of, if it told of any."""
        known = [each.name for each in passes_of_kind("transformer")] if self._there else []
        return tuple(name for name in known if name not in self._there)

    def names(self, untried: Sequence[str]) -> tuple[str, ...]:
        """List what matters, and the rules that there was no time for."""
        known = self._fired | set(untried)
        return tuple(each.name for each in passes_of_kind("rule", "transformer") if each.name in known)
