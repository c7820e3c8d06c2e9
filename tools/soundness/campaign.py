"""Many lists on one subject, and what is counted."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from planish.levels.llvm.backend import Backend
from soundness.cases import Case
from soundness.examiner import UNSOUND, Examiner, Kind, Verdict
from soundness.reproducer import reproduce
from soundness.subject import Subject


@dataclass(frozen=True)
class Failure:
    """A list that failed.

    Args:
        subject: its name.
        kind: how it failed.
        short: what is left of the list when no pass can be dropped; it carries the blame.
        detail: what LLVM said, or how the answers differ.
        folder: where the reproducer is.
    """

    subject: str
    kind: Kind
    short: tuple[str, ...]
    detail: str
    folder: Path


@dataclass
class Tally:
    """What was counted.

    Args:
        lists: (pass, context) to lists tried; one of many passes counts for each, in the context "lists".
        changed: pass to lists, of those about it alone, where it changed the code.
        kinds: how the lists did.
        executed: programs that were linked and run, each with code of its own.
        failures: what did not go right.
    """

    lists: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    changed: Counter[str] = field(default_factory=Counter[str])
    kinds: Counter[Kind] = field(default_factory=Counter[Kind])
    executed: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])

    def add(self, other: Tally) -> None:
        """Count what another tally counted."""
        self.lists += other.lists
        self.changed += other.changed
        self.kinds += other.kinds
        self.executed += other.executed
        self.failures += other.failures

    @property
    def unsound(self) -> list[Failure]:
        """The failures that must not happen."""
        return [failure for failure in self.failures if failure.kind in UNSOUND]


def try_cases(subject: Subject, cases: Iterable[Case], backend: Backend, out: Path) -> Tally:
    """Try lists on one subject.

    Args:
        subject: the program.
        cases: the lists.
        backend: transforms and compiles it.
        out: where reproducers go.

    Raises:
        NotRunnableError: the subject cannot be linked, or runs too long as it is.
    """
    tally = Tally()
    with (
        tempfile.TemporaryDirectory(prefix="planish-soundness-") as folder,
        closing(Examiner(subject, backend, Path(folder))) as examiner,
    ):
        for case in cases:
            _try_case(examiner, case, tally, out)
        tally.executed = examiner.executed
    return tally


def _try_case(examiner: Examiner, case: Case, tally: Tally, out: Path) -> None:
    verdict = examiner.examine(case.pipeline(case.passes))
    tally.kinds[verdict.kind] += 1
    if case.about:
        before = examiner.examine(case.pipeline(case.without))
        tally.lists[case.about, case.context] += 1
        tally.changed[case.about] += verdict.code != before.code
    else:
        tally.lists.update((text, "lists") for text in set(case.passes))
    if verdict.kind != "right":
        known = next((f for f in tally.failures if _explains(f, case, verdict)), None)
        name = f"{examiner.subject.name}-{len(tally.failures)}-{verdict.kind}"
        tally.failures.append(known or _failure(examiner, case, verdict, out / name))


def _explains(failure: Failure, case: Case, verdict: Verdict) -> bool:
    """Whether a list fails as another one did of which it holds all that was to blame, in this order."""
    passes = iter(case.passes)
    return failure.kind == verdict.kind and all(text in passes for text in failure.short)


def _failure(examiner: Examiner, case: Case, verdict: Verdict, folder: Path) -> Failure:
    short = reproduce(examiner, case, verdict, folder)
    return Failure(examiner.subject.name, verdict.kind, short, verdict.detail, folder)
