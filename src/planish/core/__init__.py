"""The vocabulary and the protocols of planish; imports nothing else of it, and its modules when needed."""

from importlib import import_module

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than all this
if TYPE_CHECKING:
    from planish.core.capabilities import (
        CanCompile,
        CanEnumerate,
        CanEvolve,
        CanFeaturize,
        CanObserve,
        CanSample,
        CanSeed,
        CanShrink,
        CanStep,
        CanVaryParts,
        HasNotes,
        HasParts,
        MultiTurnPolicy,
        NeedsBaseline,
        PartGroup,
        ValueHead,
    )
    from planish.core.errors import (
        AllFailedError,
        ArgumentError,
        DeviceLostError,
        LostError,
        MismatchError,
        MissingFileError,
        PlanishError,
        ProgramError,
        ScheduleError,
        StoppedError,
        StoreError,
        TargetError,
        UnknownNameError,
        WrongBaselineError,
        did_you_mean,
        unknown,
    )
    from planish.core.files import (
        cache_folder,
        is_locked,
        private_folder,
        register_file,
        resolve_file,
        unresolved_file,
    )
    from planish.core.hashing import canonical_json, content_hash, rng
    from planish.core.level import NO_ANALYSIS, NOTES, Analyze, Identify, Identity, Level, describe
    from planish.core.process import STOPPING, Stops, gc_paused, stoppable, stopped_by
    from planish.core.protocols import (
        EMPTY_CONTEXT,
        ClosableExecutor,
        Evaluator,
        EvaluatorSpec,
        Executor,
        ExecutorFactory,
        FeatureSchema,
        Outcomes,
        Policy,
        PolicyState,
        SearchContext,
        Searcher,
        SequentialExecutor,
        Space,
        StageClock,
        Tried,
        evaluate,
        evaluate_in_order,
    )
    from planish.core.step import Candidate, Step, candidate_from_json, step_from_json, stored_candidate
    from planish.core.task import (
        Cache,
        Machine,
        Objective,
        Program,
        Target,
        Task,
        caches,
        processor,
        usable_cores,
    )
    from planish.core.trial import (
        STAGES,
        Evaluation,
        Failed,
        Lost,
        Measured,
        Outcome,
        Stage,
        Trial,
        TrialPrediction,
        best_trial,
        outcome_from_json,
        outcome_to_json,
    )
    from planish.core.verdicts import (
        EQUAL,
        HELDOUT,
        NOTICED,
        VERDICTS,
        Attribution,
        CrossCheck,
        FinalChecks,
        Ratio,
        SecondaryBaseline,
        Verdict,
        heldout_value,
        heldout_within,
        is_within,
        within,
    )

__all__ = [
    "EMPTY_CONTEXT",
    "EQUAL",
    "HELDOUT",
    "NOTES",
    "NOTICED",
    "NO_ANALYSIS",
    "STAGES",
    "STOPPING",
    "VERDICTS",
    "AllFailedError",
    "Analyze",
    "ArgumentError",
    "Attribution",
    "Cache",
    "CanCompile",
    "CanEnumerate",
    "CanEvolve",
    "CanFeaturize",
    "CanObserve",
    "CanSample",
    "CanSeed",
    "CanShrink",
    "CanStep",
    "CanVaryParts",
    "Candidate",
    "ClosableExecutor",
    "CrossCheck",
    "DeviceLostError",
    "Evaluation",
    "Evaluator",
    "EvaluatorSpec",
    "Executor",
    "ExecutorFactory",
    "Failed",
    "FeatureSchema",
    "FinalChecks",
    "HasNotes",
    "HasParts",
    "Identify",
    "Identity",
    "Level",
    "Lost",
    "LostError",
    "Machine",
    "Measured",
    "MismatchError",
    "MissingFileError",
    "MultiTurnPolicy",
    "NeedsBaseline",
    "Objective",
    "Outcome",
    "Outcomes",
    "PartGroup",
    "PlanishError",
    "Policy",
    "PolicyState",
    "Program",
    "ProgramError",
    "Ratio",
    "ScheduleError",
    "SearchContext",
    "Searcher",
    "SecondaryBaseline",
    "SequentialExecutor",
    "Space",
    "Stage",
    "StageClock",
    "Step",
    "StoppedError",
    "Stops",
    "StoreError",
    "Target",
    "TargetError",
    "Task",
    "Trial",
    "TrialPrediction",
    "Tried",
    "UnknownNameError",
    "ValueHead",
    "Verdict",
    "WrongBaselineError",
    "best_trial",
    "cache_folder",
    "caches",
    "candidate_from_json",
    "canonical_json",
    "content_hash",
    "describe",
    "did_you_mean",
    "evaluate",
    "evaluate_in_order",
    "gc_paused",
    "heldout_value",
    "heldout_within",
    "is_locked",
    "is_within",
    "outcome_from_json",
    "outcome_to_json",
    "private_folder",
    "processor",
    "register_file",
    "resolve_file",
    "rng",
    "step_from_json",
    "stoppable",
    "stopped_by",
    "stored_candidate",
    "unknown",
    "unresolved_file",
    "usable_cores",
    "within",
]

_MODULES = {
    "capabilities": (
        "CanCompile CanEnumerate CanEvolve CanFeaturize CanObserve CanSample CanSeed CanShrink "
        "CanStep CanVaryParts HasNotes HasParts MultiTurnPolicy NeedsBaseline PartGroup ValueHead"
    ),
    "errors": (
        "AllFailedError ArgumentError DeviceLostError LostError MismatchError MissingFileError PlanishError "
        "ProgramError ScheduleError StoppedError StoreError TargetError UnknownNameError "
        "WrongBaselineError did_you_mean unknown"
    ),
    "files": "cache_folder is_locked private_folder register_file resolve_file unresolved_file",
    "hashing": "canonical_json content_hash rng",
    "level": "NO_ANALYSIS NOTES Analyze Identify Identity Level describe",
    "process": "STOPPING Stops gc_paused stoppable stopped_by",
    "protocols": (
        "EMPTY_CONTEXT ClosableExecutor Evaluator EvaluatorSpec Executor ExecutorFactory "
        "FeatureSchema Outcomes Policy PolicyState SearchContext Searcher SequentialExecutor Space "
        "StageClock Tried evaluate evaluate_in_order"
    ),
    "step": "Candidate Step candidate_from_json step_from_json stored_candidate",
    "task": "Cache Machine Objective Program Target Task caches processor usable_cores",
    "trial": (
        "STAGES Evaluation Failed Lost Measured Outcome Stage Trial TrialPrediction best_trial "
        "outcome_from_json outcome_to_json"
    ),
    "verdicts": (
        "EQUAL HELDOUT NOTICED VERDICTS Attribution CrossCheck FinalChecks Ratio SecondaryBaseline "
        "Verdict heldout_value heldout_within is_within within"
    ),
}
"""Module to the names that it has of those above."""
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


if not TYPE_CHECKING:  # a type checker would take any name for one that is there

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module 'planish.core' has no attribute '{name}'")
        value = globals()[name] = getattr(import_module(f"planish.core.{_LAZY[name]}"), name)
        return value
