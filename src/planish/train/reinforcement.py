"""Reinforcement learning of policies by RLlib's algorithms."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from planish.core import CanObserve, PlanishError, StoppedError
from planish.core.files import replace_text
from planish.core.installation import install_command
from planish.models.named_policies import NetworkPolicy
from planish.models.networks import Shape
from planish.models.policy_files import SavedPolicy, load_policy, policy_for, vector_bytes_of, write_policy
from planish.models.provenance import HeldOut, stated
from planish.train.environment import EpisodeTask, ScaledObservation, StepEnvironment
from planish.train.recipes import RECIPE, require_same

INTENSITY = 8
"""Steps that DQN learns from for each one that it takes; by default they are 32, and 60 steps a second."""
SCALE = 100.0
"""Scores are values of actions in hundredths of the peak where an algorithm learns values."""

NEVER = -1e4
"""The score of the end where an algorithm learns probabilities: the thesis' agent takes all its steps.

Where it learns values of actions, which are gains to come, the end gains 0: it is taken where all else loses.
"""

ALGORITHMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "dqn": (
        "dqn.DQNConfig",
        {
            "train_batch_size": 256,
            "training_intensity": INTENSITY,
            "double_q": True,
            "dueling": False,
            "n_step": 3,
            "lr": 5e-4,
            "epsilon": [[0, 1.0], [20_000, 0.05]],
            "replay_buffer_config": {"type": "PrioritizedEpisodeReplayBuffer", "capacity": 200_000},
        },
    ),
    "ppo": ("ppo.PPOConfig", {"train_batch_size": 2000, "minibatch_size": 250, "num_epochs": 8, "lr": 3e-4}),
    "impala": ("impala.IMPALAConfig", {"train_batch_size": 500, "lr": 5e-4}),
    "appo": ("appo.APPOConfig", {"train_batch_size": 500, "lr": 5e-4}),
}
"""Name to its configuration in RLlib, and what differs from RLlib's defaults there.

What was Ape-X is `dqn` with several runners, for it has prioritized replay. RLlib dropped Ape-X and A3C as
names of their own; `impala` is what took A3C's place.
"""


@dataclass(frozen=True)
class Tuned:
    """Hyperparameters that the thesis sweeps (3.8.1), but for the algorithm.

    Args:
        width: of the network's layers; as planish's own `mlp` has it.
        depth: how many layers.
        rate: of learning; None for the algorithm's in `ALGORITHMS`.
        discount: of what is gained a step later; the thesis' winner's.
        exploration: of `dqn` the share of actions that are drawn in the end; of others what the entropy of
            their choice counts beside rewards; None for the algorithm's.
    """

    width: int = 256
    depth: int = 3
    rate: float | None = None
    discount: float = 0.95
    exploration: float | None = None

    def training(self, algorithm: str) -> dict[str, Any]:
        """Return the options of RLlib's that differ from its defaults."""
        found: dict[str, Any] = {**ALGORITHMS[algorithm][1], "gamma": self.discount}
        if self.rate is not None:
            found["lr"] = self.rate
        if self.exploration is not None and algorithm == "dqn":
            found["epsilon"] = [*found["epsilon"][:-1], [found["epsilon"][-1][0], self.exploration]]
        elif self.exploration is not None:
            found["entropy_coeff"] = self.exploration
        return found


USUAL = Tuned()
"""The values where nothing is swept."""
MASKED = {"dqn": "MaskedValues", "ppo": "MaskedActor", "impala": "MaskedActor", "appo": "MaskedTargetActor"}
"""Name to the class of `planish.train.masked` whose network it trains."""
DISTRIBUTED = frozenset({"impala", "appo"})
"""They need a runner beside the learner."""


