"""What stands below the charts."""

from collections.abc import Mapping

from planish.report.curve import MOST as MOST_DOTS
from planish.report.curve import by_time
from planish.report.data import ReportData
from planish.report.pareto import MOST
from planish.report.wording import duration, label


def captions(story: ReportData) -> Mapping[str, str]:
    """Explain the charts of each section."""
    return {
        "search": _search(story),
        "finalists": "The samples of the comparison: the box holds the middle half, the line in it is the "
        "median, whiskers reach 1.5 times the box at most, and what lies beyond the chart is counted.",
        "tradeoffs": _tradeoffs(story),
        "growth": "The hypervolume is the space between the front and a point twice as bad as the baseline "
        "in each objective, in units of what the baseline alone has. It counts what the search measured.",
        "model": "Each batch is predicted by a model that has learnt from the trials before it alone. Its "
        "order is compared with the measured one by Spearman's rank correlation: 1 is the same order, 0 is "
        "chance. A batch holds what the model takes for good, which is harder to put in order than all there "
        "is. Last, the winner is given other trials' values, one feature at a time: how much worse it is "
        "predicted to be then.",
        "time": _time(story),
    }


def _search(story: ReportData) -> str:
    cached = f", {story.cached:,} taken from the store" if story.cached else ""
    failed = f"{story.failed:,} failed, marked below the curve" if story.failed else "none failed"
    thinned = f" At most {MOST_DOTS:,} are drawn, evenly chosen." if len(story.trials) > MOST_DOTS else ""
    counts = f"{len(story.trials):,} trials{cached}; {failed}.{thinned}"
    paused = by_time(story.trials, story.run.started).paused
    return f"{counts} {duration(paused)} between the run's parts are left out." if paused else counts


def _tradeoffs(story: ReportData) -> str:
    better = "; ".join(
        f"{label(o)}: {'less' if o.direction == 'down' else 'more'} is better" for o in story.task.objectives
    )
    thinned = f" At most {MOST:,} trials are drawn, and all of the front." if len(story.trials) > MOST else ""
    front = f"The front holds what no other trial beats in every objective ({better})."
    return f"{front} What is far worse than all that is marked lies beyond the chart.{thinned}"


def _time(story: ReportData) -> str:
    whole = "First the whole run, all workers together; then the median trial."
    if story.run.seconds:
        return whole
    state = "The run is under way" if story.run.status == "running" else "The run has not ended in good order"
    return f"{whole} {state}: what belongs to no trial (search, store, comparison) is not known."
