"""Elements in the source of GPU kernels: addresses, loads and stores, conversions, and functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isinf, isnan

import numpy as np

from planish.levels.loops.gpu.dialect import OPENCL, Dialect
from planish.levels.loops.gpu.kernels import Arrangement, Compute, Condition, GpuProgram
from planish.levels.loops.ir.tree import Buffer, Call, LoopId, Ref, Value
from planish.levels.loops.lang.element_types import nearest_integer
from planish.levels.loops.lang.program import ARITHMETIC, COMPARISONS, DTYPES, Const

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_C_FUNCTIONS = {"sqrt", "exp", "log", "tanh", "erf"}
_WIDEST_INT = 2**31
_BF16 = {"opencl": ("as_float", "as_uint"), "cuda": ("__uint_as_float", "__float_as_uint")}


def buffer_name(name: str) -> str:
    """Return what a buffer is called in the source."""
    return "t_" + re.sub(r"\W", "_", name)


class ElementWriter:
    """Writes what computes elements.

    Args:
        program: whose kernels are written.
        dialect: the language.

    Attributes:
        functions: name to text of the functions that were used.
        names: loop to the name of its iteration.
        spaces: buffer to its memory; global ones are absent.
        arranged: shared buffer to the order of its elements, where that is not row-major.
    """

    def __init__(self, program: GpuProgram, dialect: Dialect) -> None:
        self.program, self.dialect = program, dialect
        self.functions: dict[str, str] = {}
        self.buffers: Mapping[str, Buffer] = program.tree.buffer
        wide = max((b.size for b in program.tree.buffers), default=0) >= _WIDEST_INT
        self.index = ("long" if dialect is OPENCL else "long long") if wide else "int"
        types = {
            ARITHMETIC.get(b.dtype, b.dtype)
            for b in program.tree.buffers
            if b.name not in program.tree.indices
        }
        self.arithmetic = types.pop() if len(types) == 1 else "float32"
        self.scalar = {"float32": "float", "float64": "double", "int32": "int"}[self.arithmetic]
        self.names: dict[LoopId, str] = {}
        self.spaces: dict[str, str] = {}
        self.arranged: Mapping[str, Arrangement] = {}

    def _condition(self, condition: Condition, fixed: Mapping[LoopId, int]) -> str:
        offset = sum(stride * fixed[loop] for loop, stride in condition.terms if loop in fixed)
        terms = [(loop, stride) for loop, stride in condition.terms if loop not in fixed]
        return f"{self._sum(0, terms)} < {condition.limit - offset}"

    def _statement(self, item: Compute, lanes: tuple[LoopId, int] | None) -> str:
        leaf = item.leaf
        value = self._value(leaf.value, lanes)
        if leaf.reduce:
            value = self._apply(leaf.reduce, [self._read(leaf.target, lanes), value], lanes)
        return self._write(leaf.target, value, lanes)

    def _sum(self, offset: int, terms: Sequence[tuple[LoopId, int]]) -> str:
        names = [(self.names[loop], stride) for loop, stride in terms]
        texts = [name if stride == 1 else f"{name} * {stride}" for name, stride in names]
        if self.index != "int" and texts:
            texts[0] = f"({self.index}){texts[0]}"
            texts = [texts[0], *(f"({self.index}){text}" for text in texts[1:])]
        if offset or not texts:
            texts.append(str(offset))
        return " + ".join(texts).replace("+ -", "- ")

    def _at(self, ref: Ref, lanes: tuple[LoopId, int] | None) -> str:
        skipped = lanes[0] if lanes else None
        at = self._sum(ref.offset, [item for item in ref.strides if item[0] != skipped])
        return self._placed(ref.buffer, at)

    def _placed(self, buffer: str, at: str) -> str:
        """Find where the element is that has this number in row-major order."""
        arranged = self.arranged.get(buffer)
        if arranged is None:
            return at
        numbers = (arranged.low, arranged.bits, arranged.shift)
        panels = (arranged.panel, arranged.row, arranged.rows) if arranged.panel else ()
        name = "p_place_" + "_".join(map(str, (*numbers, *panels)))
        lines = [f"{self.dialect.function} int {name}(int at)", "{"]
        if arranged.panel:
            whole, width, row = arranged.row * arranged.rows, arranged.panel, arranged.row
            lines.append(f"  const int within = at % {whole}, column = within % {row};")
            place = (
                f"column / {width} * {arranged.rows * width} + within / {row} * {width} + column % {width}"
            )
            lines.append(f"  at += {place} - within;")
        lines += [f"  return at ^ (at >> {arranged.shift} & {arranged.mask});", "}"]
        self.functions[name] = "\n".join(lines)
        return f"{name}({at})"

    def _is_vector(self, ref: Ref, lanes: tuple[LoopId, int] | None) -> bool:
        return lanes is not None and lanes[0] in ref.stride

    def _read(self, ref: Ref, lanes: tuple[LoopId, int] | None) -> str:
        at, name, dtype = self._at(ref, lanes), buffer_name(ref.buffer), self.buffers[ref.buffer].dtype
        if lanes and self._is_vector(ref, lanes):
            return self._vector(ref, at, lanes[1], "const ")
        return self._element(name, at, dtype)

    def _element(self, name: str, at: str, dtype: str) -> str:
        """Read an element, widened to the type in which it is computed."""
        element = f"{name}[{at}]"
        match dtype:
            case "float16" if self.dialect is OPENCL:
                return f"vload_half({at}, {name})"
            case "float16":
                return self._half(element, read=True)
            case "bfloat16":
                return f"{self._bfloat16(read=True)}({element})"
            case "int8":
                return f"(int){element}"
            case _:
                return element

    def _write(self, ref: Ref, value: str, lanes: tuple[LoopId, int] | None) -> str:
        at, name, dtype = self._at(ref, lanes), buffer_name(ref.buffer), self.buffers[ref.buffer].dtype
        if lanes:
            return f"{self._vector(ref, at, lanes[1], '')} = {value};"
        match dtype:
            case "float16" if self.dialect is OPENCL:
                return f"vstore_half_rte({value}, {at}, {name});"
            case "float16":
                return f"{name}[{at}] = {self._half(value, read=False)};"
            case "bfloat16":
                return f"{name}[{at}] = {self._bfloat16(read=False)}({value});"
            case _:
                return f"{name}[{at}] = {value};"

    def _vector(self, ref: Ref, at: str, width: int, const: str) -> str:
        """Read or write a vector that need not begin at a multiple of its size."""
        kind, name = f"{self.scalar}{width}", f"p_{self.scalar}{width}"
        size = DTYPES[self.arithmetic]
        self.functions[name] = f"typedef {kind} {name} __attribute__((aligned({size})));"
        space = self.dialect.memory.get(self.spaces.get(ref.buffer, "global"), "")
        return f"*({const}{space}{name} *)({buffer_name(ref.buffer)} + {at})"

    def _half(self, value: str, *, read: bool) -> str:
        """Convert a half in CUDA, which has it in a header alone."""
        name, kinds, form = (
            ("p_from_f16", ("ushort", "float"), '"cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)')
            if read
            else ("p_to_f16", ("float", "ushort"), '"cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)')
        )
        given, made = kinds
        body = f"{{ {made} y; asm({form}); return y; }}"
        self.functions[name] = f"{self.dialect.function} {made} {name}({given} x) {body}"
        return f"{name}({value})"

    def _bfloat16(self, *, read: bool) -> str:
        from_bits, to_bits = _BF16[self.dialect.name]
        function = self.dialect.function
        if read:
            text = f"{function} float p_from_bf16(ushort x) {{ return {from_bits}((uint)x << 16); }}"
            self.functions["p_from_bf16"] = text
            return "p_from_bf16"
        self.functions["p_to_bf16"] = (
            f"{function} ushort p_to_bf16(float x)\n{{\n  const uint bits = {to_bits}(x);\n"
            "  if (x != x) return (ushort)((bits >> 16) | 64u);\n"
            "  return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);\n}"
        )
        return "p_to_bf16"

    # Values

    def _type(self, lanes: tuple[LoopId, int] | None) -> str:
        return f"{self.scalar}{lanes[1]}" if lanes else self.scalar

    def _value(self, value: Value, lanes: tuple[LoopId, int] | None) -> str:
        match value:
            case Const():
                text = self._number(value.value)
                return f"({self._type(lanes)})({text})" if lanes else text
            case Ref():
                text = self._read(value, lanes)
                spread = lanes is not None and not self._is_vector(value, lanes)
                return f"({self._type(lanes)})({text})" if spread else text
            case Call("gather", (Ref() as base, index, Const(stride), Const(extent))):
                return self._gather(base, index, int(stride), int(extent))
            case Call(function, args):
                return self._apply(function, [self._value(arg, lanes) for arg in args], lanes)
        raise AssertionError(value)

    def _gather(self, base: Ref, index: Value, stride: int, extent: int) -> str:
        kind = self.scalar
        if isinstance(index, Ref):
            dtype = self.buffers[index.buffer].dtype
            kind = {"int32": "int", "int64": self.dialect.types["int64"]}.get(dtype, kind)
        name = f"p_index_{kind.replace(' ', '_')}"
        self.functions[name] = (
            f"{self.dialect.function} int {name}({kind} x, int n)\n"
            "{ return x >= n - 1 ? n - 1 : x > 0 ? (int)x : 0; }"
        )
        found = f"{name}({self._value(index, None)}, {extent})"
        at = self._sum(base.offset, base.strides)
        at = self._placed(base.buffer, f"{at} + {found} * {stride}")
        return self._element(buffer_name(base.buffer), at, self.buffers[base.buffer].dtype)

    def _number(self, value: float) -> str:
        if self.scalar == "int":
            number = nearest_integer(value)
            return (
                f"({number + 1} - 1)"
                if number == -_WIDEST_INT
                else f"({number})"
                if number < 0
                else str(number)
            )
        if isnan(value):
            return "(0.0f / 0.0f)"
        if isinf(value):
            inf = "INFINITY" if self.dialect is OPENCL else "__int_as_float(0x7f800000)"
            return f"({'-' if value < 0 else ''}{inf})"
        number = float(np.float32(value)) if self.scalar == "float" else value
        text = f"{number.hex()}{'f' if self.scalar == 'float' else ''}"
        return f"({text})" if number < 0 else text

    def _apply(self, function: str, args: Sequence[str], lanes: tuple[LoopId, int] | None) -> str:
        kind = self._type(lanes)
        integer = self.scalar == "int"
        if function in _INFIX:
            if integer:
                # Integers wrap around, which is defined for unsigned ones alone.
                wide = f"uint{lanes[1]}" if lanes else "uint"
                a, b = (f"as_{wide}({arg})" if lanes else f"(uint)({arg})" for arg in args)
                whole = f"{a} {_INFIX[function]} {b}"
                return f"as_{kind}({whole})" if lanes else f"(int)({whole})"
            return f"({args[0]} {_INFIX[function]} {args[1]})"
        if function == "neg":
            return self._apply("sub", [f"({kind})(0)", args[0]], lanes) if integer else f"(-{args[0]})"
        if function in _C_FUNCTIONS:
            return (
                f"{function}({args[0]})"
                if self.dialect is OPENCL or self.scalar == "double"
                else f"{function}f({args[0]})"
            )
        return f"{self._helper(function, kind)}({', '.join(args)})"

    def _helper(self, function: str, kind: str) -> str:
        """Define what the language lacks, for one type, and return its name."""
        words = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne"}
        name = f"p_{words.get(function, function)}_{kind}"
        one, zero = f"({kind})(1)", f"({kind})(0)"
        either = "|" if kind[-1].isdigit() else "||"
        integer = self.scalar == "int"
        absolute = "fabs" if self.dialect is OPENCL or self.scalar == "double" else "fabsf"
        wrapped = f"x < 0 ? {self._wrapped_negation(kind)} : x"
        bodies = {
            # A NaN in either is the result.
            "max": ("a, b", f"(a > b {either} a != a) ? a : b"),
            "min": ("a, b", f"(a < b {either} a != a) ? a : b"),
            "relu": ("x", f"(x > {zero} {either} x != x) ? x : {zero}"),
            "abs": ("x", wrapped if integer else f"{absolute}(x)"),
            "sigmoid": ("x", f"{one} / ({one} + {self._exponential()}(-x))"),
            **{test: ("a, b, x, y", f"a {test} b ? x : y") for test in COMPARISONS},
        }
        parameters, body = bodies[function]
        listed = ", ".join(f"{kind} {p}" for p in parameters.split(", "))
        self.functions[name] = f"{self.dialect.function} {kind} {name}({listed}) {{ return {body}; }}"
        return name

    def _exponential(self) -> str:
        return "exp" if self.dialect is OPENCL or self.scalar == "double" else "expf"

    def _wrapped_negation(self, kind: str) -> str:
        width = kind.removeprefix("int")
        return f"as_{kind}((uint{width})(0) - as_uint{width}(x))" if width else "(int)(0u - (uint)x)"
