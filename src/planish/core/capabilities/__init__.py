"""What spaces, searchers, evaluators and levels may offer beyond what is asked of each of them.

Whoever wants a capability asks by `isinstance`; a plug-in has the methods of those that make sense for it.
Each is offered by at least two, or says why it stands alone.
"""

from planish.core.capabilities.of_evaluators import CanAnchor, HasCage, HasLimits, HasNotes
from planish.core.capabilities.of_levels import (
    NO_FIGURES,
    NOTES,
    CanIdentify,
    CanReplaceBaseline,
    HasFigures,
    HasReview,
    Identity,
    KnowsPrograms,
    SuitsObjectives,
    SuitsSpaces,
)
from planish.core.capabilities.of_policies import CanJudge, CanReconsider
from planish.core.capabilities.of_results import CanCall, HasFiles, KnowsMachine, ShowsWinners
from planish.core.capabilities.of_searchers import CanRecall, HasModel, HasSearchNotes
from planish.core.capabilities.of_spaces import (
    CanCompile,
    CanEnumerate,
    CanEvolve,
    CanFeaturise,
    CanName,
    CanObserve,
    CanSample,
    CanSeed,
    CanShrink,
    CanStep,
    HasMachine,
    HasText,
    NamesPrograms,
)

__all__ = [
    "NOTES",
    "NO_FIGURES",
    "CanAnchor",
    "CanCall",
    "CanCompile",
    "CanEnumerate",
    "CanEvolve",
    "CanFeaturise",
    "CanIdentify",
    "CanJudge",
    "CanName",
    "CanObserve",
    "CanRecall",
    "CanReconsider",
    "CanReplaceBaseline",
    "CanSample",
    "CanSeed",
    "CanShrink",
    "CanStep",
    "HasCage",
    "HasFigures",
    "HasFiles",
    "HasLimits",
    "HasMachine",
    "HasModel",
    "HasNotes",
    "HasReview",
    "HasSearchNotes",
    "HasText",
    "Identity",
    "KnowsMachine",
    "KnowsPrograms",
    "NamesPrograms",
    "ShowsWinners",
    "SuitsObjectives",
    "SuitsSpaces",
]
