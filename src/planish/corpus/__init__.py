"""Corpora of LLVM IR functions: the programs that pass lists are tuned for and policies learn from."""

from planish.corpus.card import page, read_card
from planish.corpus.corpus_build import BuildListener, BuildPlan, BuildTally, build_corpus
from planish.corpus.corpus_reader import SAMPLE, read_arrow, read_corpus, shards_of
from planish.corpus.corpus_request import CorpusRequest, packages_of, standard_packages
from planish.corpus.row import SPLITS, Row, split_of
from planish.corpus.unit import CorpusRecipe

__all__ = [
    "SAMPLE",
    "SPLITS",
    "BuildListener",
    "BuildPlan",
    "BuildTally",
    "CorpusRecipe",
    "CorpusRequest",
    "Row",
    "build_corpus",
    "packages_of",
    "page",
    "read_arrow",
    "read_card",
    "read_corpus",
    "shards_of",
    "split_of",
    "standard_packages",
]
