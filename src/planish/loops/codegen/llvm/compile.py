"""From a loop tree to IR, and from there to callable code or files."""

from __future__ import annotations

from planish.loops.codegen.kernel import Code, Entry, arithmetic_of, layout
from planish.loops.codegen.llvm import jit
from planish.loops.codegen.llvm.machine import Machine, host_machine
from planish.loops.codegen.llvm.memory import Memory
from planish.loops.codegen.llvm.nest import Nest
from planish.loops.codegen.llvm.plan import Plan
from planish.loops.codegen.llvm.scope import Scopes
from planish.loops.codegen.llvm.writer import Lines, Writer, flattened
from planish.loops.ir.extent import iterations, within
from planish.loops.ir.tree import Loop, LoopTree, Node

OPT_LEVEL = 1
"""LLVM's code generator at its quickest that still allocates registers well."""
_OTHER_REGISTERS = 4
"""Registers that are left for operands, where others hold results."""


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
    text, names = module(tree, machine, "planish")
    owner, addresses = jit.load(text, [n for group in names for n in group], machine, opt_level)
    groups = [_group(tree.body), _group(tree.ahead)]
    nodes = [nodes for group in groups for nodes in group]
    entries = tuple(_entry(tree, a, n) for a, n in zip(addresses, nodes, strict=True))
    split = len(groups[0])
    return Code(
        entries[:split], entries[split:], owner, lambda prefix: emit(tree, prefix, machine, opt_level)
    )


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
    dtype = arithmetic_of(tree)
    scopes = Scopes(Plan(tree, machine, dtype), machine.registers - _OTHER_REGISTERS)
    declared: set[str] = set()
    parts: list[str] = []
    names: tuple[list[str], list[str]] = ([], [])
    for kind, body, known in (("run", tree.body, names[0]), ("prepare", tree.ahead, names[1])):
        groups = _group(body)
        for i, nodes in enumerate(groups):
            known.append(f"{prefix}_{kind}{i}")
            function = _Function(scopes, machine, dtype)
            parts.append(function.text(known[-1], nodes, whole=len(groups) == 1))
            declared |= function.writer.declared
    return "\n".join([*parts, *sorted(declared), ""]), names


def _group(nodes: tuple[Node, ...]) -> list[tuple[Node, ...]]:
    """One function for all nodes, unless some are parallel."""
    if any(_parallel(n) for n in nodes):
        return [(node,) for node in nodes]
    return [nodes] if nodes else []


def _parallel(node: Node) -> bool:
    return isinstance(node, Loop) and node.kind == "parallel"


def _entry(tree: LoopTree, address: int, nodes: tuple[Node, ...]) -> Entry:
    node = nodes[0]
    if isinstance(node, Loop) and node.kind == "parallel":
        full, tail = iterations(tree, {}, node)
        return Entry(address, full + (tail > 0), True)
    return Entry(address)


class _Function:
    def __init__(self, scopes: Scopes, machine: Machine, dtype: str) -> None:
        self.tree = tree = scopes.plan.tree
        self.machine = machine
        self.writer = Writer(dtype)
        self.memory = Memory(self.writer, tree.buffer, self._base, machine.registers)
        self.nest = Nest(scopes, self.writer, self.memory)
        self._arguments = [b.name for b in tree.buffers if b.kind != "temporary"]
        self._layout = layout(tree)

    def text(self, name: str, nodes: tuple[Node, ...], whole: bool) -> str:
        """Write the function."""
        node = nodes[0]
        if isinstance(node, Loop) and node.kind == "parallel":
            self._range(node)
        else:
            self.nest.nodes(nodes, {}, whole=whole)
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

    def _range(self, loop: Loop) -> None:
        """Write the iterations from %begin to %end of a loop; the tail is the last."""
        w = self.writer
        full, tail = iterations(self.tree, {}, loop)
        if full:
            within_full = w.define(f"icmp slt i64 %end, {full}")
            last = w.define(f"select i1 {within_full}, i64 %end, i64 {full}")
            some = w.define(f"icmp slt i64 %begin, {last}")
            w.lines.append(f"  br i1 {some}, label %some, label %rest")
            w.block("some")
            self.nest.counted_range(loop, "%begin", last)
            w.lines.append("  br label %rest")
            w.block("rest")
        if tail:
            self.memory.forget(frozenset(self.tree.buffer))
            reached = w.define(f"icmp sgt i64 %end, {full}")
            w.lines.append(f"  br i1 {reached}, label %tail, label %done")
            w.block("tail")
            self.nest.at[loop.id] = full
            self.nest.nodes(loop.body, within({}, loop.axis, tail))
            w.lines.append("  br label %done")
            w.block("done")
