"""LLVM's textual IR: arithmetic in one element type, on scalars and vectors of it.

Besides the primitives of `planish.levels.loops.lower.mathlib`, it has reductions, comparisons and indices.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from planish.levels.loops.lang.element_types import INTEGER, nearest_integer
from planish.levels.loops.lang.program import DTYPES, Const
from planish.levels.loops.lower.mathlib import EXPANDED, expansion

# Text

Lines = list["str | Lines"]
"""Text in order; an inner list may be extended later."""


class Val(NamedTuple):
    """A value: a register's name, or a number's text, and how many lanes it has; numbers have one."""

    name: str
    lanes: int

    @property
    def literal(self) -> bool:
        """Return whether it is a number."""
        return self.name[0] != "%"


_TYPES = {"float32": "float", "float64": "double", "int32": "i32"}


class Writer:
    """The text of one function.

    Args:
        dtype: the element type, one of `planish.levels.loops.lang.program.DTYPES`.
    """

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.bits = 8 * DTYPES[dtype]
        self.element = _TYPES[dtype]
        self.is_integer = dtype == INTEGER
        self.lines: Lines = []
        self.label = "entry"
        self.declared: set[str] = set()
        self._count = 0

    def fresh(self) -> str:
        """Make a name for a value."""
        self._count += 1
        return f"%v{self._count}"

    def define(self, text: str, at: Lines | None = None) -> str:
        """Write an instruction with a result and return the result's name."""
        name = self.fresh()
        (self.lines if at is None else at).append(f"  {name} = {text}")
        return name

    def block(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def type(self, lanes: int) -> str:
        """Return the name of the type of a value."""
        return self.element if lanes == 1 else f"<{lanes} x {self.element}>"

    def integer(self, lanes: int) -> str:
        """Return the name of the type of integers as wide as the elements."""
        return f"i{self.bits}" if lanes == 1 else f"<{lanes} x i{self.bits}>"

    def splat(self, value: int, lanes: int) -> str:
        """Write an integer as wide as the elements, in all lanes."""
        return str(value) if lanes == 1 else f"splat (i{self.bits} {value})"

    def suffix(self, lanes: int) -> str:
        """Return the name of the type as in the names of intrinsic functions."""
        kind = f"{'i' if self.is_integer else 'f'}{self.bits}"
        return kind if lanes == 1 else f"v{lanes}{kind}"

    def number(self, value: float) -> Val:
        """Write a number, rounded to the element type."""
        if self.is_integer:
            return Val(str(nearest_integer(value)), 1)
        # LLVM reads a float as a double in hexadecimal, and refuses one that the type cannot represent.
        if self.bits == 32:
            value = struct.unpack("f", struct.pack("f", value))[0]
        return Val(f"0x{struct.pack('>d', value).hex().upper()}", 1)

    def widened(self, value: Val, lanes: int, at: Lines | None = None) -> str:
        """Repeat a scalar in all lanes, if it is one and lanes are asked for."""
        if value.lanes == lanes:
            return value.name
        if value.literal:
            return f"splat ({self.element} {value.name})"
        vector = self.type(lanes)
        one = self.define(f"insertelement {vector} poison, {self.element} {value.name}, i64 0", at)
        return self.define(
            f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer", at
        )

    def call(
        self,
        result: str,
        name: str,
        arguments: Sequence[tuple[str, str]],
        at: Lines | None = None,
        flags: str = "",
    ) -> str:
        """Call an intrinsic function with (type, value) arguments; `result` is its type.

        Flags say what may be assumed of the numbers, such as "nsz ".
        """
        types = ", ".join(t for t, _ in arguments)
        self.declared.add(f"declare {result} @{name}({types})")
        text = f"call {flags}{result} @{name}({', '.join(f'{t} {v}' for t, v in arguments)})"
        if result != "void":
            return self.define(text, at)
        self.lines.append(f"  {text}")
        return ""


def flattened(lines: Lines) -> Iterator[str]:
    """List the text in order."""
    for line in lines:
        if isinstance(line, str):
            yield line
        else:
            yield from flattened(line)


# Arithmetic

EXTREMES = {"max": "llvm.maximum", "min": "llvm.minimum"}
TESTS = {"max": "ogt", "min": "olt", "<": "olt", "<=": "ole", "==": "oeq", "!=": "une"}
"""Functions that choose one of two values, to their test in IR: for NaN, none but != holds."""
INTEGER_TESTS = {"<": "slt", "<=": "sle", "==": "eq", "!=": "ne"}
"""The same of integers, for comparisons."""
_MANTISSA = {32: 23, 64: 52}
_BIAS = {32: 127, 64: 1023}


class Arithmetic:
    """Writes arithmetic; arguments of one lane are widened to the lanes of the others."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def apply(self, function: str, args: list[Val]) -> Val:
        """Apply one of `planish.levels.loops.lang.program.FUNCTIONS`, or fma."""
        primitive = self._of_integers if self.writer.is_integer else self._primitive
        if function in EXPANDED:
            values = args[:1]
            for name, operands in expansion(function, self.writer.dtype):
                found = [self.writer.number(a.value) if isinstance(a, Const) else values[a] for a in operands]
                values.append(self._applied(primitive, name, found))
            return values[-1]
        extreme = function in EXTREMES and not self.writer.is_integer
        return self._applied(self._extreme if extreme else primitive, function, args)

    def _applied(self, write: Callable[[str, list[str], int], str], function: str, args: list[Val]) -> Val:
        lanes = max(a.lanes for a in args)
        return Val(write(function, [self.writer.widened(a, lanes) for a in args], lanes), lanes)

    def _extreme(self, name: str, args: list[str], lanes: int) -> str:
        """Write max or min as NumPy has it: NaN where either is; zeros of either sign are equal."""
        t = self.writer.type(lanes)
        intrinsic = f"{EXTREMES[name]}.{self.writer.suffix(lanes)}"
        return self.writer.call(t, intrinsic, [(t, a) for a in args], flags="nsz ")

    def add_pairs(self, a: Val, b: Val, addend: Val) -> Val:
        """Add the dot product of two pairs of bfloat16, which are given as the bits of one number each."""
        for lower in (True, False):
            halves = [self._half(pair, lower=lower) for pair in (a, b)]
            addend = self.apply("fma", [*halves, addend])
        return addend

    def _half(self, pair: Val, *, lower: bool) -> Val:
        """Widen one number of a pair: its bits become the upper half."""
        w, lanes = self.writer, pair.lanes
        bits = w.define(f"bitcast {w.type(lanes)} {pair.name} to {w.integer(lanes)}")
        operation, number = ("shl", 16) if lower else ("and", -1 << 16)
        moved = w.define(f"{operation} {w.integer(lanes)} {bits}, {w.splat(number, lanes)}")
        return Val(w.define(f"bitcast {w.integer(lanes)} {moved} to {w.type(lanes)}"), lanes)

    def combine(self, reduce: str, old: Val, new: Val) -> Val:
        """Reduce two values to one; whether the first operand of an extreme is NaN is found out early."""
        return self.apply(reduce, [new, old] if reduce in EXTREMES else [old, new])

    def across(self, reduce: str, value: Val) -> Val:
        """Reduce a vector's lanes to one: halves are combined until one lane is left."""
        # LLVM's own reduction of sums, without leave to reassociate, goes from lane to lane.
        while value.lanes > 1:
            half = value.lanes // 2
            low, high = (self._part(value, start, half) for start in (0, half))
            value = self.combine(reduce, low, high)
        return value

    def resized(self, value: Val, lanes: int) -> Val:
        """Return a vector of more lanes; what is in the added ones is open."""
        vector = self.writer.type(value.lanes)
        picked = ", ".join(f"i32 {i if i < value.lanes else 'poison'}" for i in range(lanes))
        text = f"shufflevector {vector} {value.name}, {vector} poison, <{lanes} x i32> <{picked}>"
        return Val(self.writer.define(text), lanes)

    def _part(self, value: Val, start: int, lanes: int) -> Val:
        vector = self.writer.type(value.lanes)
        if lanes == 1:
            return Val(self.writer.define(f"extractelement {vector} {value.name}, i64 {start}"), 1)
        picked = ", ".join(f"i32 {i}" for i in range(start, start + lanes))
        text = f"shufflevector {vector} {value.name}, {vector} poison, <{lanes} x i32> <{picked}>"
        return Val(self.writer.define(text), lanes)

    def first(self, value: Val) -> Val:
        """Return the first lane."""
        return value if value.lanes == 1 else self._part(value, 0, 1)

    def index(self, value: Val, extent: float) -> str:
        """Truncate a number to an integer from 0 to the extent - 1; what is not a number becomes 0."""
        w, zero, last = self.writer, self._number(0.0, 1), self._number(extent - 1, 1)
        # Ordered tests fail for what is not a number, which would be poison to `fptosi`.
        low = self._select("ogt", value.name, zero, value.name, zero, 1)
        number = self._select("olt", low, last, low, last, 1)
        return w.define(f"fptosi {w.type(1)} {number} to i64")

    def within(self, value: Val, extent: float) -> str:
        """Bring an integer of 64 bits into the range from 0 to the extent - 1."""
        w = self.writer
        low = w.call("i64", "llvm.smax.i64", [("i64", value.name), ("i64", "0")])
        return w.call("i64", "llvm.smin.i64", [("i64", low), ("i64", str(int(extent) - 1))])

    def _primitive(self, name: str, args: list[str], lanes: int) -> str:
        w, t = self.writer, self.writer.type(lanes)
        match name:
            case "add" | "sub" | "mul" | "div":
                return w.define(f"f{name} {t} {args[0]}, {args[1]}")
            case _ if name in TESTS:
                a, b, *either = args
                return self._select(TESTS[name], a, b, *(either or (a, b)), lanes=lanes)
            case "neg":
                return w.define(f"fneg {t} {args[0]}")
            case "abs" | "sqrt" | "fma":
                # Fused where the processor has it, else a product and a sum: mathlib's errors hold for both.
                function = {"abs": "fabs", "fma": "fmuladd"}.get(name, name)
                return w.call(t, f"llvm.{function}.{w.suffix(lanes)}", [(t, a) for a in args])
            case "round":
                # Without flags LLVM may not reassociate, and keeps the two sums.
                return w.define(f"fsub {t} {self._shifted(args[0], lanes)}, {self._magic(lanes)}")
            case _:
                on_exponents: dict[str, Callable[..., str]] = {
                    "ldexp": self._ldexp,
                    "scale": self._scale,
                    "exponent": self._exponent,
                    "mantissa": self._mantissa,
                }
                return on_exponents[name](*args, lanes)

    def _of_integers(self, name: str, args: list[str], lanes: int) -> str:
        """Write an operation on integers, modulo 2^32."""
        w, t = self.writer, self.writer.type(lanes)
        match name:
            case "add" | "sub" | "mul":
                return w.define(f"{name} {t} {args[0]}, {args[1]}")
            case "fma":
                product = w.define(f"mul {t} {args[0]}, {args[1]}")
                return w.define(f"add {t} {product}, {args[2]}")
            case "neg":
                return w.define(f"sub {t} {self._number(0, lanes)}, {args[0]}")
            case "abs":
                # "false": the result of the least number is itself, as modulo 2^32, instead of poison.
                return w.call(t, f"llvm.abs.{w.suffix(lanes)}", [(t, args[0]), ("i1", "false")])
            case _ if name in INTEGER_TESTS:
                a, b, yes, no = args
                return self._select(INTEGER_TESTS[name], a, b, yes, no, lanes)
            case "max" | "min":
                return w.call(t, f"llvm.s{name}.{w.suffix(lanes)}", [(t, a) for a in args])
            case _:
                raise KeyError(name)

    def _select(self, test: str, a: str, b: str, yes: str, no: str, lanes: int) -> str:
        """`test(a, b) ? yes : no`, lane by lane."""
        t, bit = self.writer.type(lanes), "i1" if lanes == 1 else f"<{lanes} x i1>"
        compare = "icmp" if self.writer.is_integer else "fcmp"
        condition = self.writer.define(f"{compare} {test} {t} {a}, {b}")
        return self.writer.define(f"select {bit} {condition}, {t} {yes}, {t} {no}")

    def _number(self, value: float, lanes: int) -> str:
        return self.writer.widened(self.writer.number(value), lanes)

    def _magic(self, lanes: int) -> str:
        """Return a number so large that its neighbors are integers: adding it rounds."""
        # One and a half, so that a negative number does not leave the binade either.
        return self._number(1.5 * 2.0 ** _MANTISSA[self.writer.bits], lanes)

    def _shifted(self, x: str, lanes: int) -> str:
        return self.writer.define(f"fadd {self.writer.type(lanes)} {x}, {self._magic(lanes)}")

    def _cast(self, x: str, lanes: int, to_integer: bool) -> str:
        types = self.writer.type(lanes), self.writer.integer(lanes)
        a, b = types if to_integer else types[::-1]
        return self.writer.define(f"bitcast {a} {x} to {b}")

    def _ldexp(self, x: str, n: str, lanes: int) -> str:
        """Multiply by two powers of 2, for the range of one does not suffice."""
        w, i = self.writer, self.writer.integer(lanes)
        both = self._biased(n, 2, lanes)
        half = w.define(f"lshr {i} {both}, {w.splat(1, lanes)}")
        for part in (half, w.define(f"sub {i} {both}, {half}")):
            x = w.define(f"fmul {w.type(lanes)} {x}, {self._power(part, lanes)}")
        return x

    def _scale(self, x: str, n: str, lanes: int) -> str:
        """Multiply by one power of 2."""
        power = self._power(self._biased(n, 1, lanes), lanes)
        return self.writer.define(f"fmul {self.writer.type(lanes)} {x}, {power}")

    def _biased(self, n: str, times: int, lanes: int) -> str:
        """Return bits whose lowest ones are an integral number plus a multiple of the bias of exponents."""
        bits = self.writer.bits
        magic = self._number(1.5 * 2.0 ** _MANTISSA[bits] + times * _BIAS[bits], lanes)
        return self._cast(self.writer.define(f"fadd {self.writer.type(lanes)} {n}, {magic}"), lanes, True)

    def _power(self, biased: str, lanes: int) -> str:
        """Return the power of 2 whose biased exponent is in the lowest bits; those above it are lost."""
        w, i = self.writer, self.writer.integer(lanes)
        shifted = w.define(f"shl {i} {biased}, {w.splat(_MANTISSA[w.bits], lanes)}")
        return self._cast(shifted, lanes, False)

    def _normal(self, x: str, lanes: int) -> tuple[str, str, str]:
        """Return abs(x), the bits of abs(x) scaled to be normal, and the exponent of the scale."""
        w, t = self.writer, self.writer.type(lanes)
        mantissa, bias = _MANTISSA[w.bits], _BIAS[w.bits]
        # A subnormal number has no exponent in its field, and no leading one that is implied.
        size = w.call(t, f"llvm.fabs.{w.suffix(lanes)}", [(t, x)])
        least = self._number(2.0 ** (1 - bias), lanes)
        large = w.define(f"fmul {t} {size}, {self._number(2.0 ** (mantissa + 1), lanes)}")
        scaled = self._select("olt", size, least, large, size, lanes)
        zero, shift = self._number(0.0, lanes), self._number(mantissa + 1.0, lanes)
        return size, self._cast(scaled, lanes, True), self._select("olt", size, least, shift, zero, lanes)

    def _exponent(self, x: str, lanes: int) -> str:
        w, t, i = self.writer, self.writer.type(lanes), self.writer.integer(lanes)
        size, bits, shift = self._normal(x, lanes)
        biased = w.define(f"lshr {i} {bits}, {self.writer.splat(_MANTISSA[w.bits], lanes)}")
        exponent = w.define(f"sub {i} {biased}, {self.writer.splat(_BIAS[w.bits], lanes)}")
        result = w.define(f"fsub {t} {w.define(f'sitofp {i} {exponent} to {t}')}, {shift}")
        infinity, zero = self._number(float("inf"), lanes), self._number(0.0, lanes)
        result = self._select("oeq", size, zero, self._number(float("-inf"), lanes), result, lanes)
        return self._select("uge", size, infinity, size, result, lanes)  # not less: NaN too

    def _mantissa(self, x: str, lanes: int) -> str:
        w, t, i = self.writer, self.writer.type(lanes), self.writer.integer(lanes)
        mantissa = _MANTISSA[w.bits]
        bits = self._normal(x, lanes)[1]
        kept = w.define(f"and {i} {bits}, {self.writer.splat((1 << mantissa) - 1, lanes)}")
        one = self.writer.splat(_BIAS[w.bits] << mantissa, lanes)
        value = self._cast(w.define(f"or {i} {kept}, {one}"), lanes, False)
        half = w.define(f"fmul {t} {value}, {self._number(0.5, lanes)}")
        value = self._select("oge", value, self._number(1.5, lanes), half, value, lanes)
        nan = self._number(float("nan"), lanes)
        # Less or unordered: NaN too.
        return self._select("ult", x, self._number(0.0, lanes), nan, value, lanes)
