"""What the generator must know of a processor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from planish.loops.ir.annotated import Vectors


@dataclass(frozen=True)
class Machine:
    """A processor as LLVM names it, and the few facts that shape the code.

    Args:
        triple: architecture, vendor and system.
        cpu: the processor's name; empty for any of the architecture.
        features: LLVM's feature string.
        vector_bits: width of the vectors to use.
        registers: how many vectors the register file holds.
        masks: whether parts of a vector are loaded and stored as cheaply as whole ones.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int
    registers: int
    masks: bool

    def vectors(self, itemsize: int) -> Vectors:
        """Say what decisions about loops depend on, for elements of so many bytes."""
        return Vectors(max(1, self.vector_bits // (8 * itemsize)), self.registers, self.masks)


@cache
def host_machine(cpu: str = "", vector_bits: int | None = None) -> Machine:
    """Describe this processor.

    Args:
        cpu: another processor of the same architecture, by LLVM's name; empty for this one.
        vector_bits: width of the vectors to use; by default the widest that this processor has, and 128
            for another.
    """
    # Another processor's name implies its features; this one's are asked for, as its system may hide some.
    features: dict[str, bool] = {} if cpu else dict(llvm.get_host_cpu_features())
    flat = ",".join(("+" if on else "-") + name for name, on in sorted(features.items()))
    triple = llvm.get_process_triple()
    name = cpu or llvm.get_host_cpu_name()
    return describe(triple, name, flat, vector_bits)


def describe(triple: str, cpu: str, features: str, vector_bits: int | None = None) -> Machine:
    """Describe a processor by LLVM's names; see `Machine` for the arguments."""
    has = {f[1:] for f in features.split(",") if f.startswith("+")}
    x86 = triple.startswith(("x86_64", "i686", "i386"))
    wide = "avx512vl" in has
    if vector_bits is None:
        vector_bits = 512 if wide else 256 if "avx2" in has else 128
    # AArch64 has 32, as AVX-512 has; SSE and AVX2 have 16.
    return Machine(triple, cpu, features, vector_bits, 32 if wide or not x86 else 16, wide)
