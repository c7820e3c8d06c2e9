"""Weights of a lower rank."""

from planish.hlo.factoring.factored import factored
from planish.hlo.factoring.weights import Weights, weights_of

__all__ = ["Weights", "factored", "weights_of"]
