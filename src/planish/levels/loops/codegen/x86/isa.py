"""Instruction sets: instruction forms by element type, short sequences, and the sets that this processor has.

Maximum and minimum keep NaN, as NumPy's do, where the processor's instructions return their second operand if
either is NaN. So the first operand remains to be tested, unless it is a constant. With opmasks, an
accumulator that is NaN already is left alone: two instructions, on two ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Literal

from iced_x86 import Code, Register

from planish.levels.loops.codegen.x86.assembler import Assembler, Imm
from planish.levels.loops.ir.annotated import Vectors
from planish.levels.loops.ir.tree import TO_FLOAT
from planish.levels.loops.lang.program import BFLOAT16X2, DTYPES, PACKED, QUADS

IsaName = Literal["avx512", "avx2"]

_WHOLE = {"add": "PADDD", "sub": "PSUBD", "mul": "PMULLD", "max": "PMAXSD", "min": "PMINSD"}

DOT: Mapping[str, str] = {dtype: f"dot product of {dtype}" for dtype in PACKED}
"""Type of elements of several numbers to the function that is the dot product of two."""
ADD_INTEGERS = "add integers"
"""Function of integers among those of floats."""

_XMM0, _YMM0 = int(Register.XMM0), int(Register.YMM0)
K7 = int(Register.K7)
"""The opmask register that code overwrites."""


class Isa:
    """An instruction set with an element type; `isa_of` makes it.

    Args:
        name: "avx512" (F, VL, DQ) or "avx2" (with FMA).
        dtype: "float32", "float64" or "int32".
        extras: the processor's other features that may be used, as the operating system names them.

    Attributes:
        is_integer: whether elements are integers.
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
        self.is_integer = dtype == "int32"
        self.itemsize = DTYPES[dtype]
        self.bytes = 64 if self.wide else 32
        self.lanes = self.bytes // self.itemsize
        self.registers = 32 if self.wide else 16
        self.vectors = Vectors(self.lanes, self.registers, self.wide)
        self._first = int(Register.ZMM0 if self.wide else Register.YMM0)
        self.forms = Forms(self)

    @cached_property
    def integers(self) -> Isa:
        """The same instruction set for int32."""
        return isa_of(self.name, "int32", self.extras)

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
    """The instruction codes of one `Isa`, by what they do; 0 where it has no such instruction.

    Attributes:
        functions: the element-wise functions that are one instruction.
        functions_ymm: the arithmetic among them, on the lowest 256 bits.
        functions_xmm: the same on the lowest 128.
    """

    def __init__(self, isa: Isa) -> None:
        self._wide = isa.wide
        p, s = ("PD", "SD") if isa.dtype == "float64" else ("PS", "SS")
        self._moves(p, s, isa.itemsize * 8)
        self._arithmetic(isa, p, s, isa.itemsize * 8)

    def _code(self, evex: str, vex: str) -> int:
        """Look up the code of a form, by its name in AVX-512 or in AVX2."""
        name = evex if self._wide else vex
        return int(getattr(Code, f"{'E' if self._wide else ''}VEX_V{name}")) if name else 0

    def _moves(self, p: str, s: str, bits: int) -> None:
        code = self._code
        # What loads takes a register in place of memory, too.
        self.load = self.copy = code(f"MOVU{p}_ZMM_K1Z_ZMMM512", f"MOVU{p}_YMM_YMMM256")
        self.store = code(f"MOVU{p}_ZMMM512_K1Z_ZMM", f"MOVU{p}_YMMM256_YMM")
        self.store_nontemporal = code(f"MOVNT{p}_M512_ZMM", f"MOVNT{p}_M256_YMM")
        self.masked_load = code("", f"MASKMOV{p}_YMM_YMM_M256")
        self.masked_store = code("", f"MASKMOV{p}_M256_YMM_YMM")
        self.load_scalar = code(f"MOV{s}_XMM_K1Z_M{bits}", f"MOV{s}_XMM_M{bits}")
        self.store_scalar = code(f"MOV{s}_M{bits}_K1_XMM", f"MOV{s}_M{bits}_XMM")
        self.broadcast = code(f"BROADCAST{s}_ZMM_K1Z_XMMM{bits}", f"BROADCAST{s}_YMM_M{bits}")
        self.repeat_lowest = code(f"BROADCAST{s}_ZMM_K1Z_XMMM{bits}", f"BROADCAST{s}_YMM_XMM")
        indices, short = ("Z", "Y") if bits == 32 else ("Y", "X")
        self.gather = code(f"GATHERD{p}_ZMM_K1_VM32{indices}", f"GATHERD{p}_YMM_VM32{short}_YMM")
        self.scatter = code(f"SCATTERD{p}_VM32{indices}_K1_ZMM", "")
        self.upper_half = code("EXTRACTF64X4_YMMM256_K1Z_ZMM_IMM8", "")
        self.upper_quarter = code("EXTRACTF32X4_XMMM128_K1Z_YMM_IMM8", "EXTRACTF128_XMMM128_YMM_IMM8")
        self.permute = code(f"PERMIL{p}_XMM_K1Z_XMMM128B{bits}_IMM8", f"PERMIL{p}_XMM_XMMM128_IMM8")

    def _arithmetic(self, isa: Isa, p: str, s: str, bits: int) -> None:
        code, evex, vex = self._code, f"_ZMM_K1Z_ZMM_ZMMM512B{bits}", "_YMM_YMM_YMMM256"
        self.bit_and = code(f"AND{p}{evex}", f"AND{p}{vex}")
        self.bit_xor = code(f"XOR{p}{evex}", f"XOR{p}{vex}")
        self.bit_or = code(f"OR{p}{evex}", f"OR{p}{vex}")
        d = "D" if bits == 32 else "Q"
        self.shift_left = code("", f"PSLL{d}_YMM_YMM_IMM8")
        self.shift_right = code("", f"PSRL{d}_YMM_YMM_IMM8")
        self.blend = code(f"BLENDM{p}{evex}", f"BLENDV{p}_YMM_YMM_YMMM256_YMM")
        self.compare = code(f"CMP{p}_KR_K1_ZMM_ZMMM512B{bits}_IMM8_SAE", f"CMP{p}{vex}_IMM8")
        # An operation to its name and its suffix in full registers of AVX-512.
        names = {op: (f"{op.upper()}{p}", "_ER") for op in ("add", "sub", "mul", "div")}
        names |= {op: (f"{op.upper()}{p}", "_SAE") for op in ("max", "min")}
        if isa.is_integer:
            names = {op: (name, "") for op, name in _WHOLE.items()}
        pairs = [(op, *name) for op, name in names.items()]
        self.functions = {op: code(f"{name}{evex}{suffix}", f"{name}{vex}") for op, name, suffix in pairs}
        self.functions_ymm = {
            op: code(f"{name}_YMM_K1Z_YMM_YMMM256B{bits}", f"{name}{vex}") for op, name, _ in pairs
        }
        self.functions_xmm = {
            op: code(f"{name}_XMM_K1Z_XMM_XMMM128B{bits}", f"{name}_XMM_XMM_XMMM128") for op, name, _ in pairs
        }
        self.to_integer = code(f"CVTT{s}2SI_R64_XMMM{bits}_SAE", f"CVTT{s}2SI_R64_XMMM{bits}")
        self.round = code(f"RNDSCALE{p}_ZMM_K1Z_ZMMM512B{bits}_IMM8_SAE", f"ROUND{p}_YMM_YMMM256_IMM8")
        self.mantissa = code(f"GETMANT{p}_ZMM_K1Z_ZMMM512B{bits}_IMM8_SAE", "")
        self.sqrt = code(f"SQRT{p}_ZMM_K1Z_ZMMM512B{bits}_ER", f"SQRT{p}_YMM_YMMM256")
        self.fma = code(f"FMADD231{p}{evex}_ER", f"FMADD231{p}{vex}")
        self.fma_to_factor = code(f"FMADD213{p}{evex}_ER", f"FMADD213{p}{vex}")
        self.greater = code("", "PCMPGTD_YMM_YMM_YMMM256")
        self.dots = self._dots(isa, evex, vex) if isa.dtype == "float32" else {}
        """Type of `planish.levels.loops.lang.program.PACKED` to what adds a dot product of two elements."""
        if isa.is_integer:
            # Bits of integers are moved as those of float32 are. What multiplies pairs of 16 bits is
            # quicker than VPMULLD.
            self.functions["abs"] = code("PABSD_ZMM_K1Z_ZMMM512B32", "PABSD_YMM_YMMM256")
            self.functions["words"] = code("PMADDWD_ZMM_K1Z_ZMM_ZMMM512", "PMADDWD_YMM_YMM_YMMM256")
            self.compare = code("PCMPD_KR_K1_ZMM_ZMMM512B32_IMM8", "PCMPEQD_YMM_YMM_YMMM256")
            self.fma = code(f"PDPWSSD{evex}", f"PDPWSSD{vex}") if _multiplies_quads(isa) else 0
            return
        self.functions["sqrt"] = self.sqrt
        if bits == 32:
            self.functions[TO_FLOAT] = code("CVTDQ2PS_ZMM_K1Z_ZMMM512B32_ER", "CVTDQ2PS_YMM_YMMM256")
            self.functions[ADD_INTEGERS] = code(f"PADDD{evex}", f"PADDD{vex}")
        if isa.wide:
            self.functions["ldexp"] = self.functions["scale"] = code(f"SCALEF{p}{evex}_ER", "")
            self.functions["exponent"] = code(f"GETEXP{p}_ZMM_K1Z_ZMMM512B{bits}_SAE", "")

    def _dots(self, isa: Isa, evex: str, vex: str) -> dict[str, int]:
        """Return what adds dot products of elements of several numbers, by their type."""
        found = dict[str, int]()
        if _multiplies_quads(isa):
            found |= dict.fromkeys(QUADS, self._code(f"PDPBUSD{evex}", f"PDPBUSD{vex}"))
        if isa.wide and "avx512_bf16" in isa.extras:
            found[BFLOAT16X2] = self._code(f"DPBF16PS{evex}", "")
        return found