def built(name: str, environment: Callable[[], Any], runners: int, seed: int, tuned: Tuned = USUAL) -> Any:
    """Build an algorithm of RLlib.

    Args:
        name: one of `ALGORITHMS`.
        environment: makes one; is pickled where there are runners.
        runners: processes that collect; 0: this one does.
        seed: of the first weights, and of what is explored.
        tuned: the network, and how it learns.

    Raises:
        PlanishError: RLlib is not installed, or its torch.
    """
    try:
        ray = import_module("ray")
        import_module("torch")
        module, _, kind = ALGORITHMS[name][0].partition(".")
        config = getattr(import_module(f"ray.rllib.algorithms.{module}"), kind)()
        model = import_module("ray.rllib.core.rl_module.default_model_config").DefaultModelConfig
        register = import_module("ray.tune.registry").register_env
        spec = import_module("ray.rllib.core.rl_module.rl_module").RLModuleSpec
        masked = getattr(import_module("planish.train.masked"), MASKED[name])
    except ImportError as error:
        raise PlanishError(f"training by {name} needs RLlib", f"{install_command('distributed')}.") from error
    runners = max(runners, 1) if name in DISTRIBUTED else runners
    if not ray.is_initialized():
        ray.init(
            num_cpus=runners + 1, include_dashboard=False, log_to_driver=False, configure_logging=False,
            logging_level="error",
        )  # fmt: skip

    def made(_options: object) -> object:
        return environment()

    register("planish", made)
    config = config.environment("planish").framework("torch").debugging(seed=seed, log_level="ERROR")
    config = config.env_runners(num_env_runners=runners).learners(num_learners=0)
    network = model(fcnet_hiddens=[tuned.width] * tuned.depth, fcnet_activation="relu", vf_share_layers=False)
    config = config.rl_module(rl_module_spec=spec(module_class=masked), model_config=network)
    return config.training(**tuned.training(name)).build_algo()


def parameters(algorithm: Any, depth: int) -> dict[str, Any]:
    """Return the weights of the network that chooses, by layers, named as planish's `mlp` has them.

    Values of actions are scaled, so that the best ones are the probable ones; see `NEVER` for the end.
    """
    state = algorithm.get_module().state_dict()
    weights = {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}
    # Where actor and critic share no encoder, the actor's is what chooses.
    acting = next(
        head for head in ("encoder.actor_encoder.net", "encoder.net") if f"{head}.mlp.0.weight" in weights
    )
    learns_values = "af.net.mlp.0.weight" in weights
    head, scale = ("af", SCALE) if learns_values else ("pi", 1.0)
    found: dict[str, Any] = {}
    for layer in range(depth):
        found[f"{layer}"] = weights[f"{acting}.mlp.{2 * layer}.weight"].T
        found[f"{layer} bias"] = weights[f"{acting}.mlp.{2 * layer}.bias"]
    last, bias = weights[f"{head}.net.mlp.0.weight"].T * scale, weights[f"{head}.net.mlp.0.bias"] * scale
    # A column for the end, which the thesis's agent lacks; the bias alone scores it.
    found[f"{depth}"] = np.pad(last, ((0, 0), (0, 1)))
    found[f"{depth} bias"] = np.append(bias, 0.0 if learns_values else NEVER)
    return {name: np.ascontiguousarray(array, np.float32) for name, array in found.items()}


PATIENCE = 30
"""Evaluations on the held-back programs without an improvement, after which training ends."""


_CHECKPOINT = "checkpoint-"


@dataclass(frozen=True)
class EvalRecord:
    """Evaluation of a training so far.

    Args:
        seconds: of training, those before it was interrupted included.
        steps: of the environment.
        reward: of the last episodes, in the mean: what was gained, as a share of the peak.
        held: how fast the policy's ends are on held-back programs, as a share of the peak, in the mean.
    """

    seconds: float
    steps: int
    reward: float
    held: float


@dataclass(frozen=True)
class TrainConfig:
    """Configuration of a training.

    Args:
        level: of the programs.
        name: of the policy.
        algorithm: one of `planish.train.reinforcement.ALGORITHMS`.
        environment: makes one of the programs to learn from.
        held: makes one of the programs that are held back.
        folder: keeps checkpoints, the best policy, and a line of JSON for each evaluation.
        programs: texts of those to learn from.
        seconds: of training in all.
        runners: processes that collect; 0: this one does.
        seed: of the first weights, and of what is explored.
        tuned: the network, and how it learns.
        every_s: seconds from one evaluation, and checkpoint, to the next, at least.
        build: makes the algorithm.
    """

    level: str
    name: str
    algorithm: str
    environment: Callable[[], StepEnvironment]
    held: Callable[[], StepEnvironment]
    folder: Path
    programs: Sequence[str]
    seconds: float
    runners: int = 0
    seed: int = 0
    tuned: Tuned = USUAL
    every_s: float = 20.0
    build: Callable[..., Any] = built


