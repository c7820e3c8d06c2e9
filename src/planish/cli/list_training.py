"""`planish policy train --level llvm`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planish.learn.language.training import Epoch
    from planish.learn.policy import SavedPolicy


def learnt_lists(
    corpus: Path | None,
    labels: Sequence[Path],
    objective: str,
    path: Path,
    epochs: int,
    seed: int,
    device: str,
) -> SavedPolicy:
    """Train a policy over pass lists on functions of a corpus and what lists cost on them.

    Args:
        corpus: a corpus.
        labels: files that `planish corpus costs` wrote.
        objective: what is to be made less.
        path: where the policy will go; the checkpoint lies beside it.
        epochs: how often all is read.
        seed: of all randomness.
        device: "cpu" or "cuda".

    Raises:
        PlanishError: something is missing, or does not fit.
    """
    from planish.core import PlanishError
    from planish.learn.policy import SavedPolicy

    if corpus is None or not labels:
        raise PlanishError(
            "a policy over pass lists learns from a corpus and labels",
            "Give --corpus and --labels: planish corpus build, planish corpus costs.",
        )
    try:
        from planish.learn.language.training import Course, train_reader
    except ImportError as error:
        raise PlanishError("training a policy needs torch", "pip install planish[train].") from error
    from planish.corpus.policy_lessons import held_back, read_list_lessons
    from planish.learn.cost import shipped_gate
    from planish.learn.labels import read_costs

    lists = shipped_gate(objective).lists
    lessons = read_list_lessons(corpus, [read_costs(file) for file in labels], objective, lists)
    held = held_back(lessons.groups)
    typer.echo(f"{len(lessons):,} functions, {held.sum():,} of them tell when to stop", err=True)
    checkpoint = path.with_name(path.stem + ".checkpoint")
    shape, parameters, metrics = train_reader(
        lessons, Course(epochs, seed, checkpoint, device=device), held, _told
    )
    actions, steps = tuple(map(",".join, lists)), max(map(len, lists))
    made = path.stem, "llvm", lessons.schema, actions, steps, shape, parameters, metrics, len(lessons)
    return SavedPolicy(*made)


def _told(epoch: Epoch) -> None:
    typer.echo(
        f"epoch {epoch.number} of {epoch.epochs}: loss {epoch.loss:.3f}, held back {epoch.held:.3f} "
        f"of expecting nothing; {epoch.rate:,.0f} instructions a second, {epoch.left / 60:.0f} minutes left",
        err=True,
    )
