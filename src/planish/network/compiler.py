"""Compilation of a network: from an ONNX model or a StableHLO module to a verified library."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.core import ExecutorFactory, ProgramError, Target, TargetError, unknown
from planish.core.arguments import check_path, check_positive, check_type, check_whole_number, wrong_argument
from planish.core.installation import install_command
from planish.core.wording import amount
from planish.levels.loops.backends import PREFERRED, cross_target, preferred_backend, this_machine
from planish.levels.loops.roofline import quick_peak
from planish.measure import PairedSamples, Plan
from planish.measure.executors import LocalExecutor
from planish.network.fusion import Kernels
from planish.network.ir import Network
from planish.network.library.assembly import Built, Weights, build
from planish.network.library.files import check_folder, write_files, write_library, write_manifest
from planish.network.library.runtime import CompiledNetwork
from planish.network.library.schedule import Schedule, is_foreign, runs_here, schedule_for
from planish.network.library.variants import concrete_shapes, join_variants
from planish.network.placing import place_tensors
from planish.network.rewrites.pipeline import rewrite, rewrite_layouts
from planish.network.rewrites.precision import BFLOAT16, INT8, narrow_weights, narrowed
from planish.sandbox.scratch import shared_folder

if TYPE_CHECKING:
    from planish.levels.graph.program import GraphProgram
    from planish.network.reader import SourceModel
    from planish.network.report import Layer, Match
    from planish.network.tuning import DefaultTimes
    from planish.store import Store

COMPARISON_S = 20.0
"""Seconds that the comparison with ONNX Runtime takes at most."""

MODULE_SUFFIXES = (".mlir", ".stablehlo", ".mlirbc")
"""Ends of names of files that are StableHLO modules."""

PRECISIONS: Mapping[str, str] = {"float32": "", "bf16": BFLOAT16, "int8": INT8}
"""Names of precisions, and the types of weights that a call reads a few times; empty for float32."""

TOLERANCES: Mapping[str, float] = {BFLOAT16: 0.03, INT8: 0.05}
"""Largest difference that is accepted by default with narrow weights."""

MOST_BATCHES = 8
"""Batches of the user's inputs on which answers are compared."""

Progress = Callable[[str], None]
Feed = Mapping[str, Any]


@dataclass(frozen=True)
class Compilation:
    """Result of compiling a network.

    Args:
        manifest: what the library is.
        built: what it is linked of.
        folder: where it is, as long as the process lives.
        loaded: the library, to be called; None of one for another processor.
        layers: each with its time.
        matches: layers and nodes of ONNX Runtime that compute the same.
        comparison: samples of ONNX Runtime, then of the library, then of its peers; empty where they were
            not compared.
        difference: from ONNX Runtime without optimizations, as a share of the largest number of an output.
        tolerance: what was accepted.
        tuned: kernels that were tuned.
        kernels: distinct kernels.
        phases: what the compilation did to the seconds that it took; of all variants.
        variants: those of the library, where it is for several shapes; the other figures are the first one's,
            and the difference is the largest.
    """

    manifest: Mapping[str, Any]
    built: Built
    folder: Path
    loaded: CompiledNetwork | None
    layers: Sequence[Layer]
    matches: Sequence[Match]
    comparison: Sequence[PairedSamples]
    difference: float
    tolerance: float
    tuned: int
    kernels: int
    phases: Mapping[str, float]
    variants: Sequence[Compilation] = ()

    @property
    def network(self) -> CompiledNetwork:
        """Return the library, to be called.

        Raises:
            TargetError: it is for another processor.
        """
        if self.loaded is None:
            raise TargetError("the library is for another processor, and cannot be called here")
        return self.loaded


