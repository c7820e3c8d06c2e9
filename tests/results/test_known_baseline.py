"""What is known of a baseline before a run has measured it."""

from __future__ import annotations

from pathlib import Path

import pytest

from planish.core import StoreError
from planish.store import open_store
from planish.testing.stored import make_task
from planish.testing.stores import begin
from planish.tuning import result
from planish.tuning.comparison import Comparison
from planish.tuning.result import known_baseline
from report.fronts import front


def test_the_newest_comparison_that_can_be_read_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparisons = dict[str, Comparison | None]()

    def read(_: object, run_id: str, *__: object) -> Comparison | None:
        if run_id not in comparisons:
            raise StoreError("it is damaged")
        return comparisons[run_id]

    monkeypatch.setattr(result, "read_comparison", read)
    monkeypatch.setattr(result, "level_named", lambda _: None)  # pyright: ignore[reportUnknownLambdaType]
    task, found = make_task(), front()
    with open_store(tmp_path / "a.db") as store:
        older, newer, newest = (begin(store, task) for _ in range(3))
        assert known_baseline(store, task) is None, "what cannot be read keeps no run from beginning"
        comparisons[older] = found
        assert known_baseline(store, task) == found.baseline.lead.median
        comparisons[newer], comparisons[newest] = None, None
        assert known_baseline(store, task) == found.baseline.lead.median
