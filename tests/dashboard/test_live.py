"""Pages in a browser, while another process searches."""

import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dashboard.conftest import COMMAND, Live, Start, environment
from dashboard.stores import add_run, comparison, measured, store_of
from planish.core import Candidate, Ratio
from planish.store import open_store
from planish.tuning.comparison import InterimRatio
from planish.tuning.comparison_codec import encode, encode_interim
from store.servers import as_text, installed, new_cluster

LONG = ["tune", "lattice 20x20x20", "--option", "pause=0.02", "--seconds", "600", "--workers", "1"]


@pytest.fixture
def searching(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that searches for ten minutes, with its store."""
    store = tmp_path / "planish.db"
    with subprocess.Popen(
        [*COMMAND, *LONG, "--store", str(store)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        while "trials" not in process.stderr.readline():
            pass
        yield process
        process.kill()


def count(page: Page) -> int:
    """Return how many trials the page says there are."""
    text = page.locator("#summary dd").nth(1).inner_text()
    return int(text.partition(",")[0].partition(" ")[0])


@pytest.mark.slow
def test_what_another_process_stores_appears(
    searching: subprocess.Popen[str], tmp_path: Path, dashboard: Start, page: Page
) -> None:
    page.goto(dashboard(tmp_path / "planish.db").url)
    page.get_by_role("link", name="").filter(has=page.locator("code")).first.click()
    expect(page.locator("#summary")).to_contain_text("running")
    expect(page.locator("#search .main-svg").first).to_be_visible()
    before = count(page)
    for shown in ("#summary dd:not(:has(.status))", "#trials tbody td"):
        page.wait_for_function(
            "([shown, least]) => parseInt(document.querySelector(shown).innerText) > least",
            arg=[shown, before + 3],
        )
    searching.kill()
    expect(page.locator("#summary")).to_contain_text("interrupted")


def test_a_run_appears_in_the_list_and_ends(live: Live, page: Page) -> None:
    page.goto(live.url)
    expect(page.locator("#runs tbody tr").first).to_be_visible()
    with open_store(live.path) as store:
        run_id = add_run(store, [measured(0, 1e-3)], status=None)
        row = page.locator(f"#run-{run_id}")
        expect(row).to_contain_text("running")
        store.add_trials(run_id, [measured(1, 0.25e-3)])
        expect(row).to_contain_text("250.0 µs")
        store.finish_run(run_id)
        expect(row).to_contain_text("finished")


@pytest.mark.slow
def test_slow_charts_of_a_search_are_drawn_on_demand_and_at_its_end(live: Live, page: Page) -> None:
    with open_store(live.path) as store:
        run_id = add_run(store, [measured(i, 1e-3 * (1 + i % 3)) for i in range(20)], status=None)
        page.goto(live.run_url(run_id))
        steps, charts = page.locator("#steps"), page.locator("#steps .main-svg")
        expect(steps).to_contain_text("drawn when the run has ended")
        expect(page.locator("#search .main-svg").first).to_be_visible()
        expect(charts).to_have_count(0)
        page.get_by_role("button", name="Draw now").click()
        expect(charts.first).to_be_visible()
        page.reload()
        expect(steps).to_contain_text("drawn when the run has ended")
        store.finish_run(run_id)
        expect(charts.first).to_be_visible()
        expect(page.locator("#summary")).to_contain_text("finished")


@pytest.mark.slow
def test_the_interval_narrows_while_the_comparison_goes_on(live: Live, page: Page) -> None:
    with open_store(live.path) as store:
        run_id = add_run(store, [measured(0, 1e-3), measured(1, 0.5e-3)], status=None)
        page.goto(live.run_url(run_id))
        expect(page.locator("#summary")).to_contain_text("The search is under way")
        for low, high, repeats, shown in (
            (0.25, 1.0, 15, r"1\.000. to 4\.00"),
            (0.4, 0.625, 30, r"1\.60. to 2\.50"),
        ):
            found = [InterimRatio("#1", Ratio(0.5, low, high), repeats)]
            store.save_result(run_id, [encode_interim(Candidate(()), (), found)])
            expect(page.locator("#summary")).to_contain_text("The comparison with the baseline is under way")
            expect(page.locator("#summary")).to_contain_text(re.compile(shown))
            expect(page.locator("#comparison")).to_contain_text(re.compile(shown))
            expect(page.locator("#comparison")).to_contain_text(str(repeats))
            expect(page.locator("#summary .status")).to_have_text("comparing")
    expect(page.locator("#summary")).to_contain_text("interrupted")
    expect(page.locator("#comparison")).not_to_contain_text("2.50")


def test_the_status_of_a_comparison(live: Live, page: Page) -> None:
    with open_store(live.path) as store:
        run_id = add_run(store, [measured(0, 1e-3), measured(1, 0.5e-3)], status=None)
        page.goto(live.url)
        status = page.locator(f"#run-{run_id} .status")
        expect(status).to_have_text("running")
        store.save_result(run_id, [encode_interim(Candidate(()), (), [])])  # nothing is known yet
        expect(status).to_have_text("comparing")
        page.get_by_label("Status").select_option("comparing")
        expect(page.locator("#runs > p")).to_contain_text("1 of ")
        store.save_result(run_id, encode(comparison(0.5, "better")))  # checks of the finalists go on
        expect(page.locator(f"#run-{run_id}")).to_contain_text("2.00")
        expect(status).to_have_text("comparing")
        store.finish_run(run_id, "finished", {"search": 1.0})
        page.get_by_label("Status").select_option("")
        expect(status).to_have_text("finished")
        store.resume_run(run_id)
        expect(status).to_have_text("running")


def test_an_open_detail_and_the_focus_stay_while_the_page_changes(live: Live, page: Page) -> None:
    with open_store(live.path) as store:
        run_id = add_run(store, [measured(0, 1e-3)], status=None)
        page.goto(live.run_url(run_id))
        page.locator("#trial-0 summary").click()
        page.locator("#order").focus()
        page.keyboard.press("Escape")
        page.locator("#trial-0 summary").focus()
        store.add_trials(run_id, [measured(1, 0.5e-3)])
        expect(page.locator("#trial-1")).to_have_count(1)
        assert page.locator("#trial-0").get_attribute("open") is not None


def test_a_run_that_is_deleted_while_it_is_shown(live: Live, page: Page) -> None:
    with open_store(live.path) as store:
        run_id = add_run(store, [measured(0, 1e-3)])
        page.goto(live.run_url(run_id))
        expect(page.locator("#trials")).to_be_visible()
        store.delete_run(run_id)
    expect(page.locator("#notice")).to_contain_text(f"Run {run_id} is not in the store")
    expect(page.locator("#trials")).to_be_visible()


def test_what_becomes_of_a_store_while_it_is_shown(tmp_path: Path, dashboard: Start, page: Page) -> None:
    """It vanishes and comes back, is damaged, is of another version, and then another one that is locked."""
    path, other_path = tmp_path / "planish.db", tmp_path / "new.db"
    (run_id,) = store_of(path)
    page.goto(dashboard(path).url)
    row, runs = page.locator(f"#run-{run_id}"), page.locator("#runs")
    expect(row).to_be_visible()
    whole = path.read_bytes()
    path.rename(tmp_path / "away.db")
    expect(runs).to_contain_text("planish.db is gone")
    (tmp_path / "away.db").rename(path)
    expect(row).to_be_visible()

    other_path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
    other_path.replace(path)
    expect(page.locator("#runs .worse")).to_contain_text("planish.db")
    expect(row).to_have_count(0)
    other_path.write_bytes(whole)
    other_path.replace(path)
    expect(row).to_be_visible()

    store_of(other_path)
    with closing(sqlite3.connect(other_path)) as connection, connection:
        connection.execute("UPDATE planish_version SET version_num = '1'")
    other_path.replace(path)
    expect(runs).to_contain_text("has the schema 1")

    store_of(other_path)
    with closing(sqlite3.connect(other_path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other_path.replace(path)  # as when another one is put there, and is still being written
        expect(runs).to_contain_text("locked")
        other.execute("ROLLBACK")
    expect(page.locator("#runs tbody tr")).to_have_count(1)
    expect(row).to_have_count(0)


@pytest.mark.slow
def test_a_server_that_is_lost_and_comes_back(dashboard: Start, page: Page) -> None:
    programs = installed()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with new_cluster(programs) as cluster:
        location = as_text(cluster.url)
        with open_store(location) as store:
            run_id = add_run(store, [measured(0, 1e-3)], status=None)
        page.goto(f"{dashboard(location).url}/s/main/runs/{run_id}")
        expect(page.locator("#summary .status")).to_have_text("interrupted")
        cluster.stop()
        expect(page.locator("#summary")).to_contain_text("cannot be reached")
        cluster.start()
        expect(page.locator("#summary .status")).to_have_text("interrupted")
        with open_store(location) as store:
            store.resume_run(run_id)
            store.add_trials(run_id, [measured(1, 0.5e-3)])
            expect(page.locator("#summary")).to_contain_text("500.0 µs")
            expect(page.locator("#summary .status")).to_have_text("running")


def test_the_end_of_the_dashboard_is_shown(tmp_path: Path, dashboard: Start, page: Page) -> None:
    path = tmp_path / "planish.db"
    store_of(path)
    started = dashboard(path)
    page.goto(started.url)
    expect(page.locator("#live")).to_have_text("live")
    started.process.terminate()
    expect(page.locator("#live")).to_have_text("the dashboard has ended")
