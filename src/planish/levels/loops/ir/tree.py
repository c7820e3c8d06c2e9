"""The loop tree: what a scheduled program is, and all that a code generator sees.

Semantics. A tree is executed in order, outermost first. `Loop(axis, step)` walks what remains of its
axis in strides of `step`: with `r` elements remaining, it runs `r // step` iterations inside which
`step` elements remain, and then, if `r % step` is not zero, one more (the tail) inside which `r % step`
remain. At the root all `sizes[axis]` elements remain. An axis may have several loops on one path,
with steps that decrease inward; the last one has step 1. Only in a nest that copies a tile for the loops
beside it may an axis end at a larger step: one that does not move the copy, or that a derived axis takes
the place of. All of this is known when code is generated (thesis 3.4.1: the generator follows it strictly
and never reorders).

A loop has a kind, which says how its iterations are executed. Back ends of other packages add kinds of their
own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from planish.levels.loops.lang.program import COMPARISONS, INDICES, Const, lazy

KINDS = ("serial", "unroll", "parallel")
"""Execution of a loop: in order, by repeating the body if that pays, or by threads."""

TO_FLOAT = "float"
"""The function that makes a float of an integer."""

# Trees

LoopId = tuple[str, int]
"""(axis, step): unique on a path from the root to a leaf."""


@dataclass(frozen=True)
class Buffer:
    """A contiguous piece of memory.

    Args:
        name: unique in the tree.
        dtype: one of `planish.levels.loops.lang.program.DTYPES`.
        size: in elements.
        kind: "input" and "output" come from the caller, "ahead" is filled by the tree's `ahead` part
            once and then only read, "temporary" belongs to the kernel.
        scope: for a temporary, how many loops enclose its lifetime; 0 for the whole kernel.
    """

    name: str
    dtype: str
    size: int
    kind: Literal["input", "output", "ahead", "temporary"]
    scope: int = 0


@dataclass(frozen=True)
class Ref:
    """An element of a buffer: `offset + sum(stride * iteration number of the loop)`, in elements.

    Args:
        buffer: its name.
        offset: where all loops are at their first iteration.
        strides: (loop, elements per iteration) for each enclosing loop that moves it; none is zero.
    """

    buffer: str
    offset: int
    strides: tuple[tuple[LoopId, int], ...]

    @lazy
    def stride(self) -> dict[LoopId, int]:
        """Loop to stride; a loop that does not move it is absent."""
        return dict(self.strides)


@dataclass(frozen=True)
class Call:
    """An element-wise function (of `planish.levels.loops.lang.program.FUNCTIONS`) of values.

    Besides these there is "gather", of a reference, a value, and two numbers, a stride and an extent: the
    element that lies so many strides after the reference as the value says, which is cut to an integer
    from 0 to the extent - 1; what is not a number is 0. A reference to an input of integers may be the
    value where all else is computed in another type. And there is `TO_FLOAT`, of an element of a buffer of
    `planish.levels.loops.lang.program.QINT32`.
    """

    function: str
    args: tuple[Value, ...]


Value = Ref | Const | Call


@dataclass(frozen=True)
class Leaf:
    """One element's computation: `target = value`, or `target = reduce(target, value)`.

    Reductions are initialized by leaves of their own.
    """

    target: Ref
    reduce: str | None
    value: Value

    @lazy
    def refs(self) -> tuple[Ref, ...]:
        """Its target, then what its value reads, left to right."""
        return self.target, *refs(self.value)


@dataclass(frozen=True)
class Loop:
    """A loop; see the module's text for what it means.

    Args:
        axis: which axis it walks.
        step: elements of the axis per iteration.
        body: what is inside, in order.
        kind: one of `planish.levels.loops.ir.tree.KINDS`. "parallel" only on a root's loop, over an axis
            that every leaf inside writes along; "unroll" asks the generator to repeat the body instead of
            looping.

    Attributes:
        id: (axis, step).
    """

    axis: str
    step: int
    body: tuple[Node, ...]
    kind: str = "serial"
    id: LoopId = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", (self.axis, self.step))
        if self.kind not in KINDS:
            raise ValueError(f"there is no kind of loop '{self.kind}'")

    @property
    def concurrent(self) -> bool:
        """Return whether its iterations may run at the same time."""
        return self.kind == "parallel"

    @lazy
    def side_by_side(self) -> bool:
        """Return whether its iterations may run side by side, as the lanes of a vector.

        Its body is leaves alone, and every element that one of them writes is touched by its own iteration
        only, or just reduced.
        """
        if not self.innermost or self.looks_up:
            return False
        return False not in [_stands_alone(leaf, self, self.leaves) for leaf in self.leaves]

    @lazy
    def looks_up(self) -> bool:
        """Return whether its iterations look different indices up: that is done one by one."""
        indices = [ref for leaf in self.leaves for call in _gathers(leaf.value) for ref in refs(call.args[1])]
        written = {leaf.target.buffer for leaf in self.leaves if indices}
        return any(self.id in ref.stride or ref.buffer in written for ref in indices)

    @lazy
    def leaves(self) -> list[Leaf]:
        """The leaves below, in order of execution."""
        return leaves(self.body)

    @property
    def innermost(self) -> bool:
        """Return whether its body is leaves alone."""
        for node in self.body:  # noqa: SIM110 (a generator takes longer than the loop)
            if isinstance(node, Loop):
                return False
        return True


def _gathers(value: Value) -> Iterator[Call]:
    """List the gathers of a value."""
    if isinstance(value, Call):
        if value.function == "gather":
            yield value
        for arg in value.args:
            yield from _gathers(arg)


def _numbers(value: Value) -> Iterator[Ref]:
    """List the references that are not indices as they are."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, Call):
        direct = value.function == "gather" and isinstance(value.args[1], Ref)
        for arg in value.args[:1] if direct else value.args:
            yield from _numbers(arg)


