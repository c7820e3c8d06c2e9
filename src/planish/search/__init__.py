"""Searchers, each over any space that offers what it needs."""

from planish.search.annealing import Annealing
from planish.search.factory import (
    Option,
    OptionInfo,
    OptionValue,
    SearcherInfo,
    describe_searcher,
    fitting_searchers,
    make_searcher,
    split_settings,
)
from planish.search.genetic import Genetic
from planish.search.hottest_first import HottestFirst
from planish.search.minimisation import RandomMinimise, WillDo, ddmin, shrink
from planish.search.nsga2 import Gevo, Nsga2
from planish.search.parts import Parts
from planish.search.portfolio import Portfolio
from planish.search.random_search import Exhaustive, Random
from planish.search.rounds import Costs, CostVectors, Rounds, RoundSearcher, VectorRounds, VectorRoundSearcher
from planish.search.tree_search import BeamBFS, BeamDFS, Greedy1, Greedy2

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
    "HottestFirst",
    "Nsga2",
    "Option",
    "OptionInfo",
    "OptionValue",
    "Parts",
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
