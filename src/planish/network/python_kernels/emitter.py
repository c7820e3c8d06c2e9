"""Emission of LLVM IR for Python kernels: values, conversions, arithmetic and memory."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planish.levels.loops.codegen.llvm.ir_writer import Arithmetic, Val, Writer, flattened

ELEMENTS: Mapping[str, tuple[str, str]] = {
    "float32": ("float", "float"),
    "float64": ("double", "double"),
    "bool": ("i8", "i1"),
    "int8": ("i8", "i64"),
    "uint8": ("i8", "i64"),
    "int16": ("i16", "i64"),
    "uint16": ("i16", "i64"),
    "int32": ("i32", "i64"),
    "uint32": ("i32", "i64"),
    "int64": ("i64", "i64"),
    "uint64": ("i64", "i64"),
}
"""Element type to LLVM's type in memory, and that of a value."""


RANKS = ("i1", "i64", "float", "double")


FLOAT_TYPES = ("float", "double")


class KernelLanguageError(Exception):
    """A function uses what the subset does not have: a defect of planish."""


@dataclass(frozen=True)
class Operand:
    """Value of a type of LLVM."""

    type: str
    text: str


@dataclass(frozen=True)
class ArrayArgument:
    """Array, by the pointer to its first element."""

    pointer: str
    dtype: str


@dataclass(frozen=True)
class Constant:
    """Python object that is known while compiling."""

    value: Any


@dataclass(frozen=True)
class Slot:
    """Variable on the stack."""

    type: str
    pointer: str


Entity = Operand | ArrayArgument | Constant | Slot


class ModuleEmitter:
    """Functions and constants of a module.

    Args:
        name: with which those of its functions begin.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.globals: list[str] = []
        self.functions: list[str] = []
        self.declared: set[str] = set()
        self._made: dict[Any, tuple[str, str]] = {}

    def fresh(self, what: str) -> str:
        return f"{self.name}_{what}_{len(self.functions) + len(self.globals)}"

    def table(self, values: Sequence[int]) -> str:
        """Write a constant array; return its name."""
        name = self.fresh("table")
        listed = ", ".join(f"i64 {int(value)}" for value in values)
        self.globals.append(f"@{name} = private constant [{len(values)} x i64] [{listed}]")
        return f"@{name}"

    def mathematics(self, name: str, kind: str) -> str:
        """Write exp, log, tanh or erf as the level `loops` has it; return the function's name."""
        key = name, kind
        if key not in self._made:
            writer = Writer("float32" if kind == "float" else "float64")
            found = Arithmetic(writer).apply(name, [Val("%x", 1)])
            made = self.fresh(name)
            body = "\n".join(flattened(writer.lines))
            self.functions.append(
                f"define internal {kind} @{made}({kind} %x) alwaysinline nounwind {{\n{body}\n"
                f"  ret {kind} {found.name}\n}}"
            )
            self.declared |= writer.declared
            self._made[key] = made, kind
        return self._made[key][0]


