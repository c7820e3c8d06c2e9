"""Reinforcement learning: spaces as environments of Gymnasium."""

from planish.learn.rl.environment import Ground, StepEnvironment

__all__ = ["Ground", "StepEnvironment"]
