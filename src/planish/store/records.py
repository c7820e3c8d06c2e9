"""What the store keeps besides trials, as it is given back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from planish.core import Candidate, Objective, Program, Target, Task

RunStatus = Literal["running", "finished", "stopped", "failed", "interrupted"]


@dataclass(frozen=True)
class Run:
    """One search for one task.

    Args:
        id: eight hexadecimal digits; a unique beginning of them names the run too.
        task_key: the key of its task.
        searcher: as on the command line.
        space: the name of the level's space.
        seed: all its randomness comes from it.
        options: what else decides the run (the searcher's options, the budget).
        versions: name to version of the software that ran it.
        host: the machine that it ran on.
        started: seconds since the epoch.
        ended: seconds since the epoch; None while it runs, and for ever when it was killed.
        status: "interrupted" when it is not finished and no process writes to it.
        seconds: stage name to seconds, over the whole run; empty before the end.
        trials: how many trials are stored.
        taught: what it began with because other programs had shown it: candidates as JSON, the best first.
            None where its level does not learn.
    """

    id: str
    task_key: str
    searcher: str
    space: str
    seed: int
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    host: str
    started: float
    ended: float | None
    status: RunStatus
    seconds: Mapping[str, float]
    trials: int
    taught: Sequence[Any] | None = None


@dataclass(frozen=True)
class StoredTask:
    """A task whose program is still a text.

    Args:
        key: the task's key.
        level: the name of its level.
        level_version: the level's version when it was stored.
        program: the program's canonical text, which the level's `read` reads.
        target: where it runs.
        objectives: what is to be improved; the first leads.
        created: when it was first stored, in seconds since the epoch.
    """

    key: str
    level: str
    level_version: str
    program: str
    target: Target
    objectives: tuple[Objective, ...]
    created: float

    def bind(self, program: Program) -> Task:
        """Give the task, now that the level has read the program."""
        return Task(program, self.target, self.objectives, self.level_version)


@dataclass(frozen=True)
class ResultRow:
    """What is kept of a finalist: one of a run's best few, as measured again at the end.

    Args:
        candidate: what was measured.
        ratio: how many times better than the baseline, by the leading objective; 1 is no gain.
        data: all else that belongs to it, as JSON (see `planish.tuning.comparison_codec`).
        run_id: the run that found it; filled in by the store.
    """

    candidate: Candidate
    ratio: float
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    run_id: str = ""