def compile(  # noqa: A001 (of `planish.compile`)
    model: str | Path,
    *,
    output: str | Path | None = None,
    shape: str | Mapping[str, Sequence[int]] = "",
    cores: int = 1,
    seconds: float | None = None,
    tolerance: float | None = None,
    inputs: str | Path | None = None,
    store: Store | str | Path | None = None,
    precision: str = "float32",
) -> CompiledNetwork:
    """Compile an ONNX model or a StableHLO module to one shared library, and verify its answers.

    Args:
        model: the file; a module's ends with `.mlir`, `.stablehlo` or `.mlirbc`.
        output: the folder to write; None for one that lives as long as the process.
        shape: of inputs whose shape is open: `"x=1x3x224x224"`, or `{"x": (1, 3, 224, 224)}`. With a range,
            `"x=1..8x3x224x224"` or `"x=1x3x48x160..320:32"`, the library has a variant for each shape.
        cores: threads of the library, the calling one included.
        seconds: for choosing algorithms and for tuning the kernels; reading, linking and verification are not
            included. Without, algorithms follow from estimates, and kernels have default schedules.
        tolerance: the largest difference from ONNX Runtime without optimizations that is accepted, as a share
            of the largest number of an output; 1e-4 by default, with "bf16" 0.03, with "int8" 0.05.
        inputs: an `.npz` file of real inputs, on which the library is verified too, and which layers in int8
            have their ranges of; see `numpy.savez`.
        store: an open store, or its location, where tuned kernels are kept; None for the user's own.
        precision: "float32", "bf16" or "int8": weights that a call reads a few times are stored as bfloat16,
            or as int8 with a scale for each channel. Layers that are faster so compute in the type, where the
            processor has AVX512_BF16 or AVX512_VNNI.

    Returns:
        The network, which takes and returns NumPy arrays.

    Raises:
        ArgumentError: an argument has a wrong type or value.
        ProgramError: the model cannot be read or is not covered, or the library computes a wrong answer.
        TargetError: a package is missing, or the machine has fewer cores.

    Examples:
        >>> net = planish.compile("model.onnx", output="net")  # doctest: +SKIP
        >>> y = net(x)  # doctest: +SKIP
    """
    check_path("model", model)
    for name, path in {"output": output, "inputs": inputs}.items():
        check_path(name, path, optional=True)
    if not isinstance(store, str | os.PathLike | None) and not hasattr(store, "runs"):
        raise wrong_argument("store", store, "an open store, a file or a URL")
    check_type("shape", shape, (str, Mapping), 'a text such as "x=1x3x224x224", or a dict')
    check_type("precision", precision, str, " or ".join(map(repr, PRECISIONS)))
    check_whole_number("cores", cores, 1)
    if tolerance is not None:
        check_positive("tolerance", tolerance)
    text = (
        shape
        if isinstance(shape, str)
        else ",".join(f"{k}={'x'.join(map(str, v))}" for k, v in shape.items())
    )
    return compile_model(
        Path(model), output=None if output is None else Path(output), shape=text, cores=cores,
        seconds=seconds, tolerance=tolerance, inputs=None if inputs is None else Path(inputs),
        store=store, measures=False, precision=precision,
    ).network  # fmt: skip


