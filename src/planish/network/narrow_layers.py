"""Choice of the layers that compute in int8 or bfloat16: by time, and by how far the answers are off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from planish.core import Target
from planish.core.wording import amount
from planish.levels.loops.backends import PREFERRED, multiplied_types
from planish.levels.loops.lang.program import BFLOAT16X2, UINT8X4
from planish.network.fusion import Kernels
from planish.network.ir import Array, Network
from planish.network.library.assembly import build
from planish.network.library.files import write_library
from planish.network.library.schedule import is_foreign
from planish.network.operators.winograd import convolution_of
from planish.network.placing import place_tensors
from planish.network.python_kernels.quantizing import QUANTIZE
from planish.network.rewrites.pipeline import rewrite
from planish.network.rewrites.precision import BFLOAT16, INT8, narrow_weights
from planish.network.rewrites.quantization import Layer, Ranges, find_layers, pair_layers, quantize_layers
from planish.network.rewrites.strips import chain_tensor
from planish.network.timing import Feed, make_extreme_feed, make_feeds
from planish.network.tuning import DefaultTimes
from planish.network.verification import INPUT_SETS, TOLERANCE, answers_here, difference
from planish.sandbox.scratch import Scratch


@dataclass(frozen=True)
class Point:
    """A way to compute a network, with default schedules.

    Args:
        precision: in words.
        seconds: of all kernels.
        difference: of an output from that in float32 at most, as a share of its largest number.
    """

    precision: str
    seconds: float
    difference: float

    def __str__(self) -> str:
        return f"{self.precision}: {amount(self.seconds, 's')}, differs by {self.difference:.1e}"


_MULTIPLIED: Mapping[str, str] = {INT8: UINT8X4, BFLOAT16: BFLOAT16X2}
"""Types of weights, and of the elements whose products layers sum."""
_PRECISIONS: Mapping[str, str] = {INT8: "int8", BFLOAT16: "bf16"}
"""Types of weights, and their names in words."""


def computes_narrowly(target: Target, dtype: str) -> bool:
    """Return whether a machine has instructions for layers in a narrow type.

    Args:
        target: must be this machine; another one computes in float32.
        dtype: `INT8`, which needs AVX512_VNNI, or `BFLOAT16`, which needs AVX512_BF16; others have none.
    """
    backend = target.toolchain["backend"]
    found = multiplied_types(backend) if backend == PREFERRED[0] else ()
    return not is_foreign(target) and _MULTIPLIED.get(dtype) in found


def list_verified_feeds(network: Network, own: Sequence[Feed], feeds: Sequence[Feed]) -> list[Feed]:
    """Return the inputs on which a library is verified.

    Args:
        network: with its layers in integers.
        own: the user's inputs.
        feeds: these, and random ones.
    """
    if any(node.operator == QUANTIZE and "scale" in node.attributes for node in network.nodes):
        # Inputs of a layer are cut to the range that was seen, which others would leave.
        return [*(own or feeds)]
    return [*feeds, make_extreme_feed(network)]


def choose_narrow_layers(
    network: Network,
    dtype: str,
    limit: float,
    own: Sequence[Feed],
    feeds: Sequence[Feed],
    times: DefaultTimes,
    on_progress: Callable[[str], None],
) -> tuple[Network, list[Point]]:
    """Compute in a narrow type what is faster so; equal layers have the same choice.

    Where answers are off by too much, those layers that gain least stay in float32.

    Args:
        network: with its layouts.
        dtype: `INT8` or `BFLOAT16`.
        limit: largest difference of an output, as a share of its largest number.
        own: the user's inputs: of every other one, inputs of layers in int8 have the ranges.
        feeds: these, and random ones.
        times: measures kernels.
        on_progress: is called with lines on the progress.

    Returns:
        The network, and its ways to be computed; none where no layer was measured.
    """
    layers, name = find_layers(network), _PRECISIONS[dtype]
    if not layers or not times.gains.is_worth("precision"):
        why = "the time to measure them is over" if layers else "none of them can"
        on_progress(f"no layers compute in {name}: {why}")
        return network, []
    narrow = _rewrite(network, dtype, layers, own, times, on_progress)
    trial = _Trial(limit, own or feeds, times)
    plain = trial.run(network, "")
    stored = trial.run(network, dtype)
    every = trial.run(narrow(layers), dtype)
    gains = defaultdict[object, float](float)
    for layer in layers:
        output = layer.node.output
        gains[layer.kind(network)] += stored.costs[output] - every.costs[output]
    ranked = sorted((kind for kind in gains if gains[kind] > 0), key=lambda kind: -gains[kind])
    points = [plain.point("float32", plain), stored.point(f"{name} weights", plain)]
    while ranked:
        chosen = [layer for layer in layers if layer.kind(network) in ranked]
        made = narrow(chosen)
        run = every if len(chosen) == len(layers) else trial.run(made, dtype)
        point = run.point(f"{len(chosen)} of {len(layers)} layers in {name}", plain)
        points.append(point)
        on_progress(f"{point}; in float32 {amount(plain.seconds, 's')}")
        if point.difference <= limit and point.seconds < stored.seconds:
            return made, points
        ranked = ranked[: len(ranked) // 2]
    on_progress(f"no layers compute in {name}: none is faster and within the tolerance")
    return network, points


def _rewrite(
    network: Network,
    dtype: str,
    layers: Sequence[Layer],
    own: Sequence[Feed],
    times: DefaultTimes,
    on_progress: Callable[[str], None],
) -> Callable[[Sequence[Layer]], Network]:
    """Return what makes some of the layers compute in a narrow type; see `choose_narrow_layers`."""
    if dtype == BFLOAT16:
        return partial(pair_layers, network)
    if not own:
        on_progress("ranges of int8 come from random inputs: give real inputs for ranges that fit them")
    examples = own[::2] or make_feeds(network, 2 * INPUT_SETS)[INPUT_SETS:]
    return partial(quantize_layers, network, ranges=_measure_ranges(network, layers, examples, times))


@dataclass(frozen=True)
class _Run:
    """A run of a network.

    Args:
        costs: seconds of layers, by the tensors that they compute.
        seconds: of all kernels.
        answers: outputs of each feed.
    """

    costs: Mapping[str, float]
    seconds: float
    answers: Sequence[Sequence[Array]]

    def point(self, precision: str, right: _Run) -> Point:
        """Describe the run beside that in float32."""
        pairs = [
            pair for both in zip(self.answers, right.answers, strict=True) for pair in zip(*both, strict=True)
        ]
        return Point(precision, self.seconds, max(difference(one, other) for one, other in pairs))


class _Trial:
    """Runs networks with default schedules.

    Args:
        limit: largest difference of an output.
        feeds: inputs.
        times: measures kernels.
    """

    def __init__(self, limit: float, feeds: Sequence[Feed], times: DefaultTimes) -> None:
        self._tolerance, self._feeds, self._times = min(limit, TOLERANCE), feeds, times

    def run(self, network: Network, narrow: str) -> _Run:
        """Run a network with its layouts, and with narrow weights."""
        network = rewrite(network, self._tolerance, self._times.target)
        network, kernels = place_tensors(narrow_weights(network, narrow) if narrow else network)
        seconds = self._times.measure(network, kernels)
        costs = _layer_costs(network, kernels, seconds)
        return _Run(costs, sum(seconds), _answers(network, kernels, self._feeds, self._times))


def _layer_costs(network: Network, kernels: Kernels, seconds: Sequence[float]) -> Mapping[str, float]:
    """Add the seconds of kernels up by layer; what rounds an input counts for all layers that read it."""
    costs = defaultdict[str, float](float)
    for kernel, each in zip(kernels, seconds, strict=True):
        names = {chain_tensor(convolution_of(node.output)) for node in kernel.nodes}
        if kernel.nodes[0].operator == QUANTIZE:
            names = {node.output for node in network.consumers[kernel.output]}
            each /= len(names)
        for name in names:
            costs[name] += each
    return costs


def _answers(
    network: Network, kernels: Kernels, feeds: Sequence[Feed], times: DefaultTimes
) -> Sequence[Sequence[Array]]:
    with Scratch() as folder:
        built = build(network, kernels, times.schedules(kernels), times.target)
        write_library(built, folder.path)
        run = answers_here(folder.path, built.manifest)
        return run([[feed[name] for name in network.inputs] for feed in feeds])


def _measure_ranges(
    network: Network, layers: Sequence[Layer], examples: Sequence[Feed], times: DefaultTimes
) -> Ranges:
    """Return the least and the greatest number of each layer's input on examples."""
    sources = list(dict.fromkeys(layer.source for layer in layers))
    computed = [name for name in sources if name not in network.inputs]
    shown, kernels = place_tensors(
        replace(network, outputs=tuple(computed), shape_outputs={}).without_unread()
    )
    found = _answers(shown, kernels, examples, times) if computed else [()] * len(examples)
    ranges = dict[str, tuple[float, float]]()
    for feed, answers in zip(examples, found, strict=True):
        arrays = {**feed, **dict(zip(computed, answers, strict=True))}
        for name in sources:
            low, high = ranges.get(name, (0.0, 0.0))
            finite = arrays[name][np.isfinite(arrays[name])]
            ranges[name] = min(low, float(finite.min(initial=0.0))), max(high, float(finite.max(initial=0.0)))
    return ranges
