"""Compiler of plain kernels: functions of a subset of Python over arrays, as LLVM IR.

What is no program of `loops` is a function that runs in Python too, on flat NumPy arrays:

    def cumulate(x: Array, out: Array, count: int) -> None:
        total = 0
        for i in range(count):
            total = total + x[i]
            out[i] = total

Parameters are arrays, or constants of the kernel: numbers, tuples of them, functions, and None for an array
that is left out. A condition of constants is decided while compiling. Values are i1, i64, float and double;
whole numbers are widened to i64 when they are loaded. There are assignments, `for` over `range`, `while`,
`if`, `break`, `return`, arithmetic, comparisons, calls of other such functions, and those of `INTRINSICS`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import struct
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.llvm.ir_writer import Arithmetic, Val, Writer, flattened
from planish.levels.loops.codegen.objects import Section, read_object
from planish.network.model import Array, Node

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

_RANKS = ("i1", "i64", "float", "double")
_FLOATS = ("float", "double")


@dataclass(frozen=True)
class PlainProgram:
    """A plain function with the types of its arrays and its constants.

    Args:
        function: what is computed.
        arrays: (parameter, element type), in the order of the kernel's operands; the last ones are scratch.
        constants: (parameter, value), of the others.
        flops: arithmetic operations, about.
    """

    function: Callable[..., None]
    arrays: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, Any], ...] = ()
    flops: int = field(default=0, compare=False)

    @cached_property
    def text(self) -> str:
        """Return a text that identifies the program; equal programs have equal texts."""
        arrays = [f"{name}:{dtype}" for name, dtype in self.arrays]
        constants = [f"{name}={_shown(value)}" for name, value in self.constants]
        return f"{self.function.__name__}({', '.join([*arrays, *constants])})"


def _shown(value: Any) -> str:
    return value.__name__ if callable(value) else repr(value)


@dataclass(frozen=True)
class PlainKernel:
    """A kernel of plain code.

    Args:
        nodes: what it computes.
        program: how.
        operands: the program's arrays that are read to the tensors.
        outputs: those that are written, likewise.
        constants: constants that are the kernel's own, by tensor.
        scratch: those that are scratch, to their bytes.
    """

    nodes: tuple[Node, ...]
    program: PlainProgram
    operands: Mapping[str, str]
    outputs: Mapping[str, str]
    constants: Mapping[str, Array] = field(default_factory=dict[str, Array])
    scratch: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def output(self) -> str:
        """Return the first tensor that it computes."""
        return next(iter(self.outputs.values()))

    @property
    def flops(self) -> int:
        """Return the arithmetic operations of a call."""
        return self.program.flops

    @property
    def operators(self) -> str:
        """Name its operators."""
        return "+".join(node.operator for node in self.nodes)


class PlainError(Exception):
    """A function uses what the subset does not have: a defect of planish."""


@dataclass(frozen=True)
class _Value:
    type: str
    text: str


@dataclass(frozen=True)
class _Array:
    pointer: str
    dtype: str


@dataclass(frozen=True)
class _Constant:
    value: Any


@dataclass(frozen=True)
class _Slot:
    type: str
    pointer: str


_Entity = _Value | _Array | _Constant | _Slot


def write_kernel(program: PlainProgram, name: str) -> str:
    """Write a module in IR with `void NAME_run0(void **args, i64, i64)`, whose arguments are the arrays."""
    module = _Module(name)
    known: dict[str, _Entity] = {key: _Constant(value) for key, value in program.constants}
    inner, returned = module.function(program.function, known, dict(program.arrays))
    if returned != "void":
        raise PlainError(f"{program.function.__name__} returns a value")
    lines = [f'define void @{name}_run0(ptr %args, i64 %begin, i64 %end) nounwind "no-builtins" {{']
    for index in range(len(program.arrays)):
        lines.append(f"  %s{index} = getelementptr ptr, ptr %args, i64 {index}")
        lines.append(f"  %p{index} = load ptr, ptr %s{index}")
    arguments = ", ".join(f"ptr %p{index}" for index in range(len(program.arrays)))
    lines += [f"  call void @{inner}({arguments})", "  ret void", "}"]
    return "\n".join([*module.globals, *module.functions, *lines, *sorted(module.declared), ""])


def compile_kernel(program: PlainProgram, name: str, machine: jit.Machine) -> list[Section]:
    """Compile a program as `write_kernel` names it; LLVM optimizes and vectorizes it."""
    made = jit.target_machine(machine, 3, jit=False)
    module = llvm.parse_assembly(write_kernel(program, name))
    module.triple, module.data_layout = machine.triple, str(made.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(made, options)
    builder.getModulePassManager().run(module, builder)
    return read_object(made.emit_object(module), name)


class _Module:
    """Functions and constants of one kernel."""

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

    def function(
        self, function: Callable[..., Any], constants: Mapping[str, _Entity], arguments: Mapping[str, str]
    ) -> tuple[str, str]:
        """Write a function for constants and types of arguments; return its name and its result's type."""
        key = (function, tuple(constants.items()), tuple(arguments.items()))
        if key not in self._made:
            name = self.fresh(function.__name__)
            self.functions.append("")  # its name is taken
            position = len(self.functions) - 1
            writer = _Function(self, function, constants, arguments)
            self.functions[position] = writer.text(name)
            self._made[key] = name, writer.returned
        return self._made[key]

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


