"""From a loop tree to callable machine code."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from planish.core import TargetError
from planish.loops.codegen.kernel import Code, Entry, layout
from planish.loops.codegen.x86 import cpu
from planish.loops.codegen.x86.function import Function
from planish.loops.codegen.x86.isa import Isa, IsaName, isa_of
from planish.loops.codegen.x86.listing import assembly
from planish.loops.codegen.x86.memory import ExecutableMemory
from planish.loops.codegen.x86.region import Analyser
from planish.loops.codegen.x86.registers import NoRegisterError
from planish.loops.ir.tree import Loop, LoopTree, Node, leaves, loops


def compile_tree(tree: LoopTree, isa: IsaName | None = None) -> Code:
    """Generate and map machine code, strictly following the tree (thesis 3.4).

    Differences from LoopNest: any element-wise expression, `max`, `min` and products as reductions,
    several leaves with shared loops, packing, threads; no scalar fall-back where gathers serve.

    Args:
        tree: what is executed; all of one element type.
        isa: "avx512" or "avx2"; None takes the best that the processor has.

    Returns:
        The functions of the body and of the ahead part.

    Raises:
        TargetError: the processor lacks the instruction set, the tree mixes element types, or an
            expression needs more registers than there are.
    """
    name = isa or cpu.best()
    dtypes = {b.dtype for b in tree.buffers}
    if len(dtypes) != 1:
        raise TargetError(f"a kernel of mixed element types: {', '.join(sorted(dtypes))}")
    groups, codes = _functions(tree, isa_of(name, dtypes.pop()))
    blob = bytearray()
    starts: list[list[int]] = []
    for functions in codes:
        starts.append([])
        for code in functions:
            blob += b"\xcc" * (-len(blob) % 64)
            starts[-1].append(len(blob))
            blob += code
    memory = ExecutableMemory(bytes(blob))
    entries = [
        tuple(
            _entry(memory.address + start, nodes, tree) for start, nodes in zip(places_, group, strict=True)
        )
        for places_, group in zip(starts, groups, strict=True)
    ]
    return Code(entries[0], entries[1], memory, lambda prefix: assembly(prefix, codes[0], codes[1]))


_Functions = tuple[list[list[tuple[Node, ...]]], list[list[bytes]]]
"""Of the body, and of the ahead part: the nodes of each function, and its code."""


def _functions(tree: LoopTree, isa: Isa, spares: Sequence[int] = (0, 4, 8)) -> _Functions:
    """Generate the functions of a tree.

    What the operands of some rare expressions need is known too late: then fewer results are held.
    """
    try:
        return _written(tree, Analyser(tree, isa, spares[0]))
    except NoRegisterError:
        if len(spares) == 1:
            raise
    return _functions(tree, isa, spares[1:])


def _written(tree: LoopTree, analyser: Analyser) -> _Functions:
    places = _places(tree)
    groups = [_group(tree.body[tree.views :]), _group(tree.ahead)]
    codes = [[Function(nodes, analyser, places).code() for nodes in group] for group in groups]
    if tree.views:
        groups[0].insert(0, tree.body[: tree.views])
        codes[0].insert(0, _view_code(analyser, places))
    return groups, codes


_views: dict[Hashable, bytes] = {}
_VIEWS_MAX = 1000


def _view_code(analyser: Analyser, places: dict[str, tuple[int, int]]) -> bytes:
    """Generate the copies of padded inputs, once for all schedules of a program."""
    tree = analyser.tree
    nodes = tree.body[: tree.views]
    sizes = tuple([tree.size[loop.axis] for loop in loops(nodes)])
    used = tuple([places[ref.buffer] for leaf in leaves(nodes) for ref in leaf.refs])
    key = nodes, sizes, used, analyser.isa
    known = _views.get(key)
    if known is None:
        if len(_views) >= _VIEWS_MAX:
            _views.clear()
        known = _views[key] = Function(nodes, analyser, places).code()
    return known


def _group(nodes: tuple[Node, ...]) -> list[tuple[Node, ...]]:
    """One function for all, unless some node is parallel."""
    if any(isinstance(n, Loop) and n.kind == "parallel" for n in nodes):
        return [(node,) for node in nodes]
    return [nodes] if nodes else []


def _entry(address: int, nodes: tuple[Node, ...], tree: LoopTree) -> Entry:
    node = nodes[0]
    if isinstance(node, Loop) and node.kind == "parallel":
        return Entry(address, -(-tree.size[node.axis] // node.step), True)
    return Entry(address)


def _places(tree: LoopTree) -> dict[str, tuple[int, int]]:
    """Where each buffer's address is: index into the arguments, and bytes to add."""
    given = [b.name for b in tree.buffers if b.kind != "temporary"]
    places = {name: (index, 0) for index, name in enumerate(given)}
    arranged = layout(tree)
    for name, offset in arranged.offsets.items():
        places[name] = (len(given) + (name in arranged.private), offset)
    return places