def reinforce(config: TrainConfig, on_record: Callable[[EvalRecord], None] = lambda _: None) -> SavedPolicy:
    """Train a policy, from the last checkpoint on where there is one; return the best on held-back programs.

    Ctrl-C ends it as time does.

    Args:
        config: what is trained, and on what.
        on_record: receives each evaluation.

    Raises:
        StoppedError: it was stopped before its first evaluation.
        PlanishError: RLlib is not installed, or the folder has another training.
    """
    records = read_records(config.folder)
    begun = time.monotonic() - (records[-1].seconds if records else 0.0)
    with closing(config.held()) as environment:
        config.folder.mkdir(parents=True, exist_ok=True)
        what = f"the training in {config.folder}"
        require_same(config.folder / RECIPE, _recipe(config, environment.task.space), what)
        algorithm = config.build(
            config.algorithm,
            lambda: ScaledObservation(config.environment()),
            config.runners,
            config.seed,
            config.tuned,
        )
        try:
            _restore(algorithm, config)
            with suppress(KeyboardInterrupt):
                for reward, steps in _rounds(algorithm, config.every_s):
                    policy = _exported(algorithm, config, environment)
                    held = float(np.mean([_share(policy, task) for task in _tasks(environment)]))
                    records.append(EvalRecord(time.monotonic() - begun, steps, reward, held))
                    policy = replace(policy, metrics={"steps": float(steps), "share of the peak": held})
                    _keep(algorithm, config, policy, records)
                    on_record(records[-1])
                    if records[-1].seconds > config.seconds or _is_stuck(records):
                        break
        finally:
            algorithm.stop()
        best = config.folder / "best.safetensors"
        if not best.exists():
            raise StoppedError(
                "the training was stopped before there was anything to keep", "Nothing was written."
            )
        return _compared(load_policy(best), environment)


def read_records(folder: Path) -> list[EvalRecord]:
    """Read the evaluations of a training so far; a line that was cut off is left out."""
    path, found = folder / "records.jsonl", list[EvalRecord]()
    for line in path.read_text().splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError):
            found.append(EvalRecord(**json.loads(line)))
    return found


def _rounds(algorithm: Any, every_s: float) -> Iterator[tuple[float, int]]:
    """Train for some seconds at a time; yield the mean reward, and the steps so far."""
    while True:
        end = time.monotonic() + every_s
        result: dict[str, Any] = {}
        while not result or time.monotonic() < end:
            result = algorithm.train()
        runners = result["env_runners"]
        steps = runners.get("num_env_steps_sampled_lifetime") or result["num_env_steps_sampled_lifetime"]
        yield float(runners.get("episode_return_mean", np.nan)), int(steps)


def _tasks(environment: StepEnvironment) -> Iterator[EpisodeTask]:
    for number in range(environment.task_count):
        environment.reset(options={"task": number})
        yield environment.task


def _compared(policy: SavedPolicy, environment: StepEnvironment) -> SavedPolicy:
    """Add how fast the ends of the policy in use are on the same held-back programs."""
    try:
        rival = policy_for(environment.task.space, "auto")
    except PlanishError:  # no other policy fits
        return policy
    if not isinstance(rival.shape, Shape):
        return policy
    shares = [(_share(policy, task), _share(rival, task)) for task in _tasks(environment)]
    mine, theirs = (float(np.mean(column)) for column in zip(*shares, strict=True))
    return replace(policy, held_out=HeldOut(len(shares), "share of the peak", mine, rival.name, theirs))


