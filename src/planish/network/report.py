"""Report of a compiled network by layers, beside ONNX Runtime's own profile of the same model.

Layers and ONNX Runtime's nodes are matched by the tensors of the model that they compute. Both fuse
operators, so that some layers together correspond to some nodes together.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core.wording import amount, interval, multiple, verdict_word
from planish.levels.graph.sessions import SessionSettings
from planish.levels.loops.lang.program import BFLOAT16X2, PACKED
from planish.levels.loops.roofline import BYTES_PER_FLOP
from planish.measure import PairedSamples, exclusive
from planish.measure.intervals import judged
from planish.network.fusion import Kernels, NetworkKernel
from planish.network.ir import Network, Shape
from planish.network.operators.winograd import describe_winograd
from planish.network.placing import join_overlapping
from planish.network.python_kernels.program import PythonKernel
from planish.network.rewrites.strips import chain_tensor
from planish.network.timing import PEERS, TIME, Feed
from planish.sandbox.scratch import Scratch

if TYPE_CHECKING:
    from onnx import ModelProto

    from planish.network.reader import SourceModel

PROFILED_RUNS = 20
"""Calls that ONNX Runtime's profile is the median of."""
NOISE = 1.1
"""Multiple of the time of ONNX Runtime's nodes from which on layers are named as slower."""
LEAST_SHARE = 0.01
"""Layers that take a smaller share of a call are not named as slower."""


@dataclass(frozen=True)
class Layer:
    """Layer of a compiled network.

    Args:
        operators: what it computes.
        inputs: shapes of the tensors that it reads, without weights.
        shape: of its result.
        layout: of its result in memory.
        algorithm: how it is computed.
        seconds: of one call, within runs of the network.
        gflops: arithmetic operations in a second, by 10 ** 9.
        roofline: share of the rate that the processor's peaks allow.
        strip_of: the tensor that its result is a strip of; empty where it is whole.
    """

    operators: str
    inputs: Sequence[Shape]
    shape: Shape
    layout: str
    algorithm: str
    seconds: float
    gflops: float
    roofline: float
    strip_of: str = ""


@dataclass(frozen=True)
class PeerNode:
    """Node of ONNX Runtime's profile.

    Args:
        name: of the node.
        operator: of it.
        outputs: names of the tensors that it computes.
        seconds: median of a call.
    """

    name: str
    operator: str
    outputs: Sequence[str]
    seconds: float


@dataclass(frozen=True)
class Match:
    """Layers and nodes of ONNX Runtime that compute the same part of a model.

    Args:
        layers: their numbers.
        nodes: names of ONNX Runtime's nodes.
        seconds: of all these layers.
        peer_seconds: of all these nodes.
    """

    layers: Sequence[int]
    nodes: Sequence[str]
    seconds: float
    peer_seconds: float


def describe_layers(
    network: Network, kernels: Kernels, seconds: Sequence[float], peak: float, *, tuned: bool
) -> list[Layer]:
    """Describe the layers of a network.

    Args:
        network: what is computed.
        kernels: of its layers.
        seconds: of each layer.
        peak: arithmetic operations in a second, by 10 ** 9, of all cores.
        tuned: whether schedules were chosen by measurement.
    """
    found = list[Layer]()
    for kernel, each in zip(kernels, seconds, strict=True):
        inputs = [name for name in kernel.operands.values() if network.root(name) not in network.constants]
        inputs = [name for name in dict.fromkeys(inputs) if name in network.types]
        read = [name for name in kernel.operands.values() if name in network.types]
        moved = sum(network.types[name].bytes for name in (*read, kernel.output))
        # An instruction multiplies several numbers in place of a float.
        operations = kernel.flops / max((PACKED[dtype] for dtype in _packed(kernel)), default=1)
        least = max(operations, moved / BYTES_PER_FLOP) / (peak * 1e9)
        whole = chain_tensor(kernel.output)
        found.append(
            Layer(
                kernel.operators, [network.shape(name) for name in inputs], network.shape(kernel.output),
                layout_of(network, kernel.output), algorithm_of(kernel, tuned=tuned), each,
                kernel.flops / 1e9 / each, least / each, whole if whole != kernel.output else "",
            )
        )  # fmt: skip
    return found