def _multiplies_quads(isa: Isa) -> bool:
    """Return whether there are instructions for dot products of integers."""
    return ("avx512_vnni" if isa.wide else "avx_vnni") in isa.extras


@cache
def isa_of(name: IsaName, dtype: str, extras: frozenset[str] = frozenset()) -> Isa:
    """Look up an instruction set with an element type; see `Isa` for the arguments."""
    return Isa(name, dtype, extras)


# Select

TESTS: Mapping[str, tuple[Imm, Imm]] = {
    "<": (Imm(0x11), Imm(1)),
    "<=": (Imm(0x12), Imm(2)),
    "==": (Imm(0), Imm(0)),
    "!=": (Imm(4), Imm(4)),
}
"""Comparison to its predicates, of floats and of integers.

Those of floats (LT_OQ, LE_OQ, EQ_OQ, NEQ_UQ) do not signal: where an operand is not a number, none but !=
holds.
"""


def select(asm: Assembler, isa: Isa, test: str, target: int, args: Sequence[int]) -> None:
    """Write `target = test(a, b) ? yes : no`.

    Args:
        isa: instruction set and element type; with AVX-512, k7 is overwritten.
        test: one of `TESTS`.
        target: a register that is none of `args`.
        args: the registers of a, b, yes and no.
    """
    a, b, yes, no = map(isa.vector, args)
    forms, result = isa.forms, isa.vector(target)
    if isa.wide or not isa.is_integer:
        asm.emit(forms.compare, K7 if isa.wide else result, a, b, TESTS[test][isa.is_integer])
    else:
        # AVX2 has == and > alone; the others are the opposite of one of them.
        if test in ("<=", "!="):
            yes, no = no, yes
        if test == "<":
            a, b = b, a
        asm.emit(forms.greater if test in ("<", "<=") else forms.compare, result, a, b)
    if isa.wide:
        asm.emit(forms.blend, result, no, yes, mask=K7)
    else:
        asm.emit(forms.blend, result, no, yes, result)


