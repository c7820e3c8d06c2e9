"""Ways of taking candidates from a policy: most probable first, drawn, or drawn without repeating any."""

from planish.search.decoding.methods import METHODS, Decoding, decode
from planish.search.decoding.priority import RANKINGS, prioritised, priority_samples, ranking
from planish.search.decoding.tree import Node, PrefixTree

__all__ = [
    "METHODS",
    "RANKINGS",
    "Decoding",
    "Node",
    "PrefixTree",
    "decode",
    "prioritised",
    "priority_samples",
    "ranking",
]
