"""`planish policy train --level llvm`: networks that rank or write lists, and language models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from planish.core import PlanishError
from planish.core.installation import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from planish.models.decoder import DecoderShape
    from planish.models.ir_text import Tokenizer
    from planish.models.policy_files import SavedPolicy
    from planish.train.corpus.answers import TextExample
    from planish.train.optimization import OnProgress, TrainingProgress
    from planish.train.samples import ListDataset, Sample
    from planish.tuning.progress import ProgressDisplay

Asked = Literal["all", "counts", "code", "none"]
Kind = Literal["short", "long", "fast"]
JUDGED, FED_BACK = 24, 2_000
"""Functions that are answered at each evaluation; answers, at most, that are learnt from with feedback."""
BATCH, EVALUATIONS = 8192, 10
"""Tokens of a step; evaluations on the validation set in a training, with a checkpoint each."""


def require_passes(policy: SavedPolicy, named: Collection[str] = ()) -> None:
    """Make sure that a language model writes passes of this LLVM, and can write those that are named.

    Args:
        policy: the model.
        named: passes of labels, which it would spell as text if it had no tokens for them.

    Raises:
        PlanishError: it does not, or cannot.
    """
    from planish.core import PlanishError
    from planish.levels.llvm.passes.catalogue import elements
    from planish.levels.llvm.passes.space import PassSpace

    hint = "Train one without --first."
    objective = policy.schema.name.rpartition("/")[2]
    if why := policy.unfit(PassSpace([*elements().values()], objective=objective)):
        raise PlanishError(f"the policy {policy.name} {why}", hint)
    if missing := sorted({*named} - {*policy.actions}):
        what = f"the policy {policy.name} has no tokens for passes of the labels"
        raise PlanishError(f"{what}: {', '.join(missing[:3])}", hint)


@dataclass(frozen=True)
class TextOptions:
    """Options of language models."""

    context: Annotated[
        int, typer.Option("--context", metavar="N", min=256, help="decoder: tokens of the longest text.")
    ] = 1024
    tasks: Annotated[
        Asked, typer.Option("--tasks", help="decoder: auxiliary tasks that are learned with the list.")
    ] = "all"
    feedback: Annotated[
        Kind | None,
        typer.Option("--feedback", help="decoder: also learn from feedback on the answers of --first."),
    ] = None
    first: Annotated[
        Path | None,
        typer.Option("--first", metavar="FILE", help="decoder: policy whose network is trained further."),
    ] = None


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
    device: Annotated[Literal["cpu", "cuda"], typer.Option("--device", help="llvm: device of PyTorch.")] = (
        "cpu"
    )


@dataclass(frozen=True)
class _Start:
    """Initial state of a training."""

    tokenizer: Tokenizer
    shape: DecoderShape
    parameters: Mapping[str, NDArray[np.float32]] | None = None
    feedback: Kind | Literal[""] = ""


def learnt_text(
    examples: Sequence[TextExample],
    held: NDArray[np.bool_],
    objective: str,
    path: Path,
    size: Size,
    text: TextOptions,
    display: ProgressDisplay,
) -> SavedPolicy:
    """Train a language model on functions, and the best lists that are known of them.

    Args:
        examples: what is known.
        held: which of them are held back from training, to choose the best network.
        objective: what is made less.
        path: where the policy will go; the checkpoint is in the same folder.
        size: how much is trained.
        text: what is trained.
        display: shows the progress.

    Raises:
        PlanishError: feedback is to be learnt without a model to answer, or that one is none of language.
    """
    from planish.levels.llvm.ir.features import instruction_schema
    from planish.models.policy_files import SavedPolicy
    from planish.train.text_training import TextConfig, train_text

    mine, others = (
        [a for a, b in zip(examples, held, strict=True) if bool(b) == back] for back in (False, True)
    )
    others = others or mine
    start = _start(mine, size, text)
    samples, back = (_samples(start, some, text) for some in (mine, others))
    display.log(
        f"{len(examples):,} functions: {len(samples):,} texts are used for training, {len(back):,} decide "
        f"when to stop; others are longer than {text.context:,} tokens"
    )
    steps = max(1, round(size.epochs * sum(len(one.tokens) for one in samples) / BATCH))
    checkpoint = path.with_name(path.stem + ".checkpoint")
    config = TextConfig(
        steps,
        size.seed,
        checkpoint,
        BATCH,
        every=-(-steps // EVALUATIONS),
        device=size.device,
        first=start.parameters,
    )

    def evaluate(parameters: Mapping[str, NDArray[np.float32]]) -> Mapping[str, float]:
        return _judged(replace(start, parameters=parameters), others[:JUDGED])

    parameters, metrics = train_text(
        samples, back, start.shape, config, show_steps(display, "steps", _text_step), evaluate
    )
    schema, longest = instruction_schema(objective), max(len(one.answer.passes) for one in examples)
    names, programs = start.tokenizer.passes, len(samples)
    made = path.stem, "llvm", schema, names, longest, start.shape, parameters, metrics, programs
    return SavedPolicy(*made, vocabulary=start.tokenizer.to_json(), feedback=start.feedback)


def _start(examples: Sequence[TextExample], size: Size, text: TextOptions) -> _Start:
    from planish.levels.llvm.passes.catalogue import elements
    from planish.models.decoder import DecoderShape
    from planish.models.ir_text import Tokenizer
    from planish.models.policy_files import load_policy

    if text.first is None:
        if text.feedback:
            raise PlanishError("feedback is learned from the answers of a policy", "Name it: --first FILE.")
        tokenizer = Tokenizer.learnt((one.ir for one in examples), [*elements()])
        return _Start(tokenizer, DecoderShape(tokenizer.size, text.context, size.width, size.depth))
    first = load_policy(text.first)
    if not isinstance(first.shape, DecoderShape):
        raise PlanishError(f"{text.first} is not a language model", "Train one: --network decoder.")
    require_passes(first, {name for one in examples for name in one.answer.passes})
    shape = replace(first.shape, context=text.context)  # no array depends on it: positions are rotations
    # What it learnt from feedback stays with it where it learns on without.
    return _Start(Tokenizer.read(first.vocabulary), shape, first.parameters, text.feedback or first.feedback)


def _samples(start: _Start, examples: Sequence[TextExample], text: TextOptions) -> list[Sample]:
    """Write examples as texts: all of them plainly, and some with feedback, too."""
    from planish.models.ir_text import Tasks
    from planish.train.corpus.answers import answers_of, evaluate_answers, feedback_samples, text_samples

    tasks = Tasks(text.tasks in ("all", "counts"), text.tasks in ("all", "code"))
    plain = text_samples(start.tokenizer, examples, text.context, tasks)
    if text.feedback is None or start.parameters is None:
        return plain
    some, code = examples[:FED_BACK], text.feedback != "fast"
    answers = answers_of(start.shape, start.parameters, start.tokenizer, some, code=code)
    evaluated = evaluate_answers(some, answers)
    return plain + feedback_samples(start.tokenizer, evaluated, text.context, text.feedback, tasks)


def _judged(start: _Start, examples: Sequence[TextExample]) -> Mapping[str, float]:
    from planish.train.corpus.answers import answers_of, evaluate_answers, summary

    assert start.parameters is not None
    answers = answers_of(start.shape, start.parameters, start.tokenizer, examples, code=False)
    return summary(evaluate_answers(examples, answers))


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
    saved = progress.metrics.get("improvement with -Oz as backup", 0.0)
    return (
        f"step {progress.step:,} of {progress.steps:,}: loss {progress.loss:.3f}, validation "
        f"{progress.held:.3f}, greedy lists save {saved:.2%} of instructions; "
        f"{progress.rate:,.0f} tokens a second, {progress.left / 60:.0f} minutes left"
    )


MOST = 40
"""Lists that a policy learns about: as many as the gate does, chosen of the labels as for it."""
HEADS = 16
"""Number of which the width of a layer is a multiple."""


@dataclass(frozen=True)
class Size:
    """Size and duration of a training.

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
    known: Labels, path: Path, size: Size, network: str, text: TextOptions, display: ProgressDisplay
) -> SavedPolicy:
    """Train a policy over pass lists on functions of a corpus and what lists cost on them.

    Args:
        known: a corpus, and its labels; the lists that all files of them have are learnt about.
        path: where the policy will go; the checkpoint is in the same folder.
        size: how much is trained.
        network: "reader" chooses among the lists of the labels, "writer" writes lists pass by pass, and
            "decoder" reads and writes text.
        text: what the last one is trained on.
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
    if size.width % HEADS:
        raise PlanishError(f"--width {size.width} is not a multiple of {HEADS}")
    try:
        from planish.train.optimization import require_device
    except ImportError as error:
        raise PlanishError("training a policy needs torch", f"{install_command('train')}.") from error
    require_device(size.device)
    from planish.models.policy_files import policy_for_schema
    from planish.train.continuations import compare_lists
    from planish.train.corpus.answers import held_back, read_list_dataset
    from planish.train.cost_tables import read_joined
    from planish.train.labeling.choice import lists_of_table

    table = read_joined(labels, objective)
    lists = lists_of_table(table.split("train"), objective, MOST)
    if network == "decoder":
        import numpy as np

        from planish.train.corpus.answers import read_text_examples

        texts = read_text_examples(corpus, [table], objective, lists, "train")
        back = held_back(np.array([one.package for one in texts]))
        return learnt_text(texts, back, objective, path, size, text, display)
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