# Maximum and minimum

MINMAX = ("max", "min")
UNORDERED, _ORDERED = Imm(3), Imm(7)


def minmax(
    asm: Assembler, isa: Isa, function: str, target: int, old: int, new: int, spare: int = 0, mask: int = 0
) -> None:
    """Write `target = function(old, new)`.

    Args:
        function: one of `MINMAX`.
        target: a register; it may be that of `old`.
        old: the register of an operand.
        new: the register of the other, not the target.
        spare: AVX2: another register, which is overwritten.
        mask: AVX-512: an opmask register for the lanes that change, or 0. k7 is overwritten.
    """
    forms, v = isa.forms, isa.vector
    code = forms.functions[function]
    if isa.is_integer:
        asm.emit(code, v(target), v(old), v(new), mask=mask)
    elif isa.wide and target == old:
        asm.emit(forms.compare, K7, v(old), v(old), _ORDERED, mask=mask)
        asm.emit(code, v(old), v(old), v(new), mask=K7)
    elif isa.wide:
        asm.emit(code, v(target), v(new), v(old), mask=mask)
        asm.emit(forms.compare, K7, v(new), v(new), UNORDERED, mask=mask)
        asm.emit(forms.copy, v(target), v(new), mask=K7)
    else:
        asm.emit(forms.compare, v(spare), v(new), v(new), UNORDERED)
        asm.emit(code, v(target), v(new), v(old))
        # The mask's lanes are all ones, which is not a number either: no copy of `new` is needed.
        asm.emit(forms.bit_or, v(target), v(target), v(spare))
