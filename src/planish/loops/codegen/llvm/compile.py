"""From a loop tree to IR, and from there to callable code or files."""

from __future__ import annotations

from functools import partial

from planish.loops.codegen.kernel import Code, Entry, Layout, arithmetic_of, layout
from planish.loops.codegen.llvm import jit
from planish.loops.codegen.llvm.ir_writer import Lines, Writer, flattened
from planish.loops.codegen.llvm.machine import Machine, host_machine
from planish.loops.codegen.llvm.memory import Memory
from planish.loops.codegen.llvm.nodes import Nodes
from planish.loops.ir.annotated import AnnotatedTree, Function, Nest, Part
from planish.loops.ir.extent import iterations
from planish.loops.ir.tree import Loop, LoopTree
from planish.loops.lang.program import DTYPES
from planish.loops.lower.virtual import annotate

OPT_LEVEL = 1
"""LLVM's code generator at its quickest that still allocates registers well."""


def compile_tree(
    tree: LoopTree, *, vector_bits: int | None = None, opt_level: int = OPT_LEVEL, cpu: str = ""
) -> Code:
    """Generate vector code for this processor, and let LLVM translate it.

    The innermost loop is vectorised, results are held in registers, and what is inside them unrolled
    (thesis 3.4.2), all in the IR: LLVM selects instructions and allocates registers, and runs no passes
    that look for loops or vectors.

    Args:
        tree: what is executed; all computed in one type.
        vector_bits: width of the vectors; by default that of the processor.
        opt_level: effort of LLVM's code generator, 0 to 3.
        cpu: code for a processor by LLVM's name; it must run here. Empty for this one.

    Raises:
        TargetError: the tree mixes types to compute in.
    """
    machine = host_machine(cpu, vector_bits)
    annotated = annotated_for(tree, machine)
    text, names = _written(annotated, machine, "planish")
    owner, addresses = jit.load(text, [n for group in names for n in group], machine, opt_level)
    functions = (*annotated.body, *annotated.ahead)
    entries = tuple(_entry(tree, a, f) for a, f in zip(addresses, functions, strict=True))
    split = len(names[0])
    write = partial(emit, tree, machine=machine, opt_level=opt_level)
    again = partial(compile_tree, tree, vector_bits=vector_bits, opt_level=opt_level, cpu=cpu)
    return Code(entries[:split], entries[split:], owner, layout(annotated), write, annotated, again)


def emit(tree: LoopTree, prefix: str, machine: Machine | None = None, opt_level: int = OPT_LEVEL) -> str:
    """Write a tree's functions as assembly.

    Args:
        tree: what is executed.
        prefix: functions are named as `planish.loops.codegen.kernel.Code.assembly` says.
        machine: for which processor; by default this one.
        opt_level: effort of LLVM's code generator, 0 to 3.

    Raises:
        TargetError: the tree mixes types to compute in, or LLVM does not know the architecture.
    """
    machine = machine or host_machine()
    return jit.assembly(module(tree, machine, prefix)[0], machine, opt_level)


def emit_object(
    tree: LoopTree, prefix: str, machine: Machine | None = None, opt_level: int = OPT_LEVEL
) -> bytes:
    """Write a tree's functions as an object file; see `emit`."""
    machine = machine or host_machine()
    return jit.object_file(module(tree, machine, prefix)[0], machine, opt_level)


def module(tree: LoopTree, machine: Machine, prefix: str) -> tuple[str, tuple[list[str], list[str]]]:
    """Write a tree as IR.

    Returns:
        The text, and the names of the body's and of the ahead part's functions.
    """
    return _written(annotated_for(tree, machine), machine, prefix)


def annotated_for(tree: LoopTree, machine: Machine) -> AnnotatedTree:
    """Decide how a tree is executed on a machine.

    Raises:
        TargetError: the tree mixes types to compute in.
    """
    dtype = arithmetic_of(tree)
    return annotate(tree, machine.vectors(DTYPES[dtype]), dtype)


