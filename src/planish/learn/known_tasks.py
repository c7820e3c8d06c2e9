"""What a store knows of a level, as far as its measurements still count."""

from __future__ import annotations

import logging
from typing import Any

from planish.core import Level
from planish.store import Reader, StoredTask

_log = logging.getLogger("planish")


def known_tasks(store: Reader, level: Level[Any]) -> list[StoredTask]:
    """List the tasks of a level that were run, the oldest run first.

    What another version of the level measured counts no longer. It is left out, and a warning says how much.
    """
    trials = dict[str, int]()
    for run in reversed(store.runs()):
        trials[run.task_key] = trials.get(run.task_key, 0) + run.trials
    tasks = [task for key in trials if (task := store.task(key)).level == level.name]
    old = [task for task in tasks if task.level_version != level.version]
    if old:
        _log.warning(
            "left out are %d trials of %d tasks, which other versions of the level '%s' measured",
            sum(trials[task.key] for task in old),
            len(old),
            level.name,
        )
    return [task for task in tasks if task.level_version == level.version]
