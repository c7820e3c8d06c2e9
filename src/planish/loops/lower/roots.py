"""Which root nodes one machine function executes."""

from __future__ import annotations

from planish.loops.ir.tree import Loop, Node


def root_groups(nodes: tuple[Node, ...]) -> list[tuple[Node, ...]]:
    """Group root nodes by function: one for all of them, unless some are parallel."""
    # Threads meet at the end of a function: what comes before and after a parallel loop is none of its own.
    if any(isinstance(n, Loop) and n.concurrent for n in nodes):
        return [(node,) for node in nodes]
    return [nodes] if nodes else []
