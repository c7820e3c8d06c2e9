"""The commands that repeat a pass list without planish."""

from __future__ import annotations

import shlex

from planish.core import Task
from planish.llvm.passes import print_pipeline

PREPARED, OPTIMISED, OBJECT = "prepared.ll", "optimised.ll", "optimised.o"


def commands(task: Task, passes: tuple[str, ...]) -> str:
    """Write how a pass list is run by `opt`, and how its result is compiled.

    clang's own `-passes` does not exist, and `clang -Oz` adds passes of its own, so clang takes part at the
    end only: with `-disable-llvm-passes` it makes an object of what `opt` wrote.

    Args:
        task: its target names the version of LLVM.
        passes: the list.
    """
    version = task.target.toolchain.get("llvm", "")
    pipeline = shlex.quote(print_pipeline(passes))
    optimise = (
        f"opt -passes={pipeline} {PREPARED} -S -o {OPTIMISED}" if passes else f"cp {PREPARED} {OPTIMISED}"
    )
    return "\n".join(
        (
            f"# LLVM {version}; 'planish export' writes {PREPARED}",
            optimise,
            f"llc -O2 -relocation-model=pic -filetype=obj {OPTIMISED} -o {OBJECT}",
            f"# or: clang -O2 -fPIC -Xclang -disable-llvm-passes -c {OPTIMISED} -o {OBJECT}",
        )
    )
