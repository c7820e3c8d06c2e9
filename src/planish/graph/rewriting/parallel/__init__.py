"""Joining nodes that read the same into one: TVM's CombineParallelConv2D and CombineParallelDense."""

from planish.graph.rewriting.parallel.convolutions import convolution
from planish.graph.rewriting.parallel.join import join
from planish.graph.rewriting.parallel.products import product

PASSES = {"combine_parallel_conv": convolution, "combine_parallel_dense": product}
"""The name of a pass, without whose it is, to what tells which nodes it joins."""

__all__ = ["PASSES", "join"]
