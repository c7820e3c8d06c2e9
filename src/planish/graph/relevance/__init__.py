"""Which passes matter for a model: those that change it, alone or after each other."""

from planish.graph.relevance.analysis import THOROUGH_S, analyse
from planish.graph.relevance.examiner import Examiner, ExaminerError
from planish.graph.relevance.relevance_cache import known_relevance, remembered
from planish.graph.relevance.relevant import Relevance

__all__ = ["THOROUGH_S", "Examiner", "ExaminerError", "Relevance", "analyse", "known_relevance", "remembered"]
