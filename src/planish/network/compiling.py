"""Compilation of a network: from an ONNX model to a verified library."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import Target, TargetError
from planish.core.arguments import check_number
from planish.levels.loops.backends import PREFERRED, cross_target, this_machine
from planish.measure import PairedSamples, Plan
from planish.network.fusion import Kernel, kernels_of
from planish.network.layouts import with_channels_last
from planish.network.library import (
    Built,
    Schedule,
    build,
    is_foreign,
    schedule_for,
    write_files,
    write_library,
    write_manifest,
)
from planish.network.model import Network
from planish.network.plain import PlainKernel
from planish.network.runtime import CompiledNetwork
from planish.network.winograd import with_winograd

if TYPE_CHECKING:
    from onnx import ModelProto

    from planish.store import Store

COMPARISON_S = 20.0
"""Seconds that the comparison with ONNX Runtime takes at most."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Layer:
    """A line of the report.

    Args:
        operators: what it computes.
        shape: of its result.
        seconds: of one call, measured alone.
        gflops: arithmetic operations in a second, by 10 ** 9.
    """

    operators: str
    shape: tuple[int, ...]
    seconds: float
    gflops: float


@dataclass(frozen=True)
class Compilation:
    """Result of compiling a network.

    Args:
        manifest: what the library is.
        loaded: the library, to be called; None of one for another processor.
        layers: each with its time.
        comparison: samples of ONNX Runtime, then of the library; empty where they were not compared.
        difference: from ONNX Runtime without optimizations, as a share of the largest number of an output.
        tolerance: what was accepted.
        tuned: kernels that were tuned.
        kernels: distinct kernels.
    """

    manifest: Mapping[str, Any]
    loaded: CompiledNetwork | None
    layers: Sequence[Layer]
    comparison: Sequence[PairedSamples]
    difference: float
    tolerance: float
    tuned: int
    kernels: int

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
    store: Store | str | Path | None = None,
) -> CompiledNetwork:
    """Compile an ONNX model to one shared library, and verify its answers.

    Args:
        model: the file.
        output: the folder to write; None for one that lives as long as the process.
        shape: of inputs whose shape is open: `"x=1x3x224x224"`, or `{"x": (1, 3, 224, 224)}`.
        cores: threads of the library, the calling one included.
        seconds: for tuning the kernels; without, the default schedules are taken.
        tolerance: the largest difference from ONNX Runtime without optimizations that is accepted, as a share
            of the largest number of an output; 1e-4 by default.
        store: an open store, or its location, where tuned kernels are kept; None for the user's own.

    Returns:
        The network, which takes and returns NumPy arrays.

    Raises:
        ProgramError: the model cannot be read or is not covered, or the library computes a wrong answer.
        TargetError: a package is missing, or the machine has fewer cores.

    Examples:
        >>> net = planish.compile("model.onnx", output="net")  # doctest: +SKIP
        >>> y = net(x)  # doctest: +SKIP
    """
    text = (
        shape
        if isinstance(shape, str)
        else ",".join(f"{k}={'x'.join(map(str, v))}" for k, v in shape.items())
    )
    return compile_model(
        Path(model), output=None if output is None else Path(output), shape=text, cores=cores,
        seconds=seconds, tolerance=tolerance, store=store, measures=False,
    ).network  # fmt: skip