@cache
def _parsed(function: Callable[..., Any]) -> ast.FunctionDef:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    return tree


class _Function:
    """Translates one function."""

    def __init__(
        self,
        module: _Module,
        function: Callable[..., Any],
        constants: Mapping[str, _Entity],
        arguments: Mapping[str, str],
    ) -> None:
        self.module, self.tree, self.arguments = module, _parsed(function), arguments
        self.globals: Mapping[str, Any] = function.__globals__
        self.known: dict[str, _Entity] = dict(constants)
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.returned = "void"
        self.ends = False
        self._ends_of_loops: list[str] = []
        self._count = 0

    def text(self, name: str) -> str:
        """Write the function."""
        parameters = list[str]()
        for index, (parameter, kind) in enumerate(self.arguments.items()):
            if kind in ELEMENTS:
                parameters.append(f"ptr noalias %a{index}")
                self.known[parameter] = _Array(f"%a{index}", kind)
            else:
                parameters.append(f"{kind} %a{index}")
                self.known[parameter] = self._new_slot(_Value(kind, f"%a{index}"))
        self._block(self.tree.body)
        if not self.ends:
            if self.returned != "void":
                raise PlainError(f"{self.tree.name} ends without a value")
            self.lines.append("  ret void")
        head = f"define internal {self.returned} @{name}({', '.join(parameters)}) alwaysinline nounwind {{"
        return "\n".join([head, "entry:", *self.slots, *self.lines, "}"])

    # Blocks

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

    def _branch(self, test: _Value, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {test.text}, label %{yes}, label %{no}")
        self.ends = True

    def _begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.ends = False

    def _new_slot(self, value: _Value) -> _Slot:
        name = f"%s{len(self.slots)}"
        self.slots.append(f"  {name} = alloca {value.type}")
        slot = _Slot(value.type, name)
        self._store(slot, value)
        return slot

    def _store(self, slot: _Slot, value: _Value) -> None:
        self.lines.append(f"  store {slot.type} {self.converted(value, slot.type).text}, ptr {slot.pointer}")

    # Statements

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if self.ends:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:  # noqa: C901 (one case for each kind)
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                self._call(call)
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self._expression(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._expression(value))
            case ast.AugAssign(target=target, op=op, value=value):
                old = ast.copy_location(_as_read(target), target)
                self._assign(target, self._binary(op, self._expression(old), self._expression(value)))
            case ast.If(test=test, body=body, orelse=orelse):
                self._if(test, body, orelse)
            case ast.For(
                target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args), body=body
            ):
                self._for(name, args, body)
            case ast.While(test=test, body=body):
                self._while(test, body)
            case ast.Break():
                self._go(self._ends_of_loops[-1])
            case ast.Return(value=None):
                self.lines.append("  ret void")
                self.ends = True
            case ast.Return(value=ast.expr() as value):
                self._return(self.value(self._expression(value)))
            case _:
                raise PlainError(f"{self.tree.name}: {ast.unparse(node)}")

    def _return(self, value: _Value) -> None:
        if self.returned == "void":
            self.returned = value.type
        self.lines.append(f"  ret {self.returned} {self.converted(value, self.returned).text}")
        self.ends = True

    def _assign(self, target: ast.expr, found: _Entity) -> None:
        match target:
            case ast.Name(id=name):
                if isinstance(found, _Array):
                    self.known[name] = found
                    return
                value, known = self.value(found), self.known.get(name)
                if isinstance(known, _Slot):
                    self._store(known, value)
                else:
                    self.known[name] = self._new_slot(value)
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                array = self.known[name]
                assert isinstance(array, _Array)
                self._write(array, self._integer(index), self.value(found))
            case _:
                raise PlainError(f"{self.tree.name}: {ast.unparse(target)} is assigned")

    def _if(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        found = self._expression(test)
        if isinstance(found, _Constant):
            self._block(body if found.value else orelse)
            return
        yes, no, after = self._label(), self._label(), self._label()
        self._branch(self.converted(self.value(found), "i1"), yes, no if orelse else after)
        self._begin(yes)
        self._block(body)
        ended = self.ends
        self._go(after)
        if orelse:
            self._begin(no)
            self._block(orelse)
            ended &= self.ends
            self._go(after)
        if not (orelse and ended):
            self._begin(after)

    def _for(self, name: str, args: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        bounds = [self.converted(self.value(self._expression(each)), "i64") for each in args]
        start = bounds[0] if len(bounds) > 1 else _Value("i64", "0")
        end, step = bounds[min(1, len(bounds) - 1)], bounds[2].text if len(bounds) > 2 else "1"
        known = self.known.get(name)
        slot = known if isinstance(known, _Slot) else self._new_slot(start)
        # Counted in a slot of its own: the body may assign the name.
        counter = self._new_slot(start)
        head, inner, after = self._label(), self._label(), self._label()
        self._go(head)
        self._begin(head)
        count = self.define(f"load i64, ptr {counter.pointer}")
        test = self.define(f"icmp {'sgt' if step.startswith('-') else 'slt'} i64 {count}, {end.text}")
        self._branch(_Value("i1", test), inner, after)
        self._begin(inner)
        self._store(slot, _Value("i64", count))
        self.known[name] = slot
        self._ends_of_loops.append(after)
        self._block(body)
        self._ends_of_loops.pop()
        if not self.ends:
            following = self.define(f"add nsw i64 {count}, {step}")
            self._store(counter, _Value("i64", following))
        self._go(head)
        self._begin(after)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        head, inner, after = self._label(), self._label(), self._label()
        self._go(head)
        self._begin(head)
        self._branch(self.converted(self.value(self._expression(test)), "i1"), inner, after)
        self._begin(inner)
        self._ends_of_loops.append(after)
        self._block(body)
        self._ends_of_loops.pop()
        self._go(head)
        self._begin(after)

    # Expressions

    def value(self, found: _Entity) -> _Value:
        match found:
            case _Value():
                return found
            case _Slot():
                return _Value(found.type, self.define(f"load {found.type}, ptr {found.pointer}"))
            case _Constant(value=bool() as value):
                return _Value("i1", str(int(value)))
            case _Constant(value=int() as value):
                return _Value("i64", str(value))
            case _Constant(value=float() as value):
                return _Value("float", _number(value, "float"))
            case _:
                raise PlainError(f"{self.tree.name}: {found} is no number")

    def _integer(self, node: ast.expr) -> _Value:
        return self.converted(self.value(self._expression(node)), "i64")

    def converted(self, value: _Value, kind: str) -> _Value:
        """Convert a value; to i1 by a test for 0, and never from a float to an integer otherwise."""
        if value.type == kind:
            return value
        if kind == "i1":
            test = "fcmp une" if value.type in _FLOATS else "icmp ne"
            zero = _number(0.0, value.type) if value.type in _FLOATS else "0"
            return _Value("i1", self.define(f"{test} {value.type} {value.text}, {zero}"))
        if _RANKS.index(value.type) > _RANKS.index(kind) and value.type != "double":
            raise PlainError(f"{self.tree.name}: {value.type} is stored as {kind}")
        operation = {
            ("i1", "i64"): "zext",
            ("i1", "float"): "uitofp",
            ("i1", "double"): "uitofp",
            ("i64", "float"): "sitofp",
            ("i64", "double"): "sitofp",
            ("float", "double"): "fpext",
            ("double", "float"): "fptrunc",
        }[value.type, kind]
        return _Value(kind, self.define(f"{operation} {value.type} {value.text} to {kind}"))

    def common(self, *found: _Entity) -> list[_Value]:
        """Convert values to the widest of their types; numbers that are constant take that of the others."""
        others = [each for each in found if not isinstance(each, _Constant)]
        kinds = [self.value(each).type if isinstance(each, _Value) else each.type  # type: ignore[union-attr]
                 for each in others]  # fmt: skip
        widest = max(kinds, key=_RANKS.index, default="i1")
        result = list[_Value]()
        for each in found:
            if isinstance(each, _Constant) and widest in _FLOATS:
                result.append(_Value(widest, _number(float(each.value), widest)))
            else:
                result.append(self.value(each))
        widest = max((each.type for each in result), key=_RANKS.index)
        return [self.converted(each, widest) for each in result]

    def _expression(self, node: ast.expr) -> _Entity:  # noqa: C901, PLR0911, PLR0912 (one case for each kind)
        match node:
            case ast.Constant(value=value):
                return _Constant(value)
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute():
                return _Constant(self._python(node))
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._expression(left), self._expression(right))
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self._expression(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compare(op, self._expression(left), self._expression(right))
            case ast.BoolOp(op=op, values=values):
                return self._connected(isinstance(op, ast.And), values)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._either(test, body, orelse)
            case ast.Subscript(value=value, slice=ast.Slice(lower=ast.expr() as lower, upper=None)):
                array = self._expression(value)
                assert isinstance(array, _Array)
                return _Array(self._address(array, self._integer(lower)), array.dtype)
            case ast.Subscript(value=value, slice=index):
                return self._read(self._expression(value), index)
            case ast.Call():
                found = self._call(node)
                if found is None:
                    raise PlainError(f"{self.tree.name}: {ast.unparse(node)} has no value")
                return found
            case _:
                raise PlainError(f"{self.tree.name}: {ast.unparse(node)}")

    def _named(self, name: str) -> _Entity:
        if name in self.known:
            return self.known[name]
        if name in self.globals:
            return _Constant(self.globals[name])
        if hasattr(builtins, name):
            return _Constant(getattr(builtins, name))
        raise PlainError(f"{self.tree.name}: {name} is unknown")

    def _python(self, node: ast.expr) -> Any:
        """Return the Python object of a name with dots."""
        if isinstance(node, ast.Attribute):
            return getattr(self._python(node.value), node.attr)
        found = self._expression(node)
        assert isinstance(found, _Constant)
        return found.value

    def _binary(self, op: ast.operator, left: _Entity, right: _Entity) -> _Entity:
        if isinstance(left, _Constant) and isinstance(right, _Constant):
            return _Constant(_PYTHON[type(op)](left.value, right.value))
        a, b = self.common(left, right)
        if a.type == "i1" and not isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
            a, b = self.converted(a, "i64"), self.converted(b, "i64")
        if isinstance(op, ast.Div) and a.type == "i64":
            a, b = self.converted(a, "float"), self.converted(b, "float")
        if isinstance(op, ast.FloorDiv | ast.Mod) and a.type == "i64":
            return self._floor(isinstance(op, ast.Mod), a, b)
        name = (_OF_FLOATS if a.type in _FLOATS else _OF_INTEGERS).get(type(op))
        if name is None:
            raise PlainError(f"{self.tree.name}: {type(op).__name__} of {a.type}")
        return _Value(a.type, self.define(f"{name} {a.type} {a.text}, {b.text}"))

    def _floor(self, rest: bool, a: _Value, b: _Value) -> _Value:
        """Divide as Python does: down, so that the rest has the sign of the divisor."""
        remainder = self.define(f"srem i64 {a.text}, {b.text}")
        signs = self.define(f"xor i64 {remainder}, {b.text}")
        differs = self.define(f"icmp slt i64 {signs}, 0")
        some = self.define(f"icmp ne i64 {remainder}, 0")
        adjusts = self.define(f"and i1 {differs}, {some}")
        if rest:
            more = self.define(f"add i64 {remainder}, {b.text}")
            return _Value("i64", self.define(f"select i1 {adjusts}, i64 {more}, i64 {remainder}"))
        quotient = self.define(f"sdiv i64 {a.text}, {b.text}")
        less = self.define(f"sub i64 {quotient}, 1")
        return _Value("i64", self.define(f"select i1 {adjusts}, i64 {less}, i64 {quotient}"))

    def _unary(self, op: ast.unaryop, found: _Entity) -> _Entity:
        if isinstance(found, _Constant):
            return _Constant(-found.value if isinstance(op, ast.USub) else not found.value)
        value = self.value(found)
        match op:
            case ast.Not():
                return _Value("i1", self.define(f"xor i1 {self.converted(value, 'i1').text}, true"))
            case ast.Invert():
                return _Value("i64", self.define(f"xor i64 {self.converted(value, 'i64').text}, -1"))
            case ast.USub() if value.type in _FLOATS:
                return _Value(value.type, self.define(f"fneg {value.type} {value.text}"))
            case _:
                return _Value("i64", self.define(f"sub i64 0, {self.converted(value, 'i64').text}"))

    def _compare(self, op: ast.cmpop, left: _Entity, right: _Entity) -> _Entity:
        if isinstance(op, ast.Is | ast.IsNot):
            none = isinstance(left, _Constant) and left.value is None
            return _Constant(none == isinstance(op, ast.Is))
        if isinstance(left, _Constant) and isinstance(right, _Constant):
            return _Constant(_PYTHON[type(op)](left.value, right.value))
        a, b = self.common(left, right)
        ordered, signed = _TESTS[type(op)]
        test = (
            f"fcmp {ordered}"
            if a.type in _FLOATS
            else f"icmp {signed if a.type == 'i64' else 'u' + signed[1:]}"
        )
        if a.type == "i1" and signed in ("eq", "ne"):
            test = f"icmp {signed}"
        return _Value("i1", self.define(f"{test} {a.type} {a.text}, {b.text}"))

    def _connected(self, conjunction: bool, nodes: Sequence[ast.expr]) -> _Entity:
        """Write `and` or `or`, whose later parts are computed only where they decide."""
        first = self._expression(nodes[0])
        if isinstance(first, _Constant):
            if bool(first.value) != conjunction or len(nodes) == 1:
                return first
            return self._connected(conjunction, nodes[1:])
        slot = self._new_slot(self.converted(self.value(first), "i1"))
        after = self._label()
        for node in nodes[1:]:
            more = self._label()
            yes, no = (more, after) if conjunction else (after, more)
            self._branch(self.value(slot), yes, no)
            self._begin(more)
            self._store(slot, self.converted(self.value(self._expression(node)), "i1"))
        self._go(after)
        self._begin(after)
        return self.value(slot)

    def _either(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> _Entity:
        found = self._expression(test)
        if isinstance(found, _Constant):
            return self._expression(body if found.value else orelse)
        # Both sides are computed: neither may have a side effect, and reads are within their arrays.
        decides = self.converted(self.value(found), "i1")
        left, right = self._expression(body), self._expression(orelse)
        a, b = self.common(left, right)
        return _Value(a.type, self.define(f"select i1 {decides.text}, {a.type} {a.text}, {b.type} {b.text}"))

    def number(self, found: _Entity) -> _Value:
        """Return a value of float or double."""
        value = self.value(found)
        return value if value.type in _FLOATS else self.converted(value, "float")

    def negative(self, value: _Value) -> _Entity:
        """Return the negative of a value."""
        return self._unary(ast.USub(), value)

    def mathematics(self, name: str, value: _Value) -> _Value:
        """Call exp, log or tanh."""
        made = self.module.mathematics(name, value.type)
        return _Value(value.type, self.define(f"call {value.type} @{made}({value.type} {value.text})"))

    # Memory

    def _address(self, array: _Array, index: _Value) -> str:
        return self.define(
            f"getelementptr inbounds {ELEMENTS[array.dtype][0]}, ptr {array.pointer}, i64 {index.text}"
        )

    def _read(self, found: _Entity, index: ast.expr) -> _Entity:
        if isinstance(found, _Constant):
            position = self._expression(index)
            if isinstance(position, _Constant):
                return _Constant(found.value[position.value])
            at = self.converted(self.value(position), "i64")
            table = self.module.table(found.value)
            address = self.define(f"getelementptr inbounds i64, ptr {table}, i64 {at.text}")
            return _Value("i64", self.define(f"load i64, ptr {address}"))
        assert isinstance(found, _Array)
        (stored, kind), address = ELEMENTS[found.dtype], self._address(found, self._integer(index))
        loaded = self.define(f"load {stored}, ptr {address}")
        if kind == "i1":
            return _Value("i1", self.define(f"icmp ne i8 {loaded}, 0"))
        if stored != kind:
            loaded = self.define(f"{'zext' if found.dtype[0] == 'u' else 'sext'} {stored} {loaded} to i64")
        return _Value(kind, loaded)

    def _write(self, array: _Array, index: _Value, value: _Value) -> None:
        (stored, kind), address = ELEMENTS[array.dtype], self._address(array, index)
        text = self.converted(value, kind).text
        if kind == "i1":
            text = self.define(f"zext i1 {text} to i8")
        elif stored != kind:
            text = self.define(f"trunc i64 {text} to {stored}")
        self.lines.append(f"  store {stored} {text}, ptr {address}")

    # Calls

    def _call(self, node: ast.Call) -> _Entity | None:
        function = self._python(node.func)
        found = [self._expression(each) for each in node.args]
        if function in INTRINSICS:
            return INTRINSICS[function](self, found)
        constants, arguments, passed = dict[str, _Entity](), dict[str, str](), list[str]()
        for parameter, each in zip(_parsed(function).args.args, found, strict=True):
            match each:
                case _Constant():
                    constants[parameter.arg] = each
                case _Array(pointer=pointer, dtype=dtype):
                    arguments[parameter.arg] = dtype
                    passed.append(f"ptr {pointer}")
                case _:
                    value = self.value(each)
                    arguments[parameter.arg] = value.type
                    passed.append(f"{value.type} {value.text}")
        name, kind = self.module.function(function, constants, arguments)
        text = f"call {kind} @{name}({', '.join(passed)})"
        if kind == "void":
            self.lines.append(f"  {text}")
            return None
        return _Value(kind, self.define(text))

    def intrinsic(self, name: str, kind: str, args: Sequence[_Value], suffix: str = "") -> _Value:
        """Call a function of LLVM's own."""
        full = f"llvm.{name}.{suffix or _SUFFIX[kind]}"
        self.module.declared.add(f"declare {kind} @{full}({', '.join(each.type for each in args)})")
        listed = ", ".join(f"{each.type} {each.text}" for each in args)
        return _Value(kind, self.define(f"call {kind} @{full}({listed})"))


def _as_read(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
        case _:
            raise PlainError(f"{ast.unparse(target)} is assigned")


def _number(value: float, kind: str) -> str:
    if kind == "float":
        value = struct.unpack("f", struct.pack("f", value))[0]
    return f"0x{struct.pack('>d', value).hex().upper()}"


_SUFFIX = {"i64": "i64", "float": "f32", "double": "f64"}
_OF_INTEGERS: Mapping[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
_OF_FLOATS: Mapping[type, str] = {
    ast.Add: "fadd",
    ast.Sub: "fsub",
    ast.Mult: "fmul",
    ast.Div: "fdiv",
    ast.Mod: "frem",
}
_TESTS: Mapping[type, tuple[str, str]] = {
    ast.Lt: ("olt", "slt"), ast.LtE: ("ole", "sle"), ast.Gt: ("ogt", "sgt"), ast.GtE: ("oge", "sge"),
    ast.Eq: ("oeq", "eq"), ast.NotEq: ("une", "ne"),
}  # fmt: skip
_PYTHON: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b, ast.FloorDiv: lambda a, b: a // b, ast.Mod: lambda a, b: a % b,
    ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b, ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b,
}  # fmt: skip

# Functions


def fused(a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once where the processor can."""
    return a * b + c


def sigmoid(a: Any) -> Any:
    """Return 1 / (1 + exp(-a))."""
    return 1 / (1 + np.exp(-a))


def power_of_two(n: Any) -> Any:
    """Return 2 ** n in double, for n from -1022 to 1023."""
    return np.ldexp(1.0, n)


def _converted(kind: str) -> Callable[[_Function, Sequence[_Entity]], _Entity]:
    def write(of: _Function, args: Sequence[_Entity]) -> _Entity:
        (found,) = args
        if isinstance(found, _Constant):
            if kind in _FLOATS:
                return _Value(kind, _number(float(found.value), kind))
            return _Constant(int(found.value))
        value = of.value(found)
        if kind == "i64" and value.type in _FLOATS:
            return of.intrinsic("fptosi.sat", "i64", [value], f"i64.{_SUFFIX[value.type]}")
        return of.converted(value, kind)

    return write


def _of_one(name: str) -> Callable[[_Function, Sequence[_Entity]], _Entity]:
    def write(of: _Function, args: Sequence[_Entity]) -> _Entity:
        value = of.number(args[0])
        return of.intrinsic(name, value.type, [value])

    return write


def _rounding(name: str) -> Callable[[_Function, Sequence[_Entity]], _Entity]:
    """Write a rounding to whole numbers without the functions of C that processors without SSE4.1 need."""

    def write(of: _Function, args: Sequence[_Entity]) -> _Entity:
        x = of.number(args[0])
        t, bits = x.type, 23 if x.type == "float" else 52
        # Its neighbors are whole numbers: adding it rounds, to even.
        magic = _number(1.5 * 2.0**bits, t)
        moved = of.define(f"fadd {t} {x.text}, {magic}")
        whole = of.define(f"fsub {t} {moved}, {magic}")
        one, negative = _number(1.0, t), of.define(f"fcmp olt {t} {x.text}, {_number(0.0, t)}")
        low = of.define(f"fsub {t} {whole}, {one}")
        above = of.define(f"fcmp ogt {t} {whole}, {x.text}")
        low = of.define(f"select i1 {above}, {t} {low}, {t} {whole}")
        high = of.define(f"fadd {t} {whole}, {one}")
        below = of.define(f"fcmp olt {t} {whole}, {x.text}")
        high = of.define(f"select i1 {below}, {t} {high}, {t} {whole}")
        inwards = of.define(f"select i1 {negative}, {t} {high}, {t} {low}")
        whole = {"rint": whole, "floor": low, "ceil": high, "trunc": inwards}[name]
        size = of.intrinsic("fabs", t, [x])
        small = of.define(f"fcmp olt {t} {size.text}, {_number(2.0 ** (bits - 1), t)}")
        return _Value(t, of.define(f"select i1 {small}, {t} {whole}, {t} {x.text}"))

    return write


def _extreme(integers: str, floats: str) -> Callable[[_Function, Sequence[_Entity]], _Entity]:
    def write(of: _Function, args: Sequence[_Entity]) -> _Entity:
        if all(isinstance(each, _Constant) for each in args):
            return _Constant((min if integers == "smin" else max)(each.value for each in args))  # type: ignore[union-attr]
        a, b = of.common(*args)
        if a.type == "i1":
            a, b = of.converted(a, "i64"), of.converted(b, "i64")
        return of.intrinsic(floats if a.type in _FLOATS else integers, a.type, [a, b])

    return write


def _absolute(of: _Function, args: Sequence[_Entity]) -> _Entity:
    if isinstance(args[0], _Constant):
        return _Constant(abs(args[0].value))
    value = of.value(args[0])
    if value.type in _FLOATS:
        return of.intrinsic("fabs", value.type, [value])
    return of.intrinsic("smax", "i64", [value, of.value(of.negative(value))])


def _mathematics(name: str) -> Callable[[_Function, Sequence[_Entity]], _Entity]:
    def write(of: _Function, args: Sequence[_Entity]) -> _Entity:
        return of.mathematics(name, of.number(args[0]))

    return write


def _fused(of: _Function, args: Sequence[_Entity]) -> _Entity:
    values = of.common(*args)
    return of.intrinsic("fmuladd", values[0].type, values)


def _is_nan(of: _Function, args: Sequence[_Entity]) -> _Entity:
    value = of.number(args[0])
    return _Value("i1", of.define(f"fcmp uno {value.type} {value.text}, {value.text}"))


def _length(of: _Function, args: Sequence[_Entity]) -> _Entity:
    del of
    (found,) = args
    assert isinstance(found, _Constant)
    return _Constant(len(found.value))


def _power_of_two(of: _Function, args: Sequence[_Entity]) -> _Entity:
    value = of.converted(of.value(args[0]), "i64")
    biased = of.define(f"add i64 {value.text}, 1023")
    bits = of.define(f"shl i64 {biased}, 52")
    return _Value("double", of.define(f"bitcast i64 {bits} to double"))


INTRINSICS: Mapping[Any, Callable[[_Function, Sequence[_Entity]], _Entity]] = {
    abs: _absolute,
    float: _converted("float"),
    fused: _fused,
    int: _converted("i64"),
    len: _length,
    max: _extreme("smax", "maximum"),
    min: _extreme("smin", "minimum"),
    np.ceil: _rounding("ceil"),
    np.exp: _mathematics("exp"),
    np.float32: _converted("float"),
    np.float64: _converted("double"),
    np.floor: _rounding("floor"),
    np.isnan: _is_nan,
    np.log: _mathematics("log"),
    np.rint: _rounding("rint"),
    np.sqrt: _of_one("sqrt"),
    np.tanh: _mathematics("tanh"),
    np.trunc: _rounding("trunc"),
    power_of_two: _power_of_two,
    sigmoid: _mathematics("sigmoid"),
}
"""Function of Python to what writes a call of it."""
