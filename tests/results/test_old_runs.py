"""Every run that planish 0.1 stored, of each level: shown, reported, exported, validated and resumed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from golden_text import Golden
from planish.budget import Budget
from planish.cli import app
from planish.core import Level, TargetError, Task, content_hash
from planish.executors import InlineExecutor, LocalExecutor
from planish.levels import level_named, name_files
from planish.loops.target import available_backends
from planish.measure import Plan
from planish.results.validate import validate
from planish.settings import Settings
from planish.store import Store, open_store
from planish.tuning.api import tune_program
from results.old_runs import DATA, RUNS, write_files

pytest.importorskip("jaxlib")
pytest.importorskip("onnxruntime")
EINSUM = "einsum"
NAMES = [*RUNS, EINSUM]
TIMED_LOOPS, WIDE = ("loops", "loops-alone", "loops-killed", EINSUM), "x86-avx512"
"""Runs of the level `loops`, and the back end that made their kernels."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return write_files(tmp_path_factory.mktemp("files") / "old")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return Path(shutil.copy(DATA / "runs-1.db", tmp_path / "store.db"))


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("results.validate", "tuning.final.compare"):
        monkeypatch.setattr(
            import_module(f"planish.{module}"), "Plan", partial(Plan, rounds=3, processes=1, most=1)
        )
    evaluator_spec = import_module("planish.hlo.evaluator_spec")
    short = replace(evaluator_spec.LAST_TIMING, budget_s=0.01, fewest=1)
    monkeypatch.setattr(evaluator_spec, "LAST_TIMING", short)


def id_of(place: Path, name: str) -> str:
    """Find a run: they are listed from the last to the first."""
    with open_store(place, read_only=True) as store:
        return store.runs()[::-1][NAMES.index(name)].id


def _own(name: str, files: Mapping[str, Path]) -> Sequence[Path]:
    """Give the files of a run's program."""
    return [file for level, file in files.items() if name.startswith(level)]


def said(place: Path, *words: str) -> str:
    """Give what a command says, which must go well."""
    done = CliRunner().invoke(app, [*words, "--store", str(place)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_it_is_shown_as_it_was(
    name: str, place: Path, files: Mapping[str, Path], golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = id_of(place, name)
    with open_store(place, read_only=True) as store:
        level = level_named(store.task(store.run(run).task_key).level)
    name_files(level, _own(name, files))
    monkeypatch.setattr(type(level), "describe", _always({"what": "it does"}))  # which is of this machine
    golden.check(f"results/{name}.txt", said(place, "show", run))
    document = json.loads(said(place, "show", run, "--format", "json"))
    golden.check(f"results/{name}.json", json.dumps(_digested(document), indent=1))


def _digested(document: Any) -> Any:
    """Leave out of a document what is long: programs, and samples but for how many there are."""
    match document:
        case {"samples": list(samples), **rest}:
            return {**_digested(rest), "samples": [len(samples), content_hash(json.dumps(samples))]}
        case dict():
            return {name: _digested(value) for name, value in document.items()}
        case list():
            return [_digested(value) for value in document]
        case str() if len(document) > 200:
            return content_hash(document)
        case _:
            return document


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what is started: processes, and executors even in this one."""
    started: list[str] = []

    def noting(kind: type, name: str) -> None:
        usual = getattr(kind, name)

        def start(*given: Any, **named: Any) -> Any:
            started.append(f"{kind.__name__}.{name}{given[1:]}")
            return usual(*given, **named)

        monkeypatch.setattr(kind, name, start)

    noting(subprocess.Popen, "__init__")
    noting(LocalExecutor, "__init__")
    noting(InlineExecutor, "__init__")
    return started


@pytest.mark.parametrize("name", NAMES)
def test_to_show_report_and_export_it_measures_nothing(
    name: str, place: Path, files: Mapping[str, Path], tmp_path: Path, started: list[str]
) -> None:
    run, named = id_of(place, name), [w for f in _own(name, files) for w in ("--file", str(f))]
    said(place, "show", run, *named)
    said(place, "report", run, "--output", str(tmp_path / "page.html"), *named)
    said(place, "export", run, str(tmp_path / "out"), *named)
    assert started == []


@pytest.mark.parametrize("name", NAMES)
def test_it_is_reported(name: str, place: Path, files: Mapping[str, Path], tmp_path: Path) -> None:
    named = [word for file in _own(name, files) for word in ("--file", str(file))]
    run = id_of(place, name)
    headline = json.loads(said(place, "show", run, *named, "--format", "json"))["verdict"]["headline"]
    said(place, "report", run, "--output", str(tmp_path / "page.html"), *named)
    assert headline in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_exported(name: str, place: Path, files: Mapping[str, Path], tmp_path: Path) -> None:
    named = [word for file in _own(name, files) for word in ("--file", str(file))]
    made = said(place, "export", id_of(place, name), str(tmp_path / "out"), *named).splitlines()
    assert made
    assert all(Path(file).exists() for file in made)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_validated(name: str, place: Path, files: Mapping[str, Path]) -> None:
    """Its value need not be that of the record: this may be another machine."""
    if name in TIMED_LOOPS and WIDE not in available_backends():
        with pytest.raises(TargetError, match=f"back end '{WIDE}' does not work on this machine"):
            validate(id_of(place, name), files=_own(name, files), store=place)
        return
    found = validate(id_of(place, name), files=_own(name, files), store=place)
    assert (found.replay.verdict, found.answer.verdict) == ("holds", "holds"), found
    assert " now, " in found.value.detail


@pytest.mark.parametrize("name", NAMES)
def test_it_is_resumed(
    name: str, place: Path, files: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = id_of(place, name)
    with open_store(place) as store:
        run = store.run(run_id)
        level, task = _task(store, run.task_key, _own(name, files))
        monkeypatch.setattr(type(level), "target", _always(task.target))  # be the machine of the record
        monkeypatch.setattr(level, "version", task.level_version)
        before = store.run_trials(run_id, level.steps)
        settings = Settings(
            level=level.name, objectives=tuple(o.name for o in task.objectives), searcher=run.searcher,
            space=run.space, searcher_options=dict(run.options), seed=run.seed, workers=1, finalists=1,
        )  # fmt: skip
        found = tune_program(
            level, task.program, budget=Budget(trials=run.trials), settings=settings, store=store,
            compares=False,
        )  # fmt: skip
        assert (found.run_id, found.trials) == (run_id, run.trials)
        assert store.run_trials(run_id, level.steps) == before
        assert store.run(run_id).status == "finished"


def _task(store: Store, key: str, files: Sequence[Path]) -> tuple[Level, Task]:
    stored = store.task(key)
    level = level_named(stored.level)
    name_files(level, files)
    return level, stored.bind(level.read(stored.program, stored.target))


def _always(value: object) -> Callable[..., object]:
    """Make a method that always gives the same."""

    def give(*_: object) -> object:
        return value

    return give
