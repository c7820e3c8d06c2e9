"""What a task is searched in, measured with, and compared with."""

from __future__ import annotations

from collections.abc import Sequence

from planish.core import Candidate, Reference, Task
from planish.graph.counters import counters
from planish.graph.evaluator import LAST_TIMING, TIMING, GraphEvaluator, lacking
from planish.graph.passes import Selection, passes_of_kind
from planish.graph.program import GraphProgram, graph_program
from planish.graph.running import Settings
from planish.graph.space import Letters, SelectionSpace
from planish.measure import Limits

_PACE = 20e6
"""Bytes of a model for which each stage is given another second, beyond its usual limit."""


def recipe_of(task: Task, *, final: bool = False) -> GraphEvaluator:
    """Make the recipe for a task's evaluator; see `planish.core.Level.evaluator`.

    Raises:
        PlanishError: an objective cannot be measured here.
    """
    program = graph_program(task.program)
    names = frozenset(objective.name for objective in task.objectives)
    wrong = lacking(names, program, counters())
    if wrong is not None:
        raise wrong
    return GraphEvaluator(
        program,
        settings_of(task),
        names,
        _limits(program),
        LAST_TIMING if final else TIMING,
        remember=not final,
    )


def settings_of(task: Task) -> Settings:
    """Give the settings of every session of a task."""
    return Settings.of(task.target.cores, task.target.toolchain)


def space_of(task: Task, *, pruned: bool) -> SelectionSpace:
    """Make the space of a task.

    Args:
        task: the model; its objectives tell whether files may be optimised offline.
        pruned: whether passes that do not change this model are left out.
    """
    program = graph_program(task.program)
    wanted = {objective.name for objective in task.objectives}

    def letters() -> Letters:
        rewrites = [each.name for each in passes_of_kind("onnxoptimizer", "onnxscript")]
        disables = [each.name for each in passes_of_kind("rule", "transformer") if pruned or each.when]
        return Letters((*rewrites, *program.allow), tuple(disables), "compile_time" in wanted)

    return SelectionSpace(letters, str, [Selection(), Selection(("onnxscript.optimize",))])


def unoptimised() -> Selection:
    """Select nothing: every pass of the runtime is left out."""
    return Selection((), frozenset(each.name for each in passes_of_kind("transformer", "rule")))


def compared(task: Task, candidate: Candidate) -> Sequence[Candidate]:
    """List what the winner is compared with: the baseline, and the list that its class begins with."""
    del task, candidate
    return [Candidate()]


def no_optimisation(task: Task) -> Reference:
    """Give the model as it came, with every optimisation of the runtime left out."""
    return Reference("no optimisation", unoptimised().candidate, recipe_of(task, final=True))


def _limits(program: GraphProgram) -> Limits:
    more = program.file.stat().st_size / _PACE
    return Limits(transform=20 + more, build=20 + more, verify=20 + more, run=30 + more, worker=60 + more)