def compile_model(
    path: Path,
    *,
    output: Path | None,
    shape: str = "",
    cores: int = 1,
    seconds: float | None = None,
    tolerance: float | None = None,
    store: Store | str | Path | None = None,
    measures: bool = True,
    fuse: bool = True,
    processor: str = "",
    say: Say | None = None,
) -> Compilation:
    """Compile a model and report; see `compile`.

    Args:
        path: of the model.
        output: the folder to write.
        shape: of open inputs.
        cores: threads of the library.
        seconds: for tuning.
        tolerance: largest accepted difference.
        store: of tuned kernels.
        measures: whether layers are timed and the whole is compared with ONNX Runtime.
        fuse: whether element-wise operators join the kernels before them.
        processor: name of another one that the library is for; empty for this machine. Then nothing is timed.
        say: is called with lines on the progress.
    """
    if seconds is not None:
        check_number("seconds", seconds)
        if processor:
            what = f"kernels for '{processor}' cannot be tuned on this machine"
            raise TargetError(what, "Leave seconds= out: then they have the default schedules.")
    say = say or _silent
    read_network, source = _importer()
    network, model = read_network(source(path, {"shape": shape} if shape else {}))
    from planish.network.choosing import choose
    from planish.network.measuring import compare, layer_times
    from planish.network.verification import TOLERANCE

    limit = TOLERANCE if tolerance is None else tolerance
    network = with_winograd(with_channels_last(network), limit)
    kernels = kernels_of(network, fuse=fuse)
    distinct = {kernel.program.text for kernel in kernels}
    target = cross_target(processor, cores) if processor else this_machine(cores)
    say(f"{len(network.nodes)} nodes, {len(kernels)} kernels, {len(distinct)} of them distinct")
    schedules, tuned = choose(network, kernels, target, seconds, store, say)
    built = build(network, kernels, schedules, target)
    folder = _working_folder()
    write_library(built, folder)
    worst = _verified(network, model, limit, kernels, schedules, target, built, folder, say)
    layers, comparison = list[Layer](), list[PairedSamples]()
    if measures and not processor:
        times = layer_times(CompiledNetwork(folder), network)
        layers = [_layer(network, kernel, each) for kernel, each in zip(kernels, times, strict=True)]
        comparison = list(compare(folder, network, model, Plan(seconds=COMPARISON_S)))
    facts = {"difference": worst, "tolerance": limit, "layer_seconds": [each.seconds for each in layers]}
    built = replace(built, manifest={**built.manifest, **facts})
    if output is not None:
        write_files(built, folder, output)
    else:
        write_manifest(built.manifest, folder)
    loaded = None if processor else CompiledNetwork(output or folder)
    return Compilation(built.manifest, loaded, layers, comparison, worst, limit, tuned, len(distinct))


def _verified(
    network: Network,
    model: ModelProto,
    limit: float,
    kernels: Sequence[Kernel | PlainKernel],
    schedules: Mapping[str, Schedule],
    target: Target,
    built: Built,
    folder: Path,
    say: Say,
) -> float:
    """Verify a library, where it can be run, else one of the same schedules for this machine."""
    from planish.network.emulation import emulated_answers, emulator
    from planish.network.verification import INPUT_SETS, answers_here, verify

    answers, sets, by = answers_here(folder, built.manifest), INPUT_SETS, ""
    if is_foreign(target):
        qemu = emulator(target.toolchain["triple"])
        if qemu is not None:
            answers, sets, by = emulated_answers(built, qemu), 1, f" under {Path(qemu).name}"
        else:
            here = this_machine(1, PREFERRED[-1])
            same = {text: schedule_for(schedule, here) for text, schedule in schedules.items()}
            twin = build(network, kernels, same, here)
            write_library(twin, folder := _working_folder())
            answers, by = answers_here(folder, twin.manifest), " by its schedules on this machine"
    worst = verify(network, model, limit, answers, sets)
    say(f"verified{by}: differs from ONNX Runtime without optimizations by {worst:.1e} at most")
    return worst


def _silent(line: str) -> None:
    del line


def _importer() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Import what reads models; raises TargetError where packages are missing."""
    try:
        from planish.levels.graph.source import read_model
        from planish.network.reading import read_network

        for package in ("onnx", "onnxruntime"):
            import_module(package)
    except ModuleNotFoundError as error:
        what = f"compiling a network needs {error.name}, which is missing here"
        raise TargetError(what, "Install it: pip install 'planish[graph]'.") from error
    return read_network, read_model


_folders = list["tempfile.TemporaryDirectory[str]"]()


def _working_folder() -> Path:
    """Make a folder that lives as long as the process: a library in it may be called until the end."""
    _folders.append(tempfile.TemporaryDirectory(prefix="planish-network-"))
    return Path(_folders[-1].name)


def _layer(network: Network, kernel: Kernel | PlainKernel, seconds: float) -> Layer:
    gflops = kernel.flops / 1e9 / seconds
    return Layer(kernel.operators, network.shape(kernel.output), seconds, gflops)


def words_of(comparison: Sequence[PairedSamples]) -> str:
    """Describe a comparison in one line."""
    from planish.core.wording import amount, interval, multiple, verdict_word
    from planish.network.measuring import TIME

    base, ours = comparison
    if ours.ratio is None:
        return f"Undecided: {ours.why}"
    gain = ours.ratio.gain(TIME)
    word = verdict_word(ours.verdict, TIME)
    clock = " of processor time" if ours.evidence is not None and ours.evidence.by_processor else ""
    both = f"{amount(ours.median, 's')} against ONNX Runtime's {amount(base.median, 's')}"
    return f"{both}: {multiple(gain.value)}{clock}, 95 % confidence interval {interval(gain)}, {word}"