def compile_model(
    path: Path,
    *,
    output: Path | None,
    shape: str = "",
    cores: int = 1,
    seconds: float | None = None,
    tolerance: float | None = None,
    inputs: Path | None = None,
    store: Store | str | Path | None = None,
    measures: bool = True,
    fuse: bool = True,
    target: str = "",
    precision: str = "float32",
    on_progress: Progress | None = None,
    start: ExecutorFactory = LocalExecutor,
) -> Compilation:
    """Compile a model and report; see `compile`.

    Args:
        path: of the model or module.
        output, shape, cores, seconds, tolerance, inputs, store, precision: as there.
        measures: whether layers are timed and the whole is compared with ONNX Runtime.
        fuse: whether element-wise operators join the kernels before them.
        target: name of another processor that the library is for, which is not timed; empty for this machine.
        on_progress: is called with lines on the progress.
        start: starts the workers that tune; the library is timed on this machine.
    """
    if precision not in PRECISIONS:
        raise unknown("there is no precision", precision, PRECISIONS)
    if seconds is not None:
        check_positive("seconds", seconds)
        if target:
            what = f"kernels for '{target}' cannot be tuned on this machine"
            raise TargetError(what, "Leave seconds= out: then they have the default schedules.")
    if output is not None:
        check_folder(output)
    shapes, on_progress = concrete_shapes(shape), on_progress or _silent
    weights, share = Weights(), None if seconds is None else seconds / len(shapes)
    machine = cross_target(target, cores) if target else this_machine(cores)
    module = ""
    if path.suffix in MODULE_SUFFIXES:
        _importer()
        from planish.network.stablehlo.source import write_translation

        path, module = write_translation(path, _working_folder())
    request = _Request(
        machine, share, tolerance, store, inputs, measures, fuse, on_progress, COMPARISON_S / len(shapes),
        start, module, narrow=PRECISIONS[precision],
    )  # fmt: skip
    found = list[Compilation]()
    for number, each in enumerate(shapes, 1):
        if len(shapes) > 1:
            on_progress(f"variant {number} of {len(shapes)}: {each}")
        found.append(_compile_variant(path, each, request, weights))
    whole = found[0] if len(found) == 1 else _join_variants(found)
    if output is not None:
        write_files(whole.built, whole.folder, output)
        whole = replace(whole, loaded=None if target else CompiledNetwork(output))
    return whole


@dataclass(frozen=True)
class _Request:
    """Request of a compilation, for each variant of a library; see `compile_model`.

    Args:
        target: the machine.
        seconds, tolerance, store, inputs, measures, fuse, on_progress: as there.
        comparison_s: seconds of the comparison with ONNX Runtime.
        start: starts the workers that tune.
        module: text of the StableHLO module that the model was read from; empty for a model of ONNX.
        narrow: type of weights that a call reads a few times; empty for float32.
    """

    target: Target
    seconds: float | None
    tolerance: float | None
    store: Store | str | Path | None
    inputs: Path | None
    measures: bool
    fuse: bool
    on_progress: Progress
    comparison_s: float
    start: ExecutorFactory
    module: str = ""
    narrow: str = ""


def _read(
    path: Path, shape: str, request: _Request
) -> tuple[Network, SourceModel, Sequence[Feed], Sequence[Feed]]:
    """Read a model; return the network, the model, the user's inputs, and these with random ones."""
    read_network, source = _importer()
    from planish.network.timing import make_feeds
    from planish.network.verification import INPUT_SETS

    options = {"shape": shape} if shape else {}
    options |= {"inputs": str(request.inputs)} if request.inputs else {}
    program = source(path, options, any_size=True)
    network, model = read_network(program)
    _check_weights(network)
    own = _read_feeds(program) if request.inputs else []
    feeds = [*own, *make_feeds(network, INPUT_SETS)]
    if request.module:
        from planish.network.stablehlo.source import verify_translation

        request.on_progress(verify_translation(request.module, network, model, feeds))
    return network, model, own, feeds