def join_strips(layers: Sequence[Layer]) -> dict[tuple[int, ...], Layer]:
    """Join the layers that compute strips of one tensor.

    Returns:
        The numbers of the layers that are one to it, by the first of them. Its shapes are those of the first
        strip; its time is that of all.
    """
    numbers = dict[object, list[int]]()
    for index, layer in enumerate(layers):
        numbers.setdefault(layer.strip_of or index, []).append(index)
    found = dict[tuple[int, ...], Layer]()
    for each in numbers.values():
        first, parts = layers[each[0]], [layers[index] for index in each]
        if len(each) > 1:
            seconds = sum(part.seconds for part in parts)
            first = replace(
                first,
                algorithm=f"{first.algorithm}, {len(each)} strips",
                seconds=seconds,
                gflops=sum(part.gflops * part.seconds for part in parts) / seconds,
                roofline=sum(part.roofline * part.seconds for part in parts) / seconds,
            )
        found[tuple(each)] = first
    return found


def layout_of(network: Network, name: str) -> str:
    """Return how a tensor is in memory."""
    return "channels last" if name in network.channels_last else "row-major"


def algorithm_of(kernel: NetworkKernel, *, tuned: bool) -> str:
    """Return how a kernel is computed."""
    if isinstance(kernel, PythonKernel):
        return "Python kernel"
    if (winograd := describe_winograd(kernel.nodes[0])) is not None:
        return winograd
    if kernel.fixed_tree is not None:
        return "tiles"
    schedule = "measured schedule" if tuned else "default schedule"
    narrow = narrow_precision(kernel)
    return f"{narrow}, {schedule}" if narrow else schedule


def narrow_precision(kernel: NetworkKernel) -> str:
    """Return "int8" or "bf16" where a kernel multiplies numbers of these types alone, else ''."""
    packed = _packed(kernel)
    return "" if not packed else "bf16" if BFLOAT16X2 in packed else "int8"


def _packed(kernel: NetworkKernel) -> frozenset[str]:
    """Return types of elements of several numbers that a kernel multiplies."""
    return frozenset() if isinstance(kernel, PythonKernel) else kernel.program.packed


# ONNX Runtime


def profile_onnxruntime(model: SourceModel, feed: Feed, cores: int) -> list[PeerNode]:
    """Return the nodes of a model as ONNX Runtime optimizes and times them."""
    import onnx

    with Scratch() as folder:
        kept = folder.path / "optimized.onnx"
        is_large = model.folder is not None
        profile = folder.path / "profile"
        session = model.open(SessionSettings(cores), keep=kept, profile=profile, apart=is_large)
        run = session.bound(feed)
        with exclusive():
            for _ in range(PROFILED_RUNS):
                run()
        events = json.loads(Path(session.inner.end_profiling()).read_text())
        outputs = {
            node.name: list(node.output) for node in onnx.load(str(kept), load_external_data=False).graph.node
        }
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            name = event["name"].removesuffix("_kernel_time")
            times[name, event["args"]["op_name"]].append(event["dur"] / 1e6)
    return [
        PeerNode(name, operator, outputs.get(name, ()), statistics.median(each))
        for (name, operator), each in times.items()
    ]


def match_layers(
    model: ModelProto, kernels: Kernels, seconds: Sequence[float], nodes: Sequence[PeerNode]
) -> list[Match]:
    """Match layers with nodes of ONNX Runtime, by the tensors of the model that both compute.

    Args:
        model: with the names of tensors.
        kernels: of the layers.
        seconds: of each layer.
        nodes: of ONNX Runtime.
    """
    graph = _TensorGraph(model)
    ours = [graph.known(each) for each in map(_tensors_of, kernels)]
    theirs = [
        graph.known((*node.outputs, node.name.removesuffix("_nchwc"), *graph.outputs.get(node.name, ())))
        for node in nodes
    ]
    pairs = list[set[tuple[int, int]]]()
    for kind, other, names in ((0, 1, ours), (1, 0, theirs)):
        covers = (ours, theirs)[other]
        by_tensor = {tensor: index for index, each in enumerate(covers) for tensor in each}
        own = dict[str, int]()
        for index, each in enumerate(names):
            for tensor in each:
                pairs.append({(kind, index), (kind, own.setdefault(tensor, index))})
                if (found := graph.first_after(tensor, by_tensor)) is not None:
                    pairs.append({(kind, index), (other, found)})
    matches = list[Match]()
    for members in join_overlapping(pairs):
        layers = sorted(index for kind, index in members if kind == 0)
        peers = sorted(index for kind, index in members if kind == 1)
        if layers and peers:
            whole = sum(seconds[index] for index in layers), sum(nodes[index].seconds for index in peers)
            matches.append(Match(layers, [nodes[index].name for index in peers], *whole))
    return sorted(matches, key=lambda match: match.layers[0])


