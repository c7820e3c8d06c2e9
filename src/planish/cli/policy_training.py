"""`planish policy train`: policies from stored searches, labeled functions, or reinforcement learning."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from planish.cli import options as given
from planish.cli.language_training import Device, Labels, Size, TextOptions, learnt_lists, learnt_text
from planish.cli.options import level_names, refuse, refuse_unread
from planish.cli.output import writing
from planish.cli.own_files import show_written
from planish.core.installation import install_command

if TYPE_CHECKING:
    from collections.abc import Generator

    from planish.models.policy_files import SavedPolicy
    from planish.train.imitation import Epoch
    from planish.train.reinforcement import EvalRecord
    from planish.tuning.progress import ProgressDisplay


LevelName = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="LEVEL",
        help="Level whose candidates the policy chooses.",
        autocompletion=level_names,
    ),
]
Algorithm = Literal["imitation", "dqn", "ppo", "impala", "appo"]
Network = Literal["attention", "mlp", "reader", "writer", "decoder"]
MULTIPLE = 16
"""Number of which the width of the layers of the level llvm is a multiple."""
HELD, MOST_HELD = 10, 20
"""Every tenth program is held out in training by reinforcement, up to this many: evaluation takes time."""


@dataclass(frozen=True)
class NetworkSize:
    """Options for the size of a network; None for the default of what is trained."""

    width: Annotated[
        int | None,
        typer.Option(
            "--width",
            metavar="N",
            min=16,
            help="Width of the layers. Default: 64 (llvm, a multiple of 16), 256 (reinforcement).",
        ),
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth",
            metavar="N",
            min=1,
            help="Number of layers. Default: 2 (llvm, of reading and of writing layers), 3 (reinforcement).",
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
            help="reinforcement: file with a program on each line, such as "
            "C[m,n] += A[m,k] * B[k,n] | m=64,n=64,k=64; or matmuls, those of the thesis.",
        ),
    ] = "matmuls"
    hours: Annotated[
        float, typer.Option("--hours", metavar="H", min=0, help="reinforcement: total time.")
    ] = 2.0
    runners: Annotated[
        int,
        typer.Option(
            "--runners",
            metavar="N",
            min=0,
            help="reinforcement: processes that collect experience; 0: the one that learns.",
        ),
    ] = 0
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            metavar="X",
            min=0,
            help="reinforcement, decoder: peak learning rate. Default: the algorithm's; 0.001 (decoder).",
        ),
    ] = None
    discount: Annotated[
        float,
        typer.Option(
            "--discount", metavar="X", min=0, max=1, help="reinforcement: discount of later rewards."
        ),
    ] = 0.95
    exploration: Annotated[
        float | None,
        typer.Option(
            "--exploration",
            metavar="X",
            min=0,
            max=1,
            help="reinforcement: final share of random actions (dqn), or weight of the entropy (others).",
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
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write. Default: own-LEVEL.safetensors in your data folder.",
        ),
    ] = None
    seed: given.Seed = 0
    form: given.Format = "text"

    @property
    def path(self) -> Path:
        from planish.models.policy_files import policies_folder
        from planish.models.provenance import OWN

        return self.output or policies_folder() / f"{OWN}{self.level}.safetensors"

    def path_for(self, trained: SavedPolicy) -> Path:
        """Return where a policy goes; without -o one that is worse does not replace the one in use."""
        path, held_out = self.path, trained.held_out
        if self.output is None and held_out and held_out.is_worse and held_out.rival == path.stem:
            return path.with_stem(f"{path.stem}-worse")
        return path


@given.grouped
def train(
    command: typer.Context,
    *,
    policy: Policy,
    store: given.StorePlace = None,
    space: Annotated[
        str,
        typer.Option(
            "--space",
            metavar="NAME",
            help="Space of numbered actions, such as steps or marked-steps. Default: the level's first.",
        ),
    ] = "",
    algorithm: Annotated[
        Algorithm,
        typer.Option(
            "--algorithm",
            help="Imitation of the best paths in the store, or reinforcement learning by RLlib.",
        ),
    ] = "imitation",
    network: Annotated[
        Network | None,
        typer.Option(
            "--network",
            help="imitation: mlp (default), or attention, which shares weights over loops; llvm: reader "
            "(default), which ranks lists, writer, which writes them pass by pass, or decoder, a language "
            "model.",
        ),
    ] = None,
    epochs: Annotated[
        int,
        typer.Option(
            "--epochs", metavar="N", min=1, help="Number of passes over the data; not for reinforcement."
        ),
    ] = 10,
    labels: Labels,
    device: Device = "auto",
    size: NetworkSize,
    reinforcement: Reinforcement,
    text: TextOptions,
) -> None:
    """Train a policy from stored searches, from labeled functions (llvm), or by reinforcement learning.

    Imitation learns how much worse each action is than the best one in states that searches have measured
    (`--space steps --searcher beam-bfs`). Ctrl-C keeps the best policy so far. With llvm and with
    reinforcement, the same command resumes an interrupted training. It needs the extra `train`;
    reinforcement needs `distributed`.

        planish policy train --level loops --store mine.db

        planish policy train --level llvm --corpus corpus/ --labels costs.npz -o lists.safetensors

        planish policy train --level llvm --network decoder --tokens corpus.tokens --minutes 8
    """
    from planish.core import PlanishError, stoppable
    from planish.models.policy_files import write_policy
    from planish.tuning.progress import ProgressDisplay

    level, path = policy.level, policy.path
    _refuse_unread(command, level, algorithm, network, text)
    _require_writable(path)
    with (
        stoppable() as stops,
        _before_the_first_step(),
        ProgressDisplay(show=policy.form == "text", every=math.inf) as display,
    ):
        if level == "llvm":
            chosen = _network(network, level, "reader", "writer", "decoder")
            width, depth = size.width or 64, size.depth or 2
            if width % MULTIPLE:
                raise PlanishError(f"--width {width} is not a multiple of {MULTIPLE}")
            trained = Size(epochs, policy.seed, width, depth, device, reinforcement.rate)
            if chosen == "decoder":
                found = learnt_text(path, trained, text, display)
            else:
                found = learnt_lists(labels, path, trained, chosen, display)
        elif algorithm == "imitation":
            chosen = _network(network, level, "mlp", "attention")
            found = _imitated(policy, space, store, chosen, epochs, display)
        else:
            found = _reinforced(policy, space, store, algorithm, reinforcement, size, display)
    if stops.count:
        typer.echo("stopped: the best so far is kept", err=True)
    path = policy.path_for(found)
    with writing(path):
        write_policy(found, path)
    count = ("programs", f"{found.programs:,}")
    show_written(path, count, found.metrics, policy_document(path, found), policy.form)
    _show_use(path, found)


def policy_document(path: Path, policy: SavedPolicy) -> dict[str, object]:
    """Return a policy as --format json prints it."""
    return {
        "level": policy.level,
        "observes": f"{policy.schema.name} {policy.schema.version}",
        "network": vars(policy.shape),
        "actions": list(policy.actions),
        "steps": policy.steps,
        "programs": policy.programs,
        "vector_bytes": policy.vector_bytes,
        "metrics": dict(policy.metrics),
        "held_out": None if policy.held_out is None else asdict(policy.held_out),
        "version": policy.version,
        "file": str(path),
    }


def _refuse_unread(
    command: typer.Context, level: str, algorithm: str, network: str | None, text: TextOptions
) -> None:
    """Refuse options that what is trained does not read."""
    groups: tuple[Any, ...] = ()
    if level == "llvm":
        what, read = f"training of the network '{network or 'reader'}'", {"network", "epochs"}
        read.add("device")
        groups = (TextOptions, NetworkSize) if network == "decoder" else (Labels, NetworkSize)
        if network == "decoder":
            read.add("rate")
        if algorithm == "imitation":  # it is learnt from labels: to name the default says nothing else
            read.add("algorithm")
    elif algorithm == "imitation":
        what, read = "training by imitation", {"algorithm", "store", "space", "network", "epochs"}
    else:
        what, read = f"training by {algorithm}", {"algorithm", "store", "space"}
        groups = Reinforcement, NetworkSize
    read |= {field.name for group in (Policy, *groups) for field in fields(group)}
    refuse_unread(command, what, read)
    if text.first is not None:
        refuse(command, "training of an existing network", {"width", "depth"})
    if text.minutes is not None:
        refuse(command, "training for --minutes", {"epochs"})


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


def _network(network: str | None, level: str, *legal: str) -> str:
    """Return the network that is asked for, the first of the legal ones where none is."""
    from planish.core import PlanishError

    if network not in (None, *legal):
        raise PlanishError(
            f"the level {level} has no network '{network}'", f"It takes --network {' or '.join(legal)}."
        )
    return network or legal[0]


def _imitated(
    policy: Policy, space: str, store: str | None, network: str, epochs: int, display: ProgressDisplay
) -> SavedPolicy:
    from planish.core import PlanishError
    from planish.core.registry import level_named
    from planish.models.policy_files import policy_for
    from planish.store import open_store
    from planish.train.continuations import compare_steps, read_state_dataset
    from planish.tuning.transfer import known_tasks

    try:
        from planish.train.imitation import imitate
    except ImportError as error:
        raise PlanishError("training a policy needs torch", f"{install_command('train')}.") from error
    with open_store(store, read_only=True) as opened:
        found = level_named(policy.level)
        dataset = read_state_dataset(known_tasks(opened, found), found.name, space)
    trained = imitate(
        dataset,
        policy.level,
        policy.path.stem,
        kind=network,
        epochs=epochs,
        seed=policy.seed,
        on_epoch=partial(_show_epoch, display),
    )
    try:
        rival = policy_for(dataset.space, "auto")
    except PlanishError:  # no other policy fits
        return trained
    return replace(trained, held_out=compare_steps(trained, rival, dataset))


def _reinforced(
    policy: Policy,
    space: str,
    store: str | None,
    algorithm: str,
    how: Reinforcement,
    size: NetworkSize,
    display: ProgressDisplay,
) -> SavedPolicy:
    from planish.core import PlanishError

    texts, path = _programs(policy.level, how.programs), policy.path
    try:
        from planish.train.environment import make_environment
        from planish.train.reinforcement import TrainConfig, Tuned, plot_records, read_records, reinforce
    except ImportError as error:
        raise PlanishError(
            f"training by {algorithm} needs RLlib", f"{install_command('distributed')}."
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
        found = reinforce(config, partial(_show_record, display, seconds))
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


def _show_epoch(display: ProgressDisplay, epoch: Epoch) -> None:
    losses = f"loss {epoch.loss:.5f}, validation {epoch.held_loss:.5f}"
    display.log(f"epoch {epoch.number}: {losses}, regret {epoch.regret:.4f}")


def _show_record(display: ProgressDisplay, seconds: float, record: EvalRecord) -> None:
    rate = record.steps / record.seconds
    gained = f"reward {record.reward:.3f}, validation at {100 * record.held:.1f} % of the peak"
    left = max(0.0, seconds - record.seconds) / 60
    display.log(f"{record.steps:,} steps, {rate:.0f} a second: {gained}; {left:.0f} minutes left")


def _show_use(path: Path, policy: SavedPolicy) -> None:
    """Report if searches that name no policy use a new one of the user's, and why not."""
    from planish.cli.output import remark
    from planish.models.policy_files import policies_folder
    from planish.models.provenance import FEWEST_PROGRAMS

    held_out, alone = policy.held_out, f"--set policy={path.stem} uses it"
    if held_out is not None:
        if path.parent != policies_folder():
            used = f"--set policy={path} uses it"
        elif held_out.is_better:
            used = "searches use it from now on"
        elif held_out.is_worse:
            used = f"it is not better, so searches do not use it; {alone}"
        else:
            few = f"it takes {FEWEST_PROGRAMS} held-back programs to replace {held_out.rival}"
            used = f"{few}, so searches do not use it; {alone}"
        remark(f"{held_out.text}: {used}")
    elif path.parent == policies_folder():
        remark(f"not compared with others: searches use it only if no shipped policy fits; {alone}")
