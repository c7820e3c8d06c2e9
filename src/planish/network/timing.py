"""Timing of a compiled network, beside ONNX Runtime and other programs that run ONNX models."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.core import Candidate, Failed, Measured, Objective, Outcome, StageClock, Step, rng
from planish.levels.graph.sessions import RefusedError, SessionSettings, open_session
from planish.measure import (
    FINAL_TIMING,
    PairedSamples,
    Plan,
    Samples,
    Variant,
    exclusive,
    repeated,
    time_call,
    wait_for_idle_threads,
)
from planish.measure.comparison import remeasure
from planish.measure.executors import LocalExecutor
from planish.network.ir import Array, Network
from planish.network.library.runtime import CompiledNetwork
from planish.network.python_kernels.copying import WRAP
from planish.network.torch_peer import compile_package, has_torch, load_package
from planish.sandbox.confinement import SandboxPolicy

if TYPE_CHECKING:
    from onnx import ModelProto

    from planish.network.reader import SourceModel

TIME = Objective("time_s", "s")
LAYERS_S, LEAST_RUNS, MOST_RUNS = 1.0, 5, 200
"""Seconds in which layers are timed for the report, and runs of the network at least and at most."""
IDLE_WAIT_S = 1.0
"""Seconds at most until the threads of one runtime have stopped when the other is timed in the same process.

ONNX Runtime's threads look for work during some 50 milliseconds after a run, and never give way: a run of
another library would have to share their cores with them.
"""
_SEED = 44
_EXTREME = 1 << 20
_PASSING = ("Cast", "Copy", "Expand", "View")
"""Operators that pass indices on."""
_FEED = "feed.npz"
_MODEL, _SLIM = "model.onnx", "slim.onnx"
_PACKAGE, _REFUSAL = "torch.pt2", "torch.txt"
"""Files of what PyTorch's compiler makes of a model, and of why it makes nothing."""
PEERS: Mapping[str, str] = {
    "openvino": "OpenVINO",
    "onnxslim": "ONNX Runtime after onnxslim",
    "torch": "PyTorch's compiler",
}
"""Packages that run models, or rewrite them for ONNX Runtime, and how each is called."""

Feed = Mapping[str, Array]


def make_feeds(network: Network, count: int) -> list[Feed]:
    """Draw inputs: normal numbers, and indices within the tables that they are looked up in."""
    bounds = {name: _bound(network, name) for name in network.inputs}
    feeds = list[Feed]()
    for number in range(count):
        feed: dict[str, Array] = {}
        for index, name in enumerate(network.inputs):
            value, draw = network.types[name], rng(_SEED, number, index)
            if value.dtype.startswith("float"):
                feed[name] = np.asarray(draw.standard_normal(value.shape), value.dtype)
            elif value.dtype == "uint8":
                feed[name] = np.asarray(draw.integers(0, 256, value.shape), np.uint8)
            else:
                feed[name] = np.asarray(draw.integers(0, bounds[name], value.shape), value.dtype)
        feeds.append(feed)
    return feeds


def make_extreme_feed(network: Network) -> Feed:
    """Draw an input of very different magnitudes, zeros, and the ends of ranges of indices."""
    feed: dict[str, Array] = {}
    for index, name in enumerate(network.inputs):
        value, draw = network.types[name], rng(_SEED, _EXTREME, index)
        choice = draw.integers(0, 8, value.shape)
        if value.dtype.startswith("float"):
            wide = draw.standard_normal(value.shape) * 10.0 ** draw.uniform(-3, 2, value.shape)
            feed[name] = np.asarray(np.where(choice == 0, 0.0, wide), value.dtype)
        else:
            last = np.iinfo(np.uint8).max if value.dtype == "uint8" else _bound(network, name) - 1
            feed[name] = np.asarray(np.where(choice < 4, 0, last), value.dtype)
    return feed


