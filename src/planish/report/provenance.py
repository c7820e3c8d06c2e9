"""Where a result comes from, and how to have it again."""

from collections.abc import Mapping
from typing import Any

from planish.core import Objective, canonical_json
from planish.report.data import ReportData
from planish.report.wording import when

_LONG = 2000


def provenance(story: ReportData) -> Mapping[str, Mapping[str, str]]:
    """List what decided the run: title to table, name to text."""
    run, task = story.run, story.task
    hosts = sorted({trial.host for trial in story.trials if trial.host} | {run.host})
    cached = f", {story.cached:,} taken from the store" if story.cached else ""
    return {
        "run": {
            "run": run.id,
            "status": run.status,
            "started": when(run.started),
            "ended": when(run.ended),
            "host": ", ".join(hosts),
            "trials": f"{len(story.trials):,} ({story.failed:,} failed{cached})",
            **run.versions,
        },
        "search": {
            "searcher": run.searcher,
            **{f"{name} (option)": _text(value) for name, value in run.options.items()},
            "space": run.space,
            "seed": str(run.seed),
        },
        "task": {
            "key": task.key,
            "level": f"{task.level}, version {task.level_version}",
            "objectives": "; ".join(map(_objective, task.objectives)),
        },
        "target": {
            "processor": task.target.processor,
            "cores": str(task.target.cores),
            "features": ", ".join(sorted(task.target.features)) or "—",
            **dict(sorted(task.target.toolchain.items())),
        },
    }


def _objective(objective: Objective) -> str:
    unit = f" ({objective.unit})" if objective.unit else ""
    return f"{objective.name}{unit}, {'less' if objective.direction == 'down' else 'more'} is better"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def repeat(story: ReportData) -> str:
    """Write the Python lines that search again by the same seed, and measure everything anew."""
    run, task = story.run, story.task
    short = len(task.program) <= _LONG
    settings = {
        "level": task.level,
        "objectives": tuple(o.name for o in task.objectives),
        "searcher": run.searcher,
        "space": run.space,
        "searcher_options": dict(run.options),
        "seed": run.seed,
        "cores": task.target.cores,
        "remeasure": True,
    }
    return "\n".join(
        (
            *(() if short else ("from pathlib import Path", "")),
            "from planish import tune",
            "from planish.budget import Budget",
            "from planish.settings import Settings",
            "",
            *(() if short else ("# The program's whole text; it is too long to be shown here.",)),
            f"program = {task.program!r}" if short else "program = Path('program').read_text()",
            "settings = Settings(",
            *(f"    {name}={value!r}," for name, value in settings.items()),
            ")",
            f"tune(program, budget=Budget(trials={max(1, len(story.trials))}), settings=settings)",
        )
    )
