"""`planish policy train`."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from planish.cli import options as given
from planish.cli.language_training import Labels, Size, TextOptions, learnt_lists
from planish.cli.options import level_names, refuse, refuse_unread
from planish.cli.output import writing
from planish.cli.policies import policy, policy_document

if TYPE_CHECKING:
    from collections.abc import Generator

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


@dataclass(frozen=True)
class NetworkSize:
    """Options for the size of a network; None for the default of what is trained."""

    width: Annotated[
        int | None,
        typer.Option(
            "--width",
            min=16,
            help="Of the network's layers; llvm: a multiple of 16, else 64; reinforcement: else 256.",
        ),
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth",
            min=1,
            help="llvm: layers that read, and that write, else 2; reinforcement: layers, else 3.",
        ),
    ] = None


@dataclass(frozen=True)
class Reinforcement:
    """Options of training by reinforcement."""

    programs: Annotated[
        str,
        typer.Option(
            "--programs",
            metavar="FILE",
            help="reinforcement: lines such as C[m,n] += A[m,k] * B[k,n] | m=64,n=64,k=64; or: matmuls.",
        ),
    ] = "matmuls"
    hours: Annotated[float, typer.Option("--hours", min=0, help="reinforcement: how long, in all.")] = 2.0
    runners: Annotated[
        int, typer.Option("--runners", min=0, help="reinforcement: processes that collect.")
    ] = 0
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0, help="reinforcement: of learning; else the algorithm's own."),
    ] = None
    discount: Annotated[
        float, typer.Option("--discount", min=0, max=1, help="reinforcement: of what is gained a step later.")
    ] = 0.95
    exploration: Annotated[
        float | None,
        typer.Option(
            "--exploration",
            min=0,
            max=1,
            help="reinforcement: dqn: the share of actions drawn in the end; others: what entropy counts.",
        ),
    ] = None


@dataclass(frozen=True)
class Policy:
    """Options that hold whatever is trained.

    Attributes:
        path: where the policy goes.
    """

    level: LevelName
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where it goes; else your data folder."),
    ] = None
    seed: given.Seed = 0
    form: given.Format = "text"

    @property
    def path(self) -> Path:
        from planish.models.policy_files import policies_folder

        return self.output or policies_folder() / f"{self.level}.safetensors"


@policy.command()
@given.grouped
def train(
    command: typer.Context,
    *,
    policy: Policy,
    store: given.StorePlace = None,
    space: Annotated[
        str,
        typer.Option("--space", metavar="NAME", help="A space of numbered actions; else the level's first."),
    ] = "",
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
    labels: Labels,
    size: NetworkSize,
    reinforcement: Reinforcement,
    text: TextOptions,
) -> None:
    """Train a policy on what the store knows of where steps lead, or by trying; Ctrl-C keeps the best so far.

    On the level llvm it reads functions, and learns which pass lists pay from labels. It goes on after an
    interruption from a checkpoint beside the policy.

    Reinforcement goes on where the last training of the same file was interrupted.
    """
    from planish.core import stoppable
    from planish.models.policy_files import write_policy

    level, path = policy.level, policy.path
    if level == "llvm":
        what, read = f"training of the network '{network or 'reader'}'", {"network", "epochs"}
        groups: tuple[Any, ...] = (Labels, NetworkSize, *([TextOptions] if network == "decoder" else []))
        if algorithm == "imitation":  # it is learnt from labels: to name the default says nothing else
            read.add("algorithm")
    elif algorithm == "imitation":
        what, read = "training by imitation", {"algorithm", "store", "space", "network", "epochs"}
        groups = ()
    else:
        what, read = f"training by {algorithm}", {"algorithm", "store", "space"}
        groups = Reinforcement, NetworkSize
    read |= {field.name for group in (Policy, *groups) for field in fields(group)}
    refuse_unread(command, what, read)
    if text.first is not None:
        refuse(command, "training of a network that there is", {"width", "depth"})
    _require_writable(path)
    with stoppable() as stops, _before_the_first_step():
        if level == "llvm":
            _require_network(network, level, "reader", "writer", "decoder")
            trained = Size(epochs, policy.seed, size.width or 64, size.depth or 2, labels.device)
            found = learnt_lists(labels, path, trained, network or "reader", text)
        elif algorithm == "imitation":
            _require_network(network, level, "mlp", "attention")
            found = _imitated(policy, space, store, network or "mlp", epochs)
        else:
            found = _reinforced(policy, space, store, algorithm, reinforcement, size)
    if stops.count:
        typer.echo("stopped: the best so far is kept", err=True)
    with writing(path):
        write_policy(found, path)
    _show(path, found, policy.form)


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


def _require_network(network: str | None, level: str, *legal: str) -> None:
    from planish.core import PlanishError

    if network not in (None, *legal):
        raise PlanishError(
            f"the level {level} has no network '{network}'", f"It takes --network {' or '.join(legal)}."
        )


def _imitated(policy: Policy, space: str, store: str | None, network: str, epochs: int) -> SavedPolicy:
    from planish.core import PlanishError
    from planish.levels.registry import level_named
    from planish.store import open_store
    from planish.train.continuations import read_state_dataset
    from planish.tuning.transfer import known_tasks

    try:
        from planish.train.imitation import imitate
    except ImportError as error:
        raise PlanishError("training a policy needs torch", "pip install planish[train].") from error
    with open_store(store, read_only=True) as opened:
        found = level_named(policy.level)
        dataset = read_state_dataset(opened, found, known_tasks(opened, found), space)
    how: dict[str, Any] = {"kind": network, "epochs": epochs, "seed": policy.seed, "on_epoch": _show_epoch}
    return imitate(dataset, policy.level, policy.path.stem, **how)


def _reinforced(
    policy: Policy, space: str, store: str | None, algorithm: str, how: Reinforcement, size: NetworkSize
) -> SavedPolicy:
    from planish.core import PlanishError

    texts, path = _programs(policy.level, how.programs), policy.path
    try:
        from planish.train.environment import make_environment
        from planish.train.reinforcement import TrainConfig, Tuned, plot_records, read_records, reinforce
    except ImportError as error:
        raise PlanishError(
            f"training by {algorithm} needs RLlib", "pip install planish[distributed]."
        ) from error
    others: dict[str, Any] = {"rate": how.rate, "discount": how.discount, "exploration": how.exploration}
    tuned = Tuned(**{name: value for name, value in (vars(size) | others).items() if value is not None})
    held = texts[::HELD][:MOST_HELD]
    mine = [text for text in texts if text not in held] or held
    folder = path.with_name(path.stem + ".training")
    environment, other = (
        partial(make_environment, part, space=space or "steps", store=store) for part in (mine, held)
    )
    with writing(folder):
        seconds = 3600 * how.hours
        config = TrainConfig(
            policy.level, path.stem, algorithm, environment, other, folder, mine, seconds, how.runners,
            policy.seed, tuned,
        )  # fmt: skip
        found = reinforce(config, partial(_show_record, seconds))
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
