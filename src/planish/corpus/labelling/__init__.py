"""Labelling a corpus: the best pass list of each function (thesis 4.3.2)."""

from planish.corpus.labelling.choice import build_coreset, choose, cost_table, lists_of_table, most_saving
from planish.corpus.labelling.cost_rows import coreset_lists
from planish.corpus.labelling.cover import greedy_cover
from planish.corpus.labelling.function_search import FunctionBudget
from planish.corpus.labelling.jobs import Searching
from planish.corpus.labelling.label import Label
from planish.corpus.labelling.label_card import label_page, read_label_card
from planish.corpus.labelling.label_plan import OBJECTIVES, LabelBench, LabelPlan, LabelProgress, bench
from planish.corpus.labelling.label_shards import read_labels
from planish.corpus.labelling.labelling_run import label_corpus
from planish.corpus.labelling.savings import Saving, Summary, summarise
from planish.corpus.labelling.tabling import describe_table, table_corpus

__all__ = [
    "OBJECTIVES",
    "FunctionBudget",
    "Label",
    "LabelBench",
    "LabelPlan",
    "LabelProgress",
    "Saving",
    "Searching",
    "Summary",
    "bench",
    "build_coreset",
    "choose",
    "coreset_lists",
    "cost_table",
    "describe_table",
    "greedy_cover",
    "label_corpus",
    "label_page",
    "lists_of_table",
    "most_saving",
    "read_label_card",
    "read_labels",
    "summarise",
    "table_corpus",
]
