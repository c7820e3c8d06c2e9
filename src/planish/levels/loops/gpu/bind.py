"""Kernels of a loop tree: loops become blocks and threads, buffers get a memory, and barriers are set.

Each node of the root becomes a kernel. Where the schedule binds its loops, the outermost ones bound to blocks
are the grid, and those bound to threads are executed side by side. Where nothing is bound, the outermost
loops whose iterations are independent are spread over all threads. `memory` places the buffers, and `body`
makes what is executed; barriers are set between threads that write a shared buffer and others that touch it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from planish.core import ScheduleError
from planish.levels.loops.gpu.body import Body
from planish.levels.loops.gpu.bulk import COPYING, require_alone, require_registers
from planish.levels.loops.gpu.copies import pipelined
from planish.levels.loops.gpu.edges import Path
from planish.levels.loops.gpu.kernels import (
    GLOBAL,
    PRIVATE,
    SHARED,
    Counts,
    GpuKernel,
    GpuProgram,
    synchronized,
)
from planish.levels.loops.gpu.layout import Bindings, KernelOptions, Layout
from planish.levels.loops.gpu.memory import Memory
from planish.levels.loops.gpu.nest import Nest
from planish.levels.loops.ir.schedule import loop_text
from planish.levels.loops.ir.tree import Loop, LoopId, LoopTree, Node, leaves, loops


def bind(tree: LoopTree, bindings: Bindings, copies: frozenset[str], layout: Layout) -> GpuProgram:
    """Make the kernels of a tree.

    Args:
        tree: from `planish.levels.loops.lower`.
        bindings: what stands for blocks and threads, in kernels whose outermost loop is bound.
        copies: the buffers that are filled by copying alone.
        layout: further choices.

    Raises:
        ScheduleError: threads or blocks would meet in an element, or a block loop is inside another loop.
    """

    def made(whole: Sequence[Node], stem: str) -> tuple[GpuKernel, ...]:
        nodes = [part for node in whole for part in _parts(node, copies)]
        bound = [bindings if isinstance(n, Loop) and n.id in bindings else {} for n in nodes]
        found = [_kernel(Nest(tree, b, copies, n), layout) for n, b in zip(nodes, bound, strict=True)]
        # As long as each other: Oclgrind takes the local memory of `run10` for that of `run1`, too.
        digits = len(str(len(found) - 1))
        return tuple(replace(kernel, name=f"{stem}{i:0{digits}}") for i, kernel in enumerate(found))

    return GpuProgram(tree, made(tree.body, "run"), made(tree.ahead, "prepare"))


def _parts(node: Node, copies: frozenset[str]) -> Iterator[Node]:
    """List the leaves of a copy, each with loops of its own, which are all spread over threads then.

    A padded copy has nests for its edges beside that of the inside; all write different elements.
    """
    if not isinstance(node, Loop) or any(leaf.target.buffer not in copies for leaf in leaves((node,))):
        yield node
        return
    for inner in node.body:
        for part in _parts(inner, copies):
            yield replace(node, body=(part,))


def _kernel(nest: Nest, layout: Layout) -> GpuKernel:
    """Make the kernel of a nest."""
    found = [options for name, options in layout.kernels.items() if name in nest.written]
    options = found[0] if found and nest.bindings else KernelOptions()
    launch = _bound(nest) if nest.bindings else _flat(nest)
    memory = Memory(nest, launch.threads, len(launch.blocks), layout, options)
    items = Body(nest, memory, launch.threads, layout, options).items(launch.nodes, launch.path)
    shared, private = memory.in_space(SHARED), memory.in_space(PRIVATE)
    names = frozenset(b.name for b in shared)
    if options.stages > 1:
        items, staged = pipelined(items, names, options, memory.tile_elements)
        shared = tuple(replace(b, size=staged.get(b.name, b.size)) for b in shared)
    block_size = prod(launch.threads.values())
    if not nest.bindings:
        block_size = min(layout.block_size, block_size)
    if block_size > 1:
        items = synchronized(items, names)
    if options.bulk:
        require_alone(items, memory.arranged)
    in_global = [b.name for b in nest.tree.buffers if memory.spaces.get(b.name) == GLOBAL]
    inputs = tuple(name for name in in_global if name not in nest.written)
    outputs = tuple(name for name in in_global if name in nest.written)
    blocks, threads = launch.blocks, tuple(launch.threads.items())
    kernel = GpuKernel(
        *("", blocks, threads, block_size, not nest.bindings, items, shared, private, inputs, outputs),
        raster=options.raster if len(blocks) > 1 else 0,
        resident=options.resident,
        arranged=memory.arranged,
        copying=COPYING if options.bulk else 0,
    )
    require_registers(kernel)
    return kernel


class _Launch(NamedTuple):
    """Loops of a nest that stand for blocks and threads.

    Args:
        blocks: block loop and its iterations, outermost first.
        threads: thread loop to its iterations.
        nodes: what a block executes; where nothing is bound, what a thread does.
        path: the loops around it.
    """

    blocks: Counts
    threads: Mapping[LoopId, int]
    nodes: tuple[Node, ...]
    path: Path


def _bound(nest: Nest) -> _Launch:
    """Find the loops that the schedule binds."""
    blocks, path, nodes = list[tuple[LoopId, int]](), Path(), (nest.root,)
    while len(nodes) == 1 and isinstance(loop := nodes[0], Loop) and nest.kind(loop) == "block":
        nest.require_independent(loop, len(blocks))
        extent = nest.edges.extent(loop.axis, path)
        blocks.append((loop.id, nest.trips[loop.id]))
        path = path.into(loop.id, extent, min(loop.step, extent), guarded=extent % loop.step != 0)
        nodes = loop.body
    for loop in loops(nodes):
        if nest.kind(loop) == "block":
            what = f"loop '{loop_text(loop.id)}' stands for blocks and is inside another loop"
            raise ScheduleError(what, "Put the loops of blocks outermost.")
    found = [loop for loop in nest.bindings if nest.bindings[loop] == "thread" and loop in nest.trips]
    return _Launch(tuple(blocks), {loop: nest.trips[loop] for loop in found}, nodes, path)


def _flat(nest: Nest) -> _Launch:
    """Spread the outermost loops whose iterations are independent over all threads."""
    threads, path, nodes = dict[LoopId, int](), Path(), (nest.root,)
    while len(nodes) == 1 and isinstance(loop := nodes[0], Loop):
        if not nest.is_independent(loop, len(path.levels)):
            break
        extent = nest.edges.extent(loop.axis, path)
        threads[loop.id] = nest.trips[loop.id]
        guarded = extent % loop.step != 0
        path = path.into(loop.id, extent, min(loop.step, extent), guarded=guarded, thread=True)
        nodes = loop.body
    return _Launch((), threads, nodes, path)
