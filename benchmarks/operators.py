"""Operators of neural networks beside torch and NumPy, on one core: one table of wins and losses alike.

Each program is tuned for `--seconds`, its kernel is checked against the libraries' answers, and then all are
timed alternately, by the processor's clock, so that other work on the machine counts little. `ratio` is the
time of the best library over ours: above 1, ours is faster. Libraries that take an array for the result are
given ours. Weights of convolutions are constants, which ours may pack ahead; so torch also
has them reordered ahead. Layouts are free, too: both have the channels first and the channels last, and of
each the best way counts. Each of our layouts is tuned for `--seconds`.

`--cores 2` times the kernel tuned for two cores beside that for one, by the wall clock, in blocks of 5 ms:
to wake a thread that sleeps takes some 0.2 ms, which a call after a pause pays, and calls in a row do not.
`--save FILE` keeps each line, and leaves out what is there already. `--only WORD` takes the cases whose name
has the word; it may be repeated. Run it on a quiet machine: `python benchmarks/operators.py --seconds 6`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from operator_cases import LAST, Array, Call, Case, cases
from planish.levels.loops.backends import kernel_of, library_of, tree_of
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.store import Store, open_store
from planish.tuning.api import tune
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings
from side_by_side import geomean, interleaved, use_one_core

Row = dict[str, Any]


def main() -> None:
    """Tune, time and print."""
    parser = argparse.ArgumentParser(description="Operators beside torch and NumPy.")
    parser.add_argument("--only", action="append", default=[], help="part of a case's name")
    parser.add_argument("--seconds", type=float, default=6, help="search budget of each")
    parser.add_argument("--cores", type=int, default=1, help="compare one core with so many")
    parser.add_argument("--save", type=Path, help="a file of lines that are there already")
    options = parser.parse_args()
    use_one_core()
    saved = read_rows(options.save)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "bench.db") as store:
        for case in cases():
            if options.only and not any(word in case.name for word in options.only):
                continue
            row = saved.get(case.name)
            if row is None:
                row = compared(case, store, options.seconds, options.cores)
                if options.save:
                    with options.save.open("a") as file:
                        file.write(json.dumps(row) + "\n")
            rows.append(row)
            print(line(row), flush=True)
    if rows:
        print(f"{'geometric mean':<34}{geomean([row['ratio'] for row in rows]):>7.2f} of {len(rows)}")


def read_rows(path: Path | None) -> dict[str, Row]:
    """Read the lines of an earlier run, by their case."""
    if path is None or not path.exists():
        return {}
    return {row["name"]: row for row in map(json.loads, path.read_text().splitlines())}


def line(row: Row) -> str:
    """Write a line of the table."""
    times = "  ".join(f"{name} {1e6 * s:.1f}" for name, s in row["times"].items())
    return f"{row['name']:<34}{row['ratio']:>7.2f}  {row['chosen']:<8}{times} us"


def compared(case: Case, store: Store, seconds: float, cores: int) -> Row:
    """Tune a case and time it."""
    inputs = make_inputs(case.program)
    outputs = {n: aligned(case.program.type[n]) for n in case.program.outputs}
    found, kernel = tuned(case, store, seconds, 1, inputs, outputs)
    kernel()
    chosen = library_of(found.exported) or "kernel"
    if cores > 1:
        ours = {"planish": kernel}
        others = {f"planish {cores}": tuned(case, store, seconds, cores, inputs, outputs)[1]}
    else:
        ours = {"planish": kernel} | channels_last(case, store, seconds, inputs, outputs)
        others = libraries(case, inputs, outputs)
    clock = time.perf_counter if cores > 1 else time.process_time
    times = interleaved(ours | others, 1.0, 5e-3 if cores > 1 else 3e-4, clock)
    mine, theirs = (min(times[name] for name in calls) for calls in (ours, others))
    ratio = mine / theirs if cores > 1 else theirs / mine
    return {"name": case.name, "ratio": ratio, "chosen": chosen, "times": times}


def channels_last(
    case: Case, store: Store, seconds: float, inputs: Mapping[str, Array], outputs: Mapping[str, Array]
) -> dict[str, Call]:
    """Tune a convolution with the channels last, checked against what the other layout left in its result."""
    if case.last is None:
        return {}
    moved = {name: np.ascontiguousarray(array.transpose(LAST[array.ndim])) for name, array in inputs.items()}
    result = aligned(case.last.type["O"])
    other = replace(case, program=case.last)
    call = tuned(other, store, seconds, 1, moved, {"O": result})[1]
    call()
    np.testing.assert_allclose(result.transpose(2, 0, 1), outputs["O"], rtol=1e-3, atol=1e-3)
    return {"planish NHWC": call}


def tuned(
    case: Case,
    store: Store,
    seconds: float,
    cores: int,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
) -> tuple[Result, Call]:
    """Tune for so many cores, and give the best kernel, or its rival where NumPy is best."""
    program = case.program
    result = tune(program, budget=Budget(seconds=seconds), settings=Settings(cores=cores), store=store)
    best = result.exported
    if library_of(best):
        return result, next(iter(case.numpy(inputs, next(iter(outputs.values()))).values()))
    return result, kernel_of(program, best, result.task.target, tree_of(program, best)).bind(inputs, outputs)


def libraries(case: Case, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> dict[str, Call]:
    """Give the libraries' calls, each checked against what ours has just left in the outputs.

    They write into the same array as ours: where memory lies changes the time of a stream by a tenth.
    """
    output = list(outputs.values())[-1]
    expected = output.copy()
    calls = case.numpy(inputs, output)
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    with torch.inference_mode():
        tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
        made = case.torch(torch, tensors, torch.from_numpy(output))
    calls |= {name: torch.inference_mode()(call) for name, call in made.items()}
    for name, call in calls.items():
        result = call()
        if result is not None:
            given = np.asarray(result).reshape(output.shape)
            error = np.max(np.abs(given - expected)) / np.max(np.abs(expected))
            assert error < 1e-3, f"{case.name}: {name} answers otherwise, by {error:.2g}"
    return calls


if __name__ == "__main__":
    main()
