"""What `make demo` prints, whoever wins."""

from dataclasses import replace
from pathlib import Path
from runpy import run_path

import pytest

import planish
from planish.budget import Budget
from planish.core import Candidate
from planish.loops.library import Library
from planish.loops.workloads import matmul
from planish.store import open_store

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


def test_the_demo_tells_that_numpy_is_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(tmp_path / "demo.db") as store:
        result = planish.tune(matmul(8, 8, 8), budget=Budget(trials=2), store=store)
    assert result.comparison
    show = run_path(str(DEMO))["show"]
    show("small", result)
    assert "iter" in capsys.readouterr().out
    numpy = replace(result.comparison.finalists[0], candidate=Candidate((Library("numpy"),)))
    show("small", replace(result, comparison=replace(result.comparison, finalists=(numpy,))))
    assert "computed by numpy" in capsys.readouterr().out
    show("small", replace(result, comparison=None))
    assert "other programs took the time" in capsys.readouterr().out