def slower_matches(matches: Iterable[Match]) -> list[Match]:
    """Return the matches in which the layers are slower, those that lose most time first."""
    matches = list(matches)
    whole = sum(match.seconds for match in matches)
    found = [
        match
        for match in matches
        if match.seconds > NOISE * match.peer_seconds and match.seconds > LEAST_SHARE * whole
    ]
    return sorted(found, key=lambda match: match.peer_seconds - match.seconds)


def _tensors_of(kernel: NetworkKernel) -> list[str]:
    return [name for node in kernel.nodes for name in (node.output, *node.more)]


class _TensorGraph:
    """Tensors of a model, and which are computed of which."""

    def __init__(self, model: ModelProto) -> None:
        self.outputs = {node.name: list(node.output) for node in model.graph.node}
        self._readers: dict[str, list[str]] = defaultdict(list)
        self._computed = {name for node in model.graph.node for name in node.output}
        for node in model.graph.node:
            for name in node.input:
                self._readers[name] += node.output

    def known(self, names: Iterable[str]) -> list[str]:
        """Return the tensors that names stand for; a part of one has more words after the tensor's name."""
        found = list[str]()
        for name in names:
            while name not in self._computed and " " in name:
                name = name.rpartition(" ")[0]
            if name in self._computed:
                found.append(name)
        return list(dict.fromkeys(found))

    def first_after(self, tensor: str, wanted: Mapping[str, int]) -> int | None:
        """Return what a tensor, or else the nearest one that is computed of it, is mapped to."""
        seen, front = {tensor}, [tensor]
        while front:
            for name in front:
                if name in wanted:
                    return wanted[name]
            following = [reader for name in front for reader in self._readers.get(name, ())]
            front = [name for name in dict.fromkeys(following) if name not in seen]
            seen.update(front)
        return None


# Comparison


def describe_comparison(comparison: Sequence[PairedSamples]) -> str:
    """Describe a comparison in one line."""
    base, ours, *_ = comparison
    if ours.ratio is None:
        return f"Undecided: {ours.why}"
    gain = ours.ratio.gain(TIME)
    word = verdict_word(ours.verdict, TIME)
    clock = " of processor time" if ours.evidence is not None and ours.evidence.by_processor else ""
    both = f"{amount(ours.median, 's')} against ONNX Runtime's {amount(base.median, 's')}"
    return f"{both}: {multiple(gain.value)}{clock}, 95 % confidence interval {interval(gain)}, {word}"


def describe_peers(comparison: Sequence[PairedSamples]) -> list[str]:
    """Describe the times of ONNX Runtime's peers, beside those of the library, in a line each."""
    _, ours, *peers = comparison
    lines = list[str]()
    for peer in peers:
        # Of one that was conclusive early, there are the first processes.
        count = min(len(peer.values), len(ours.values))
        both = [
            replace(each, values=each.values[:count], processor=each.processor[:count])
            for each in (peer, ours)
        ]
        found = judged(both[0], both[1], TIME)
        if not count or found.ratio is None:
            lines.append(f"{PEERS[peer.name]}: not compared: {peer.why}")
            continue
        gain = found.ratio.gain(TIME)
        slower = ": planish is slower" if gain.low > 1 else ""
        lines.append(
            f"{PEERS[peer.name]}: {amount(peer.median, 's')}, {multiple(gain.value)} planish's speed, "
            f"95 % confidence interval {interval(gain)}{slower}"
        )
    return lines
