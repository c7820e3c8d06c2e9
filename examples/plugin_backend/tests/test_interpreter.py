"""The interpreter does what every back end must do, and is found by its entry point."""

from contextlib import AbstractContextManager, nullcontext

from planish.core import Candidate, Measured, Stage, Task
from planish.levels.loops.backends import backend_named, backend_names
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.testing.backends import BackendConformance
from planish_interpreter import Interpreter


class TestInterpreter(BackendConformance):
    """All tests of the suite."""

    def backend(self) -> Interpreter:
        """Make the back end."""
        return Interpreter()


def test_planish_finds_it() -> None:
    assert backend_names()[-1] == "interpreter"
    assert isinstance(backend_named("interpreter"), Interpreter)


def unlimited(stage: Stage) -> AbstractContextManager[None]:
    """Time nothing."""
    del stage
    return nullcontext()


def test_the_level_verifies_and_times_candidates_with_it() -> None:
    level = LoopsLevel()
    program = level.load("C[m] += A[m,k] * B[k]", {"size": "m=5,k=6", "backend": "interpreter"})
    target = level.target(program, 1)
    assert target.toolchain == {"backend": "interpreter", "planish-interpreter": "0.1"}
    task = Task(program, target, (level.objectives["time_s"],), level.version)
    outcome = level.evaluator(task)().evaluate(Candidate(), unlimited)
    assert isinstance(outcome, Measured)
