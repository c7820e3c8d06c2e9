"""Campaign: pass lists tried on subjects, what is counted, and reproducers of failures."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.passes.catalogue import elements
from soundness.cases import Case
from soundness.examiner import UNSOUND, Examiner, Kind, Verdict
from soundness.subject import Subject


def minimized(passes: Sequence[str], fails: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """Drop passes while the list still fails: first halves, then quarters, at last single ones.

    Args:
        passes: a list that fails.
        fails: whether a list does; must give the same result each time.

    Returns:
        A list that fails, and does not without any one of its passes.
    """
    kept = tuple(passes)
    width = max(1, len(kept) // 2)
    while True:
        shorter = (kept[:start] + kept[start + width :] for start in range(0, len(kept), width))
        if (found := next(filter(fails, shorter), None)) is not None:
            kept = found
        elif width == 1:
            return kept
        else:
            width //= 2


def reproduce(examiner: Examiner, case: Case, verdict: Verdict, folder: Path) -> tuple[str, ...]:
    """Make a failing list short, and write the program, the lists and the answers into a folder.

    Args:
        examiner: of the subject that it fails on.
        case: the list.
        verdict: how it fails.
        folder: made here.

    Returns:
        The short list.
    """
    short = minimized(
        case.passes, lambda passes: examiner.examine(case.pipeline(passes)).kind == verdict.kind
    )
    pipeline = case.pipeline(short)
    folder.mkdir(parents=True, exist_ok=True)
    for index, ir in enumerate(examiner.subject.modules):
        (folder / f"program{index}.ll").write_text(ir, errors="surrogateescape")
    (folder / "list.txt").write_text(f"{case.pipeline(case.passes)}\n{pipeline}\n")
    (folder / "expected.txt").write_bytes(examiner.expected.output)
    shown = examiner.examine(pipeline)
    if shown.answer is not None:
        (folder / "got.txt").write_bytes(shown.answer.output)
    (folder / "README.txt").write_text(_readme(examiner, pipeline, shown))
    return short


def _readme(examiner: Examiner, pipeline: str, verdict: Verdict) -> str:
    subject, expected = examiner.subject, examiner.expected
    guilty = [
        f"program{index}.ll"
        for index in range(len(subject.modules))
        if examiner.examine(pipeline, [index]).kind == verdict.kind
    ]
    return f"""{subject.name}: {verdict.kind}: {verdict.detail}

Transform: opt -passes='{pipeline}' program0.ll -o program0.bc
Link all modules with -lm, and run the program with the arguments: {" ".join(subject.running.args) or "none"}.
It must write expected.txt and end with exit code {expected.code}.
Modules of which one alone, transformed, fails: {", ".join(guilty) or "none"}.
"""


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


def try_cases(subject: Subject, cases: Iterable[Case], bindings: Bindings, out: Path) -> Tally:
    """Try lists on one subject.

    Args:
        subject: the program.
        cases: the lists.
        bindings: transforms and compiles it.
        out: where reproducers go.

    Raises:
        NotRunnableError: the subject cannot be linked, or runs too long as it is.
    """
    tally = Tally()
    with (
        tempfile.TemporaryDirectory(prefix="planish-soundness-") as folder,
        closing(Examiner(subject, bindings, Path(folder))) as examiner,
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


_WIDTH = 40


def write_table(tally: Tally) -> Iterator[str]:
    """Return the lines: one for each pass, then the sums, then the failures.

    Columns: lists about the pass alone, how many of these changed the code (a pass that changes nothing was
    not tested), lists of many that hold it, and the failures that it has part in after minimization.
    """
    yield f"{'pass':<{_WIDTH}} tier  alone changed  lists  crashed  wrong"
    for text, element in elements().items():
        alone = sum(n for (name, where), n in tally.lists.items() if name == text and where != "lists")
        lists = tally.lists[text, "lists"]
        wrong = sum(f.kind in UNSOUND and text in f.short for f in tally.failures)
        other = sum(f.kind not in UNSOUND and text in f.short for f in tally.failures)
        if alone or lists:
            yield (
                f"{_short(text):<{_WIDTH}} {element.tier:>4} {alone:>6} {tally.changed[text]:>7} {lists:>6}"
                f" {other:>8} {wrong:>6}"
            )
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in tally.kinds.most_common())
    yield f"{tally.kinds.total():,} lists: {kinds}; {tally.executed:,} different programs were run"
    yield from map(_line, dict.fromkeys(tally.failures))


def _line(failure: Failure) -> str:
    short = ",".join(failure.short)
    return f"{failure.kind}: {failure.subject}: {short}: {failure.detail[:200]} ({failure.folder})"


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
