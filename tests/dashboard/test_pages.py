"""Pages in a browser: filters, comparison, narrow and dark windows, the keyboard, texts that are markup."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from cli import lattices
from dashboard.conftest import Live, Show
from dashboard.stores import (
    add_run,
    comparison,
    failed,
    front_comparison,
    front_task,
    front_trial,
    measured,
    store_of,
    task_of,
)
from planish.store import open_store

EVIL = "lattice 6x4x4 0.0 False <img src=x onerror=alert(1)></title><script>document.title='ran'</script>"


def test_the_list_is_filtered_and_sorted(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        better = add_run(store, [measured(0, 1e-3)], comparison(0.5, "better"))
        worse = add_run(store, [measured(0, 1e-3)], comparison(1.5, "worse"), searcher="genetic")
        add_run(store, [failed(0)], status="failed", task=task_of("lattice 7x7x7 0.0 False"))
    page.goto(show(path))
    rows = page.locator("#runs tbody tr")
    expect(rows).to_have_count(3)
    page.get_by_label("Verdict").select_option("worse")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(worse)
    expect(page).to_have_url(re.compile("verdict=worse"))
    page.get_by_label("Verdict").select_option("")
    page.get_by_role("searchbox").fill("7x7")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("failed")
    page.get_by_role("searchbox").fill("")
    expect(rows).to_have_count(3)
    page.locator("#sort-gain").click()
    expect(rows.first).to_contain_text(better)
    page.locator("#sort-gain").click()
    expect(rows.first).not_to_contain_text(better)


def test_trials_are_filtered_by_outcome_and_by_cause(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        trials = [measured(0, 2e-3), failed(1, "refused", "no vice"), failed(2), measured(3, 1e-3)]
        run_id = add_run(store, trials, comparison(0.5, "better"))
    page.goto(f"{show(path)}/runs/{run_id}")
    rows = page.locator("#trials tbody tr")
    expect(rows).to_have_count(4)
    page.get_by_label("Outcome").select_option("failed")
    expect(rows).to_have_count(2)
    page.get_by_label("Outcome").select_option("build: refused")
    expect(rows).to_have_count(1)
    page.locator("#trial-1 summary").click()
    expect(page.locator("#trial-1")).to_contain_text("no vice")
    page.get_by_label("Outcome").select_option("")
    page.get_by_label("Order").select_option("best")
    expect(rows.first.locator("td").first).to_have_text("4")
    expect(page.locator("#failures")).to_contain_text("2 of 4 trials failed")


@dataclass
class Held:
    """Requests that are held back."""

    routes: list[Route] = field(default_factory=list[Route])

    def hold(self, route: Route) -> None:
        self.routes.append(route)

    def release(self) -> None:
        assert self.routes
        for route in self.routes:
            route.continue_()


def test_two_choices_in_a_row_are_both_shown(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        trials = [measured(0, 2e-3), failed(1), measured(2, 1e-3)]
        run_id = add_run(store, trials, comparison(0.5, "better"))
    url = f"{show(path)}/runs/{run_id}"
    held = Held()
    page.route(re.compile(r"outcome=measured&order=newest$"), held.hold)
    page.goto(url)
    rows = page.locator("#trials tbody tr")
    expect(rows).to_have_count(3)
    page.get_by_label("Outcome").select_option("measured")
    page.get_by_label("Order").select_option("best")
    held.release()  # the answer to the first choice comes after the second choice was made
    expect(page).to_have_url(re.compile("outcome=measured&order=best"))
    expect(rows).to_have_count(2)
    expect(rows.first.locator("td").first).to_have_text("3")


def test_a_choice_right_after_an_answer_is_shown(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        trials = [measured(0, 2e-3), failed(1, "refused"), failed(2), measured(3, 1e-3)]
        run_id = add_run(store, trials, comparison(0.5, "better"))
    page.goto(f"{show(path)}/runs/{run_id}")
    rows = page.locator("#trials tbody tr")
    expect(rows).to_have_count(4)
    page.evaluate(
        """new MutationObserver((_, observer) => {
            const select = document.getElementById("outcome");
            if (select.value !== "failed") return;
            observer.disconnect();
            select.value = "build: refused";
            select.dispatchEvent(new Event("change", { bubbles: true }));
        }).observe(document.getElementById("main"), { childList: true, subtree: true })"""
    )
    page.get_by_label("Outcome").select_option("failed")
    expect(page).to_have_url(re.compile("refused"))
    expect(rows).to_have_count(1)


def test_filters_of_the_list_that_are_chosen_in_a_row(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        add_run(store, [measured(0, 1e-3)], comparison(1.5, "worse"))
        add_run(store, [measured(0, 1e-3)], comparison(0.5, "better"))
        stopped = add_run(store, [measured(0, 1e-3)], comparison(1.5, "worse"), status="stopped")
    held = Held()
    page.route(re.compile(r"status=stopped&verdict=&"), held.hold)
    page.goto(show(path))
    rows = page.locator("#runs tbody tr")
    expect(rows).to_have_count(3)
    with page.expect_request(re.compile("status=stopped")):
        page.get_by_label("Status").select_option("stopped")
    page.get_by_label("Verdict").select_option("worse")
    page.get_by_role("searchbox").focus()
    held.release()
    expect(page).to_have_url(re.compile("status=stopped&verdict=worse"))
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(stopped)


def test_two_runs_are_compared(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        one = add_run(store, [measured(0, 1e-3), measured(1, 0.5e-3)], comparison(0.5, "better"))
        other = add_run(store, [measured(0, 0.9e-3)], comparison(0.9, "better"), searcher="genetic")
    page.goto(show(path))
    for run_id in (one, other):
        page.locator(f"input[value='{run_id}']").check()
    page.get_by_role("button", name="Compare the chosen").click()
    expect(page.locator("#runs tbody").first).to_contain_text("2.00")
    expect(page.locator("#runs")).to_contain_text("genetic")
    expect(page.locator("#search .main-svg").first).to_be_visible()
    expect(page.locator("#gains .main-svg").first).to_be_visible()


def test_runs_that_cannot_be_compared_are_named(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    (run_id,) = store_of(path)
    page.goto(f"{show(path)}/compare?run={run_id}")
    expect(page.locator("#runs")).to_have_text(
        "fewer than two runs are chosen. Tick two or more in the list of runs."
    )


def test_a_page_is_left_by_the_keyboard(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    (run_id,) = store_of(path)
    page.goto(show(path))
    expect(page.locator("#live")).to_have_text("live")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == f"open-{run_id}":
            break
    page.keyboard.press("Enter")
    expect(page.locator("#summary")).to_contain_text("2.00")


def test_texts_of_a_store_are_no_markup(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        trials = [measured(0, 1e-3), failed(1, EVIL, EVIL)]
        run_id = add_run(store, trials, comparison(0.5, "better"), task=task_of(EVIL), searcher=EVIL)
    page.on("dialog", lambda _: pytest.fail("a script ran"))
    url = show(path)
    for path_of_page in ("", f"/runs/{run_id}"):
        page.goto(url + path_of_page)
        expect(page.locator("main")).to_contain_text("<img src=x")
        expect(page.locator("#live")).to_have_text("live")
        assert page.title().endswith(" · planish")
        assert page.locator("img").count() == 0


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("path_of_page", ["", "/runs/{}", "/compare?run={}&run={}"])
def test_nothing_is_wider_than_a_telephone(
    path_of_page: str, tmp_path: Path, show: Show, browser: Browser
) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        ids = [
            add_run(
                store,
                [measured(0, 1e-3), failed(1, "x" * 120, "y" * 120)],
                comparison(0.5, "better"),
                task=task_of("lattice 6x4x4 0.0 False " + "z" * 200),
            )
            for _ in range(2)
        ]
    narrow = browser.new_page(viewport={"width": 400, "height": 800})
    narrow.goto(show(path) + path_of_page.format(*ids))
    expect(narrow.locator("#live")).to_have_text("live")
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 400
    narrow.close()


@pytest.mark.slow
def test_a_long_table_of_trials_scrolls_in_a_box(tmp_path: Path, show: Show, browser: Browser) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        run_id = add_run(store, [failed(i) for i in range(120)], status="failed")  # no charts are drawn
    narrow = browser.new_page(viewport={"width": 400, "height": 800})
    narrow.goto(f"{show(path)}/runs/{run_id}")
    expect(narrow.locator("#trials tbody tr")).to_have_count(50)
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 400
    narrow.wait_for_function(
        "() => { const box = document.getElementById('trials-box');"
        " return box.clientHeight <= 640 && box.scrollHeight > 700; }"
    )
    expect(narrow.locator("#provenance h2")).to_be_visible()  # the last section: none follows
    narrow.locator("#trials-box").focus()
    narrow.keyboard.press("End")
    expect(narrow.locator("#trials tbody tr").last).to_be_in_viewport()
    narrow.wait_for_function(
        "() => { const [box, head] = ['#trials-box', '#trials thead th'].map((each) =>"
        " document.querySelector(each).getBoundingClientRect().top); return Math.abs(box - head) < 2; }"
    )
    narrow.get_by_role("link", name="Next").click()
    expect(narrow.locator("#trials")).to_contain_text("page 2 of 3")
    narrow.close()


BASELINE = front_trial(0, 1e-3, 1.0)
OTHERS = (front_trial(1, 1.5e-3, 2.0), front_trial(2, 0.5e-3, 0.75), front_trial(4, 2e-3, 0.5))


def test_a_front_is_shown(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    assert BASELINE.candidate == lattices.BASELINE
    with open_store(path) as store:
        run_id = add_run(store, [BASELINE, *OTHERS], front_comparison(), task=front_task())
    page.goto(f"{show(path)}/runs/{run_id}")
    front = page.locator("#front")
    expect(front.locator(".main-svg").first).to_be_visible()
    expect(front).to_contain_text("hypervolume of the front")
    drawn = "e => e.data.filter(d => d.name === 'hypervolume of the front').map(d => Math.max(...d.y))"
    assert front.locator(".chart").nth(1).evaluate(drawn)[0] > 1
    rows = front.locator("table").first.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("faster, less gflops")
    expect(rows.nth(2)).to_contain_text("slower, more gflops")
    front.locator("summary").first.click()
    expect(front).to_contain_text("(1, 0, 0)")


@pytest.mark.slow
def test_the_hypervolume_of_a_front_is_shown_once_the_baseline_is_measured(live: Live, page: Page) -> None:
    with open_store(live.path) as store:
        run_id = add_run(store, OTHERS, task=front_task(), status=None)
        page.goto(live.run_url(run_id))
        front = page.locator("#front")
        expect(front.locator(".main-svg").first).to_be_visible()
        expect(front).not_to_contain_text("hypervolume of the front")
        store.add_trials(run_id, [BASELINE])
        expect(front).to_contain_text("hypervolume of the front")


@pytest.mark.slow
def test_a_dark_page_has_light_letters(tmp_path: Path, show: Show, browser: Browser) -> None:
    path = tmp_path / "planish.db"
    (run_id,) = store_of(path)
    dark = browser.new_page(color_scheme="dark")
    dark.goto(f"{show(path)}/runs/{run_id}")
    expect(dark.locator("#search .main-svg").first).to_be_visible()
    colors = dark.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
        " getComputedStyle(document.querySelector('#search .xtick text')).fill]"
    )
    back, text, tick = (sum(map(int, each[4:-1].split(","))) for each in colors)
    assert back < 150 < 500 < text
    assert tick > 500
    dark.close()


def test_why_a_file_is_not_opened_stays_on_a_page_that_changes(
    live: Live, tmp_path: Path, page: Page
) -> None:
    (tmp_path / "text.db").write_text("no store")
    page.goto(live.url)
    expect(page.locator("#live")).to_have_text("live")
    page.set_input_files("#open-store", tmp_path / "text.db")
    expect(page.locator("#notice")).to_contain_text("text.db is not an SQLite database")
    (run_id,) = store_of(live.path)
    expect(page.locator(f"#run-{run_id}")).to_be_visible()
    expect(page.locator("#notice")).to_contain_text("text.db is not an SQLite database")


def test_a_store_is_opened_by_dropping_its_file(tmp_path: Path, show: Show, page: Page) -> None:
    store_of(tmp_path / "planish.db")
    (run_id,) = store_of(tmp_path / "other.db")
    page.goto(show(tmp_path / "planish.db"))
    page.set_input_files("#open-store", tmp_path / "other.db")
    expect(page.locator(f"#run-{run_id}")).to_be_visible()
    expect(page.locator("header nav")).to_contain_text("other.db")
    data = page.evaluate_handle(
        "bytes => { const data = new DataTransfer(); "
        "data.items.add(new File([new Uint8Array(bytes)], 'dropped.db')); return data; }",
        list((tmp_path / "other.db").read_bytes()),
    )
    page.dispatch_event("body", "drop", {"dataTransfer": data})
    expect(page.locator("header nav")).to_contain_text("dropped.db")


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("count", [120, 1000])
def test_many_runs_are_in_pages(tmp_path: Path, show: Show, page: Page, count: int) -> None:
    path = tmp_path / "planish.db"
    store_of(path, count)
    page.goto(show(path))
    expect(page.locator("#runs > p")).to_contain_text(f"{count:,} of {count:,} runs")
    expect(page.locator("#runs tbody tr")).to_have_count(50)
    first = page.locator("#runs tbody tr").first.get_attribute("id")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#runs")).to_contain_text(f"page 2 of {-(-count // 50)}")
    assert page.locator("#runs tbody tr").first.get_attribute("id") != first


@pytest.mark.slow
def test_a_hundred_thousand_trials_are_thinned(tmp_path: Path, show: Show, page: Page) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        run_id = add_run(store, [measured(i, 1e-3 * (1 + i % 997 / 997)) for i in range(100_000)])
    page.goto(f"{show(path)}/runs/{run_id}")
    expect(page.locator("#trials")).to_contain_text("page 1 of 2000", timeout=300_000)
    expect(page.locator("#search .main-svg").first).to_be_visible()
    points = page.locator("#search .chart").first.evaluate(
        "e => Math.max(...e._fullData.map(d => d.x.length))"
    )
    assert points <= 2000
    page.get_by_label("Order").select_option("best")
    expect(page.locator("#trials tbody td").nth(1)).to_have_text("1.000 ms")