def _stands_alone(leaf: Leaf, loop: Loop, found: list[Leaf]) -> bool:
    """Return whether other iterations only reduce, or do not touch, what one of a loop's leaves writes."""
    target = leaf.target
    moves = loop.id in target.stride
    if not (moves or leaf.reduce):
        return False
    touched = [r for other in found for r in other.refs if r.buffer == target.buffer]
    # The same element may be read where the loop moves it: then each iteration touches its own.
    return False not in [r is target or (moves and r == target) for r in touched]


Node = Loop | Leaf


@dataclass(frozen=True)
class LoopTree:
    """A whole kernel.

    Args:
        body: executed at each call.
        ahead: executed once, to fill the "ahead" buffers; often empty.
        buffers: inputs, then outputs, then "ahead" ones, then temporaries: the calling convention's order.
        sizes: (axis, extent at the root).
        derived: (axis, ((other axis, coefficient), ...)): axes that copy a window of a tensor. Where such an
            axis has its outermost loop, `1 + sum(coefficient * (remaining of other - 1))` elements remain.
        views: how many of the body's first nodes copy padded inputs as a whole: they are the same for all
            schedules of a program.
    """

    body: tuple[Node, ...]
    ahead: tuple[Node, ...]
    buffers: tuple[Buffer, ...]
    sizes: tuple[tuple[str, int], ...]
    derived: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    views: int = 0

    @lazy
    def buffer(self) -> dict[str, Buffer]:
        """Name to buffer."""
        return {b.name: b for b in self.buffers}

    @lazy
    def size(self) -> dict[str, int]:
        """Axis to extent at the root."""
        return dict(self.sizes)

    @lazy
    def indices(self) -> frozenset[str]:
        """The inputs of integers that are read as indices alone."""
        found = [leaf.value for leaf in leaves((*self.ahead, *self.body))]
        indices = [call.args[1] for value in found for call in _gathers(value)]
        indexed = {index.buffer for index in indices if isinstance(index, Ref)}
        values = {ref.buffer for value in found for ref in _numbers(value)}
        inputs = {b.name for b in self.buffers if b.kind == "input" and b.dtype in INDICES}
        return frozenset(inputs & indexed - values)

    @lazy
    def window(self) -> dict[str, tuple[tuple[str, int], ...]]:
        """Derived axis to what it depends on."""
        return dict(self.derived)


def leaves(nodes: tuple[Node, ...]) -> list[Leaf]:
    """List the leaves below, in order of execution."""
    found: list[Leaf] = []
    for node in nodes:
        if isinstance(node, Leaf):
            found.append(node)
        else:
            found += node.leaves
    return found


def loops(nodes: tuple[Node, ...]) -> list[Loop]:
    """List the loops below, each before those inside it."""
    found = [node for node in nodes if isinstance(node, Loop)]
    return found + [loop for node in found for loop in loops(node.body)]


