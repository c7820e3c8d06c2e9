"""`planish policy train --level llvm`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from planish.cli.text_training import TextSize
    from planish.models.policy_files import SavedPolicy
    from planish.train.list_ranker import Epoch
    from planish.train.list_writer import Stand
    from planish.train.samples import Lessons

MOST = 40
"""Lists that a policy learns about: as many as the gate does, chosen of the labels as for it."""
HEADS = 16
"""What the width of a layer is a multiple of."""


@dataclass(frozen=True)
class Size:
    """How much is trained.

    Args:
        epochs: how often all is read.
        seed: of all randomness.
        width: of the network's layers.
        depth: layers.
        device: "cpu" or "cuda".
    """

    epochs: int
    seed: int
    width: int
    depth: int
    device: str


def learnt_lists(
    corpus: Path | None,
    labels: Sequence[Path],
    objective: str,
    path: Path,
    size: Size,
    network: str,
    text: TextSize,
) -> SavedPolicy:
    """Train a policy over pass lists on functions of a corpus and what lists cost on them.

    Args:
        corpus: a corpus.
        labels: files that `planish corpus costs` wrote; the lists that all of them have are learnt about.
        objective: what is to be made less.
        path: where the policy will go; the checkpoint lies beside it.
        size: how much is trained.
        network: "reader" chooses among the lists of the labels, "writer" writes lists pass by pass, and
            "decoder" reads and writes text.
        text: what the last one is trained on.

    Raises:
        PlanishError: something is missing, or does not fit.
    """
    from planish.core import PlanishError

    if corpus is None or not labels:
        raise PlanishError(
            "a policy over pass lists learns from a corpus and labels",
            "Give --corpus and --labels: planish corpus build, planish corpus costs.",
        )
    if size.width % HEADS:
        raise PlanishError(f"--width {size.width} is no multiple of {HEADS}")
    try:
        from planish.train.optimisation import require_device
    except ImportError as error:
        raise PlanishError("training a policy needs torch", "pip install planish[train].") from error
    require_device(size.device)
    from planish.train.corpus.lessons import held_back, read_list_lessons
    from planish.train.cost_tables import read_joined
    from planish.train.labelling.choice import lists_of_table

    table = read_joined(labels, objective)
    lists = lists_of_table(table.split("train"), objective, MOST)
    if network == "decoder":
        import numpy as np

        from planish.cli.text_training import learnt_text
        from planish.train.corpus.lessons import read_text_lessons

        texts = read_text_lessons(corpus, [table], objective, lists, "train")
        back = held_back(np.array([one.package for one in texts]))
        return learnt_text(texts, back, objective, path, size, text)
    lessons = read_list_lessons(corpus, [table], objective, lists)
    held = held_back(lessons.groups)
    typer.echo(f"{len(lessons):,} functions, {held.sum():,} of them tell when to stop", err=True)
    return (_writer if network == "writer" else _reader)(lessons, held, path, size)


def _reader(lessons: Lessons, held: NDArray[np.bool_], path: Path, size: Size) -> SavedPolicy:
    from planish.models.policy_files import SavedPolicy
    from planish.train.list_ranker import Course, train_reader

    course = Course(size.epochs, size.seed, _checkpoint(path), size.width, size.depth, size.device)
    shape, parameters, metrics = train_reader(lessons, course, held, _told)
    actions, steps = tuple(map(",".join, lessons.lists)), max(map(len, lessons.lists))
    made = path.stem, "llvm", lessons.schema, actions, steps, shape, parameters, metrics, len(lessons)
    return SavedPolicy(*made)


def _writer(lessons: Lessons, held: NDArray[np.bool_], path: Path, size: Size) -> SavedPolicy:
    from planish.llvm.passes import elements, find_element, oz_of
    from planish.models.policy_files import SavedPolicy
    from planish.models.writer import WriterShape
    from planish.train.list_writer import Texts, WritingCourse, train_writer

    oz = oz_of({*elements()})
    assert oz is not None
    texts = Texts.of(lessons.lists, (oz,))
    once = tuple(place for place, text in enumerate(texts.steps) if find_element(text).is_pipeline)
    longest = texts.lists.shape[1]
    read = lessons.sizes, lessons.observed.shape[1]
    shape = WriterShape(*read, len(texts.steps), longest, once, size.width, size.depth)
    course = WritingCourse(size.epochs, size.seed, _checkpoint(path), device=size.device)
    parameters, metrics = train_writer(lessons, texts, shape, course, held, _step)
    made = path.stem, "llvm", lessons.schema, texts.steps, longest, shape, parameters, metrics, len(lessons)
    return SavedPolicy(*made)


def _checkpoint(path: Path) -> Path:
    return path.with_name(path.stem + ".checkpoint")


def _step(stand: Stand) -> None:
    if stand.held is not None:
        typer.echo(
            f"step {stand.step:,} of {stand.steps:,}: loss {stand.loss:.3f}, a list held back costs "
            f"{stand.held:.2f} bits; {stand.rate:,.0f} tokens a second, {stand.left / 60:.0f} minutes left",
            err=True,
        )


def _told(epoch: Epoch) -> None:
    typer.echo(
        f"epoch {epoch.number} of {epoch.epochs}: loss {epoch.loss:.3f}, held back {epoch.held:.3f} "
        f"of expecting nothing; {epoch.rate:,.0f} instructions a second, {epoch.left / 60:.0f} minutes left",
        err=True,
    )
