"""The vocabulary and the protocols of planish; imports nothing else of it."""

from planish.core.canonical import canonical_json, content_hash
from planish.core.cores import usable_cores
from planish.core.errors import (
    AllFailedError,
    MismatchError,
    PlanishError,
    ProgramError,
    ScheduleError,
    StoppedError,
    StoreError,
    TargetError,
    did_you_mean,
)
from planish.core.outcome import STAGES, Failed, Measured, Outcome, Stage, outcome_from_json, outcome_to_json
from planish.core.protocols import (
    CanEnumerate,
    CanEvolve,
    CanSample,
    CanStep,
    Evaluation,
    Evaluator,
    EvaluatorFactory,
    Executor,
    Level,
    Searcher,
    Space,
    StageClock,
)
from planish.core.seeds import rng
from planish.core.step import Candidate, Step, candidate_from_json, step_from_json
from planish.core.task import Objective, Program, Target, Task
from planish.core.trial import Trial, best_trial

__all__ = [
    "STAGES",
    "AllFailedError",
    "CanEnumerate",
    "CanEvolve",
    "CanSample",
    "CanStep",
    "Candidate",
    "Evaluation",
    "Evaluator",
    "EvaluatorFactory",
    "Executor",
    "Failed",
    "Level",
    "Measured",
    "MismatchError",
    "Objective",
    "Outcome",
    "PlanishError",
    "Program",
    "ProgramError",
    "ScheduleError",
    "Searcher",
    "Space",
    "Stage",
    "StageClock",
    "Step",
    "StoppedError",
    "StoreError",
    "Target",
    "TargetError",
    "Task",
    "Trial",
    "best_trial",
    "candidate_from_json",
    "canonical_json",
    "content_hash",
    "did_you_mean",
    "outcome_from_json",
    "outcome_to_json",
    "rng",
    "step_from_json",
    "usable_cores",
]