def _bound(network: Network, name: str) -> int:
    """Return below what an input of integers is drawn: within tables, and among what it is compared with."""
    passed, sizes = {name}, list[int]()
    for node in network.nodes:
        read = [index for index, each in enumerate(node.inputs) if network.root(each) in passed]
        if not read:
            continue
        if node.base in _PASSING:
            passed.add(node.output)
        elif node.operator == WRAP:
            sizes.append(node.attributes["extent"])
        elif node.operator in ("GatherRows", "GatherElements") and 1 in read:
            sizes.append(network.shape(node.inputs[0])[node.attributes.get("axis", 0)])
        elif node.operator == "OneHot" and 0 in read:
            sizes.append(network.shape(node.output)[node.attributes.get("axis", -1)])
        elif node.base == "Equal":
            known = [network.constants[each] for each in node.inputs if each in network.constants]
            sizes += [max(2, int(np.max(each)) + 1) for each in known if each.size]
    return max(1, min(sizes, default=2))


def layer_times(made: CompiledNetwork, network: Network, feed: Feed | None = None) -> list[float]:
    """Time each layer within runs of the whole network, in seconds a call.

    Repeated by itself, a layer would find its weights in the cache, which the others fill in a run.
    """
    feed = feed or make_feeds(network, 1)[0]
    inputs = [feed[name] for name in network.inputs]
    outputs = [np.empty(each["shape"], each["dtype"]) for each in made.manifest["outputs"]]
    made.bind(inputs, outputs)(1)
    layers = [made.bind(inputs, outputs, layer, layer + 1) for layer in range(made.layers)]
    return _medians(layers)


def interleaved_times(libraries: Sequence[CompiledNetwork], network: Network) -> list[float]:
    """Time whole runs of several libraries of a network, interleaved, in seconds a run."""
    feed, runs = make_feeds(network, 1)[0], list[Callable[[int], object]]()
    for made in libraries:
        outputs = [np.empty(each["shape"], each["dtype"]) for each in made.manifest["outputs"]]
        runs.append(made.bind([feed[name] for name in network.inputs], outputs))
    return _medians(runs, warm=True)


def _medians(runs: Sequence[Callable[[int], object]], *, warm: bool = False) -> list[float]:
    """Time calls, interleaved; `warm` has one before each: threads of other libraries still look for work."""
    samples: list[list[float]] = [[] for _ in runs]
    with exclusive():
        end = time.perf_counter() + LAYERS_S
        for done in range(MOST_RUNS):
            if done >= LEAST_RUNS and time.perf_counter() > end:
                break
            for run, found in zip(runs, samples, strict=True):
                if warm:
                    run(1)
                start = time.perf_counter()
                run(1)
                found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in samples]


@dataclass(frozen=True)
class Runtime(Step):
    """Step that selects what runs a network.

    Args:
        name: "planish", "onnxruntime", or one of `PEERS`.
    """

    name: str


@dataclass(frozen=True)
class NetworkSpec:
    """Makes an evaluator that times a library, ONNX Runtime with all optimizations, and its peers.

    Args:
        folder: of the library, with the model and an input.
        weights: folder of the files that the model's weights are in; empty where they are in the model.
    """

    folder: str
    weights: str = ""

    @property
    def sandbox(self) -> SandboxPolicy:
        """Return how a worker is confined."""
        return SandboxPolicy.for_code()

    def __call__(self) -> NetworkEvaluator:
        return NetworkEvaluator(Path(self.folder), Path(self.weights) if self.weights else None)


