"""Idle passes: which selections make the same, and that winners lose what does nothing."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from levels.graph.tasks import make
from planish.core import Candidate, EvaluatorSpec
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.passes import Selection, selection
from planish.measure.executors import InlineExecutor
from planish.store import open_store
from planish.tuning.ablation import prune
from planish.tuning.comparison import Finalist
from planish.tuning.final_state import FinalState, SearchOutcome
from planish.tuning.recorder import Progress, Trials
from planish.tuning.settings import Settings

FOLD, IDLE = "onnxscript.fuse_batchnorm_into_conv", "onnxscript.no_op_cast"


def unstarted(spec: EvaluatorSpec, **_: object) -> InlineExecutor:
    pytest.fail(f"{spec} is not to be started")


@pytest.mark.parametrize(("objective", "same"), [("latency", True), ("compile_time", False)])
def test_what_the_runtime_would_do_itself_counts_only_for_objectives_of_files(
    tmp_path: Path, objective: str, same: bool
) -> None:
    folded, without = selection([FOLD]).candidate, selection((), ["AttentionFusion"]).candidate
    with GraphLevel().identities(make(tmp_path, objective)) as name:
        assert (name(folded) == name(Candidate())) is same
        assert (name(without) == name(Candidate())) is same
        assert name(selection([IDLE]).candidate) == name(Candidate())
        assert name(selection(offline=True).candidate) != name(Candidate())
        assert name(selection((), ["NchwcTransformer"]).candidate) != name(Candidate())


def test_winners_lose_what_does_nothing(tmp_path: Path) -> None:
    task = make(tmp_path, "latency")
    winner = Selection((IDLE, FOLD), frozenset({"AttentionFusion", "NchwcTransformer"}))
    with open_store(tmp_path / "store.db") as store:
        progress, tried = Progress(task, "run"), Trials(store, "run", GraphLevel().steps)
        search = SearchOutcome(
            GraphLevel(), task, Settings(), store, progress, tried, {}, 100.0, stopped=False, start=unstarted
        )
        finalists = tuple(Finalist(candidate=each) for each in (winner.candidate, Candidate()))
        left = prune(search, FinalState(finalists), math.inf).finalists
    assert [each.candidate for each in left] == [selection((), ["NchwcTransformer"]).candidate, Candidate()]