def refs(value: Value) -> Iterator[Ref]:
    """List the buffer elements that a value reads, left to right."""
    match value:
        case Ref():
            yield value
        case Call(args=args):
            for arg in args:
                yield from refs(arg)
        case Const():
            return


# Extents of loops

Remaining = Mapping[str, int]
"""Axis to the elements that remain of it; only axes with an enclosing loop are in it."""


def remaining(tree: LoopTree, inside: Remaining, axis: str) -> int:
    """Count the elements of an axis that the next loop over it would walk.

    Args:
        tree: the whole kernel.
        inside: what remains of the axes here.
        axis: any axis of the tree.
    """
    here = inside.get(axis)
    if here is not None:
        return here
    terms = tree.window.get(axis)
    if terms is None:
        return tree.size[axis]
    return 1 + sum([c * (remaining(tree, inside, other) - 1) for other, c in terms])


def iterations(tree: LoopTree, inside: Remaining, loop: Loop) -> tuple[int, int]:
    """Count a loop's iterations.

    Returns:
        The number of full iterations, inside which `loop.step` elements remain, and what remains inside
        the tail iteration that follows them; 0 where there is no tail.
    """
    return divmod(remaining(tree, inside, loop.axis), loop.step)


def within(inside: Remaining, axis: str, rest: int) -> dict[str, int]:
    """Return the elements that remain inside an iteration of a loop over `axis`, of which `rest` remain."""
    return {**inside, axis: rest}


# Schedules

# Listing

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_UPDATE = {
    "add": "{0} += {1}",
    "mul": "{0} *= {1}",
    "max": "{0} = max({0}, {1})",
    "min": "{0} = min({0}, {1})",
}


def pseudocode(tree: LoopTree) -> str:
    """Write a tree as pseudo-code, with the counters of loops and flat subscripts.

    A loop over tiles is written `for m.12 in 0..16 of 12 (tail 8)`: sixteen iterations of twelve elements,
    and one of eight. `m.12` is its iteration number, `m` that of the loop of step 1.
    """
    lines: list[str] = []
    for b in tree.buffers:
        where = f", new in each iteration of {b.scope} loops" if b.scope else ""
        lines.append(f"{b.kind} {b.name}: {b.dtype}[{b.size}]{where}")
    for title, nodes in (("once, ahead of the first call", tree.ahead), ("each call", tree.body)):
        if nodes and tree.ahead:
            lines += ["", f"# {title}"]
        elif nodes:
            lines.append("")
        lines += _nodes(tree, nodes, {}, "")
    return "\n".join(lines) + "\n"


def _nodes(tree: LoopTree, nodes: tuple[Node, ...], inside: Remaining, indent: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Leaf):
            target, value = _ref(node.target), _value(node.value)
            value = value[1:-1] if value.startswith("(") and value.endswith(")") else value
            update = _UPDATE[node.reduce] if node.reduce else "{0} = {1}"
            yield indent + update.format(target, value)
            continue
        full, tail = iterations(tree, inside, node)
        kind = "" if node.kind == "serial" else f"{node.kind} "
        of = f" of {node.step}" if node.step > 1 else ""
        rest = f" (tail {tail})" if tail else ""
        yield f"{indent}{kind}for {_counter(node.axis, node.step)} in 0..{full}{of}{rest}:"
        inner = within(inside, node.axis, node.step if full else tail)
        yield from _nodes(tree, node.body, inner, indent + "  ")


def _value(value: Value) -> str:
    match value:
        case Const():
            return str(value)
        case Ref():
            return _ref(value)
        case _:
            args = [_value(v) for v in value.args]
            if value.function in _INFIX:
                return f"({args[0]} {_INFIX[value.function]} {args[1]})"
            if value.function in COMPARISONS:
                return f"where({args[0]} {value.function} {args[1]}, {args[2]}, {args[3]})"
            return f"{value.function}({', '.join(args)})"


def _ref(ref: Ref) -> str:
    counters = [(stride, _counter(axis, step)) for (axis, step), stride in ref.strides]
    terms = [counter if stride == 1 else f"{stride}*{counter}" for stride, counter in counters]
    if ref.offset or not terms:
        terms.append(str(ref.offset))
    return f"{ref.buffer}[{' + '.join(terms).replace('+ -', '- ')}]"


def _counter(axis: str, step: int) -> str:
    return axis if step == 1 else f"{axis}.{step}"
