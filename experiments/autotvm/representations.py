"""AutoTVM's three representations of a candidate (figure 9): knobs, loops, and what relates them.

Schedules of GPUs have loops, too: "schedules" describes those of processors and of GPUs in the same columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import astuple
from typing import Self

import numpy as np
from numpy.typing import NDArray
from relations import RELATIONS, relations

from planish.core import Candidate, FeatureSchema, Target
from planish.core.step import steps_from_text
from planish.levels.loops.context import context_of
from planish.levels.loops.features import LOOPS, SCHEMA, SLOTS, NestTable, features_of
from planish.levels.loops.gpu.schedule import gpu_schedule_of
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.gpu.steps import GPU_STEPS
from planish.levels.loops.ir.schedule import Graph, Schedule
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.facts import machine_of
from planish.levels.loops.space.template import TemplateSpace

AXES, EACH = 8, 3
"""Axes that there is room for, and loops of each; the axes are in the program's order, whatever they mean."""
KNOBS = (
    *[
        f"{what} {i} of axis {axis}"
        for axis in range(AXES)
        for what in ("step", "place")
        for i in range(EACH)
    ],
    *[f"{what} of slot {slot}" for what in ("copy", "ahead") for slot in range(SLOTS)],
    "unrolled",
    "threads",
)
GPU_KNOBS, GPU_NUMBERS = 20, 4
"""Knobs of a space of GPU schedules that there is room for, and numbers of each."""
REPRESENTATIONS = ("configuration", "flattened", "relations", "all", "all and relations")
"""Knobs; the rows of the loops one after another; AutoTVM's relation features R; what the level gives, which
is the rows of the loops, totals, and what each cache holds; and that with R."""
OF_LOOPS = np.array([", loop " in name for name in SCHEMA.names])
SCHEMAS = {
    "configuration": FeatureSchema("loops/knobs", 1, KNOBS),
    "flattened": FeatureSchema("loops/rows", 1, tuple(np.array(SCHEMA.names)[OF_LOOPS].tolist())),
    "relations": RELATIONS,
    "all": SCHEMA,
    "schedules": SCHEMA,
    "all and relations": FeatureSchema("loops/both", 1, (*SCHEMA.names, *RELATIONS.names)),
}


class HasRepresentation:
    """Has one of several ways to describe the candidates of a space.

    Attributes:
        representation: name of the way.
    """

    representation = "all"

    def by(self, representation: str) -> Self:
        """Give the space with another representation."""
        made = copy(self)
        made.representation = representation
        return made


class Represented(HasRepresentation, TemplateSpace):
    """A template space that describes its candidates in one of `REPRESENTATIONS`."""

    @property
    def knob_names(self) -> Sequence[str]:
        """The names of all knobs."""
        return [knob.name for knob in self.knobs]

    @property
    def schema(self) -> FeatureSchema:
        """The columns of the representation."""
        return SCHEMAS[self.representation]

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe candidates; (candidates, width of the schema)."""
        if self.representation == "configuration":
            return self._knobs([*map(self.schedule, candidates)])
        found = super().features(candidates)
        if self.representation == "flattened":
            return found[:, OF_LOOPS]
        if self.representation == "relations":
            return relations(found)
        return np.hstack([found, relations(found)]) if self.representation == "all and relations" else found

    def _knobs(self, schedules: Sequence[Schedule]) -> NDArray[np.float32]:
        found = np.zeros((len(schedules), self.schema.width), np.float32)
        groups: dict[Graph, list[int]] = {}  # with fused axes, one program has several
        for number, schedule in enumerate(schedules):
            groups.setdefault(schedule.graph, []).append(number)
        for mine in groups.values():
            found[mine] = knobs(NestTable.of([schedules[number] for number in mine]))
        return found


class GpuRepresented(HasRepresentation, GpuSpace):
    """A space of GPU schedules that describes its candidates in one of three ways.

    They are "configuration", the numbers of all knobs; "schedules", what the level gives for processors; and
    "all", what it gives for GPUs.

    Args:
        program: what is scheduled.
        target: a device.
    """

    def __init__(self, program: Program, target: Target) -> None:
        super().__init__(program, target)
        self._made_for = program, target

    @property
    def knob_names(self) -> Sequence[str]:
        """The names of all knobs."""
        return [*self._knobs]

    def choices(self, candidate: Candidate) -> Mapping[str, str]:
        """Read a candidate back into the alternatives that it is made of."""
        return {name: str(step) for name, step in self._choice(candidate).items() if step is not None}

    def candidate(self, choices: Mapping[str, str]) -> Candidate:
        """Make a candidate."""
        texts = [choices[name] for name in self._knobs if name in choices]
        return Candidate(steps_from_text("\n".join(texts), GPU_STEPS))

    @property
    def schema(self) -> FeatureSchema:
        """The columns of the representation."""
        if self.representation == "configuration":
            names = (f"number {i} of knob {knob}" for knob in range(GPU_KNOBS) for i in range(GPU_NUMBERS))
            return FeatureSchema("loops/gpu-knobs", 1, tuple(names))
        return SCHEMA if self.representation == "schedules" else super().schema

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe candidates; (candidates, width of the schema)."""
        if self.representation == "configuration":
            return np.stack([self._numbers(each) for each in candidates])
        if self.representation == "schedules":
            program, target = self._made_for
            schedules = [gpu_schedule_of(program, each)[0] for each in candidates]
            machine = machine_of(target)
            context = context_of(program, machine, target.cores)
            return features_of(schedules, self._gpu.lanes, machine, context)
        return super().features(candidates)

    def _numbers(self, candidate: Candidate) -> NDArray[np.float32]:
        """Read the numbers of each knob's step; -1 where there is none."""
        found = np.full((GPU_KNOBS, GPU_NUMBERS), -1.0, np.float32)
        chosen = self._choice(candidate)
        for row, name in enumerate(self.knob_names[:GPU_KNOBS]):
            if (step := chosen[name]) is not None:
                values = [value for value in astuple(step) if isinstance(value, int)] or [1]
                found[row, : len(values)] = np.log2(1 + np.array(values))
        return found.reshape(-1)


def knobs(table: NestTable) -> NDArray[np.float32]:
    """Read the knobs: of each axis the tiles and where their loops stand, copies, unrolling, threads."""
    columns: list[NDArray[np.float64]] = []
    for axis in range(AXES):
        mine = (table.axis == axis) & (axis < len(table.size) - 1)
        for values in (np.log2(table.step), np.broadcast_to(np.arange(LOOPS), mine.shape)):
            columns += [-np.sort(-np.where(mine, values, -1.0), axis=1)[:, :EACH]]
    slots = np.full((2, len(table.axis), SLOTS), -1.0)
    slots[0, :, : table.packed.shape[1]] = table.packed
    slots[1, :, : table.ahead.shape[1]] = table.ahead
    last = np.stack([table.unrolled.sum(axis=1), table.parallel.any(axis=1)], axis=1)
    return np.concatenate([*columns, *slots, last], axis=1).astype(np.float32)


def represented(program: Program, target: Target) -> Represented | GpuRepresented:
    """Give the space of a program's candidates on a target."""
    made = GpuRepresented if program.backend.startswith("opencl") else Represented
    return made(program, target)
