"""Tune a matrix multiplication and a convolution of ResNet-18, beside NumPy, and export the kernels."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import planish
from planish.levels.loops.workloads import matmul, workload
from planish.store import open_store
from planish.tuning.comparison import Finalist
from planish.tuning.result import Result

OUT = Path("out/demo")
SECONDS = 4.0
NEXT = f"""Three things to try next:
1. See how the kernels were found, in a browser:
     .venv/bin/planish report --store {OUT / "demo.db"} -o {OUT / "report.html"}
2. Make LLVM IR smaller than -Oz does:
     .venv/bin/planish tune benchmarks/llvm_functions/utf8.ll
3. Use planish.einsum in place of numpy.einsum:
     .venv/bin/python -c 'import numpy, planish; a=numpy.eye(8); print(planish.einsum("mk,kn->mn", a, a))'"""


def show(title: str, result: Result) -> None:
    """Print what a run found."""
    tried = f"{result.run.trials:,} schedule{'s' if result.run.trials != 1 else ''}"
    print(f"\n{title}: {tried} built, verified and measured")
    if result.comparison is None:
        print("  undecided: no time was left to compare with NumPy; run 'make demo' again")
        return
    baseline = result.comparison.baseline.lead
    kernel = result.comparison.contender(result.level.baseline(result.task))
    flops = getattr(result.task.program, "flops", 0)
    measured = {"NumPy": baseline.median, **({"planish": kernel.lead.median} if kernel else {})}
    for name, seconds in measured.items():
        print(f"  {name:<8}{seconds * 1e6:>9.1f} us{flops / seconds / 1e9:>9.1f} GFLOPS")
    print(f"  {verdict(kernel)}")
    if kernel is None or kernel.lead.verdict == "undecided":
        for note in result.notes:
            print(f"  why: {note}")
    if not result.keeps_baseline:
        tree = next(iter(result.describe().values()))
        print("\n".join("    " + line for line in tree.splitlines()))


def is_undecided(result: Result) -> bool:
    """Return whether the comparison of the best kernel with NumPy needs more time."""
    if result.comparison is None:
        return True
    kernel = result.comparison.contender(result.level.baseline(result.task))
    return kernel is None or kernel.lead.verdict == "undecided"


def verdict(kernel: Finalist | None) -> str:
    """Say what the comparison shows of the best kernel; None: none was measured."""
    if kernel is None:
        return "undecided: no kernel was measured beside NumPy; run 'make demo' again"
    gain = kernel.lead.gain
    seen = f"{gain.value:.2f} times as fast as NumPy (95 % interval {gain.low:.2f} to {gain.high:.2f})"
    return {
        "better": f"faster: {seen}",
        "same": f"same: {seen}; NumPy is kept",
        "worse": f"slower: {seen}; NumPy is kept",
        "undecided": f"undecided: about {seen}; run 'make demo' again to continue the comparison",
    }.get(kernel.lead.verdict, kernel.lead.verdict)


def main() -> None:
    """Tune both, and export the winners."""
    started = time.monotonic()
    programs = {
        "matmul 192 x 192 x 192": matmul(192, 192, 192),
        "ResNet-18 C6, 3 x 3, 128 channels": workload("C6"),
    }
    OUT.mkdir(parents=True, exist_ok=True)
    with open_store(OUT / "demo.db") as store:
        for number, (title, program) in enumerate(programs.items()):
            print(f"tuning {title} for {SECONDS:g} s ...", file=sys.stderr)
            result = planish.tune(program, seconds=SECONDS, store=store)
            if is_undecided(result):  # the same call continues the comparison, for longer
                print("  undecided so far; comparing for longer ...", file=sys.stderr)
                result = planish.tune(program, seconds=SECONDS, store=store)
            show(title, result)
            files = result.export(OUT / ("matmul", "convolution")[number])
            print("  exported the best kernel:", ", ".join(str(f) for f in files))
    print(f"\nDone in {time.monotonic() - started:.0f} s. {NEXT}")


if __name__ == "__main__":
    main()
