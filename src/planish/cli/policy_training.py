"""`planish policy train`."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from planish.cli import options as given
from planish.cli.language_training import Asked, Kind, Size, TextSize, learnt_lists
from planish.cli.options import level_names, refuse, refuse_unread
from planish.cli.output import writing
from planish.cli.policies import policy_document

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from planish.models.policy_files import SavedPolicy
    from planish.train.imitation import Epoch
    from planish.train.reinforcement import EvalRecord

LevelName = Annotated[
    str, typer.Option("--level", metavar="LEVEL", help="Whose candidates.", autocompletion=level_names)
]
Algorithm = Literal["imitation", "dqn", "ppo", "impala", "appo"]
Network = Literal["attention", "mlp", "reader", "writer", "decoder"]
HELD, MOST_HELD = 10, 20
"""Every tenth program is held back in training by reinforcement, up to so many: judging takes time."""


_ALWAYS = {"level", "output", "seed", "form"}
_OF_LISTS = {"network", "epochs", "corpus", "labels", "objective", "device", "width", "depth"}
_SWEPT = {"width", "depth", "rate", "discount", "exploration"}
_OF_DECODERS = {"context", "tasks", "feedback", "first"}


def train(
    command: typer.Context,
    level: LevelName,
    store: given.StorePlace = None,
    space: Annotated[
        str,
        typer.Option("--space", metavar="NAME", help="A space of numbered actions; else the level's first."),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where it goes; else your data folder."),
    ] = None,
    algorithm: Annotated[
        Algorithm,
        typer.Option("--algorithm", help="From the store's best paths, or by reinforcement (RLlib)."),
    ] = "imitation",
    network: Annotated[
        Network | None,
        typer.Option(
            "--network",
            help="imitation: sharing weights over loops, or not (mlp); llvm: choosing among lists (reader), "
            "writing them pass by pass (writer), or a language model of IR (decoder).",
        ),
    ] = None,
    epochs: Annotated[
        int, typer.Option("--epochs", min=1, help="How often all is read; not in reinforcement.")
    ] = 10,
    programs: Annotated[
        str,
        typer.Option(
            "--programs",
            metavar="FILE",
            help="reinforcement: lines such as C[m,n] += A[m,k] * B[k,n] | m=64,n=64,k=64; or: matmuls.",
        ),
    ] = "matmuls",
    hours: Annotated[float, typer.Option("--hours", min=0, help="reinforcement: how long, in all.")] = 2.0,
    runners: Annotated[
        int, typer.Option("--runners", min=0, help="reinforcement: processes that collect.")
    ] = 0,
    corpus: Annotated[
        Path | None, typer.Option("--corpus", metavar="CORPUS", help="llvm: whose functions are read.")
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option("--labels", metavar="FILE", help="llvm: what planish corpus costs wrote; repeatable."),
    ] = None,
    objective: Annotated[
        Literal["instructions", "text_bytes"], typer.Option("--objective", help="llvm: what is made less.")
    ] = "instructions",
    device: Annotated[
        Literal["cpu", "cuda"], typer.Option("--device", help="llvm: where torch computes.")
    ] = "cpu",
    width: Annotated[
        int | None,
        typer.Option(
            "--width",
            min=16,
            help="Of the network's layers; llvm: a multiple of 16, else 64; reinforcement: else 256.",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth",
            min=1,
            help="llvm: layers that read, and that write, else 2; reinforcement: layers, else 3.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0, help="reinforcement: of learning; else the algorithm's own."),
    ] = None,
    discount: Annotated[
        float, typer.Option("--discount", min=0, max=1, help="reinforcement: of what is gained a step later.")
    ] = 0.95,
    exploration: Annotated[
        float | None,
        typer.Option(
            "--exploration",
            min=0,
            max=1,
            help="reinforcement: dqn: the share of actions drawn in the end; others: what entropy counts.",
        ),
    ] = None,
    context: Annotated[
        int, typer.Option("--context", min=256, help="decoder: tokens of the longest text.")
    ] = 1024,
    tasks: Annotated[
        Asked, typer.Option("--tasks", help="decoder: what is asked beside the list, as auxiliary tasks.")
    ] = "all",
    feedback: Annotated[
        Kind | None,
        typer.Option("--feedback", help="decoder: learn from feedback on --first's answers, too."),
    ] = None,
    first: Annotated[
        Path | None, typer.Option("--first", metavar="FILE", help="decoder: a policy that it begins with.")
    ] = None,
    seed: given.Seed = 0,
    form: given.Format = "text",
) -> None:
    """Train a policy on what the store knows of where steps lead, or by trying; Ctrl-C keeps the best so far.

    On the level llvm it reads functions, and learns which pass lists pay from labels. It goes on after an
    interruption from a checkpoint beside the policy.

    Reinforcement goes on where the last training of the same file was interrupted.
    """
    from planish.core import stoppable
    from planish.models.policy_files import policies_folder, write_policy

    path = output or policies_folder() / f"{level}.safetensors"
    refuse_unread(command, *_what_counts(level, algorithm, network))
    if first is not None:
        refuse(command, "training of a network that there is", {"width", "depth"})
    _require_writable(path)
    with stoppable() as stops, _before_the_first_step():
        if level == "llvm":
            _kind(network, level, "reader", "writer", "decoder")
            size, text = (
                Size(epochs, seed, width or 64, depth or 2, device),
                TextSize(context, tasks, feedback, first),
            )
            found = learnt_lists(corpus, labels or [], objective, path, size, network or "reader", text)
        elif algorithm == "imitation":
            _kind(network, level, "mlp", "attention")
            found = _imitated(level, space, store, path, network or "mlp", epochs, seed)
        else:
            texts = _programs(level, programs)
            swept = {"width": width, "depth": depth, "rate": rate, "exploration": exploration}
            tuned = {"discount": discount} | {
                name: given for name, given in swept.items() if given is not None
            }
            found = _reinforced(level, space, store, path, algorithm, texts, hours, runners, seed, tuned)
    if stops.count:
        typer.echo("stopped: the best so far is kept", err=True)
    with writing(path):
        write_policy(found, path)
    _show(path, found, form)


def _what_counts(level: str, algorithm: str, network: str | None) -> tuple[str, set[str]]:
    """Return what is trained, and which options count for that."""
    if level == "llvm":
        read = _ALWAYS | _OF_LISTS | (_OF_DECODERS if network == "decoder" else set())
        # It is learnt from labels: to name the default says nothing else.
        usual = {"algorithm"} if algorithm == "imitation" else set[str]()
        return f"training of the network '{network or 'reader'}'", read | usual
    if algorithm == "imitation":
        return "training by imitation", _ALWAYS | {"algorithm", "store", "space", "network", "epochs"}
    read = {"algorithm", "store", "space", "programs", "hours", "runners", *_SWEPT}
    return f"training by {algorithm}", _ALWAYS | read


def _require_writable(path: Path) -> None:
    """Make sure that a policy can be written, before hours are spent; nothing is left of it."""
    part = path.with_name(path.name + ".part")
    with writing(path):
        if path.is_dir():
            raise IsADirectoryError("it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        part.unlink()


@contextmanager
def _before_the_first_step() -> Generator[None]:
    """Report a stop while data are read; once steps are taken, the training itself keeps what it has."""
    from planish.core import StoppedError

    try:
        yield
    except KeyboardInterrupt as stop:
        raise StoppedError("stopped before there was a policy to keep", "Nothing was written.") from stop


def _kind(network: str | None, level: str, *legal: str) -> None:
    from planish.core import PlanishError

    if network not in (None, *legal):
        raise PlanishError(
            f"the level {level} has no network '{network}'", f"It takes --network {' or '.join(legal)}."
        )


def _imitated(
    level: str, space: str, store: str | None, path: Path, network: str, epochs: int, seed: int
) -> SavedPolicy:
    from planish.core import PlanishError
    from planish.levels.registry import level_named
    from planish.models.transfer import known_tasks
    from planish.store import open_store
    from planish.train.continuations import read_state_dataset

    try:
        from planish.train.imitation import imitate
    except ImportError as error:
        raise PlanishError("training a policy needs torch", "pip install planish[train].") from error
    with open_store(store, read_only=True) as opened:
        found = level_named(level)
        dataset = read_state_dataset(opened, found, known_tasks(opened, found), space)
    return imitate(dataset, level, path.stem, kind=network, epochs=epochs, seed=seed, on_epoch=_show_epoch)


def _reinforced(
    level: str,
    space: str,
    store: str | None,
    path: Path,
    algorithm: str,
    texts: Sequence[str],
    hours: float,
    runners: int,
    seed: int,
    tuned: Mapping[str, Any],
) -> SavedPolicy:
    from planish.core import PlanishError

    try:
        from planish.train.environment import make_environment
        from planish.train.reinforcement import TrainConfig, Tuned, plot_records, read_records, reinforce
    except ImportError as error:
        raise PlanishError(
            f"training by {algorithm} needs RLlib", "pip install planish[distributed]."
        ) from error
    held = texts[::HELD][:MOST_HELD]
    mine = [text for text in texts if text not in held] or held
    folder = path.with_name(path.stem + ".training")
    environment, other = (
        partial(make_environment, part, space=space or "steps", store=store) for part in (mine, held)
    )
    with writing(folder):
        config = TrainConfig(
            level, path.stem, algorithm, environment, other, folder, mine, 3600 * hours, runners, seed,
            Tuned(**tuned),
        )  # fmt: skip
        found = reinforce(config, partial(_show_record, 3600 * hours))
        plot_records(read_records(folder), folder / "reward.html")
    return found


def _programs(level: str, named: str) -> list[str]:
    """Read the programs to train on.

    Raises:
        PlanishError: the level has no environment; the file cannot be read, or has no line.
    """
    from planish.core import PlanishError
    from planish.levels.loops.workloads import thesis_split

    if level != "loops":
        raise PlanishError(f"the level {level} has no environment", "Use --algorithm imitation.")
    if named == "matmuls":
        return [f"C[m,n] += A[m,k] * B[k,n] | m={m},n={n},k={k}" for m, n, k in thesis_split()[0]]
    try:
        lines = [line.strip() for line in Path(named).read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise PlanishError(
            f"cannot read programs from {named}: {error}", "Give a file, or matmuls."
        ) from error
    if not (texts := [line for line in lines if line and not line.startswith("#")]):
        raise PlanishError(
            f"{named} has no programs", "A line each: C[m,n] += A[m,k] * B[k,n] | m=64,n=64,k=64."
        )
    return texts


def _show_epoch(epoch: Epoch) -> None:
    losses = f"loss {epoch.loss:.5f}, held back {epoch.held_loss:.5f}"
    typer.echo(f"epoch {epoch.number}: {losses}, regret {epoch.regret:.4f}", err=True)


def _show_record(seconds: float, record: EvalRecord) -> None:
    rate = record.steps / record.seconds
    gained = f"reward {record.reward:.3f}, held back at {100 * record.held:.1f} % of the peak"
    left = max(0.0, seconds - record.seconds) / 60
    typer.echo(f"{record.steps:,} steps, {rate:.0f} a second: {gained}; {left:.0f} minutes left", err=True)


def _show(path: Path, policy: SavedPolicy, form: str) -> None:
    from planish.cli.output import document, facts

    if form == "json":
        document(policy_document(path, policy))
        return
    metrics = {name: f"{value:.3g}" for name, value in policy.metrics.items()}
    facts({"wrote": str(path), "programs": f"{policy.programs:,}", **metrics})