def _share(policy: SavedPolicy, task: EpisodeTask) -> float:
    """Follow a policy without its end, and return the rate where it leads as a share of the peak."""
    walker = NetworkPolicy(policy)
    state = walker.begin(task.space)
    # Without its end, as it was trained: it is evaluated by where all its steps lead.
    while len(steps := dict(walker.log_probabilities([state])[0])) > 1:
        state = walker.extend(state, max((s for s in steps if s is not None), key=lambda s: steps[s]))
    return task.rate(state.candidate) / task.peak


def _recipe(config: TrainConfig, space: CanObserve) -> dict[str, Any]:
    """Return the settings that must not change when a training is resumed."""
    programs = hashlib.sha256("\n".join(config.programs).encode()).hexdigest()
    return {
        "level": config.level,
        "algorithm": config.algorithm,
        "observations": f"{space.observed.name} {space.observed.version}",
        "actions": list(map(str, space.actions)),
        "programs": [len(config.programs), programs[:16]],
        **asdict(config.tuned),
    }


def _exported(algorithm: Any, config: TrainConfig, environment: StepEnvironment) -> SavedPolicy:
    space = environment.task.space
    rows, columns = space.observe(space.start()).shape
    tuned = config.tuned
    shape = Shape("mlp", rows, columns, len(space.actions) + 1, tuned.width, tuned.depth)
    return SavedPolicy(
        config.name,
        config.level,
        space.observed,
        tuple(map(str, space.actions)),
        environment.steps,
        shape,
        parameters(algorithm, tuned.depth),
        {},
        len(config.programs),
        vector_bytes=vector_bytes_of(space),
        conditions=stated([space.conditions]),
    )


def _is_stuck(records: Sequence[EvalRecord]) -> bool:
    """Return whether nothing better was found for long."""
    return len(records) > PATIENCE and max(record.held for record in records[-PATIENCE:]) < max(
        record.held for record in records
    )


def _keep(algorithm: Any, config: TrainConfig, policy: SavedPolicy, records: Sequence[EvalRecord]) -> None:
    """Write the policy if it is the best so far, a line, and a checkpoint; a kill leaves the last one."""
    # By held-back programs: the reward is of what it trains on, and rises when it only remembers.
    if records[-1].held >= max(record.held for record in records):
        write_policy(policy, config.folder / "best.safetensors")
    with (config.folder / "records.jsonl").open("a") as file:
        file.write(json.dumps(asdict(records[-1])) + "\n")
    before = _checkpoints(config)
    part = config.folder / "part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        algorithm.save_to_path(str(part.absolute()))
    except BaseException:  # the disk is full, or it is stopped: half a checkpoint would only take room
        shutil.rmtree(part, ignore_errors=True)
        raise
    # On a busy machine an evaluation may come before any further step.
    part.rename(config.folder / f"{_CHECKPOINT}{records[-1].steps:012}-{len(records):06}")
    # After the new one is in place, so that a kill in between leaves one at least.
    for old in before:
        shutil.rmtree(old)


def _restore(algorithm: Any, config: TrainConfig) -> None:
    for path in _checkpoints(config)[-1:]:
        try:
            algorithm.restore_from_path(str(path.absolute()))
        except Exception as error:
            what = f"cannot go on from {path}: {str(error).splitlines()[0]}"
            raise PlanishError(
                what, "Another version of planish or RLlib wrote it: remove the folder."
            ) from error


def _checkpoints(config: TrainConfig) -> list[Path]:
    return sorted(config.folder.glob(f"{_CHECKPOINT}*"))


def plot_records(records: Sequence[EvalRecord], path: Path) -> None:
    """Draw the reward, and how fast held-back programs become, by the steps of the environment.

    Raises:
        OSError: it cannot be written.
    """
    import plotly.graph_objects as go

    steps = [record.steps for record in records]
    figure = go.Figure()
    figure.add_scatter(x=steps, y=[record.reward for record in records], name="reward of an episode")
    figure.add_scatter(x=steps, y=[record.held for record in records], name="held-back programs")
    figure.update_layout(xaxis_title="steps of the environment", yaxis_title="share of the peak")
    replace_text(path, figure.to_html(include_plotlyjs=True))