def _compile_variant(path: Path, shape: str, request: _Request, weights: Weights) -> Compilation:
    """Compile a model for one set of shapes, to a library of its own."""
    clock, target, on_progress = _Phases(), request.target, request.on_progress
    network, model, own, feeds = _read(path, shape, request)
    from planish.network.narrow_layers import (
        Point,
        choose_narrow_layers,
        computes_narrowly,
        list_verified_feeds,
    )
    from planish.network.tuning import DefaultTimes, choose
    from planish.network.verification import TOLERANCE

    limit = request.tolerance or TOLERANCES.get(request.narrow, TOLERANCE)
    clock.end("reading")
    begun, seconds = time.monotonic(), request.seconds
    defaults = DefaultTimes(target, seconds)
    network, front = rewrite_layouts(network), list[Point]()
    if computes_narrowly(target, request.narrow):
        network, front = choose_narrow_layers(
            network, request.narrow, limit, own, feeds, defaults, on_progress
        )
    feeds = list_verified_feeds(network, own, feeds)
    network, kernels = _arrange(network, min(limit, TOLERANCE), request, defaults)
    # Choices take their share of the time.
    seconds = seconds and max(0.0, seconds - (time.monotonic() - begun))
    distinct = len({kernel.program.text for kernel in kernels})
    on_progress(f"{len(network.nodes)} nodes, {len(kernels)} kernels, {distinct} of them distinct")
    schedules, tuned = choose(network, kernels, defaults, seconds, request.store, on_progress, request.start)
    clock.end("algorithms and schedules")
    built = build(network, kernels, schedules, target, weights)
    folder = _working_folder()
    write_library(built, folder)
    worst = _verify_library(network, model, limit, kernels, schedules, request, built, folder, feeds)
    clock.end("linking and verification")
    layers, matches, comparison = _measure(network, model, kernels, request, folder, feeds[0])
    clock.end("times of layers and comparison")
    facts = {"difference": worst, "tolerance": limit, "matches": [asdict(each) for each in matches]}
    facts |= {"front": [asdict(point) for point in front]} if front else {}
    built = replace(built, manifest=_describe(built.manifest, layers, facts))
    write_manifest(built.manifest, folder)
    loaded = None if is_foreign(target) else CompiledNetwork(folder)
    return Compilation(
        built.manifest, built, folder, loaded, layers, matches, comparison, worst, limit, tuned,
        distinct, clock.seconds,
    )  # fmt: skip


