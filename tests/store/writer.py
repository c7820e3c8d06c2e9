"""A process that writes a run, and reports each group of trials once it is stored.

Usage: writer.py LOCATION COUNT GROUP; it waits for a line of input before it opens the store.
"""

import sys

from planish.store import open_store
from planish.testing.stores import begin, make_trial


def _report(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main(location: str, count: int, group: int) -> None:
    """Write `count` trials, `group` at a time."""
    _report("ready")
    sys.stdin.readline()
    with open_store(location) as store:
        run_id = begin(store)
        _report(run_id)
        for first in range(0, count, group):
            store.add_trials(run_id, [make_trial(i) for i in range(first, first + group)])
            _report(first + group)
        store.finish_run(run_id)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
