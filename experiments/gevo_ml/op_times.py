"""Does counting tell where a module's time is? Each product and convolution is timed alone, beside its FLOPs.

    python experiments/gevo_ml/op_times.py [MODULE ...]

What is alike is timed once, by XLA on one core. Prints, of each module as it is and with its exact edits, the
rank correlation of FLOPs and times, and how many of the ten that compute most are among the slowest ten.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
from jaxlib.mlir.dialects import func

from planish.levels.hlo.backend import HloBackend, device_argument, open_backend
from planish.levels.hlo.edits import EditableModule
from planish.levels.hlo.evaluator import TIMING
from planish.levels.hlo.flops import flops_of
from planish.levels.hlo.ir.mlir import ir, strip_uids, tensor_type
from planish.levels.hlo.ir.normal import entry_text
from planish.levels.hlo.patch import extended, original
from planish.levels.hlo.program import read_program
from planish.levels.hlo.structure import PRODUCTS, together
from planish.measure import repeated, time_call

EXAMPLES = Path(__file__).parents[2] / "examples" / "hlo"
TIMED = ("stablehlo.dot_general", "stablehlo.convolution")
MOST = 10


def alone(op: ir.Operation) -> str:
    """Print an operation as the only one of a module, whose function takes what it reads."""
    with op.context, ir.Location.unknown(op.context):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("main", ([value.type for value in op.operands], [op.results[0].type]))
            block = function.add_entry_block()
        with ir.InsertionPoint(block):
            copy = op.clone().operation
            for place, argument in enumerate(block.arguments):
                copy.operands[place] = argument
            func.ReturnOp([copy.results[0]])
    strip_uids(module.operation)
    return entry_text(module.operation, "main")


def seconds_of(op: ir.Operation, backend: HloBackend) -> float:
    """Time an operation of random numbers."""
    executable, rng = backend.compile(alone(op)), np.random.default_rng(0)
    types = [type_ for value in op.operands if (type_ := tensor_type(value.type))]
    arrays = [rng.standard_normal(type_.shape).astype(np.float32) for type_ in types]
    held = [device_argument(backend, types[i], array, i) for i, array in enumerate(arrays)]
    return time_call(repeated(partial(executable, held)), timing=TIMING).median


def profile(module: EditableModule, backend: HloBackend) -> tuple[list[int], list[float], int]:
    """Give FLOPs and seconds of each product and convolution that the results need, and how many differ."""
    known, counted, timed, live = dict[str, float](), list[int](), list[float](), module.live()
    for uid, info in module.infos.items():
        if uid in live and info.name in TIMED:
            op = module.op(uid)
            text = alone(op)
            if text not in known:
                known[text] = seconds_of(op, backend)
            counted.append(flops_of(module, uid))
            timed.append(known[text])
    return counted, timed, len(known)


def ranks(numbers: np.ndarray) -> np.ndarray:
    """Give the place of each among all, from the least."""
    return np.argsort(np.argsort(numbers, kind="stable"))


def row(name: str, module: EditableModule, backend: HloBackend) -> str:
    """Profile a module, and write its row."""
    begun = time.perf_counter()
    counted, timed, shapes = profile(module, backend)
    took = time.perf_counter() - begun
    flops, seconds = np.array(counted, float), np.array(timed)
    correlation = np.corrcoef(ranks(flops), ranks(seconds))[0, 1]
    most = [np.argsort(-each, kind="stable")[:MOST] for each in (flops, seconds)]
    shares = [seconds[places].sum() / seconds.sum() for places in most]
    return (
        f"| {name} | {len(timed)} | {shapes} | {took:.1f} | {correlation:.2f} | "
        f"{len({*most[0].tolist()} & {*most[1].tolist()})} | {shares[0]:.0%} | {shares[1]:.0%} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", default=["mobilenet.mlir", "mobilenet_original.mlir"])
    backend = open_backend("xla", 1)
    print(
        f"| module | products | differ | profile s | correlation | of {MOST} in both | their time | of most |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name in parser.parse_args().modules:
        module = original(read_program(Path(name) if Path(name).exists() else EXAMPLES / name))
        exact = extended(module, tuple(together(module, PRODUCTS, lambda _: True)))
        print(row(name, module, backend), flush=True)
        print(row(f"{name}, exact edits", exact, backend), flush=True)


if __name__ == "__main__":
    main()
