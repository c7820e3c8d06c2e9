"""RLlib's networks with illegal actions masked: none is tried, and none is learnt from.

An observation ends with one number for each action, 1 where it is legal, as `planish.train.environment`
makes it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from gymnasium.spaces import Box

_ALGORITHMS = "ray.rllib.algorithms"
_dqn = import_module(f"{_ALGORITHMS}.dqn.torch.default_dqn_torch_rl_module")
_Values: Any = _dqn.DefaultDQNTorchRLModule
_Actor: Any = import_module(f"{_ALGORITHMS}.ppo.torch.default_ppo_torch_rl_module").DefaultPPOTorchRLModule
_TargetActor: Any = import_module(
    f"{_ALGORITHMS}.appo.torch.default_appo_torch_rl_module"
).DefaultAPPOTorchRLModule
_Columns: Any = import_module("ray.rllib.core.columns").Columns
_Mixed: Any = object  # what else it has depends on the algorithm
_OLD: str = import_module("ray.rllib.core.rl_module.apis").TARGET_NETWORK_ACTION_DIST_INPUTS

NONE, LEAST = float("-inf"), -1e9
"""Scores of illegal actions: RLlib's DQN looks for the first one; of the other, entropies stay numbers."""

Batch = dict[str, Any]


class _Masked(_Mixed):
    """Wrapper that restricts an observation to the part that a network reads."""

    def __init__(self, *, observation_space: Box, action_space: Any, **others: Any) -> None:
        width = observation_space.shape[0] - int(action_space.n)
        read = Box(-np.inf, np.inf, (width,), np.float32)
        super().__init__(observation_space=read, action_space=action_space, **others)
        self._width = width

    def _split(self, batch: Batch) -> tuple[Any, Batch]:
        """Return which actions are illegal, and the batch without that."""
        seen = batch[_Columns.OBS]
        return seen[..., self._width :] == 0, {**batch, _Columns.OBS: seen[..., : self._width]}


class MaskedValues(_Masked, _Values):
    """DQN's: an illegal action is neither drawn, nor the best one of a state to come."""

    def _qf_forward_helper(self, batch: Batch, encoder: Any, head: Any) -> Batch:
        illegal, rest = self._split(batch)
        found = super()._qf_forward_helper(rest, encoder, head)
        found[_dqn.QF_PREDS] = found[_dqn.QF_PREDS].masked_fill(illegal, NONE)
        return found


class _MaskedActor(_Masked):
    def _forward(self, batch: Batch, **others: Any) -> Batch:
        illegal, rest = self._split(batch)
        return _without(super()._forward(rest, **others), _Columns.ACTION_DIST_INPUTS, illegal)

    def _forward_train(self, batch: Batch, **others: Any) -> Batch:
        illegal, rest = self._split(batch)
        return _without(super()._forward_train(rest, **others), _Columns.ACTION_DIST_INPUTS, illegal)

    def compute_values(self, batch: Batch, embeddings: Any = None) -> Any:
        return super().compute_values(self._split(batch)[1], embeddings)


class MaskedActor(_MaskedActor, _Actor):
    """PPO's and IMPALA's: an illegal action has the probability 0."""


class MaskedTargetActor(_MaskedActor, _TargetActor):
    """APPO's, which has a network of before as well."""

    def forward_target(self, batch: Batch) -> Batch:
        illegal, rest = self._split(batch)
        return _without(super().forward_target(rest), _OLD, illegal)


def _without(found: Batch, name: str, illegal: Any) -> Batch:
    found[name] = found[name].masked_fill(illegal, LEAST)
    return found
