"""From a loop tree to callable machine code."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

from planish.loops.codegen.kernel import Code, Entry, Layout, arithmetic_of, layout
from planish.loops.codegen.x86 import cpu
from planish.loops.codegen.x86.aligned import where_aligned
from planish.loops.codegen.x86.function import FunctionCode
from planish.loops.codegen.x86.isa import Isa, IsaName, isa_of
from planish.loops.codegen.x86.listing import assembly
from planish.loops.codegen.x86.memory import ExecutableMemory
from planish.loops.codegen.x86.registers import NoRegisterError
from planish.loops.ir.annotated import AnnotatedTree, Function
from planish.loops.ir.tree import Loop, LoopTree, leaves
from planish.loops.lower.physical import annotate


def compile_tree(tree: LoopTree, isa: IsaName | None = None, extras: frozenset[str] | None = None) -> Code:
    """Generate and map machine code, strictly following the tree (thesis 3.4).

    Differences from LoopNest: any element-wise expression, `max`, `min` and products as reductions,
    several leaves with shared loops, packing, threads; no scalar fall-back where gathers serve.

    Args:
        tree: what is executed; all computed in one type.
        isa: "avx512" or "avx2"; None takes the best that the processor has.
        extras: other features of the processor that may be used; None takes all that it has.

    Returns:
        The functions of the body and of the ahead part.

    Raises:
        TargetError: the processor lacks the instruction set, the tree mixes types to compute in, or an
            expression needs more registers than there are.
    """
    name = isa or cpu.best()
    arithmetic, used = arithmetic_of(tree), frozenset[str]()
    if any(b.dtype != arithmetic for b in tree.buffers):
        cpu.check_narrow(name)
        used = cpu.features() if extras is None else extras
    annotated, codes = _generated(tree, isa_of(name, arithmetic, used))
    blob = bytearray()
    entries: list[list[Entry]] = []
    for functions, parts in zip((annotated.body, annotated.ahead), codes, strict=True):
        entries.append([])
        for function, code in zip(functions, parts, strict=True):
            # int3: what is executed by mistake traps.
            blob += b"\xcc" * (-len(blob) % 64)
            entries[-1].append(_entry(len(blob), function, tree))
            blob += code
    memory = ExecutableMemory(bytes(blob))
    run, prepare = [tuple([replace(e, address=memory.address + e.address) for e in es]) for es in entries]
    again = partial(compile_tree, tree, isa, extras)
    places = layout(annotated)
    return Code(run, prepare, memory, places, lambda prefix: assembly(prefix, *codes), annotated, again)


_Codes = tuple[list[bytes], list[bytes]]
"""The functions of the body, and those of the ahead part."""


def _generated(tree: LoopTree, isa: Isa, spares: Sequence[int] = (0, 4, 8)) -> tuple[AnnotatedTree, _Codes]:
    """Annotate a tree and generate its functions.

    What the operands of some rare expressions need is known too late: then fewer results are held.
    """
    annotated = annotate(tree, isa.vectors, spares[0])
    places = _places(tree, layout(annotated))
    try:
        # All copies of padded inputs are the first function of the body, if there are any.
        body = [
            _code(f, annotated, isa, places, again=i < bool(tree.views)) for i, f in enumerate(annotated.body)
        ]
        return annotated, (body, [FunctionCode(f, tree, isa, places).code() for f in annotated.ahead])
    except NoRegisterError:
        if len(spares) == 1:
            raise
    return _generated(tree, isa, spares[1:])


_Places = dict[str, tuple[int, int]]
# The function stays beside its code, so that no other object is given its id.
_views: dict[Hashable, tuple[Function, bytes]] = {}
_VIEWS_MAX = 1000


def _code(function: Function, annotated: AnnotatedTree, isa: Isa, places: _Places, *, again: bool) -> bytes:
    """Generate a function; copies of padded inputs come `again`, the same for all schedules of a program."""
    tree = annotated.tree
    named = [ref.buffer for leaf in leaves(function.nodes) for ref in leaf.refs]
    if not again:
        plain = FunctionCode(function, tree, isa, places).code()
        past = annotated.past_caches & set(named)
        if not past:
            return plain
        quick = FunctionCode(function, tree, isa, places, past).code()
        return where_aligned([places[name][0] for name in sorted(past)], isa.bytes, quick, plain)
    used = tuple([(places.get(name), tree.buffer[name].dtype) for name in named])
    key = id(function), used, isa
    if key not in _views:
        if len(_views) >= _VIEWS_MAX:
            _views.clear()
        _views[key] = function, FunctionCode(function, tree, isa, places).code()
    return _views[key][1]


def _entry(start: int, function: Function, tree: LoopTree) -> Entry:
    node = function.nodes[0]
    if function.kind == "parallel" and isinstance(node, Loop):
        return Entry(start, -(-tree.size[node.axis] // node.step), True)
    return Entry(start)


def _places(tree: LoopTree, arranged: Layout) -> _Places:
    """Where each buffer's address is: index into the arguments, and bytes to add."""
    given = [b.name for b in tree.buffers if b.kind != "temporary"]
    places = {name: (index, 0) for index, name in enumerate(given)}
    for name, offset in arranged.offsets.items():
        places[name] = (len(given) + (name in arranged.private), offset)
    return places
