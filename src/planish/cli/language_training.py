"""`planish policy train --level llvm`: networks that rank or write lists, and language models."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from planish.core import PlanishError
from planish.core.installation import install_command

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from planish.models.policy_files import SavedPolicy
    from planish.train.optimization import OnProgress, TrainingProgress
    from planish.train.samples import ListDataset
    from planish.train.token_file import TokenFile
    from planish.tuning.progress import ProgressDisplay

EVALUATIONS = 10
"""Evaluations on the validation set in a training, with a checkpoint each."""
Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    typer.Option("--device", help="llvm: device of PyTorch; auto is a GPU if there is one."),
]


@dataclass(frozen=True)
class TextOptions:
    """Options of language models."""

    tokens: Annotated[
        Path | None,
        typer.Option("--tokens", metavar="FILE", help="decoder: texts by 'planish corpus tokens'."),
    ] = None
    first: Annotated[
        Path | None,
        typer.Option("--first", metavar="FILE", help="decoder: policy whose network is trained further."),
    ] = None
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", metavar="N", min=0.1, help="decoder: time of the training; not --epochs."),
    ] = None
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", min=1, help="decoder: maximum number of tokens of a step.")
    ] = 8192
    prompts: Annotated[
        bool, typer.Option("--prompts/--no-prompts", help="decoder: learn prompts, not only answers.")
    ] = True
    balance: Annotated[
        bool,
        typer.Option(
            "--balance/--no-balance",
            help="decoder: draw functions with a list that is better than -Oz as often as the others.",
        ),
    ] = True


@dataclass(frozen=True)
class Labels:
    """Options of training on labels of a corpus."""

    corpus: Annotated[
        Path | None, typer.Option("--corpus", metavar="CORPUS", help="llvm: corpus of the functions.")
    ] = None
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="llvm: table by 'planish corpus costs'; of several, the lists that all have count.",
        ),
    ] = None
    objective: Annotated[
        Literal["instructions", "text_bytes"], typer.Option("--objective", help="llvm: what to minimize.")
    ] = "instructions"


def learnt_text(path: Path, size: Size, text: TextOptions, display: ProgressDisplay) -> SavedPolicy:
    """Train a language model on a file of tokens.

    Args:
        path: where the policy will go; the checkpoint is in the same folder.
        size: how much is trained.
        text: what is trained.
        display: shows the progress.

    Raises:
        PlanishError: there is no file of tokens, or the network to begin with is for other tokens.
    """
    if text.tokens is None:
        raise PlanishError(
            "a language model is trained on a file of tokens",
            "Make one: planish corpus tokens CORPUS FILE. Then give --tokens FILE.",
        )
    device = device_of(size.device)
    from planish.models.decoder import DecoderShape
    from planish.models.policy_files import SavedPolicy
    from planish.train.text_training import TextConfig, train_text
    from planish.train.token_file import read_tokens

    file = read_tokens(text.tokens)
    heads = 8 if size.width >= 512 else 4
    shape = DecoderShape(file.tokenizer.size, file.context, size.width, size.depth, heads)
    config = TextConfig(
        0,
        size.seed,
        _checkpoint(path),
        text.batch,
        device=device,
        minutes=text.minutes,
        prompts=text.prompts,
        balance=text.balance,
    )
    if size.rate is not None:
        config = replace(config, rate=size.rate)
    if text.first is not None:
        first = _first(text.first, file, text.tokens)
        shape, config = first.shape, replace(config, first=first.parameters)
        assert isinstance(shape, DecoderShape)
        shape = replace(shape, context=file.context)  # no array depends on it: positions are rotations
    if text.minutes is None:
        tokens = sum(len(one.tokens) for one in file.samples)
        steps = max(1, round(size.epochs * tokens / text.batch))
        config = replace(config, steps=steps, every=-(-steps // EVALUATIONS))
    numbers = sum(math.prod(array) for array in shape.parameters().values())
    display.log(
        f"{numbers:,} parameters on {device}; {len(file.samples):,} texts are used for training, "
        f"{len(file.held):,} decide which network is kept"
    )
    trained = train_text(file.samples, file.held, shape, config, show_steps(display, "steps", _text_step))
    names, programs = file.tokenizer.passes, len(file.samples)
    made = path.stem, "llvm", file.schema, names, file.steps, shape, *trained, programs
    return SavedPolicy(*made, vocabulary=file.tokenizer.to_json(), feedback=file.feedback)


def _first(path: Path, file: TokenFile, tokens: Path) -> SavedPolicy:
    """Read the policy whose network is trained further."""
    from planish.models.policy_files import load_policy

    first = load_policy(path)
    if first.vocabulary != file.tokenizer.to_json():
        raise PlanishError(
            f"{tokens} has other tokens than {path}",
            f"Make it with them: planish corpus tokens --first {path}.",
        )
    return first


def show_steps(display: ProgressDisplay, items: str, line: Callable[[TrainingProgress], str]) -> OnProgress:
    """Begin to show a training; return what shows each step, and writes a line at each evaluation.

    Args:
        display: shows it.
        items: what is counted: "steps", "epochs".
        line: writes the line.
    """
    from planish.tuning.progress import Status

    status = Status(items)
    display.begin(status)

    def show(progress: TrainingProgress) -> None:
        if status.total is None:  # what was done before an interruption
            status.known = progress.step - 1
        status.done, status.total = progress.step, progress.steps
        display.update()
        if progress.held is not None:
            display.log(line(progress))

    return show


def _text_step(progress: TrainingProgress) -> str:
    return (
        f"step {progress.step:,} of {progress.steps:,}: loss {progress.loss:.3f}, validation "
        f"{progress.held:.3f}; {progress.rate:,.0f} tokens a second, {progress.left / 60:.0f} minutes left"
    )


def device_of(name: str) -> str:
    """Return the device of PyTorch that an option asks for.

    Raises:
        PlanishError: torch is missing, or cannot compute there.
    """
    try:
        from planish.train.optimization import device_named
    except ImportError as error:
        raise PlanishError("training a policy needs torch", f"{install_command('train')}.") from error
    return device_named(name)


MOST = 40
"""Lists that a policy learns about: as many as the gate does, chosen of the labels as for it."""


@dataclass(frozen=True)
class Size:
    """Size and duration of a training.

    Args:
        epochs: how often all is read.
        seed: of all randomness.
        width: of the network's layers.
        depth: layers.
        device: "auto", "cpu" or "cuda".
        rate: the peak learning rate of a language model; None for its default.
    """

    epochs: int
    seed: int
    width: int
    depth: int
    device: str
    rate: float | None = None


def learnt_lists(
    known: Labels, path: Path, size: Size, network: str, display: ProgressDisplay
) -> SavedPolicy:
    """Train a policy over pass lists on functions of a corpus and what lists cost on them.

    Args:
        known: a corpus, and its labels; the lists that all files of them have are learnt about.
        path: where the policy will go; the checkpoint is in the same folder.
        size: how much is trained.
        network: "reader" chooses among the lists of the labels, "writer" writes lists pass by pass.
        display: shows the progress.

    Raises:
        PlanishError: something is missing, or does not fit.
    """
    corpus, labels, objective = known.corpus, known.labels, known.objective
    if corpus is None or not labels:
        raise PlanishError(
            "a policy over pass lists learns from a corpus and labels",
            "Give --corpus and --labels: planish corpus build, planish corpus costs.",
        )
    size = replace(size, device=device_of(size.device))
    from planish.models.policy_files import policy_for_schema
    from planish.train.continuations import compare_lists
    from planish.train.corpus.answers import held_back, read_list_dataset
    from planish.train.cost_tables import read_joined
    from planish.train.labeling.choice import lists_of_table

    table = read_joined(labels, objective)
    lists = lists_of_table(table.split("train"), objective, MOST)
    dataset = read_list_dataset(corpus, [table], objective, lists)
    held = held_back(dataset.groups)
    display.log(f"{len(dataset):,} functions, {held.sum():,} of them decide when to stop")
    trained = (_writer if network == "writer" else _reader)(dataset, held, path, size, display)
    rival = policy_for_schema(dataset.schema)
    if rival is None:
        return trained
    return replace(trained, held_out=compare_lists(trained, rival, dataset, held))


def _reader(
    dataset: ListDataset, held: NDArray[np.bool_], path: Path, size: Size, display: ProgressDisplay
) -> SavedPolicy:
    from planish.models.policy_files import SavedPolicy
    from planish.train.list_ranker import RankerConfig, train_ranker

    config = RankerConfig(size.epochs, size.seed, _checkpoint(path), size.device, size.width, size.depth)
    shape, parameters, metrics = train_ranker(dataset, config, held, show_steps(display, "epochs", _epoch))
    actions, steps = tuple(map(",".join, dataset.lists)), max(map(len, dataset.lists))
    made = path.stem, "llvm", dataset.schema, actions, steps, shape, parameters, metrics, len(dataset)
    return SavedPolicy(*made)


def _writer(
    dataset: ListDataset, held: NDArray[np.bool_], path: Path, size: Size, display: ProgressDisplay
) -> SavedPolicy:
    from planish.levels.llvm.passes.catalogue import elements, find_element
    from planish.levels.llvm.passes.space import oz_of
    from planish.models.policy_files import SavedPolicy
    from planish.models.writer import WriterShape
    from planish.train.list_writer import ListVocabulary, WriterConfig, train_writer

    oz = oz_of({*elements()})
    assert oz is not None
    texts = ListVocabulary.of(dataset.lists, (oz,))
    once = tuple(index for index, text in enumerate(texts.steps) if find_element(text).is_pipeline)
    longest = texts.lists.shape[1]
    shape = WriterShape(
        sizes=dataset.sizes,
        rows=dataset.observed.shape[1],
        tokens=len(texts.steps),
        longest=longest,
        once=once,
        width=size.width,
        depth=size.depth,
    )
    config = WriterConfig(size.epochs, size.seed, _checkpoint(path), device=size.device)
    parameters, metrics = train_writer(
        dataset, texts, shape, config, held, show_steps(display, "steps", _list_step)
    )
    made = path.stem, "llvm", dataset.schema, texts.steps, longest, shape, parameters, metrics, len(dataset)
    return SavedPolicy(*made)


def _checkpoint(path: Path) -> Path:
    return path.with_name(path.stem + ".checkpoint")


def _list_step(progress: TrainingProgress) -> str:
    return (
        f"step {progress.step:,} of {progress.steps:,}: loss {progress.loss:.3f}, a validation list costs "
        f"{progress.held:.2f} bits; {progress.rate:,.0f} tokens a second, "
        f"{progress.left / 60:.0f} minutes left"
    )


def _epoch(epoch: TrainingProgress) -> str:
    return (
        f"epoch {epoch.step} of {epoch.steps}: loss {epoch.loss:.3f}, validation {epoch.held:.3f} "
        f"of expecting nothing; {epoch.rate:,.0f} instructions a second, {epoch.left / 60:.0f} minutes left"
    )
