"""A PostgreSQL server that is stopped and started while a run is written costs nothing but a wait."""

from __future__ import annotations

import threading
import time

import pytest

from planish.store import open_store
from planish.testing.stored import STEPS, make_trial
from planish.testing.stores import begin
from store.cluster import installed, new_cluster
from store.servers import as_text


def test_a_run_outlives_its_server_s_restarts() -> None:
    programs = installed()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with new_cluster(programs) as cluster:
        with open_store(as_text(cluster.url)) as store:
            run_id, added, over = begin(store), list[int](), threading.Event()

            def write() -> None:
                while not over.is_set():
                    store.add_trials(run_id, [make_trial(len(added))])
                    added.append(len(added))

            writer = threading.Thread(target=write)
            writer.start()
            for mode in ("fast", "immediate", "fast"):
                before = len(added)
                cluster.stop(mode)
                cluster.start()
                deadline = time.monotonic() + 60
                while len(added) <= before + 1 and time.monotonic() < deadline:
                    time.sleep(0.02)
            over.set()
            writer.join()
            store.finish_run(run_id)
            assert len(added) > 3
            assert store.run_trials(run_id, STEPS) == [make_trial(index) for index in added]
        with open_store(as_text(cluster.url), read_only=True) as store:
            assert [run.status for run in store.runs()] == ["finished"]