def _written(
    annotated: AnnotatedTree, machine: Machine, prefix: str
) -> tuple[str, tuple[list[str], list[str]]]:
    tree, declared = annotated.tree, set[str]()
    arranged = layout(annotated)
    parts: list[str] = []
    names: tuple[list[str], list[str]] = ([], [])
    for kind, functions, known in (("run", annotated.body, names[0]), ("prepare", annotated.ahead, names[1])):
        for i, function in enumerate(functions):
            known.append(f"{prefix}_{kind}{i}")
            code = _FunctionCode(tree, machine, arranged)
            parts.append(code.text(known[-1], function))
            declared |= code.writer.declared
    # Sorted: a set of strings has another order in each process, and the text should not.
    return "\n".join([*parts, *sorted(declared), ""]), names


def _entry(tree: LoopTree, address: int, function: Function) -> Entry:
    node = function.nodes[0]
    if function.kind == "parallel" and isinstance(node, Loop):
        full, tail = iterations(tree, {}, node)
        return Entry(address, full + (tail > 0), True)
    return Entry(address)


class _FunctionCode:
    def __init__(self, tree: LoopTree, machine: Machine, arranged: Layout) -> None:
        self.tree = tree
        self.machine = machine
        self.writer = Writer(arithmetic_of(tree))
        self.memory = Memory(self.writer, tree.buffer, self._base, machine.registers)
        self.nodes = Nodes(self.writer, self.memory)
        self._arguments = [b.name for b in tree.buffers if b.kind != "temporary"]
        self._layout = arranged

    def text(self, name: str, function: Function) -> str:
        """Write the function."""
        item = function.item
        if function.kind == "parallel" and isinstance(item, Nest):
            self._range(item)
        else:
            self.nodes.write(item)
        # Without it LLVM splits vectors of 512 bits on processors where it prefers 256.
        width = f'"prefer-vector-width"="{self.machine.vector_bits}"'
        head = f"define void @{name}(ptr %args, i64 %begin, i64 %end) nounwind {width} {{"
        return "\n".join([head, "entry:", *flattened(self.writer.lines), "  ret void", "}"])

    def _base(self, buffer: str, at: Lines) -> str:
        w = self.writer
        if buffer in self._layout.offsets:
            argument = len(self._arguments) + (buffer in self._layout.private)
            offset = self._layout.offsets[buffer]
        else:
            argument, offset = self._arguments.index(buffer), 0
        place = w.define(f"getelementptr ptr, ptr %args, i64 {argument}", at)
        start = w.define(f"load ptr, ptr {place}", at)
        return w.define(f"getelementptr i8, ptr {start}, i64 {offset}", at) if offset else start

    def _range(self, nest: Nest) -> None:
        """Write the iterations from %begin to %end of a loop; the tail is the last."""
        for part in nest.parts:
            if part.kind == "parallel":
                self._full(nest.loop, part)
            else:
                self._tail(nest.loop, part)

    def _full(self, loop: Loop, part: Part) -> None:
        w, full = self.writer, part.passes
        within_full = w.define(f"icmp slt i64 %end, {full}")
        last = w.define(f"select i1 {within_full}, i64 %end, i64 {full}")
        some = w.define(f"icmp slt i64 %begin, {last}")
        # The loop tests at its end, so that a range with no full iteration must go around it.
        w.lines.append(f"  br i1 {some}, label %some, label %rest")
        w.block("some")
        self.nodes.counted_range(loop, "%begin", last, part)
        w.lines.append("  br label %rest")
        w.block("rest")

    def _tail(self, loop: Loop, part: Part) -> None:
        w = self.writer
        # What was loaded in the other branch does not dominate this one.
        self.memory.forget(frozenset(self.tree.buffer))
        reached = w.define(f"icmp sgt i64 %end, {part.first}")
        w.lines.append(f"  br i1 {reached}, label %tail, label %done")
        w.block("tail")
        self.nodes.at[loop.id] = part.first
        self.nodes.write(part.body)
        w.lines.append("  br label %done")
        w.block("done")
