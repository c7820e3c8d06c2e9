"""Compiler of Python kernels: functions of a subset of Python over arrays, as LLVM IR.

What is not a program of `loops` is a function that runs in Python too, on flat NumPy arrays:

    def cumulate(x: Array, out: Array, count: int) -> None:
        total = 0
        for i in range(count):
            total = total + x[i]
            out[i] = total

Parameters are arrays, or constants of the kernel: numbers, tuples of them, functions, and None for an array
that is left out. A condition of constants is decided while compiling. Values are i1, i64, float and double;
integers are widened to i64 when they are loaded. There are assignments, `for` over `range`, `while`,
`if`, `break`, `return`, arithmetic, comparisons, calls of other such functions, and those of `INTRINSICS`
and of the module `operator`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.objects import Section, read_object
from planish.network.python_kernels.emitter import (
    ELEMENTS,
    FLOAT_TYPES,
    ArrayArgument,
    Constant,
    Entity,
    FunctionEmitter,
    KernelLanguageError,
    ModuleEmitter,
    Operand,
    Slot,
)
from planish.network.python_kernels.intrinsics import INTRINSICS
from planish.network.python_kernels.program import PythonProgram


def write_kernel(program: PythonProgram, name: str, *, divided: bool = False) -> str:
    """Write a module in IR with `void NAME_run0(void **args, i64 begin, i64 end)`.

    Args:
        program: whose arrays are the arguments.
        name: of the function's beginning.
        divided: whether it computes the iterations from begin to end of the program's division, and not all.
    """
    module = _Module(name)
    known: dict[str, Entity] = {key: Constant(value) for key, value in program.constants}
    division = program.division[0] if divided else ""
    inner, returned = module.function(program.function, known, dict(program.arrays), division)
    if returned != "void":
        raise KernelLanguageError(f"{program.function.__name__} returns a value")
    lines = [f'define void @{name}_run0(ptr %args, i64 %begin, i64 %end) nounwind "no-builtins" {{']
    for index in range(len(program.arrays)):
        lines.append(f"  %s{index} = getelementptr ptr, ptr %args, i64 {index}")
        lines.append(f"  %p{index} = load ptr, ptr %s{index}")
    arguments = ", ".join(f"ptr %p{index}" for index in range(len(program.arrays)))
    arguments += ", i64 %begin, i64 %end" if division else ""
    lines += [f"  call void @{inner}({arguments})", "  ret void", "}"]
    return "\n".join([*module.globals, *module.functions, *lines, *sorted(module.declared), ""])


def compile_kernel(
    program: PythonProgram, name: str, machine: jit.Machine, *, divided: bool = False
) -> list[Section]:
    """Compile a program as `write_kernel` writes it; LLVM optimizes and vectorizes it."""
    made = jit.target_machine(machine, 3, jit=False)
    module = llvm.parse_assembly(write_kernel(program, name, divided=divided))
    module.triple, module.data_layout = machine.triple, str(made.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(made, options)
    builder.getModulePassManager().run(module, builder)
    return read_object(made.emit_object(module), name)


class _Module(ModuleEmitter):
    """Translated functions of one kernel."""

    def function(
        self,
        function: Callable[..., Any],
        constants: Mapping[str, Entity],
        arguments: Mapping[str, str],
        division: str = "",
    ) -> tuple[str, str]:
        """Write a function for constants and types of arguments; return its name and its result's type.

        With a division, it has two more arguments: the first iteration of loops over that count, and the end.
        """
        key = (function, tuple(constants.items()), tuple(arguments.items()))
        if key not in self._made:
            name = self.fresh(function.__name__)
            self.functions.append("")  # its name is taken
            position = len(self.functions) - 1
            writer = _Function(self, function, constants, arguments, division)
            self.functions[position] = writer.text(name)
            self._made[key] = name, writer.returned
        return self._made[key]


@cache
def _parsed(function: Callable[..., Any]) -> ast.FunctionDef:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    return tree


class _Function(FunctionEmitter):
    """Translates one function."""

    def __init__(
        self,
        module: _Module,
        function: Callable[..., Any],
        constants: Mapping[str, Entity],
        arguments: Mapping[str, str],
        division: str,
    ) -> None:
        self.tree, self.arguments, self.functions = _parsed(function), arguments, module
        self.division = division
        super().__init__(module, self.tree.name)
        self.globals: Mapping[str, Any] = function.__globals__
        self.known: dict[str, Entity] = dict(constants)
        self.returned = "void"
        self._ends_of_loops: list[str] = []

    def text(self, name: str) -> str:
        """Write the function."""
        parameters = list[str]()
        for index, (parameter, kind) in enumerate(self.arguments.items()):
            if kind in ELEMENTS:
                parameters.append(f"ptr noalias %a{index}")
                self.known[parameter] = ArrayArgument(f"%a{index}", kind)
            else:
                parameters.append(f"{kind} %a{index}")
                self.known[parameter] = self._new_slot(Operand(kind, f"%a{index}"))
        parameters += ["i64 %begin", "i64 %end"] if self.division else []
        self._block(self.tree.body)
        if not self.ends:
            if self.returned != "void":
                raise KernelLanguageError(f"{self.name} ends without a value")
            self.lines.append("  ret void")
        head = f"define internal {self.returned} @{name}({', '.join(parameters)}) alwaysinline nounwind {{"
        return "\n".join([head, "entry:", *self.slots, *self.lines, "}"])

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
                raise KernelLanguageError(f"{self.name}: {ast.unparse(node)}")

    def _return(self, value: Operand) -> None:
        if self.returned == "void":
            self.returned = value.type
        self.lines.append(f"  ret {self.returned} {self.converted(value, self.returned).text}")
        self.ends = True

    def _assign(self, target: ast.expr, found: Entity) -> None:
        match target:
            case ast.Name(id=name):
                if isinstance(found, ArrayArgument):
                    self.known[name] = found
                    return
                value, known = self.value(found), self.known.get(name)
                if isinstance(known, Slot):
                    self._store(known, value)
                else:
                    self.known[name] = self._new_slot(value)
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                array = self.known[name]
                assert isinstance(array, ArrayArgument)
                self.store(array, self._integer(index), self.value(found))
            case _:
                raise KernelLanguageError(f"{self.name}: {ast.unparse(target)} is assigned")

    def _if(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        found = self._expression(test)
        if isinstance(found, Constant):
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
        if len(args) == 1 and isinstance(args[0], ast.Name) and args[0].id == self.division:
            bounds = [Operand("i64", "%begin"), Operand("i64", "%end")]
        start = bounds[0] if len(bounds) > 1 else Operand("i64", "0")
        end, step = bounds[min(1, len(bounds) - 1)], bounds[2].text if len(bounds) > 2 else "1"
        known = self.known.get(name)
        slot = known if isinstance(known, Slot) else self._new_slot(start)
        # Counted in a slot of its own: the body may assign the name.
        counter = self._new_slot(start)
        head, inner, after = self._label(), self._label(), self._label()
        self._go(head)
        self._begin(head)
        count = self.define(f"load i64, ptr {counter.pointer}")
        test = self.define(f"icmp {'sgt' if step.startswith('-') else 'slt'} i64 {count}, {end.text}")
        self._branch(Operand("i1", test), inner, after)
        self._begin(inner)
        self._store(slot, Operand("i64", count))
        self.known[name] = slot
        self._ends_of_loops.append(after)
        self._block(body)
        self._ends_of_loops.pop()
        if not self.ends:
            following = self.define(f"add nsw i64 {count}, {step}")
            self._store(counter, Operand("i64", following))
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

    def _integer(self, node: ast.expr) -> Operand:
        return self.converted(self.value(self._expression(node)), "i64")

    def _expression(self, node: ast.expr) -> Entity:  # noqa: C901, PLR0911, PLR0912 (one case for each kind)
        match node:
            case ast.Constant(value=value):
                return Constant(value)
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute():
                return Constant(self._python(node))
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
                assert isinstance(array, ArrayArgument)
                return ArrayArgument(self.address(array, self._integer(lower)), array.dtype)
            case ast.Subscript(value=value, slice=index):
                return self._read(self._expression(value), index)
            case ast.Call():
                found = self._call(node)
                if found is None:
                    raise KernelLanguageError(f"{self.name}: {ast.unparse(node)} has no value")
                return found
            case _:
                raise KernelLanguageError(f"{self.name}: {ast.unparse(node)}")

    def _named(self, name: str) -> Entity:
        if name in self.known:
            return self.known[name]
        if name in self.globals:
            return Constant(self.globals[name])
        if hasattr(builtins, name):
            return Constant(getattr(builtins, name))
        raise KernelLanguageError(f"{self.name}: {name} is unknown")

    def _python(self, node: ast.expr) -> Any:
        """Return the Python object of a name with dots."""
        if isinstance(node, ast.Attribute):
            return getattr(self._python(node.value), node.attr)
        found = self._expression(node)
        assert isinstance(found, Constant)
        return found.value

    def _binary(self, op: ast.operator, left: Entity, right: Entity) -> Entity:
        if isinstance(left, Constant) and isinstance(right, Constant):
            return Constant(_PYTHON[type(op)](left.value, right.value))
        a, b = self.common(left, right)
        if a.type == "i1" and not isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
            a, b = self.converted(a, "i64"), self.converted(b, "i64")
        if isinstance(op, ast.Div) and a.type == "i64":
            a, b = self.converted(a, "float"), self.converted(b, "float")
        if isinstance(op, ast.FloorDiv | ast.Mod) and a.type == "i64":
            return self._floor(isinstance(op, ast.Mod), a, b)
        name = (_OF_FLOATS if a.type in FLOAT_TYPES else _OF_INTEGERS).get(type(op))
        if name is None:
            raise KernelLanguageError(f"{self.name}: {type(op).__name__} of {a.type}")
        return Operand(a.type, self.define(f"{name} {a.type} {a.text}, {b.text}"))

    def _floor(self, rest: bool, a: Operand, b: Operand) -> Operand:
        """Divide as Python does: down, so that the rest has the sign of the divisor."""
        remainder = self.define(f"srem i64 {a.text}, {b.text}")
        signs = self.define(f"xor i64 {remainder}, {b.text}")
        differs = self.define(f"icmp slt i64 {signs}, 0")
        some = self.define(f"icmp ne i64 {remainder}, 0")
        adjusts = self.define(f"and i1 {differs}, {some}")
        if rest:
            more = self.define(f"add i64 {remainder}, {b.text}")
            return Operand("i64", self.define(f"select i1 {adjusts}, i64 {more}, i64 {remainder}"))
        quotient = self.define(f"sdiv i64 {a.text}, {b.text}")
        less = self.define(f"sub i64 {quotient}, 1")
        return Operand("i64", self.define(f"select i1 {adjusts}, i64 {less}, i64 {quotient}"))

    def _unary(self, op: ast.unaryop, found: Entity) -> Entity:
        if isinstance(found, Constant):
            return Constant(-found.value if isinstance(op, ast.USub) else not found.value)
        value = self.value(found)
        match op:
            case ast.Not():
                return Operand("i1", self.define(f"xor i1 {self.converted(value, 'i1').text}, true"))
            case ast.Invert():
                return Operand("i64", self.define(f"xor i64 {self.converted(value, 'i64').text}, -1"))
            case _:
                return self.negative(value)

    def _compare(self, op: ast.cmpop, left: Entity, right: Entity) -> Entity:
        if isinstance(op, ast.Is | ast.IsNot):
            none = isinstance(left, Constant) and left.value is None
            return Constant(none == isinstance(op, ast.Is))
        if isinstance(left, Constant) and isinstance(right, Constant):
            return Constant(_PYTHON[type(op)](left.value, right.value))
        a, b = self.common(left, right)
        ordered, signed = _TESTS[type(op)]
        test = (
            f"fcmp {ordered}"
            if a.type in FLOAT_TYPES
            else f"icmp {signed if a.type == 'i64' else 'u' + signed[1:]}"
        )
        if a.type == "i1" and signed in ("eq", "ne"):
            test = f"icmp {signed}"
        return Operand("i1", self.define(f"{test} {a.type} {a.text}, {b.text}"))

    def _connected(self, conjunction: bool, nodes: Sequence[ast.expr]) -> Entity:
        """Write `and` or `or`, whose later parts are computed only where they decide."""
        first = self._expression(nodes[0])
        if isinstance(first, Constant):
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

    def _either(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Entity:
        found = self._expression(test)
        if isinstance(found, Constant):
            return self._expression(body if found.value else orelse)
        # Both sides are computed: neither may have a side effect, and reads are within their arrays.
        decides = self.converted(self.value(found), "i1")
        left, right = self._expression(body), self._expression(orelse)
        a, b = self.common(left, right)
        return Operand(a.type, self.define(f"select i1 {decides.text}, {a.type} {a.text}, {b.type} {b.text}"))

    def _read(self, found: Entity, index: ast.expr) -> Entity:
        if isinstance(found, Constant):
            position = self._expression(index)
            if isinstance(position, Constant):
                return Constant(found.value[position.value])
            at = self.converted(self.value(position), "i64")
            table = self.module.table(found.value)
            address = self.define(f"getelementptr inbounds i64, ptr {table}, i64 {at.text}")
            return Operand("i64", self.define(f"load i64, ptr {address}"))
        assert isinstance(found, ArrayArgument)
        (stored, kind), address = ELEMENTS[found.dtype], self.address(found, self._integer(index))
        loaded = self.define(f"load {stored}, ptr {address}")
        if kind == "i1":
            return Operand("i1", self.define(f"icmp ne i8 {loaded}, 0"))
        if stored != kind:
            loaded = self.define(f"{'zext' if found.dtype[0] == 'u' else 'sext'} {stored} {loaded} to i64")
        return Operand(kind, loaded)

    def _call(self, node: ast.Call) -> Entity | None:
        function = self._python(node.func)
        found = [self._expression(each) for each in node.args]
        if function in INTRINSICS:
            return INTRINSICS[function](self, found)
        match _OPERATORS.get(function):
            case ast.operator() as op:
                return self._binary(op, *found)
            case ast.cmpop() as op:
                return self._compare(op, *found)
            case ast.unaryop() as op:
                return self._unary(op, *found)
            case None:
                return self._call_function(function, found)

    def _call_function(self, function: Callable[..., Any], found: Sequence[Entity]) -> Entity | None:
        constants, arguments, passed = dict[str, Entity](), dict[str, str](), list[str]()
        for parameter, each in zip(_parsed(function).args.args, found, strict=True):
            match each:
                case Constant():
                    constants[parameter.arg] = each
                case ArrayArgument(pointer=pointer, dtype=dtype):
                    arguments[parameter.arg] = dtype
                    passed.append(f"ptr {pointer}")
                case _:
                    value = self.value(each)
                    arguments[parameter.arg] = value.type
                    passed.append(f"{value.type} {value.text}")
        name, kind = self.functions.function(function, constants, arguments)
        text = f"call {kind} @{name}({', '.join(passed)})"
        if kind == "void":
            self.lines.append(f"  {text}")
            return None
        return Operand(kind, self.define(text))


def _as_read(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
        case _:
            raise KernelLanguageError(f"{ast.unparse(target)} is assigned")


_OPERATORS: Mapping[Callable[..., Any], ast.operator | ast.cmpop | ast.unaryop] = {
    operator.add: ast.Add(), operator.sub: ast.Sub(), operator.mul: ast.Mult(), operator.neg: ast.USub(),
    operator.and_: ast.BitAnd(), operator.or_: ast.BitOr(), operator.xor: ast.BitXor(),
    operator.invert: ast.Invert(), operator.eq: ast.Eq(), operator.lt: ast.Lt(), operator.le: ast.LtE(),
    operator.gt: ast.Gt(), operator.ge: ast.GtE(),
}  # fmt: skip


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
