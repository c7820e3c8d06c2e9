"""The rules that join a schedule's parts; every step ends here."""

from __future__ import annotations

from planish.core import ScheduleError, did_you_mean
from planish.loops.ir.schedule import Packing, Schedule, loop_text
from planish.loops.lang.gathering import tables
from planish.loops.lang.scattering import is_spread


def checked(schedule: Schedule) -> Schedule:
    """Give the schedule back if it is legal.

    Raises:
        ScheduleError: a parallel loop is not outermost or is reduced; a packing or a staging has lost its
            loop, or makes no sense there. The message names the rule, the loop and the tensor.
    """
    for nest, loop in schedule.parallel:
        _check_parallel(schedule, nest, loop_text(loop))
    for pack in schedule.packs:
        _check_pack(schedule, pack)
    for tensor, loop in schedule.staged:
        if not any(loop in schedule.loops[i] for i in schedule.graph.writers[tensor]):
            raise ScheduleError(
                f"loop '{loop_text(loop)}' cannot go: tensor '{tensor}' is staged there", "Stage it last."
            )
    return schedule


def _check_parallel(schedule: Schedule, i: int, text: str) -> None:
    nest, order = schedule.graph.nests[i], schedule.loops[i]
    # Threads share the work once a call: inside another loop they would meet in each of its passes.
    if loop_text(order[0]) != text:
        raise ScheduleError(
            f"parallel loop '{text}' must be outermost in nest '{nest.name}'",
            f"The outermost is '{loop_text(order[0])}'.",
        )
    if order[0][0] in nest.reduced:
        axis, target = order[0][0], nest.statement.target
        if axis in nest.statement.output_axes:
            raise ScheduleError(
                f"loop '{text}' cannot be parallel: its iterations meet in elements of {target}",
                "Put a loop outermost whose axis subscripts a dimension alone.",
            )
        raise ScheduleError(
            f"loop '{text}' cannot be parallel: nest '{nest.name}' reduces axis '{axis}'",
            "Put a loop over an axis of the result outermost.",
        )


def _check_pack(schedule: Schedule, pack: Packing) -> None:
    nest, order = schedule.graph.nests[pack.nest], schedule.loops[pack.nest]
    at = loop_text(pack.at) if pack.at else "root"
    if pack.at is not None and pack.at not in order:
        raise ScheduleError(f"loop '{at}' cannot go: tensor '{pack.tensor}' is packed there", "Pack it last.")
    depth = order.index(pack.at) + 1 if pack.at else 0
    around, inside = order[:depth], order[depth:]
    if pack.tensor == nest.statement.target.tensor:
        axes = _check_output(schedule, pack, at, [axis for axis, _ in around])
    else:
        axes = _check_input(schedule, pack)
    if not any(axis in axes for axis, _ in inside):
        raise ScheduleError(
            f"cannot pack '{pack.tensor}' at '{at}': no loop inside moves it", "Pack it further out."
        )


def _check_output(schedule: Schedule, pack: Packing, at: str, around: list[str]) -> set[str]:
    nest = schedule.graph.nests[pack.nest]
    if pack.ahead or pack.tensor not in schedule.program.outputs:
        raise ScheduleError(
            f"cannot pack '{pack.tensor}'{' ahead' if pack.ahead else ''}: its nest writes it",
            "Ahead goes with inputs; and a tensor between nests has a tile of its own.",
        )
    if is_spread(nest.statement.target):
        raise ScheduleError(
            f"cannot pack output '{pack.tensor}': it is written as {nest.statement.target}",
            "Only what is written axis by axis can be packed.",
        )
    reduced = sorted(nest.reduced.intersection(around))
    # The tile would be taken away after each pass of that loop, with a part of the sum in it.
    if reduced:
        raise ScheduleError(
            f"cannot pack output '{pack.tensor}' at '{at}': a loop around it reduces axis '{reduced[0]}'",
            "Pack it outside all loops of reduced axes.",
        )
    return set(nest.statement.output_axes)


def _check_input(schedule: Schedule, pack: Packing) -> set[str]:
    nest = schedule.graph.nests[pack.nest]
    ways = [o.access for o in nest.operands if o.access.tensor == pack.tensor]
    if not ways:
        known = [*(o.access.tensor for o in nest.operands), nest.statement.target.tensor]
        raise ScheduleError(
            f"nest '{nest.name}' neither reads nor writes tensor '{pack.tensor}'",
            did_you_mean(pack.tensor, known),
        )
    if pack.tensor in schedule.program.whole_indices:
        raise ScheduleError(
            f"cannot pack '{pack.tensor}': it has indices of {schedule.program.type[pack.tensor].dtype}",
            "Only what is computed with can be packed.",
        )
    if ways[0] in tables(nest.statement.value):
        raise ScheduleError(
            f"cannot pack '{pack.tensor}': nest '{nest.name}' reads it by the elements of another tensor",
            "Only a tensor that is read by loops alone can be packed.",
        )
    # A packed tile lies in the order of the one way in which it is read.
    if len(ways) > 1:
        raise ScheduleError(
            f"cannot pack '{pack.tensor}': nest '{nest.name}' reads it in {len(ways)} ways",
            "Only a tensor that is read in one way can be packed.",
        )
    # What is packed once for all calls is packed as a whole: no loop runs yet.
    if pack.ahead and pack.at is not None:
        raise ScheduleError(f"cannot pack '{pack.tensor}' ahead inside a loop", "Use at='root'.")
    if pack.ahead and pack.tensor not in schedule.program.constants:
        raise ScheduleError(
            f"cannot pack '{pack.tensor}' ahead: it is not constant",
            f"If it keeps its value from call to call, say so (--constant {pack.tensor}).",
        )
    return {axis for index in ways[0].index for axis, _ in index.terms}