class FunctionEmitter:
    """Blocks, values and memory accesses of one function.

    Args:
        module: that it is of.
        name: for messages.
    """

    def __init__(self, module: ModuleEmitter, name: str) -> None:
        self.module, self.name = module, name
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.ends = False
        self._count = 0

    def _fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def define(self, text: str) -> str:
        name = self._fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def _label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def _go(self, label: str) -> None:
        if not self.ends:
            self.lines.append(f"  br label %{label}")
        self.ends = True

    def _branch(self, test: Operand, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {test.text}, label %{yes}, label %{no}")
        self.ends = True

    def _begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.ends = False

    def _new_slot(self, value: Operand) -> Slot:
        name = f"%s{len(self.slots)}"
        self.slots.append(f"  {name} = alloca {value.type}")
        slot = Slot(value.type, name)
        self._store(slot, value)
        return slot

    def _store(self, slot: Slot, value: Operand) -> None:
        self.lines.append(f"  store {slot.type} {self.converted(value, slot.type).text}, ptr {slot.pointer}")

    def value(self, found: Entity) -> Operand:
        match found:
            case Operand():
                return found
            case Slot():
                return Operand(found.type, self.define(f"load {found.type}, ptr {found.pointer}"))
            case Constant(value=bool() as value):
                return Operand("i1", str(int(value)))
            case Constant(value=int() as value):
                return Operand("i64", str(value))
            case Constant(value=float() as value):
                return Operand("float", float_literal(value, "float"))
            case _:
                raise KernelLanguageError(f"{self.name}: expected a number, got {found}")

    def converted(self, value: Operand, kind: str) -> Operand:
        """Convert a value; to i1 by a test for 0, and never from a float to an integer otherwise."""
        if value.type == kind:
            return value
        if kind == "i1":
            test = "fcmp une" if value.type in FLOAT_TYPES else "icmp ne"
            zero = float_literal(0.0, value.type) if value.type in FLOAT_TYPES else "0"
            return Operand("i1", self.define(f"{test} {value.type} {value.text}, {zero}"))
        if RANKS.index(value.type) > RANKS.index(kind) and value.type != "double":
            raise KernelLanguageError(f"{self.name}: {value.type} is stored as {kind}")
        operation = {
            ("i1", "i64"): "zext",
            ("i1", "float"): "uitofp",
            ("i1", "double"): "uitofp",
            ("i64", "float"): "sitofp",
            ("i64", "double"): "sitofp",
            ("float", "double"): "fpext",
            ("double", "float"): "fptrunc",
        }[value.type, kind]
        return Operand(kind, self.define(f"{operation} {value.type} {value.text} to {kind}"))

    def common(self, *found: Entity) -> list[Operand]:
        """Convert values to the widest of their types; numbers that are constant take that of the others."""
        others = [each for each in found if not isinstance(each, Constant)]
        kinds = [self.value(each).type if isinstance(each, Operand) else each.type  # type: ignore[union-attr]
                 for each in others]  # fmt: skip
        widest = max(kinds, key=RANKS.index, default="i1")
        result = list[Operand]()
        for each in found:
            if isinstance(each, Constant) and widest in FLOAT_TYPES:
                result.append(Operand(widest, float_literal(float(each.value), widest)))
            else:
                result.append(self.value(each))
        widest = max((each.type for each in result), key=RANKS.index)
        return [self.converted(each, widest) for each in result]

    def number(self, found: Entity) -> Operand:
        """Return a value of float or double."""
        value = self.value(found)
        return value if value.type in FLOAT_TYPES else self.converted(value, "float")

    def negative(self, value: Operand) -> Operand:
        """Return the negative of a value."""
        if value.type in FLOAT_TYPES:
            return Operand(value.type, self.define(f"fneg {value.type} {value.text}"))
        return Operand("i64", self.define(f"sub i64 0, {self.converted(value, 'i64').text}"))

    def mathematics(self, name: str, value: Operand) -> Operand:
        """Call exp, log or tanh."""
        made = self.module.mathematics(name, value.type)
        return Operand(value.type, self.define(f"call {value.type} @{made}({value.type} {value.text})"))

    def intrinsic(self, name: str, kind: str, args: Sequence[Operand], suffix: str = "") -> Operand:
        """Call a function of LLVM's own."""
        full = f"llvm.{name}.{suffix or SUFFIXES[kind]}"
        self.module.declared.add(f"declare {kind} @{full}({', '.join(each.type for each in args)})")
        listed = ", ".join(f"{each.type} {each.text}" for each in args)
        return Operand(kind, self.define(f"call {kind} @{full}({listed})"))

    def address(self, array: ArrayArgument, index: Operand) -> str:
        return self.define(
            f"getelementptr inbounds {ELEMENTS[array.dtype][0]}, ptr {array.pointer}, i64 {index.text}"
        )

    def store(self, array: ArrayArgument, index: Operand, value: Operand) -> None:
        (stored, kind), address = ELEMENTS[array.dtype], self.address(array, index)
        text = self.converted(value, kind).text
        if kind == "i1":
            text = self.define(f"zext i1 {text} to i8")
        elif stored != kind:
            text = self.define(f"trunc i64 {text} to {stored}")
        self.lines.append(f"  store {stored} {text}, ptr {address}")


def float_literal(value: float, kind: str) -> str:
    """Write a number of a type as LLVM reads it."""
    if kind == "float":
        value = struct.unpack("f", struct.pack("f", value))[0]
    return f"0x{struct.pack('>d', value).hex().upper()}"


SUFFIXES = {"i64": "i64", "float": "f32", "double": "f64"}
