"""`planish compile`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given

if TYPE_CHECKING:
    from planish.network.compiler import Compilation

_LEAST_PHASE_S = 0.001
"""Seconds of a phase below which nothing was done in it."""


def compile_(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="An ONNX model, or a StableHLO module (.mlir), as of JAX.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the library is written.")
    ],
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="x=1x3x224x224",
            help="The shape of an input; may be repeated. x=1..8x3x224x224, or with a step "
            "x=1x3x48x160..320:32, compiles a variant for each.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            help="Choose algorithms and tune the kernels for so long; without, by estimates and default "
            "schedules. Reading, linking, verification and the comparison (20 s at most, peers besides) are "
            "not included; their times are printed.",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            help="Largest difference from ONNX Runtime, as a share of an output's largest number; 1e-4, "
            "with --precision bf16 0.03, with int8 0.05.",
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs",
            metavar="FILE.npz",
            help="Real inputs by name: to verify on, to time, and for the ranges of int8.",
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            metavar="float32|bf16|int8",
            help="How weights that a call reads a few times are stored: int8 with a scale for each channel. "
            "Layers that are faster so compute in the type, with AVX512_BF16 or AVX512_VNNI.",
        ),
    ] = "float32",
    cores: given.Cores = 1,
    no_fusion: Annotated[bool, typer.Option("--no-fusion", help="A kernel for each operator.")] = False,
    target: given.TargetName = "",
    executor: given.ExecutorName = "local",
    ray: given.RayAddress = "",
    store: given.StorePlace = None,
) -> None:
    """Compile a network to one shared library, which needs no planish, no Python and no compiler to run.

    A StableHLO module is read as an ONNX model, whose outputs are compared with those of XLA. The library's
    outputs are compared with those of ONNX Runtime without optimizations. If they differ, the library is not
    written, and the command ends with exit code 3. Then it is timed alternately with ONNX Runtime with all
    optimizations, and with OpenVINO, onnxslim and PyTorch's compiler (torch with onnx2torch) if these are
    installed, on the same number of cores. With --target, the library is for another processor: it is
    verified under QEMU, if qemu-user is installed, and not timed.
    """
    from planish.cli.output import remark, say
    from planish.cli.request import executors
    from planish.core import PlanishError
    from planish.core.wording import amount
    from planish.network.compiler import compile_model
    from planish.network.narrow_layers import Point
    from planish.network.report import describe_comparison, describe_peers

    if executor == "ray" and seconds is None:
        raise PlanishError("nothing is measured on the cluster without tuning", "Add --seconds N.")
    with executors(executor, ray) as start:
        found = compile_model(
            model, output=output, shape=",".join(shape or ()), cores=cores, seconds=seconds,
            tolerance=tolerance, inputs=inputs, store=store, fuse=not no_fusion, target=target,
            precision=precision, on_progress=remark, start=start,
        )  # fmt: skip
    manifest = found.manifest
    for each in found.variants or [found]:
        if each.comparison:
            say(", ".join(f"{port['name']} {port['shape']}" for port in each.manifest["inputs"]))
            _show(each)
            say()
            say(f"{describe_comparison(each.comparison)}")
            for line in describe_peers(each.comparison):
                say(line)
    size, least = manifest["workspace_bytes"], manifest["least_workspace_bytes"]
    weights = amount(manifest["weights_bytes"], "B")
    say(f"Workspace {amount(size, 'B')}, at least {amount(least, 'B')} at a time; weights {weights}.")
    say(
        f"Verified: differs from ONNX Runtime without optimizations by {found.difference:.1e} at most "
        f"(tolerance {found.tolerance:g})."
    )
    for point in manifest.get("front", ()):
        say(f"With default schedules, {Point(**point)}.")
    # A library for another processor is not timed.
    phases = ", ".join(f"{name} {amount(s, 's')}" for name, s in found.phases.items() if s > _LEAST_PHASE_S)
    say(f"Time: {phases}.")
    say(f"Written: {', '.join(str(output / name) for name in ('model.so', 'model.h', 'manifest.json'))}")


def _show(found: Compilation) -> None:
    """Print each layer with its time, and those that are slower than ONNX Runtime's nodes for the same."""
    from planish.cli.output import say, table
    from planish.core.wording import amount
    from planish.network.report import join_strips, slower_matches

    layers = join_strips(found.layers)
    row_of = {number: numbers[0] for numbers in layers for number in numbers}
    whole = sum(layer.seconds for layer in found.layers) or 1.0
    peers = {row_of[match.layers[-1]]: match.peer_seconds for match in found.matches}
    rows = [
        [
            str(index), layer.operators, ", ".join("x".join(map(str, each)) for each in layer.inputs),
            "x".join(map(str, layer.shape)), layer.layout, layer.algorithm, amount(layer.seconds, "s"),
            f"{layer.seconds / whole:.1%}", f"{layer.gflops:.1f}", f"{layer.roofline:.0%}",
            amount(peers[index], "s") if index in peers else "",
        ]
        for (index, *_), layer in layers.items()
    ]  # fmt: skip
    right = ["", "time", "share", "GFLOPS", "of roofline", "ONNX Runtime"]
    table(["", "operators", "inputs", "result", "layout", "algorithm", *right[1:]], rows, right)
    for match in slower_matches(found.matches):
        rows_of_match = dict.fromkeys(row_of[index] for index in match.layers)
        layers = ", ".join(f"{index} ({found.layers[index].operators})" for index in rows_of_match)
        both = f"{amount(match.seconds, 's')} against {amount(match.peer_seconds, 's')}"
        say(f"Slower than ONNX Runtime: layers {layers}: {both}.")
