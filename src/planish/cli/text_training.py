"""`planish policy train --level llvm --network decoder`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from planish.cli.model_passes import require_passes
from planish.core import PlanishError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from planish.cli.list_training import Size
    from planish.models.decoder import DecoderShape
    from planish.models.ir_text import Tokenizer
    from planish.models.policy_files import SavedPolicy
    from planish.train.corpus.lessons import TextLesson
    from planish.train.samples import Sample
    from planish.train.text_training import Progress

Asked = Literal["all", "counts", "code", "none"]
Kind = Literal["short", "long", "fast"]
JUDGED, FED_BACK = 24, 2_000
"""So many functions are answered at each look; so many answers, at most, are learnt from with feedback."""
BATCH, LOOKS = 8192, 10
"""Tokens of a step; looks at what is held back in a training, with a checkpoint each."""


@dataclass(frozen=True)
class TextSize:
    """What is trained.

    Args:
        context: tokens of the longest text.
        asked: auxiliary tasks.
        feedback: kind of feedback that is learnt from; None for none.
        first: a policy whose network it begins with, and whose answers get feedback.
    """

    context: int
    asked: Asked = "all"
    feedback: Kind | None = None
    first: Path | None = None


@dataclass(frozen=True)
class _Start:
    """What a training begins with."""

    tokenizer: Tokenizer
    shape: DecoderShape
    parameters: Mapping[str, NDArray[np.float32]] | None = None
    feedback: Kind | Literal[""] = ""


def learnt_text(
    lessons: Sequence[TextLesson],
    held: NDArray[np.bool_],
    objective: str,
    path: Path,
    size: Size,
    text: TextSize,
) -> SavedPolicy:
    """Train a language model on functions, and the best lists that are known of them.

    Args:
        lessons: what is known.
        held: which of them tell what is best, and are not learnt from.
        objective: what is made less.
        path: where the policy will go; the checkpoint lies beside it.
        size: how much is trained.
        text: what is trained.

    Raises:
        PlanishError: feedback is to be learnt without a model to answer, or that one is none of language.
    """
    from planish.llvm.ir.instruction_rows import instruction_schema
    from planish.models.policy_files import SavedPolicy
    from planish.train.text_training import TextCourse, train_text

    mine, others = (
        [a for a, b in zip(lessons, held, strict=True) if bool(b) == back] for back in (False, True)
    )
    others = others or mine
    start = _start(mine, size, text)
    samples, back = (_samples(start, some, text) for some in (mine, others))
    typer.echo(
        f"{len(lessons):,} functions: {len(samples):,} texts are learnt from, {len(back):,} tell when to "
        f"stop; others are longer than {text.context:,} tokens",
        err=True,
    )
    steps = max(1, round(size.epochs * sum(len(one.tokens) for one in samples) / BATCH))
    checkpoint = path.with_name(path.stem + ".checkpoint")
    course = TextCourse(
        steps,
        size.seed,
        checkpoint,
        BATCH,
        every=-(-steps // LOOKS),
        device=size.device,
        first=start.parameters,
    )

    def judge(parameters: Mapping[str, NDArray[np.float32]]) -> Mapping[str, float]:
        return _judged(replace(start, parameters=parameters), others[:JUDGED])

    parameters, metrics = train_text(samples, back, start.shape, course, _step, judge)
    schema, longest = instruction_schema(objective), max(len(one.answer.passes) for one in lessons)
    names, programs = start.tokenizer.passes, len(samples)
    made = path.stem, "llvm", schema, names, longest, start.shape, parameters, metrics, programs
    return SavedPolicy(*made, vocabulary=start.tokenizer.to_json(), feedback=start.feedback)


def _start(lessons: Sequence[TextLesson], size: Size, text: TextSize) -> _Start:
    from planish.llvm.passes import elements
    from planish.models.decoder import DecoderShape
    from planish.models.ir_text import Tokenizer
    from planish.models.policy_files import load_policy

    if text.first is None:
        if text.feedback:
            raise PlanishError("feedback is learnt from the answers of a policy", "Name it: --first FILE.")
        tokenizer = Tokenizer.learnt((one.ir for one in lessons), [*elements()])
        return _Start(tokenizer, DecoderShape(tokenizer.size, text.context, size.width, size.depth))
    first = load_policy(text.first)
    if not isinstance(first.shape, DecoderShape):
        raise PlanishError(f"{text.first} is no language model", "Train one: --network decoder.")
    require_passes(first, {name for one in lessons for name in one.answer.passes})
    shape = replace(first.shape, context=text.context)  # no array depends on it: places are rotations
    # What it learnt from feedback stays with it where it learns on without.
    return _Start(Tokenizer.read(first.vocabulary), shape, first.parameters, text.feedback or first.feedback)


def _samples(start: _Start, lessons: Sequence[TextLesson], text: TextSize) -> list[Sample]:
    """Write lessons as texts: all of them plainly, and some with feedback, too."""
    from planish.models.ir_text import Tasks
    from planish.train.corpus.answers import answers_of, feedback_samples, judge_answers
    from planish.train.corpus.lessons import text_samples

    tasks = Tasks(text.asked in ("all", "counts"), text.asked in ("all", "code"))
    plain = text_samples(start.tokenizer, lessons, text.context, tasks)
    if text.feedback is None or start.parameters is None:
        return plain
    some, code = lessons[:FED_BACK], text.feedback != "fast"
    answers = answers_of(start.shape, start.parameters, start.tokenizer, some, code=code)
    judged = judge_answers(some, answers)
    return plain + feedback_samples(start.tokenizer, judged, text.context, text.feedback, tasks)


def _judged(start: _Start, lessons: Sequence[TextLesson]) -> Mapping[str, float]:
    from planish.train.corpus.answers import answers_of, judge_answers, summary

    assert start.parameters is not None
    answers = answers_of(start.shape, start.parameters, start.tokenizer, lessons, code=False)
    return summary(judge_answers(lessons, answers))


def _step(progress: Progress) -> None:
    if progress.held is not None:
        saved = progress.judged.get("improvement with -Oz as backup", 0.0)
        typer.echo(
            f"step {progress.step:,} of {progress.steps:,}: loss {progress.loss:.3f}, held back "
            f"{progress.held:.3f}, greedy answers save {saved:.2%} of instructions; "
            f"{progress.rate:,.0f} tokens a second, {progress.left / 60:.0f} minutes left",
            err=True,
        )
