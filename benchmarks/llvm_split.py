"""What making programs of functions costs: splitting, normalizing, naming, marking for size, features.

`python benchmarks/llvm_split.py FILE.ll ...`; beside it some of the same functions by `llvm-extract`, where
that is installed. Goals: 0.2 ms a function for the split, 1 ms for the features of 100 instructions.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.features import FEATURES, autophase
from planish.levels.llvm.ir.functions import SplitFunction, identity, normalize, split_module

T = TypeVar("T")
EXTRACTED = 20


def measure(action: Callable[[str], T], texts: Iterable[str]) -> tuple[list[T], float]:
    """Do something to each text; gives the results and the processor's milliseconds."""
    begun = time.process_time()
    results = [action(text) for text in texts]
    return results, (time.process_time() - begun) * 1e3


def extract(program: str, file: Path, functions: Iterable[SplitFunction]) -> float:
    """Extract functions from a file by LLVM's tool; gives milliseconds a function."""
    begun = time.perf_counter()
    names = [function.name for function in functions]
    for name in names:
        subprocess.run([program, "-S", f"--func={name}", file, "-o", "/dev/null"], check=True)
    return (time.perf_counter() - begun) * 1e3 / len(names)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a module as LLVM prints it")
    files: list[Path] = parser.parse_args().files
    modules = [file.read_text() for file in files]
    split, splitting = measure(lambda text: list(split_module(text)), modules)
    functions = [function for part in split for function in part]
    normal, normalizing = measure(normalize, (function.text for function in functions))
    names, naming = measure(identity, normal)
    _, marking = measure(for_size, modules)
    vectors, counting = measure(autophase, normal)
    instructions = sum(int(vector[FEATURES.index("TotalInsts")]) for vector in vectors)
    n = len(functions)
    print(f"{n} functions, {len(set(names))} different, {instructions / n:.0f} instructions in the mean")
    for what, spent in {
        "split": splitting, "normalize": normalizing, "identity": naming, "for_size": marking
    }.items():  # fmt: skip
        print(f"{what:28}{spent / n:8.3f} ms a function")
    print(f"{'autophase':28}{counting * 100 / instructions:8.3f} ms per 100 instructions")
    if program := shutil.which("llvm-extract-22") or shutil.which("llvm-extract"):
        largest = max(range(len(files)), key=lambda i: len(split[i]))
        spent = extract(program, files[largest], split[largest][:EXTRACTED])
        print(f"{'llvm-extract, by its clock':28}{spent:8.3f} ms a function")


if __name__ == "__main__":
    main()