def _describe(
    manifest: Mapping[str, Any], layers: Sequence[Layer], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Add facts to a manifest, and those of its layers, where they were timed."""
    described = [
        facts_of | (asdict(layer) if layers else {})
        for facts_of, layer in zip_longest(manifest["layers"], layers)
    ]
    return {**manifest, **facts, "layers": described}


class _Phases:
    """Seconds that each phase of a compilation takes."""

    def __init__(self) -> None:
        self.seconds = dict[str, float]()
        self._begun = time.monotonic()

    def end(self, name: str) -> None:
        """End a phase, and begin the next one."""
        self.seconds[name] = time.monotonic() - self._begun
        self._begun += self.seconds[name]


def _measure(
    network: Network, model: SourceModel, kernels: Kernels, request: _Request, folder: Path, feed: Feed
) -> tuple[list[Layer], list[Match], list[PairedSamples]]:
    """Time the layers of a library, and the whole beside ONNX Runtime; not where that is not asked for."""
    from planish.network.report import describe_layers, match_layers, profile_onnxruntime
    from planish.network.timing import compare, layer_times

    target = request.target
    if not request.measures or is_foreign(target):
        return [], [], []
    times = layer_times(CompiledNetwork(folder), network, feed)
    peak = quick_peak(preferred_backend()) * target.cores
    layers = describe_layers(network, kernels, times, peak, tuned=bool(request.seconds))
    matches = match_layers(model.proto, kernels, times, profile_onnxruntime(model, feed, target.cores))
    comparison = compare(folder, network, model, Plan(seconds=request.comparison_s), feed)
    return layers, matches, list(comparison)


def _arrange(
    network: Network, tolerance: float, request: _Request, defaults: DefaultTimes
) -> tuple[Network, Kernels]:
    """Return a network with its algorithms and placements, measured where time is given, and its kernels."""
    from planish.network.choices import choose_algorithms, choose_placements

    target, on_progress = request.target, request.on_progress
    measured = bool(request.seconds) and not is_foreign(target)
    if measured:
        network = choose_algorithms(network, tolerance, defaults, on_progress)
    else:
        network = rewrite(network, tolerance, target)
    if request.narrow:
        whole, network = network, narrow_weights(network, request.narrow)
        count, fewer = narrowed(whole, network)
        on_progress(f"{count} weights are {request.narrow}, which saves {amount(fewer, 'B')}")
    if measured:
        return choose_placements(network, defaults, on_progress, fuse=request.fuse)
    return place_tensors(network, fuse=request.fuse)


def _read_feeds(program: GraphProgram) -> list[Feed]:
    """Return the user's inputs, the first few batches of them."""
    from planish.levels.graph.feeds import arrays_in, batches

    assert program.data is not None
    return batches(program, arrays_in(program.data.file))[:MOST_BATCHES]


def _check_weights(network: Network) -> None:
    """Raise ProgramError for a weight that is not a number: what is computed with it is none either.

    A single number may be NaN: models choose it for what they do not define.
    """
    for name, array in network.constants.items():
        if array.dtype.kind == "f" and array.size > 1 and np.isnan(np.min(array)):
            count = int(np.count_nonzero(np.isnan(array)))
            what = f"weight '{name}' is NaN in {count} of {array.size} elements"
            raise ProgramError(what, "The model is damaged: export it again.")


def _join_variants(found: Sequence[Compilation]) -> Compilation:
    """Join variants to one library, and check that each computes there what it computed alone."""
    from planish.network.verification import answers_here

    built = join_variants([each.built for each in found])
    folder = _working_folder()
    write_library(built, folder)
    for number, each in enumerate(found):
        if each.loaded is not None:
            feed = [np.ones(port["shape"], port["dtype"]) for port in each.manifest["inputs"]]
            alone = each.loaded(*feed)
            (outputs,) = answers_here(folder, each.manifest, number)([feed])
            same = zip(outputs, alone if isinstance(alone, tuple) else (alone,), strict=True)
            if not all(np.array_equal(one, other, equal_nan=True) for one, other in same):
                what = f"variant {number} computes other answers than by itself"
                raise ProgramError(what, "Nothing was written. Report it as a defect, with the model.")
    worst = max(each.difference for each in found)
    loaded = None if found[0].loaded is None else CompiledNetwork(folder)
    return replace(
        found[0], manifest=built.manifest, built=built, folder=folder, loaded=loaded, difference=worst,
        phases={name: sum(each.phases[name] for each in found) for name in found[0].phases}, variants=found,
    )  # fmt: skip


def _verify_library(
    network: Network,
    model: SourceModel,
    limit: float,
    kernels: Kernels,
    schedules: Mapping[str, Schedule],
    request: _Request,
    built: Built,
    folder: Path,
    feeds: Sequence[Feed],
) -> float:
    """Verify a library, where it can be run, else one of the same schedules for this machine."""
    from planish.network.verification import answers_here, emulated_answers, emulator, verify

    target = request.target
    answers, by = answers_here(folder, built.manifest), ""
    if not runs_here(target):
        if (qemu := emulator(target)) is not None:
            answers, feeds, by = emulated_answers(built, qemu), feeds[:1], f" under {Path(qemu).name}"
        else:
            here = this_machine(1, PREFERRED[-1])
            same = {
                text: schedule_for(replace(schedule, cores=1), here) for text, schedule in schedules.items()
            }
            twin = build(network, kernels, same, here)
            write_library(twin, folder := _working_folder())
            answers, by = answers_here(folder, twin.manifest), " by its schedules on this machine"
    try:
        worst = verify(network, model, limit, answers, feeds)
    except ProgramError as error:
        if not request.narrow:
            raise
        hint = "Nothing was written. Give a larger tolerance=, or leave out precision=."
        raise ProgramError(error.message, hint) from error
    request.on_progress(
        f"verified{by}: differs from ONNX Runtime without optimizations by {worst:.1e} at most"
    )
    return worst


def _silent(_line: str) -> None:
    """Say nothing."""


def _importer() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Import what reads models; raises TargetError where packages are missing."""
    try:
        from planish.levels.graph.source import read_model
        from planish.network.reader import read_network

        for package in ("onnx", "onnxruntime"):
            import_module(package)
    except ModuleNotFoundError as error:
        what = f"compiling a network needs {error.name}, which is missing here"
        raise TargetError(what, f"Install it with: {install_command('graph')}") from error
    return read_network, read_model


def _working_folder() -> Path:
    """Make a folder that lives as long as the process: a library in it may be called until the end."""
    return Path(tempfile.mkdtemp(prefix="network-", dir=shared_folder()))
