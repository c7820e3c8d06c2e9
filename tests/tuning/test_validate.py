"""Validating a run whose processes are killed tells nothing against its result."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_executors import SameProcessExecutor
from planish.core import Candidate, Evaluation, Lost, LostError
from planish.measure.comparison_rounds import VariantTag
from planish.store import open_store
from planish.tuning.api import tune_source
from planish.tuning.settings import Budget, Settings
from planish.tuning.validate import validate


class Striking(SameProcessExecutor):
    """Loses its process whenever it is to measure the first variant."""

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        tag, *_ = candidate.steps
        if isinstance(tag, VariantTag) and tag.variant == 1:
            return Evaluation(candidate, Lost("run", "killed", "killed by SIGKILL"))
        return super()._evaluate(candidate)


def test_a_result_that_cannot_be_measured_does_not_differ(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        found = tune_source(
            "C[m] += A[m,k] * B[k]",
            {"size": "m=8,k=8"},
            budget=Budget(trials=2),
            settings=Settings(searcher="random", workers=1, finalists=1),
            store=store,
            start=SameProcessExecutor,
        )
        with pytest.raises(LostError, match=f"could not measure run {found.run.id}: 3 processes were lost"):
            validate(found.run.id, store=store, start=Striking)
        assert validate(found.run.id, store=store, start=SameProcessExecutor).answer.verdict == "holds"
