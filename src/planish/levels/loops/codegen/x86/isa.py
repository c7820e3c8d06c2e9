"""Instruction sets: instruction forms by element type, and the sets that this processor has."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import Literal

from iced_x86 import Code, Register

from planish.core import TargetError
from planish.levels.loops.ir.annotated import Vectors
from planish.levels.loops.lang.program import DTYPES

IsaName = Literal["avx512", "avx2"]

ARITHMETIC = ("ADD", "SUB", "MUL", "DIV", "MAX", "MIN")

_XMM0, _YMM0 = int(Register.XMM0), int(Register.YMM0)


def _code(name: str) -> int:
    return int(getattr(Code, name))


class Isa:
    """An instruction set with an element type; `isa_of` makes it.

    Args:
        name: "avx512" (F, VL, DQ) or "avx2" (with FMA).
        dtype: "float32", "float64" or "int32".
        extras: the processor's other features that may be used, as the operating system names them.

    Attributes:
        whole: whether elements are whole numbers.
        wide: whether masks and embedded broadcast are there (AVX-512).
        itemsize: bytes of an element.
        bytes: of a vector register.
        lanes: elements in a vector register.
        registers: how many vector registers there are.
        vectors: what decisions about loops depend on.
        forms: the instruction codes.
    """

    def __init__(self, name: IsaName, dtype: str, extras: frozenset[str]) -> None:
        self.name = name
        self.dtype = dtype
        self.extras = extras
        self.wide = name == "avx512"
        self.whole = dtype == "int32"
        self.itemsize = DTYPES[dtype]
        self.bytes = 64 if self.wide else 32
        self.lanes = self.bytes // self.itemsize
        self.registers = 32 if self.wide else 16
        self.vectors = Vectors(self.lanes, self.registers, self.wide)
        self._first = int(Register.ZMM0 if self.wide else Register.YMM0)
        self.forms = Forms(self)

    def vector(self, number: int) -> int:
        """Return the full vector register of this number."""
        return self._first + number

    def xmm(self, number: int) -> int:
        """Return the lowest 128 bits of a vector register."""
        return _XMM0 + number

    def ymm(self, number: int) -> int:
        """Return the lowest 256 bits of a vector register."""
        return _YMM0 + number


class Forms:
    """The instruction codes of one `Isa`, by what they do."""

    def __init__(self, isa: Isa) -> None:
        p, s = ("PD", "SD") if isa.dtype == "float64" else ("PS", "SS")
        if isa.wide:
            self._avx512(p, s, isa.itemsize * 8)
        else:
            self._avx2(p, s, isa.itemsize * 8)
        if isa.whole:
            self._whole(isa.wide, isa.extras)

    def _avx512(self, p: str, s: str, bits: int) -> None:
        three = f"_ZMM_K1Z_ZMM_ZMMM512B{bits}"
        self.load = _code(f"EVEX_VMOVU{p}_ZMM_K1Z_ZMMM512")
        self.store = _code(f"EVEX_VMOVU{p}_ZMMM512_K1Z_ZMM")
        self.store_nontemporal = _code(f"EVEX_VMOVNT{p}_M512_ZMM")
        self.broadcast = _code(f"EVEX_VBROADCAST{s}_ZMM_K1Z_XMMM{bits}")
        self.repeat_lowest = self.broadcast
        self.fma = _code(f"EVEX_VFMADD231{p}{three}_ER")
        self.arithmetic = {
            op: _code(f"EVEX_V{op}{p}{three}_{'SAE' if op in ('MAX', 'MIN') else 'ER'}") for op in ARITHMETIC
        }
        self.sqrt = _code(f"EVEX_VSQRT{p}_ZMM_K1Z_ZMMM512B{bits}_ER")
        self.bit_and = _code(f"EVEX_VAND{p}{three}")
        self.bit_xor = _code(f"EVEX_VXOR{p}{three}")
        self.bit_or = _code(f"EVEX_VOR{p}{three}")
        # What loads takes a register in place of memory, too.
        self.copy = self.load
        self.whole = _code(f"EVEX_VCVTT{s}2SI_R64_XMMM{bits}_SAE")
        self.blend = _code(f"EVEX_VBLENDM{p}{three}")
        self.compare = _code(f"EVEX_VCMP{p}_KR_K1_ZMM_ZMMM512B{bits}_IMM8_SAE")
        self.gather = _code(f"EVEX_VGATHERD{p}_ZMM_K1_VM32{'Z' if bits == 32 else 'Y'}")
        self.scatter = _code(f"EVEX_VSCATTERD{p}_VM32{'Z' if bits == 32 else 'Y'}_K1_ZMM")
        self.load_scalar = _code(f"EVEX_VMOV{s}_XMM_K1Z_M{bits}")
        self.store_scalar = _code(f"EVEX_VMOV{s}_M{bits}_K1_XMM")
        self.arithmetic_ymm = {op: _code(f"EVEX_V{op}{p}_YMM_K1Z_YMM_YMMM256B{bits}") for op in ARITHMETIC}
        self.arithmetic_xmm = {op: _code(f"EVEX_V{op}{p}_XMM_K1Z_XMM_XMMM128B{bits}") for op in ARITHMETIC}
        self.upper_half = _code("EVEX_VEXTRACTF64X4_YMMM256_K1Z_ZMM_IMM8")
        self.upper_quarter = _code("EVEX_VEXTRACTF32X4_XMMM128_K1Z_YMM_IMM8")
        self.permute = _code(f"EVEX_VPERMIL{p}_XMM_K1Z_XMMM128B{bits}_IMM8")
        self.round = _code(f"EVEX_VRNDSCALE{p}_ZMM_K1Z_ZMMM512B{bits}_IMM8_SAE")
        self.scale = _code(f"EVEX_VSCALEF{p}{three}_ER")
        self.exponent = _code(f"EVEX_VGETEXP{p}_ZMM_K1Z_ZMMM512B{bits}_SAE")
        self.mantissa = _code(f"EVEX_VGETMANT{p}_ZMM_K1Z_ZMMM512B{bits}_IMM8_SAE")

    def _avx2(self, p: str, s: str, bits: int) -> None:
        three = "_YMM_YMM_YMMM256"
        self.load = _code(f"VEX_VMOVU{p}_YMM_YMMM256")
        self.store = _code(f"VEX_VMOVU{p}_YMMM256_YMM")
        self.store_nontemporal = _code(f"VEX_VMOVNT{p}_M256_YMM")
        self.broadcast = _code(f"VEX_VBROADCAST{s}_YMM_M{bits}")
        self.repeat_lowest = _code(f"VEX_VBROADCAST{s}_YMM_XMM")
        self.fma = _code(f"VEX_VFMADD231{p}{three}")
        self.arithmetic = {op: _code(f"VEX_V{op}{p}{three}") for op in ARITHMETIC}
        self.sqrt = _code(f"VEX_VSQRT{p}_YMM_YMMM256")
        self.bit_and = _code(f"VEX_VAND{p}{three}")
        self.bit_xor = _code(f"VEX_VXOR{p}{three}")
        self.bit_or = _code(f"VEX_VOR{p}{three}")
        self.copy = self.load
        self.whole = _code(f"VEX_VCVTT{s}2SI_R64_XMMM{bits}")
        self.gather = _code(f"VEX_VGATHERD{p}_YMM_VM32{'Y' if bits == 32 else 'X'}_YMM")
        self.scatter = 0
        self.load_scalar = _code(f"VEX_VMOV{s}_XMM_M{bits}")
        self.store_scalar = _code(f"VEX_VMOV{s}_M{bits}_XMM")
        self.arithmetic_ymm = self.arithmetic
        self.arithmetic_xmm = {op: _code(f"VEX_V{op}{p}_XMM_XMM_XMMM128") for op in ARITHMETIC}
        self.upper_half = 0
        self.upper_quarter = _code("VEX_VEXTRACTF128_XMMM128_YMM_IMM8")
        self.permute = _code(f"VEX_VPERMIL{p}_XMM_XMMM128_IMM8")
        self.masked_load = _code(f"VEX_VMASKMOV{p}_YMM_YMM_M256")
        self.masked_store = _code(f"VEX_VMASKMOV{p}_M256_YMM_YMM")
        self.blend = _code(f"VEX_VBLENDV{p}_YMM_YMM_YMMM256_YMM")
        self.round = _code(f"VEX_VROUND{p}_YMM_YMMM256_IMM8")
        self.compare = _code(f"VEX_VCMP{p}_YMM_YMM_YMMM256_IMM8")
        d = "D" if bits == 32 else "Q"
        self.shift_left = _code(f"VEX_VPSLL{d}_YMM_YMM_IMM8")
        self.shift_right = _code(f"VEX_VPSRL{d}_YMM_YMM_IMM8")

    def _whole(self, wide: bool, extras: frozenset[str]) -> None:
        """Take the arithmetic of whole numbers; their bits are moved as those of float32 are.

        What multiplies and adds, where the processor has it, takes pairs of 16 bits.
        """
        names = {"ADD": "ADDD", "SUB": "SUBD", "MUL": "MULLD", "MAX": "MAXSD", "MIN": "MINSD"}

        def codes(form: str) -> dict[str, int]:
            return {op: _code(form.format(f"VP{name}")) for op, name in names.items()}

        if wide:
            self.arithmetic = codes("EVEX_{}_ZMM_K1Z_ZMM_ZMMM512B32")
            self.arithmetic_ymm = codes("EVEX_{}_YMM_K1Z_YMM_YMMM256B32")
            self.arithmetic_xmm = codes("EVEX_{}_XMM_K1Z_XMM_XMMM128B32")
            self.absolute = _code("EVEX_VPABSD_ZMM_K1Z_ZMMM512B32")
            self.compare = _code("EVEX_VPCMPD_KR_K1_ZMM_ZMMM512B32_IMM8")
            # The product of pairs of 16 bits is quicker than VPMULLD.
            self.words = _code("EVEX_VPMADDWD_ZMM_K1Z_ZMM_ZMMM512")
            self.fma = _code("EVEX_VPDPWSSD_ZMM_K1Z_ZMM_ZMMM512B32") if "avx512_vnni" in extras else 0
        else:
            self.arithmetic = self.arithmetic_ymm = codes("VEX_{}_YMM_YMM_YMMM256")
            self.arithmetic_xmm = codes("VEX_{}_XMM_XMM_XMMM128")
            self.absolute = _code("VEX_VPABSD_YMM_YMMM256")
            self.compare = _code("VEX_VPCMPEQD_YMM_YMM_YMMM256")
            self.greater = _code("VEX_VPCMPGTD_YMM_YMM_YMMM256")
            self.words = _code("VEX_VPMADDWD_YMM_YMM_YMMM256")
            self.fma = _code("VEX_VPDPWSSD_YMM_YMM_YMMM256") if "avx_vnni" in extras else 0


@cache
def isa_of(name: IsaName, dtype: str, extras: frozenset[str] = frozenset()) -> Isa:
    """Look up an instruction set with an element type; see `Isa` for the arguments."""
    return Isa(name, dtype, extras)


# What this processor has

_NEEDED: dict[IsaName, frozenset[str]] = {
    # VL for shorter registers where lanes are summed, DQ for the logic of floating-point numbers (VANDPS).
    "avx512": frozenset({"avx512f", "avx512vl", "avx512dq", "fma"}),
    "avx2": frozenset({"avx2", "fma"}),
}


_FOR_NARROW: dict[IsaName, frozenset[str]] = {
    "avx512": frozenset({"avx512bw"}),
    "avx2": frozenset({"f16c"}),
}
"""What every processor with these instruction sets has, but a virtual machine may hide."""


@cache
def cpu_features() -> frozenset[str]:
    """List the processor's feature flags; empty where they cannot be had or it is no x86-64."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


def check_narrow(name: IsaName) -> None:
    """Refuse an instruction set without the instructions for narrow elements; raises TargetError."""
    if lacking := _FOR_NARROW[name] - cpu_features():
        raise TargetError(
            f"this processor lacks {', '.join(sorted(lacking))}, for elements narrower than the arithmetic",
            "Use the portable back end (--backend portable).",
        )


def supported_isas() -> list[IsaName]:
    """List the instruction sets that this generator has code for and this processor has, the best first."""
    return [name for name, needed in _NEEDED.items() if needed <= cpu_features()]


def best_isa() -> IsaName:
    """Return the best instruction set.

    Raises:
        TargetError: the processor has neither AVX2 with FMA nor AVX-512.
    """
    names = supported_isas()
    if not names:
        raise TargetError(
            "this processor has neither AVX-512 nor AVX2 with FMA",
            "Use the portable back end (--backend portable).",
        )
    return names[0]