class NetworkEvaluator:
    """Times calls of a network by each runtime.

    Args:
        folder, weights: as `NetworkSpec` says.
    """

    def __init__(self, folder: Path, weights: Path | None = None) -> None:
        self._folder, self._weights = folder, weights
        with np.load(folder / _FEED) as loaded:
            feed = {name: loaded[name] for name in loaded.files}
        made = CompiledNetwork(folder)
        self._cores = made.manifest["cores"]
        outputs = [np.empty(each["shape"], each["dtype"]) for each in made.manifest["outputs"]]
        inputs = [feed[f"arr_{index}"] for index in range(len(made.manifest["inputs"]))]
        names = [port["name"] for port in made.manifest["inputs"]]
        self._feed = dict(zip(names, inputs, strict=True))
        self._runs: dict[str, Callable[[int], object]] = {"planish": made.bind(inputs, outputs)}

    def _run(self, name: str) -> Callable[[int], object]:
        """Return a function that runs the network a number of times; the first call loads its model."""
        if name not in self._runs:
            self._runs[name] = repeated(self._call_of(name))
        return self._runs[name]

    def _call_of(self, name: str) -> Callable[[], object]:
        if name == "torch":
            if (refusal := self._folder / _REFUSAL).exists():
                raise RefusedError(refusal.read_text())
            return load_package(self._folder / _PACKAGE, list(self._feed.values()), self._cores)
        settings = SessionSettings(self._cores, provider="openvino" if name == "openvino" else "cpu")
        file = self._folder / (_SLIM if name == "onnxslim" else _MODEL)
        model = file if self._weights is None else file.read_bytes()
        return open_session(model, settings, weights=self._weights).bound(self._feed)

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Time one runtime."""
        (step,) = candidate.steps
        if not isinstance(step, Runtime):
            return Failed("build", "unknown runtime", str(step))
        try:
            run = self._run(step.name)
        except RefusedError as error:
            name = PEERS.get(step.name, "ONNX Runtime")
            return Failed("build", f"{name} refuses the model: {error.message}")
        wait_for_idle_threads(IDLE_WAIT_S)
        with clock("run"):
            timed: Samples = time_call(run, FINAL_TIMING)
        return Measured({"time_s": timed.median}, timed.named({"time_s": float}, one_core=self._cores == 1))


def compare(
    made: Path, network: Network, model: SourceModel, plan: Plan, feed: Feed | None = None
) -> Sequence[PairedSamples]:
    """Time ONNX Runtime, a library and the peers that are installed, interleaved, in fresh processes.

    Args:
        made: folder of the library, to which the model and an input are written.
        network: what is computed.
        model: the same, as ONNX.
        plan: how much is measured, and for how long at most without peers; each adds as much.
        feed: the input; one is drawn by default.

    Returns:
        The samples of each, in this order.
    """
    names = write_models(made, network, model, feed)
    spec = network_spec(made, model)
    sides = [Variant(name, Candidate((Runtime(name),)), spec) for name in names]
    plan = replace(plan, seconds=plan.seconds * (len(names) - 1))
    return remeasure(sides[0], sides[1:], TIME, LocalExecutor, plan)


def network_spec(made: Path, model: SourceModel) -> NetworkSpec:
    """Return what times the library in a folder, and its model, which `write_models` wrote there."""
    return NetworkSpec(str(made), "" if model.folder is None else str(model.folder))


def write_models(made: Path, network: Network, model: SourceModel, feed: Feed | None = None) -> Sequence[str]:
    """Write what `NetworkSpec` reads beside a library; return what can be timed with it.

    Returns:
        Names of `Runtime`: ONNX Runtime, the library, and the peers that are installed.
    """
    feed = feed or make_feeds(network, 1)[0]
    np.savez(made / _FEED, *(feed[name] for name in network.inputs))
    (made / _MODEL).write_bytes(model.proto.SerializeToString())
    # The peers read no weights of another folder.
    peers = [name for name in PEERS if _is_installed(name) and model.folder is None]
    if "onnxslim" in peers and not _slim(model.proto, made / _SLIM):
        peers.remove("onnxslim")
    if "torch" in peers:
        cores = CompiledNetwork(made).manifest["cores"]
        if why := compile_package(made / _MODEL, made / _FEED, made / _PACKAGE, cores):
            (made / _REFUSAL).write_text(why)
    return ("onnxruntime", "planish", *peers)


def _is_installed(peer: str) -> bool:
    return has_torch() if peer == "torch" else find_spec(peer) is not None


def _slim(model: ModelProto, path: Path) -> bool:
    """Write what onnxslim makes of a model; return whether it does."""
    package: Any = import_module("onnxslim")
    with suppress(Exception):  # it raises whatever it likes
        path.write_bytes(package.slim(model).SerializeToString())
        return True
    return False
