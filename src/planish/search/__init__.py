"""Searchers, each over any space that offers what it needs."""

from planish.search.annealing import Annealing
from planish.search.beam import BeamBFS, BeamDFS
from planish.search.ddmin import WillDo, ddmin, shrink
from planish.search.exhaustive import Exhaustive
from planish.search.factory import SearcherInfo, describe_searcher, fitting_searchers, make_searcher
from planish.search.genetic import Genetic
from planish.search.gevo import Gevo
from planish.search.greedy import Greedy1, Greedy2
from planish.search.nsga2 import Nsga2
from planish.search.options import Option, OptionInfo, OptionValue, split_settings
from planish.search.portfolio import Portfolio
from planish.search.random_minimise import RandomMinimise
from planish.search.random_search import Random
from planish.search.rounds import Costs, CostVectors, Rounds, RoundSearcher, VectorRounds, VectorRoundSearcher

__all__ = [
    "Annealing",
    "BeamBFS",
    "BeamDFS",
    "CostVectors",
    "Costs",
    "Exhaustive",
    "Genetic",
    "Gevo",
    "Greedy1",
    "Greedy2",
    "Nsga2",
    "Option",
    "OptionInfo",
    "OptionValue",
    "Portfolio",
    "Random",
    "RandomMinimise",
    "RoundSearcher",
    "Rounds",
    "SearcherInfo",
    "VectorRoundSearcher",
    "VectorRounds",
    "WillDo",
    "ddmin",
    "describe_searcher",
    "fitting_searchers",
    "make_searcher",
    "shrink",
    "split_settings",
]
