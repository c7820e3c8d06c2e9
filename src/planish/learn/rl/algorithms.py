"""RLlib's algorithms for spaces of numbered actions, with what suits short episodes and two cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from planish.core import PlanishError

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

What was Ape-X is `dqn` with several runners, for it has prioritised replay. RLlib dropped Ape-X and A3C as
names of their own; `impala` is what took A3C's place.
"""


@dataclass(frozen=True)
class Tuned:
    """What the thesis sweeps (3.8.1), the algorithm apart.

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
        """Give the options of RLlib's that differ from its defaults."""
        found: dict[str, Any] = {**ALGORITHMS[algorithm][1], "gamma": self.discount}
        if self.rate is not None:
            found["lr"] = self.rate
        if self.exploration is not None and algorithm == "dqn":
            found["epsilon"] = [*found["epsilon"][:-1], [found["epsilon"][-1][0], self.exploration]]
        elif self.exploration is not None:
            found["entropy_coeff"] = self.exploration
        return found


USUAL = Tuned()
"""What nobody has swept."""
MASKED = {"dqn": "MaskedValues", "ppo": "MaskedActor", "impala": "MaskedActor", "appo": "MaskedTargetActor"}
"""Name to the class of `planish.learn.rl.masked` whose network it trains."""
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
        masked = getattr(import_module("planish.learn.rl.masked"), MASKED[name])
    except ImportError as error:
        raise PlanishError(f"training by {name} needs RLlib", "pip install planish[distributed].") from error
    runners = max(runners, 1) if name in DISTRIBUTED else runners
    if not ray.is_initialized():
        ray.init(
            num_cpus=runners + 1, include_dashboard=False, log_to_driver=False, configure_logging=False,
            logging_level="error",
        )  # fmt: skip

    def made(options: object) -> object:
        del options
        return environment()

    register("planish", made)
    config = config.environment("planish").framework("torch").debugging(seed=seed, log_level="ERROR")
    config = config.env_runners(num_env_runners=runners).learners(num_learners=0)
    network = model(fcnet_hiddens=[tuned.width] * tuned.depth, fcnet_activation="relu", vf_share_layers=False)
    config = config.rl_module(rl_module_spec=spec(module_class=masked), model_config=network)
    return config.training(**tuned.training(name)).build_algo()


def parameters(algorithm: Any, depth: int) -> dict[str, Any]:
    """Give the weights of the network that chooses, of so many layers, named as planish's `mlp` has them.

    Values of actions are scaled, so that the best ones are the probable ones; see `NEVER` for the end.
    """
    import numpy as np

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
