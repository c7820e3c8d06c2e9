"""Evaluations of pass lists a second and core: each back end in this process, beside spawning `opt`.

An evaluation clones a module, runs ten random passes on it, counts its instructions and closes it. The
modules are the C functions in `llvm_functions/`, of 88 instructions in the mean, as clang -O0 makes them.
All take turns; a second is one of a core's time, so that others' load does not count. Targets: at least
2,000 with libLLVM, 1,000 with llvmlite. `python benchmarks/llvm_evaluations.py`.

With `--memory`: 100,000 evaluations by each back end, at constant memory; processes live as long as it says.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from planish.levels.llvm.bindings.libraries import available, open_bindings
from planish.levels.llvm.bindings.protocol import Bindings, Module
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.measure import exclusive

FUNCTIONS = sorted((Path(__file__).parent / "llvm_functions").glob("*.ll"))
PASSES = [text for text, element in elements().items() if not element.is_pipeline]
LENGTH = 10
BLOCK = 20  # lists that each function is evaluated with, at a turn
CHUNK = 10_000  # evaluations between two looks at the memory
Block = Callable[[list[str]], int]


def random_lists(seed: int, count: int) -> list[str]:
    """Draw pass lists of ten."""
    rng = random.Random(seed)
    return [print_pipeline(rng.choices(PASSES, k=LENGTH)) for _ in range(count)]


def evaluate(modules: list[Module], lists: list[str]) -> int:
    """Evaluate each list on each module; gives the number of evaluations."""
    for pipeline in lists:
        for module in modules:
            copy = module.clone()
            copy.run(pipeline)
            copy.instructions()
            copy.close()
    return len(lists) * len(modules)


def spawn(opt: str, pipeline: str) -> int:
    """Evaluate a list on one function by `opt`."""
    subprocess.run(
        [opt, f"-passes={pipeline}", "-disable-output", FUNCTIONS[len(pipeline) % len(FUNCTIONS)]], check=True
    )
    return 1


def parsed(bindings: Bindings) -> list[Module]:
    return [bindings.parse(path.read_bytes(), path.name) for path in FUNCTIONS]


def blocks() -> dict[str, Block]:
    """Give what is compared: name to a function that evaluates lists and counts."""
    made: dict[str, Block] = {}
    for name in available():
        bindings = open_bindings(name)
        if bindings.full:
            made[f"{name} {bindings.version}"] = partial(evaluate, parsed(bindings))
    if opt := shutil.which("opt-22"):
        made["spawning opt-22"] = lambda lists: sum(spawn(opt, pipeline) for pipeline in lists)
    return made


def core_seconds() -> float:
    """Give the seconds of a core that this process and its ended children have had."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def compare(turns: int) -> None:
    """Print the table of speeds."""
    compared = blocks()
    rates: dict[str, list[float]] = {name: [] for name in compared}
    with exclusive():
        for turn in range(turns):
            lists = random_lists(turn, BLOCK)
            for name, block in compared.items():
                start = core_seconds()
                count = block(lists)
                rates[name].append(count / (core_seconds() - start))
    slowest = min(statistics.median(samples) for samples in rates.values())
    print(f"{'':<20}{'a second':>10}{'lowest':>9}{'highest':>9}{'ratio':>8}   ({turns} turns)")
    for name, samples in rates.items():
        rate = statistics.median(samples)
        print(f"{name:<20}{rate:>10,.0f}{min(samples):>9,.0f}{max(samples):>9,.0f}{rate / slowest:>8.1f}")


def resident_mb() -> float:
    """The memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def memory_of_chunks(bindings: Bindings, chunks: int) -> Iterator[float]:
    """Evaluate chunks, in processes that live as long as the back end says; gives the memory after each."""
    modules = parsed(bindings)
    for chunk in range(chunks):
        yield (
            in_a_child(lambda seed=chunk: chunk_mb(modules, seed))
            if bindings.lifetime
            else chunk_mb(modules, chunk)
        )


def chunk_mb(modules: list[Module], seed: int) -> float:
    evaluate(modules, random_lists(seed, CHUNK // len(modules)))
    return resident_mb()


def in_a_child(work: Callable[[], float]) -> float:
    """Work in a forked process; gives what it computed."""
    read, write = os.pipe()
    if not os.fork():
        os.write(write, str(work()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        value = float(answer.read())
    os.wait()
    return value


def watch_memory(evaluations: int) -> None:
    """Print the memory of each back end while it evaluates."""
    for name in available():
        bindings = open_bindings(name)
        print(f"{name} {bindings.version}, processes for {bindings.lifetime or 'any number of'} evaluations")
        for chunk, megabytes in enumerate(memory_of_chunks(bindings, evaluations // CHUNK), 1):
            print(f"  {chunk * CHUNK:>9,} evaluations {megabytes:>8.1f} MB", flush=True)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--evaluations", type=int, default=100_000)
    options = parser.parse_args()
    watch_memory(options.evaluations) if options.memory else compare(options.turns)


if __name__ == "__main__":
    main()
