"""Programs of the level `loops` as an environment of Gymnasium, measured on this machine.

`gymnasium.make("planish.tuning.environment:planish/LoopTune-v0", programs=[...])` finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

from planish.core import (
    Candidate,
    CanObserve,
    Evaluation,
    Lost,
    Measured,
    Outcome,
    PlanishError,
    Task,
    Trial,
)
from planish.executors import LocalExecutor
from planish.learn.rl import Ground, StepEnvironment
from planish.levels import level_named, load_program
from planish.settings import Settings
from planish.store import Store, store_at
from planish.tuning.api import task_of

if TYPE_CHECKING:
    from planish.core import Program

NAME = "planish/LoopTune-v0"
REMEMBERED = 256
"""Programs whose states are held in memory; the store has the others'."""


def make_environment(
    programs: Sequence[str | Program],
    *,
    space: str = "steps",
    steps: int = 10,
    store: Store | str | Path | None = None,
) -> StepEnvironment:
    """Make an environment of programs, whose candidates are verified and timed as in any search.

    Args:
        programs: texts with their sizes ("C[m,n] += A[m,k] * B[k,n] | m=64,n=64,k=64"), or programs.
        space: a space of numbered actions.
        steps: of an episode.
        store: what is measured is kept there, so that no state is measured twice; None for the user's own.

    Raises:
        PlanishError: there is no program; one cannot be read; the space has no numbered actions.
    """
    if not programs:
        raise PlanishError("an environment needs programs", "Give at least one.")
    field = _Field([_read(program) for program in programs], space, store)
    try:
        return StepEnvironment(lru_cache(REMEMBERED)(field.ground), len(programs), steps, field.close)
    except BaseException:
        field.close()
        raise


def _read(program: str | Program) -> Program:
    if not isinstance(program, str):
        return program
    text, _, sizes = program.partition(" | ")
    return load_program(text, "loops", {"size": sizes})[1]


class _Field:
    """The programs, and the worker that measures them.

    Args:
        programs: of one level.
        space: the name of their spaces.
        store: keeps what was measured.
    """

    def __init__(self, programs: Sequence[Program], space: str, store: Store | str | Path | None) -> None:
        self._programs, self._space = programs, space
        self._level, self._resources = level_named(programs[0].level), ExitStack()
        self._store = self._resources.enter_context(store_at(store))
        self._executor: LocalExecutor | None = None
        self._served = ""

    def close(self) -> None:
        """End the worker and the runs, and close the store where it was opened here."""
        self._resources.close()

    def ground(self, number: int) -> Ground:
        """Give a program as the ground of episodes."""
        task = task_of(self._level, self._programs[number], Settings(cores=1))
        space = self._level.space(task, self._space)
        if not isinstance(space, CanObserve):
            raise PlanishError(f"the space '{self._space}' has no numbered actions", "Take --space steps.")
        return Ground(task.program.text, space, self._rate(task, space), _peak(task))

    def _rate(self, task: Task, space: CanObserve) -> Callable[[Candidate], float]:
        """Give what measures a candidate, each state once."""
        run_id = self._store.begin_run(task, searcher="environment", space=self._space, seed=0)
        self._resources.callback(self._store.finish_run, run_id)
        trials = self._store.trials(task.key, self._level.steps)
        known = {space.state(t.candidate): _gflops(t.outcome) for t in trials if _is_of(space, t.candidate)}
        places = count()

        def rate(candidate: Candidate) -> float:
            state = space.state(candidate)
            if state not in known:
                answer = self._evaluated(task, candidate)
                # Not remembered either: the next visit measures it again.
                if isinstance(answer.outcome, Lost):
                    return 0.0  # its worker was killed: nothing is known of it
                trial = Trial(candidate, answer.outcome, next(places), 0, answer.seconds, answer.host)
                self._store.add_trials(run_id, [trial])
                known[state] = _gflops(answer.outcome)
            return known[state]

        return rate

    def _evaluated(self, task: Task, candidate: Candidate) -> Evaluation:
        spec = self._level.evaluator(task)
        if self._executor is None:
            self._executor = self._resources.enter_context(LocalExecutor(spec, workers=1))
        elif self._served != task.key:
            self._executor.serve(spec)
        self._served = task.key
        self._executor.submit([candidate])
        return next(iter(list(self._executor.answers())))


def _gflops(outcome: Outcome) -> float:
    return outcome.values["gflops"] if isinstance(outcome, Measured) else 0.0


def _is_of(space: CanObserve, candidate: Candidate) -> bool:
    try:
        space.state(candidate)
    except PlanishError:  # of another space
        return False
    return True


def _peak(task: Task[Any]) -> float:
    from planish.loops.peak import measured_peak

    return measured_peak(task.target.toolchain["backend"])


gymnasium.register(NAME, entry_point="planish.tuning.environment:make_environment")
