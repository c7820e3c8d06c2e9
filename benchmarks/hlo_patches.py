"""Random patches of 1 to 12 edits: how many verify, compile and run, and whether they replay to equal bytes.

Half are made by mutation, which verifies each edit, and half by one crossover of two such patches.
XLA compiles and runs them in a process of its own, with a time limit. `python benchmarks/hlo_patches.py`
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from planish.core import Candidate, ScheduleError, candidate_from_json, content_hash, rng
from planish.levels.hlo import Program, read_program
from planish.levels.hlo.edits import EDITS
from planish.levels.hlo.ir.mlir import TensorType
from planish.levels.hlo.ir.normal import entry_text
from planish.levels.hlo.patch import replay
from planish.levels.hlo.space import PatchSpace, children
from planish.levels.hlo.workload.arguments import signature

FOLDER = Path(__file__).parents[1] / "examples" / "hlo"
LONGEST = 12
RUNS_NOT = "does not run"
DTYPES = {"f32": "float32", "i32": "int32"}


def patches(program: Program, count: int, seed: int) -> Iterator[tuple[str, Candidate]]:
    """Make patches, with how each was made."""
    space = PatchSpace(program)
    for index in range(0, count, 2):
        draw = rng(seed, index)
        a, b = (grown(space, int(draw.integers(1, LONGEST + 1)), draw) for _ in range(2))
        yield "mutation", a
        yield "crossover", crossed(a, b, draw)


def grown(space: PatchSpace, length: int, draw: Any) -> Candidate:
    candidate = space.start()
    for _ in range(length):
        candidate = space.mutate(candidate, draw)
    return candidate


def crossed(a: Candidate, b: Candidate, draw: Any) -> Candidate:
    """Give the longer child of two patches, of those that are neither empty nor too long."""
    while True:
        for child in sorted(children(a, b, draw), key=lambda child: -len(child.steps)):
            if 1 <= len(child.steps) <= LONGEST:
                return child


def digest(program: Program, candidate: Candidate) -> str:
    """Name the bytes that a patch replays to; empty where it is not valid."""
    try:
        return content_hash(replay(program, candidate).text())
    except ScheduleError:
        return ""


def digests_elsewhere(path: Path, made: list[Candidate]) -> list[str]:
    """Replay patches in another process."""
    lines = "\n".join(candidate.text for candidate in made)
    command = [sys.executable, __file__, "--replay", str(path)]
    return subprocess.run(
        command, input=lines, text=True, check=True, stdout=subprocess.PIPE
    ).stdout.splitlines()


def replay_lines(path: Path) -> None:
    """Replay the patches of the standard input."""
    program = read_program(path)
    for line in sys.stdin:
        print(digest(program, candidate_from_json(json.loads(line), EDITS)))


@dataclass
class Xla:
    """XLA in a process of its own, which is replaced when it takes too long or dies."""

    types: tuple[TensorType, ...]
    limit: float
    process: Any = None
    pipe: Connection | None = None

    def run(self, text: str) -> str:
        """Compile a module and run it on ones; gives "runs", or what went wrong."""
        if self.pipe is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, other = context.Pipe()
            self.process = context.Process(target=serve, args=(other, self.types), daemon=True)
            self.process.start()
            other.close()
        self.pipe.send(text)
        try:
            answer = self.pipe.recv() if self.pipe.poll(self.limit) else "too slow"
        except EOFError:
            answer = "crash"
        if answer in {"too slow", "crash"}:
            self.close()
        return answer

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
        self.pipe = self.process = None


def serve(pipe: Connection, types: tuple[TensorType, ...]) -> None:
    """Compile and run what comes, for ever."""
    import jax
    from jaxlib import xla_client

    device = jax.devices("cpu")[0]
    arguments = [jax.device_put(value, device) for value in ones(types)]
    while True:
        text = pipe.recv()
        stage, devices = "compile", xla_client.DeviceList((device,))
        try:
            compiled = device.client.compile_and_load(text.encode(), devices, xla_client.CompileOptions())
            stage = "run"
            jax.block_until_ready(compiled.execute(arguments))
            pipe.send("runs")
        except jax.errors.JaxRuntimeError as error:
            pipe.send(
                f"{RUNS_NOT if stage == 'run' else 'does not compile'}: {str(error).splitlines()[0][:100]}"
            )


def ones(types: tuple[TensorType, ...]) -> list[Any]:
    """Make arguments of ones."""
    import numpy as np

    return [np.ones(type_.shape, DTYPES[type_.element]) for type_ in types]


def shared(count: int, of: int) -> str:
    """Write a count, and its share of those that came so far."""
    return f"{count:>8} of {of:>4} {count / max(of, 1):>7.1%}"


def measure(name: str, count: int, compiled: int, options: argparse.Namespace) -> None:
    path = FOLDER / f"{name}.mlir"
    program = read_program(path)
    made = list(patches(program, count, options.seed))
    here = [digest(program, candidate) for _, candidate in made]
    there = digests_elsewhere(path, [candidate for _, candidate in made])
    answers = Counter[tuple[str, str]]()
    xla = Xla(signature(program).arguments, options.limit)
    for number, ((origin, candidate), bytes_) in enumerate(list(zip(made, here, strict=True))[:compiled], 1):
        print(f"\r{name}: {number} of {compiled}", end="\r", file=sys.stderr, flush=True)
        text = entry_text(replay(program, candidate).root, "main") if bytes_ else ""
        answers[origin, xla.run(text) if text else "is not valid"] += 1
    xla.close()
    for origin in ("mutation", "crossover"):
        valid = [bool(bytes_) for (by, _), bytes_ in zip(made, here, strict=True) if by == origin]
        tried = {answer: times for (by, answer), times in answers.items() if by == origin}
        tried.pop("is not valid", None)
        runs = tried.pop("runs", 0)
        built = runs + sum(times for answer, times in tried.items() if answer.startswith(RUNS_NOT))
        counts = (shared(sum(valid), len(valid)), shared(built, sum(tried.values()) + runs))
        print(f"{name:<12}{origin:<12}{len(valid):>8}", *counts, shared(runs, sum(tried.values()) + runs))
        for answer, times in tried.items():
            print(f"{'':<12}{times} x {answer}")
    print(f"{'':<12}replayed to other bytes in another process: {sum(map(str.__ne__, here, there))}")


def main() -> None:
    """Make patches of both modules, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patches", type=int, default=1000, help="in all, of both modules")
    parser.add_argument("--compiled", type=int, help="how many of them XLA compiles and runs; all by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60, help="seconds to compile and run one")
    parser.add_argument("--modules", nargs="+", default=["2fcnet", "mobilenet"])
    parser.add_argument("--replay", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay:
        replay_lines(options.replay)
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
    compiled = options.patches if options.compiled is None else options.compiled
    print(
        f"{'module':<12}{'made by':<12}{'patches':>8}"
        + "".join(f"{h:>22}" for h in ("verify", "compile", "run"))
    )
    for name in options.modules:
        measure(name, options.patches // 2, compiled // 2, options)


if __name__ == "__main__":
    main()
