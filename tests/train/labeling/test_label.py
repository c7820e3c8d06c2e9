"""Labels of a small corpus, by the LLVM that is here."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from planish.core import LostError, PlanishError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.functions import identity, normalize
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.measure.ray_cluster import RayCluster
from planish.train.corpus.reader import SAMPLE
from planish.train.corpus.shards import Row, Split
from planish.train.labeling.choice import Broadcasting, build_coreset, joined, most_saving
from planish.train.labeling.label_plan import (
    LABELS,
    Label,
    LabelPlan,
    LabelStatus,
    read_labels,
    read_shard,
    write_labels,
)
from planish.train.labeling.run import LISTS, SEARCHED, Draw, label_corpus
from planish.tuning.progress import ProgressDisplay

# -Oz leaves a return in each arm; a list with mergereturn has one.
SWITCH = """
define i32 @f(i32 %x, ptr %p) {{
  %slot = alloca i32
  store i32 %x, ptr %slot
  switch i32 %x, label %d [ i32 0, label %a
    i32 {case}, label %b ]
a:
  call void @g(ptr %p)
  call void @h(i32 {case})
  ret i32 {case}
b:
  call void @g(ptr %p)
  call void @h(i32 8)
  ret i32 8
d:
  %l = load i32, ptr %slot
  %m = mul i32 %l, {case}
  ret i32 %m
}}
declare void @g(ptr)
declare void @h(i32)
"""
HOISTED = """
define i32 @f(i32 %x, ptr %p, ptr %q) {
  %a = load i32, ptr %p
  call void @g(ptr %q)
  %b = load i32, ptr %p
  %c = icmp eq i32 %a, %x
  br i1 %c, label %l, label %r
l:
  %m = mul i32 %x, 7
  call void @h(i32 %m)
  br label %e
r:
  %n = mul i32 %x, 7
  call void @g(ptr %p)
  call void @h(i32 %n)
  call void @h(i32 %b)
  br label %e
e:
  %s = phi i32 [ 1, %l ], [ 2, %r ]
  ret i32 %s
}
declare void @g(ptr)
declare void @h(i32)
"""
_LANE = """
  %a{lane} = getelementptr i32, ptr %a, i64 {lane}
  %b{lane} = getelementptr i32, ptr %b, i64 {lane}
  %x{lane} = load i32, ptr %a{lane}
  %y{lane} = add i32 %x{lane}, 7
  store i32 %y{lane}, ptr %b{lane}"""
LANES = (
    "define void @f(ptr noalias %a, ptr noalias %b) {"
    + "".join(_LANE.format(lane=lane) for lane in range(4))
    + "\n  ret void\n}\n"
)
HOIST, VECTORIZE = ("gvn-hoist", "default<Oz>"), ("default<Oz>", "slp-vectorizer")
PLAN = LabelPlan(evaluations=60, give_up=0, lists=3, candidates=5, sample=5, jobs=2)


def _rows(count: int) -> Iterator[Row]:
    for case in range(3, 3 + count):
        yield _row(SWITCH.format(case=case), "one" if case % 2 else "other", "train" if case % 3 else "test")


def _row(text: str, package: str, split: Split) -> Row:
    ir = normalize(open_bindings().parse(text).text())
    return Row(identity(ir), package, "1", "f.c", "f", "MIT", "folder", split, ir, 17, len(ir), 0)


def _write(folder: Path, rows: Iterable[Row]) -> Path:
    file = folder / "rows.jsonl.gz"
    with gzip.open(file, "wt") as lines:
        lines.writelines(f"{json.dumps(asdict(row))}\n" for row in rows)
    return file


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("corpus"), _rows(12))


def _label(
    corpus: Path, folder: Path, plan: LabelPlan = PLAN, broadcasting: type[Broadcasting] = Broadcasting
) -> list[Label]:
    label_corpus(corpus, folder, plan, ProgressDisplay(show=False), broadcasting=broadcasting)
    return list(read_labels(folder))


@pytest.fixture(scope="module")
def labels(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Label]:
    return _label(corpus, tmp_path_factory.mktemp("labels"))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
def test_a_cluster_finds_the_same_labels(corpus: Path, labels: list[Label], tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs ray: pip install 'planish[ray]'")
    with RayCluster() as cluster:
        label_corpus(corpus, tmp_path, PLAN, ProgressDisplay(show=False), spread=cluster.forked)
    assert list(read_labels(tmp_path)) == labels


def _after(row: Row, passes: tuple[str, ...]) -> int:
    module = open_bindings().parse(for_size(row.ir))
    module.run(print_pipeline(passes))
    assert not module.verify()
    return module.instructions()


def test_labels_are_what_their_lists_give(labels: list[Label]) -> None:
    rows = {row.identity: row for row in _rows(12)}

    assert [label.identity for label in labels] == [
        row.identity for split in ("train", "test") for row in rows.values() if row.split == split
    ]
    for label in labels:
        row = rows[label.identity]
        assert label.unoptimized == _after(row, ())
        assert label.best == _after(row, label.passes) <= label.baseline == _after(row, ("default<Oz>",))
        assert label.found_by == "baseline" or label.saved > 0


def test_no_pass_of_a_label_can_be_left_out(labels: list[Label]) -> None:
    rows = {row.identity: row for row in _rows(12)}
    for label in labels:
        if label.saved:
            for place in range(len(label.passes)):
                less = label.passes[:place] + label.passes[place + 1 :]
                assert _after(rows[label.identity], less) > label.best


def test_the_same_plan_gives_the_same_labels_however_many_work(
    corpus: Path, tmp_path: Path, labels: list[Label]
) -> None:
    assert _label(corpus, tmp_path, replace(PLAN, jobs=1)) == labels


@pytest.mark.slow
def test_a_function_that_no_list_improves_is_given_up(tmp_path: Path) -> None:
    plan = LabelPlan(evaluations=60, give_up=24, lists=0, functions=30, splits=("train",), jobs=2)

    labels = _label(SAMPLE, tmp_path, plan)

    hopeless = [label for label in labels if not label.saved]
    assert {label.evaluations for label in hopeless} == {24}
    assert all(label.evaluations >= 60 for label in labels if label.saved)
    assert 0 < len(hopeless) < len(labels)


def test_a_search_without_the_coreset_does_not_give_up() -> None:
    assert [LabelPlan().gives_up, LabelPlan(coreset=False).gives_up] == [24, 0]
    assert LabelPlan(searcher="random-minimize").gives_up == 0


def test_labels_made_otherwise_are_not_mixed(corpus: Path, tmp_path: Path) -> None:
    plan = replace(PLAN, evaluations=4, lists=0)
    _label(corpus, tmp_path, plan)

    with pytest.raises(PlanishError, match="began with seed 0, and not 1"):
        _label(corpus, tmp_path, replace(plan, seed=1))


def test_labels_of_a_corpus_that_has_grown_are_not_mixed(tmp_path: Path) -> None:
    plan = replace(PLAN, evaluations=4, lists=0)
    _label(_write(tmp_path, _rows(3)), tmp_path / "labels", plan)

    with pytest.raises(PlanishError, match="began with corpus_functions 3, and not 4"):
        _label(_write(tmp_path, _rows(4)), tmp_path / "labels", plan)


def test_a_split_that_the_corpus_lacks_is_an_error(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(PlanishError, match="has no functions of csmith"):
        _label(corpus, tmp_path / "labels", replace(PLAN, splits=("csmith",)))
    assert not (tmp_path / "labels").exists()


def test_labels_do_not_go_into_a_corpus(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")

    with pytest.raises(PlanishError, match="is a corpus, whose card labels would replace"):
        _label(corpus, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_functions_are_drawn_evenly_whatever_identities_a_corpus_holds() -> None:
    (row,) = _rows(1)
    rows = [replace(row, identity=f"{number:032x}") for number in range(1000)]

    few, more = ({r.identity for r in rows if Draw(wanted, 1000).holds(r)} for wanted in (100, 500))

    assert 60 < len(few) < 140
    assert 430 < len(more) < 570
    assert few < more
    assert all(Draw(1000, 1000).holds(r) for r in rows)


def test_labels_of_another_coreset_are_not_mixed(corpus: Path, tmp_path: Path) -> None:
    plan = replace(PLAN, evaluations=4, lists=0)
    _label(corpus, tmp_path, plan)
    recipe = tmp_path / "recipe.json"
    text, replaced = re.subn(r'("catalogue_and_coreset": ")[^"]+', r"\g<1>other", recipe.read_text())
    assert replaced == 1
    recipe.write_text(text)
    with pytest.raises(PlanishError, match="began with catalogue_and_coreset"):
        _label(corpus, tmp_path, plan)


def test_a_damaged_recipe_is_one_line(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text("[1")

    with pytest.raises(PlanishError, match=r"cannot read .*recipe\.json"):
        _label(corpus, tmp_path)


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on(corpus: Path, tmp_path: Path, labels: list[Label]) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from planish.train.labeling import run\n"
        "from planish.train.labeling.label_plan import LabelPlan\n"
        "from planish.train.labeling.run import label_corpus\n"
        "run._SHARD = 4\n"
        "from planish.tuning.progress import ProgressDisplay\n"
        "class Slow(ProgressDisplay):\n"
        "    def update(self, *, at_once=False):\n"
        "        print('done', flush=True)\n"
        "        time.sleep(0.05)\n"
        f"label_corpus(Path(sys.argv[1]), Path(sys.argv[2]), LabelPlan(**{asdict(PLAN)!r}), Slow())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(corpus), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while not list((tmp_path / "searched").glob("*.parquet")):
        assert process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    first = next((tmp_path / "searched").glob("*.parquet"))
    written = first.stat().st_mtime_ns
    time.sleep(0.05)

    subprocess.run(
        [sys.executable, "-c", program, str(corpus), str(tmp_path)], check=True, stdout=subprocess.DEVNULL
    )

    assert first.stat().st_mtime_ns == written
    assert list(read_labels(tmp_path)) == labels


@pytest.mark.slow
def test_all_lists_are_broadcast_where_as_many_are_asked_for(corpus: Path, tmp_path: Path) -> None:
    plan = replace(PLAN, lists=5)

    labels = _label(corpus, tmp_path, plan)

    searched = [label for shard in sorted((tmp_path / SEARCHED).glob("*")) for label in read_shard(shard)]
    broadcast = [tuple(passes) for passes in json.loads((tmp_path / LISTS).read_text())]
    assert broadcast == most_saving(searched, 5)
    rows = {row.identity: row for row in _rows(12)}
    for label in labels:
        assert label.best <= min(_after(rows[label.identity], passes) for passes in broadcast)


@pytest.mark.slow
def test_a_function_that_cannot_be_broadcast_to_keeps_its_label(corpus: Path, tmp_path: Path) -> None:
    class Dying(Broadcasting):
        def __call__(self, *_: object) -> Label:
            os._exit(1)

    labels = _label(corpus, tmp_path, broadcasting=Dying)

    assert {label.identity for label in labels} == {row.identity for row in _rows(12)}
    assert {label.found_by for label in labels} <= {"search", "baseline"}


@pytest.mark.slow
def test_children_that_others_kill_end_the_labeling_and_write_no_shard(corpus: Path, tmp_path: Path) -> None:
    class Killed(Broadcasting):
        def __call__(self, *_: object) -> Label:
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

    with pytest.raises(LostError, match="processes are killed from outside: killed by SIGKILL"):
        _label(corpus, tmp_path, broadcasting=Killed)
    assert list((tmp_path / SEARCHED).iterdir())
    assert not list((tmp_path / LABELS).glob("*"))
    assert {label.identity for label in _label(corpus, tmp_path)} == {row.identity for row in _rows(12)}


def test_a_coreset_is_chosen_by_training_functions_alone(labels: list[Label]) -> None:
    trained = {label.passes for label in labels if label.split == "train" and label.saved}
    spoiled = [replace(label, split="test") for label in labels]

    assert set(most_saving(labels, 100)) == trained
    assert most_saving(spoiled, 100) == []


def test_the_coreset_saves_what_it_says(corpus: Path, tmp_path: Path) -> None:
    _label(corpus, tmp_path)

    made = build_coreset(corpus, tmp_path, PLAN, 2)

    assert made["objective"] == "instructions"
    assert 1 <= len(made["lists"]) <= 2
    rows = [row for row in _rows(12) if row.split == "train"]
    best = tuple(made["lists"][0])
    assert sum(_after(row, best) for row in rows) < sum(_after(row, ("default<Oz>",)) for row in rows)


def test_lists_are_joined_two_by_two() -> None:
    lists = [("gvn",), ("sroa", "dce")]

    assert joined(lists, 4) == [first + second for first in lists for second in lists]
    assert joined(lists, 3) == [("gvn", "gvn"), ("gvn", "sroa", "dce"), ("sroa", "dce", "gvn")]


def test_two_lists_become_one_that_is_good_for_the_functions_of_both(tmp_path: Path) -> None:
    hoisted = [HOISTED.replace("i32", f"i{width}") for width in (8, 16, 32, 64)]
    rows = [_row(text, str(place), "train") for place, text in enumerate([*hoisted, LANES])]
    corpus, lists = _write(tmp_path, rows), [*[HOIST] * len(hoisted), VECTORIZE]
    labels = [_labeled(row, passes) for row, passes in zip(rows, lists, strict=True)]
    write_labels(labels, tmp_path / LABELS / "00000.parquet")

    alone, both = (build_coreset(corpus, tmp_path, PLAN, 1, joining)["lists"] for joining in (0, 2))

    assert alone in ([list(HOIST)], [list(VECTORIZE)])
    assert both in ([[*HOIST, *VECTORIZE]], [[*VECTORIZE, *HOIST]])
    assert all(_after(row, tuple(both[0])) < label.baseline for row, label in zip(rows, labels, strict=True))


def test_labels_of_another_corpus_are_an_error(tmp_path: Path) -> None:
    write_labels([_labeled(_row(LANES, "one", "train"), VECTORIZE)], tmp_path / LABELS / "00000.parquet")

    with pytest.raises(PlanishError, match="has none of the functions that"):
        build_coreset(_write(tmp_path, _rows(2)), tmp_path, PLAN, 1)


def _labeled(row: Row, passes: tuple[str, ...]) -> Label:
    baseline, best = _after(row, ("default<Oz>",)), _after(row, passes)
    counts = row.instructions, baseline, best, best
    return Label(row.identity, row.package, row.split, *counts, passes, "search", 2, ())


def test_the_progress_of_labeling_has_what_is_saved() -> None:
    clock = [100.0]
    status = LabelStatus("searching", 100)
    status.now, status.started = lambda: clock[0], clock[0]
    status.add(1, 100, 0)
    assert status.line.startswith("searching: 1 of 100 functions, 1.00% under -Oz; ")
    clock[0] = 110.0
    status.done, status.saved, status.refused = 50, 2, 3
    assert (status.line, status.left) == (
        "searching: 50 of 100 functions, 2.00% under -Oz, 3 crashes; 5/s",
        "10.0 s left",
    )
