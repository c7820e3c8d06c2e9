"""Which passes helped which class of networks: learnt from trials, and used before the first measurement."""

from planish.graph.prior.class_lists import ClassList, learn_lists, learned_list
from planish.graph.prior.past_records import ModelTrials, known_list, records_of
from planish.graph.prior.ridge import RidgeRow, StepEffect

__all__ = [
    "ClassList",
    "ModelTrials",
    "RidgeRow",
    "StepEffect",
    "known_list",
    "learn_lists",
    "learned_list",
    "records_of",
]
