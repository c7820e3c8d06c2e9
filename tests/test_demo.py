"""The text of `make demo`, for every verdict."""

from dataclasses import replace
from pathlib import Path
from runpy import run_path

import pytest

import planish
from planish.core import Candidate, Ratio, Verdict
from planish.levels.loops.backends import Library
from planish.levels.loops.workloads import matmul
from planish.tuning.result import Result
from planish.tuning.settings import Budget

NUMPY = Candidate((Library("numpy"),))
DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    store = tmp_path_factory.mktemp("demo") / "demo.db"
    return planish.tune(matmul(8, 8, 8), budget=Budget(trials=2), store=store)


@pytest.mark.parametrize(
    ("verdict", "ratio", "said"),
    [
        ("better", Ratio(0.5, 0.4, 0.6), "faster: 2.00 times as fast as NumPy (95 % interval 1.67 to 2.50)"),
        ("same", Ratio(1.0, 0.99, 1.01), "NumPy is kept"),
        ("worse", Ratio(2.0, 1.9, 2.1), "slower: 0.50 times as fast"),
        ("undecided", Ratio(0.66, 0.04, 50.0), "undecided: about 1.52 times as fast as NumPy"),
    ],
)
def test_the_demo_says_what_the_comparison_shows(
    result: Result, capsys: pytest.CaptureFixture[str], verdict: Verdict, ratio: Ratio, said: str
) -> None:
    assert result.comparison
    show = run_path(str(DEMO))["show"]
    kernel = next(f for f in result.comparison.finalists if f.candidate != NUMPY)
    lead = replace(kernel.lead, ratio=ratio, verdict=verdict, median=3e-3)
    kernel = replace(kernel, measured={lead.objective.name: lead})
    numpy = replace(result.comparison.finalists[0], candidate=NUMPY)
    found = (kernel, numpy) if verdict == "better" else (numpy, kernel)
    show("small", replace(result, comparison=replace(result.comparison, finalists=found)))
    out = capsys.readouterr().out
    assert said in out
    assert "planish    3000.0 us" in out, "NumPy's figure is not planish's"
    assert ("%C" in out) == (verdict == "better"), "the loops of a kernel that is not the result"
    show("small", replace(result, comparison=replace(result.comparison, finalists=(numpy,))))
    assert "planish  " not in (alone := capsys.readouterr().out)
    assert "undecided: no kernel was measured" in alone
    show("small", replace(result, comparison=None))
    assert "undecided: no time was left" in capsys.readouterr().out
