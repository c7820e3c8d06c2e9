"""Options of LLVM's code generation: what each changes in the size of a module's code.

    opt-22 -passes='lto<Oz>' merged.bc -o module.bc
    python experiments/cc/switches.py module.bc -Oz -ffunction-sections [words for clang ...]

Prints the bytes that the module's object loads with each option alone (and of its code), the smallest first;
then adds options one after the other, as long as the object becomes smaller.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from planish.cc.clang import CODE_ONLY
from planish.levels.llvm.bindings.elf import code_bytes, loaded_bytes

TRIED = """
tail-merge-size=1 tail-merge-size=2 tail-merge-size=4 branch-fold-placement=false disable-block-placement
disable-branch-fold disable-tail-duplicate disable-early-taildup tail-dup-placement=false
apply-ext-tsp-for-size enable-ext-tsp-block-placement
regalloc=basic regalloc=pbqp regalloc-csr-first-time-cost=0 regalloc-csr-first-time-cost=100
regalloc-csr-first-time-cost=10000 regalloc-csr-first-time-cost=100000 split-spill-mode=size
grow-region-complexity-budget=0 grow-region-complexity-budget=100 huge-size-for-split=1
huge-size-for-split=100 greedy-reverse-local-assignment enable-local-reassign late-remat-update-threshold=0
twoaddr-reschedule=false no-phi-elim-live-out-early-exit phi-elim-split-all-critical-edges
disable-phi-elim-edge-splitting join-globalcopies join-splitedges early-live-intervals disable-copyprop
enable-shrink-wrap=false enable-shrink-wrap-region-split=false no-stack-coloring no-stack-slot-sharing
disable-lsr lsr-insns-cost lsr-drop-solution lsr-preferred-addressing-mode=none
lsr-preferred-addressing-mode=preindexed lsr-preferred-addressing-mode=postindexed
disable-cgp disable-cgp-branch-opts disable-constant-hoisting consthoist-gep consthoist-min-num-to-rebase=3
disable-machine-cse aggressive-machine-cse disable-machine-licm disable-postra-machine-licm
disable-machine-sink machine-sink-split=false disable-postra-machine-sink sink-insts-to-avoid-spills
disable-peephole aggressive-ext-opt enable-misched=false misched=ilpmin misched=converge
misched-prera-direction=topdown misched-prera-direction=bottomup pre-RA-sched=source pre-RA-sched=list-burr
pre-RA-sched=list-hybrid pre-RA-sched=list-ilp enable-global-merge global-merge-on-external
global-merge-on-const min-jump-table-entries=2 min-jump-table-entries=6 min-jump-table-entries=16
optsize-jump-table-density=20 optsize-jump-table-density=60 ifcvt-branch-fold=false disable-ifcvt-simple
disable-ifcvt-triangle disable-ifcvt-diamond enable-andcmp-sinking addr-sink-using-gep=false
machine-outliner-reruns=1 outliner-leaf-descendants=false
"""


class Sizes:
    """Sizes of a module's object.

    Args:
        module: bitcode.
        words: for clang.
    """

    def __init__(self, module: bytes, words: Sequence[str]) -> None:
        self._module, self._words = module, words

    def __call__(self, options: Sequence[str]) -> tuple[int, int] | None:
        """Return the bytes that the object loads, and those of its code; None where clang refuses it."""
        more = [word for option in options for word in ("-mllvm", f"-{option}")]
        command = ["clang-22", *self._words, *more, *CODE_ONLY, "-o", "/dev/stdout"]
        ended = subprocess.run(command, input=self._module, capture_output=True, check=False)
        return None if ended.returncode else (loaded_bytes(ended.stdout), code_bytes(ended.stdout))


def main() -> None:
    """Print what each option changes, and what they change together."""
    sizes = Sizes(Path(sys.argv[1]).read_bytes(), sys.argv[2:])
    before = sizes(())
    if before is None:
        sys.exit("clang makes no code of the module")
    print(f"without options: {before[0]:,} bytes are loaded, {before[1]:,} of them are code")
    found = sorted((made, option) for option in TRIED.split() if (made := sizes([option])))
    for made, option in found:
        if made != before:
            print(f"{made[0] - before[0]:+7,} {made[1] - before[1]:+7,}  -{option}", flush=True)
    best, chosen = before, list[str]()
    for alone, option in found:
        # Values of one option exclude each other.
        if alone < before and option.partition("=")[0] not in {each.partition("=")[0] for each in chosen}:
            made = sizes([*chosen, option])
            if made and made < best:
                best, chosen = made, [*chosen, option]
                print(f"{made[0] - before[0]:+7,} {made[1] - before[1]:+7,}  with -{option}", flush=True)


if __name__ == "__main__":
    main()
