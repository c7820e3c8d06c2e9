"""Figures of runs, by Plotly: functions of results, as `optuna.visualization` has them of studies.

Each takes a `planish.Result`, and several take a list of results, to show runs together. It returns a
`plotly.graph_objects.Figure`, and reads nothing but the results.

    import planish

    result = planish.tune("C[m,n] += A[m,k] * B[k,n]", size={"m": 192, "n": 192, "k": 192}, seconds=20)
    planish.plot.history(result).show()
"""

from planish.plot.axes import DARK, LIGHT, PLAIN
from planish.plot.comparisons import compare_runs, comparison, samples
from planish.plot.fronts import hypervolume, pareto_front
from planish.plot.runs import NothingToDrawError, Results
from planish.plot.search import distribution, history, predictions, rank_correlation, stages
from planish.plot.steps import importances, parallel_coordinates

__all__ = [
    "DARK",
    "LIGHT",
    "PLAIN",
    "NothingToDrawError",
    "Results",
    "compare_runs",
    "comparison",
    "distribution",
    "history",
    "hypervolume",
    "importances",
    "parallel_coordinates",
    "pareto_front",
    "predictions",
    "rank_correlation",
    "samples",
    "stages",
]
