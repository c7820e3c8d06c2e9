"""A stored run of each level is shown, reported and exported without a measurement, and validated."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from planish.cli.commands import app
from planish.core.registry import load_program
from planish.measure.executors import InlineExecutor, LocalExecutor
from planish.store import open_store
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget, Settings
from planish.tuning.validate import validate

pytest.importorskip("jaxlib")
pytest.importorskip("onnxruntime")

TRAINING = """\
[data]
folder = "data"
[split]
search = 9
validation = 6
train = 25
[training]
epochs = 1
search_steps = 2
"""
SETTINGS: Mapping[str, Settings] = {
    "loops": Settings(),
    "llvm": Settings(objectives=("instructions", "text_bytes")),
    "hlo": Settings(objectives=("time",), level="hlo"),
    "graph": Settings(objectives=("model_size",), level="graph"),
}


@dataclass(frozen=True)
class Stored:
    """A run that is stored.

    Args:
        run_id: its id.
        path: its store.
        files: what its program refers to by digests.
        again: runs it again, by its settings.
    """

    run_id: str
    path: Path
    files: Sequence[Path]
    again: partial[Any]


def _source(level: str, folder: Path) -> tuple[str, Mapping[str, str], Sequence[Path]]:
    """Write a program; gives what names it, how it is read, and its other files."""
    from levels.graph.models import convolutions, write
    from levels.hlo.workloads import STEP, write_all
    from levels.llvm.modules import SUM

    match level:
        case "loops":
            return "C[m,n] += A[m,k] * B[k,n]", {"size": "m=12,n=12,k=12"}, []
        case "llvm":
            (folder / "sum.ll").write_text(SUM)
            return str(folder / "sum.ll"), {}, []
        case "hlo":
            write_all(folder, STEP, TRAINING)
            return str(folder / "net.mlir"), {}, [folder / "data"]
        case _:
            file = write(convolutions(), folder / "net.onnx")
            return str(file), {}, [file]


@pytest.fixture(scope="module")
def short() -> Any:
    """Measure briefly: what is found does not matter."""
    with pytest.MonkeyPatch.context() as patch:
        spec = import_module("planish.levels.hlo.evaluator")
        patch.setattr(spec, "LAST_TIMING", replace(spec.LAST_TIMING, budget_s=0.01, fewest=1))
        yield


@pytest.fixture(scope="module", params=SETTINGS)
def run(request: pytest.FixtureRequest, short: None, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    del short
    folder = tmp_path_factory.mktemp(request.param)
    source, options, files = _source(request.param, folder)
    settings = replace(SETTINGS[request.param], searcher="random", workers=1, finalists=1)
    level, program = load_program(source, settings.level, options)
    again = partial(
        tune_program, level, program, budget=Budget(trials=3), settings=settings, store=folder / "store.db"
    )
    # A comparison takes the levels longest that compile for seconds.
    compares = request.param in ("loops", "llvm")
    return Stored(again(compares=compares).run.id, folder / "store.db", files, again)


def said(stored: Stored, *words: str) -> str:
    """Return what a command says, which must go well."""
    named = [word for file in stored.files for word in ("--file", str(file))]
    done = CliRunner().invoke(app, [*words, "--store", str(stored.path), *named])
    assert done.exit_code == 0, done.output
    return done.stdout


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


def test_to_show_report_and_export_it_measures_nothing(
    run: Stored, tmp_path: Path, started: list[str]
) -> None:
    headline = json.loads(said(run, "show", run.run_id, "--format", "json"))["verdict"]["headline"]
    assert run.run_id in said(run, "show", run.run_id)
    said(run, "report", run.run_id, "--output", str(tmp_path / "page.html"))
    assert headline in (tmp_path / "page.html").read_text()
    made = said(run, "export", run.run_id, str(tmp_path / "out")).splitlines()
    assert made
    assert all(Path(file).exists() for file in made)
    # An exported ONNX model is rewritten in a worker process.
    rewriting = ("PassProbeSpec", "prepared_workers.py")
    assert [each for each in started if not any(name in each for name in rewriting)] == []


def test_it_is_validated(run: Stored) -> None:
    found = validate(run.run_id, files=run.files, store=run.path)
    assert (found.replay.verdict, found.answer.verdict) == ("holds", "holds"), found
    assert " now, " in found.value.detail


def test_it_is_resumed_and_measures_nothing_again(run: Stored) -> None:
    with open_store(run.path) as store:
        store.resume_run(run.run_id)
        before = store.run(run.run_id)
    found = run.again(compares=False)
    assert (found.run.id, found.run.trials) == (run.run_id, before.trials)
    with open_store(run.path, read_only=True) as store:
        assert [each.id for each in store.runs()] == [run.run_id]
        assert store.run(run.run_id).status == "finished"
