"""Models that predict what candidates cost, and what is spent by their word."""

from planish.learn.cost.allocate import Allocation
from planish.learn.cost.gate import Gate, load_gate, shipped_gate, train_gate, write_gate
from planish.learn.cost.model import CostModel, Dataset, Prediction
from planish.learn.cost.trees import BoostedTrees

__all__ = [
    "Allocation",
    "BoostedTrees",
    "CostModel",
    "Dataset",
    "Gate",
    "Prediction",
    "load_gate",
    "shipped_gate",
    "train_gate",
    "write_gate",
]
