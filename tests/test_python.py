"""planish as a library: names, completion, arguments, threads, stored runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest

import planish
from planish import Budget, Result, Settings
from planish.core import (
    ArgumentError,
    Candidate,
    Measured,
    PlanishError,
    Program,
    StoreError,
    Trial,
    is_locked,
    private_folder,
)
from planish.core.recording import Recording, load_recording, save_recording
from planish.einsum.call import BoundEinsum
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.workloads import matmul
from planish.report import write_report
from planish.store import store_at
from planish.tuning.api import task_of
from planish.tuning.result import RunSummary

MATMUL = "C[m,n] += A[m,k] * B[k,n]"
SIZE = {"m": 8, "n": 8, "k": 8}

FRESH = """
import json, sys, rlcompleter
import planish
before = set(sys.modules)
names = dir(planish)
completer = rlcompleter.Completer({"planish": planish})
found = [completer.complete("planish.ein", 0), completer.complete("planish.load", 0)]
heavy = {"numpy", "sqlalchemy", "llvmlite", "rich", "plotly"} & before
print(json.dumps({"names": names, "found": found, "heavy": sorted(heavy)}))
"""


def test_a_fresh_import_lists_and_completes_every_public_name_and_loads_nothing_heavy() -> None:
    shown = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True).stdout
    found = json.loads(shown)
    assert set(planish.__all__) <= set(found["names"])
    assert [name.rstrip("(") for name in found["found"]] == ["planish.einsum", "planish.load_run"]
    assert found["heavy"] == []


def test_names_that_are_missing_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'planish' has no attribute 'tunee'"):
        _ = planish.tunee  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]


@pytest.mark.parametrize(
    ("other", "own"),
    [
        ("create_study", "tune"),
        ("load_study", "load_run"),
        ("tune_kernel", "tune"),
        ("visualization", "plot"),
    ],
)
def test_names_of_other_libraries_lead_to_those_here(other: str, own: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{other}'. Did you mean: '{own}'"):
        getattr(planish, other)
    assert own in planish.__all__


def test_types_are_known_to_a_type_checker() -> None:
    """`make types` checks these; none is called here."""

    def checked(array: np.ndarray[Any, np.dtype[np.float32]]) -> None:
        assert_type(planish.tune(MATMUL, size=SIZE), Result)
        assert_type(planish.kernel("ij,jk->ik", array, array), BoundEinsum)
        assert_type(planish.load_run(), Result)
        assert_type(planish.runs(), list[RunSummary])
        assert_type(planish.einsum("ij->ji", array, out=array), np.ndarray[Any, np.dtype[np.float32]])
        planish.einsum("ij,jk->ik", array, [[1.0]], budget_s=0.0, cores=1, store="a.db")
        planish.einsum(array, [0, 1], array, [1, 2], [0, 2])

    assert callable(checked)


WRONG = [
    ({"trails": 3}, ("tune() has no argument 'trails', and level 'loops' has no option of that name. "
     "Did you mean 'trials'?")),
    ({"sise": 3}, ("tune() has no argument 'sise', and level 'loops' has no option of that name. "
     "Did you mean 'size'?")),
    ({"finalists": 2}, ("tune() has no argument 'finalists', and level 'loops' has no option of that name. "
     "Write settings=Settings(finalists=...).")),
    ({"timeout": 3}, ("tune() has no argument 'timeout', and level 'loops' has no option of that name. "
     "Did you mean 'seconds'?")),
    ({"n_trials": 3}, ("tune() has no argument 'n_trials', and level 'loops' has no option of that name. "
     "Did you mean 'trials'?")),
    ({"max_evals": 3}, ("tune() has no argument 'max_evals', and level 'loops' has no option of that name. "
     "Did you mean 'trials'?")),
    ({"n_jobs": 3}, ("tune() has no argument 'n_jobs', and level 'loops' has no option of that name. "
     "Write settings=Settings(workers=...).")),
    ({"objective": "time", "settings": Settings()}, ("objective= cannot be given together with settings=. "
     "Write settings=Settings(objectives=...).")),
    ({"target": float("inf")}, "target= takes a finite number, not inf"),
    ({"trials": "3"}, "trials= takes a whole number, not '3' (str). Write trials=3."),
    ({"trials": 2.5}, "trials= takes a whole number, not 2.5. Write trials=2."),
    ({"trials": True}, "trials= takes a whole number, not True"),
    ({"trials": 0}, "trials= takes a whole number of at least 1, not 0"),
    ({"seconds": "1"}, "seconds= takes a number, not '1' (str). Write seconds=1.0."),
    ({"seconds": float("nan")}, "seconds= takes a number above 0, not nan"),
    ({"target": "fast"}, "target= takes a number, not 'fast' (str)"),
    ({"seed": "a"}, "seed= takes a whole number, not 'a' (str)"),
    ({"seed": -1}, "seed= takes a whole number of at least 0, not -1"),
    ({"cores": 0}, "cores= takes a whole number of at least 1, not 0"),
    ({"searcher": 3}, "searcher= takes a name, not 3"),
    ({"searcher": "gentic"}, "unknown searcher 'gentic'. Did you mean 'genetic'?"),
    ({"objective": 3}, "objective= takes a name or a list of names, not 3"),
    ({"objective": ["time", 3]}, "objectives= takes a tuple of names, not ('time', 3) (tuple)"),
    ({"objective": "tim"}, "unknown objective 'tim'. Did you mean 'time_s'?"),
    ({"store": 3}, "store= takes an open store, a file or a URL, not 3"),
    ({"budget": 3}, "budget= takes planish.Budget(...), not 3"),
    ({"settings": {"seed": 3}}, "settings= takes planish.Settings(...), not {'seed': 3} (dict)"),
    ({"budget": Budget(trials=2), "trials": 3}, ("trials= cannot be given together with budget=. "
     "Write budget=Budget(trials=...).")),
    ({"settings": Settings(), "seed": 3, "cores": 1}, ("cores=, seed= cannot be given "
     "together with settings=. Write settings=Settings(cores=..., seed=...).")),
    ({"size": [8, 8]}, "size= takes a text, a number, a path or a dict such as {'m': 64}, not [8, 8] (list)"),
    ({"m": 8}, ("tune() has no argument 'm', and level 'loops' has no option of that name. "
     "Write size={'m': 8} for the extent of an axis.")),
    ({"restrictions": [len]}, "tune() has no argument 'restrictions'. Did you mean 'where'?"),
    ({"constraint": len}, ("tune() has no argument 'constraint', and level 'loops' has no option of that "
     "name. Did you mean 'where'?")),
    ({"size": "m=8"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), WRONG, ids=[str(wrong) for wrong, _ in WRONG])
def test_a_wrong_argument_is_named_in_one_sentence(
    arguments: dict[str, Any], said: str | None, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"size": SIZE, "store": tmp_path / "planish.db", **arguments}
    with pytest.raises(PlanishError) as caught:
        planish.tune(MATMUL, **given)
    assert said is None or str(caught.value) == said
    assert "\n" not in str(caught.value)
    if "store" not in arguments and (tmp_path / "planish.db").exists():
        assert planish.runs(tmp_path / "planish.db") == [], "no run has begun"


@pytest.mark.parametrize("program", [3, None, print, [MATMUL]])
def test_what_is_no_program_is_named(program: Any) -> None:
    with pytest.raises(ArgumentError, match="program= takes a file, a program's text or a program obj"):
        planish.tune(program)


def test_an_option_beside_a_program_object_is_refused(tmp_path: Path) -> None:
    program: Program = matmul(8, 8, 8)
    with pytest.raises(ArgumentError, match="given a program object and the option size="):
        planish.tune(program, size=SIZE, store=tmp_path / "planish.db")


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (planish.load_run, {"run_id": 3}, "run_id= takes the id of a run, not 3"),
        (planish.load_run, {"store": 3}, "store= takes an open store, a file or a URL, not 3"),
        (planish.load_run, {"pick": "1"}, "pick= takes a whole number, not '1' (str). Write pick=1."),
        (planish.load_run, {"files": "a.onnx"}, "Write files=['a.onnx']."),
        (planish.runs, {"store": 3}, "store= takes an open store, a file or a URL, not 3"),
        (planish.runs, {"limit": 0}, "limit= takes a whole number of at least 1, not 0"),
        (Settings, {"objectives": "time"}, "Write objectives=('time',)."),
        (Settings, {"workers": -1}, "workers= takes a whole number of at least 0, not -1"),
        (Settings, {"finalists": 0}, "finalists= takes a whole number of at least 1, not 0"),
        (Settings, {"sead": 1}, "Settings() has no argument 'sead'. Did you mean 'seed'?"),
        (Settings, {"sampler": "tpe"}, "Settings() has no argument 'sampler'. Did you mean 'searcher'?"),
        (Budget, {"timeout": 1}, "Budget() has no argument 'timeout'. Did you mean 'seconds'?"),
        (Settings, {"remeasure": 1}, "remeasure= takes True or False, not 1"),
        (Settings, {"searcher_options": "n=3"}, "searcher_options= takes a dict of option names to values"),
    ],
)
def test_other_functions_name_a_wrong_argument(function: Any, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(said)):
        function(**arguments)


class Odd:
    """A value whose repr fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_a_value_without_a_repr_is_named_by_its_type() -> None:
    with pytest.raises(ArgumentError, match=r"trials= takes a whole number, not without a repr .* \(Odd\)"):
        Budget(trials=Odd())  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match=r"not 'a{59}\.\.\. \(str\)$"):
        Budget(trials="a" * 999)  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs of one program, the second of which was stopped by nothing."""
    path = tmp_path_factory.mktemp("runs") / "planish.db"
    settings = Settings(searcher="random", workers=1, finalists=1)
    planish.tune(MATMUL, size=SIZE, budget=Budget(trials=3), settings=settings, store=path)
    planish.tune("D[m] += A[m,k]", size="m=8,k=8", searcher="random", trials=2, seed=5, store=path)
    return path


def test_sizes_are_a_dict_or_a_text_and_stored_runs_are_listed_and_loaded(store: Path) -> None:
    newest, oldest = planish.runs(store)
    assert planish.runs(store, limit=1) == [newest]
    assert (newest.level, newest.objectives, newest.seed, newest.trials) == ("loops", ("time_s",), 5, 2)
    assert (oldest.program.startswith("C[m"), oldest.searcher, oldest.status) == (True, "random", "finished")
    assert planish.load_run(store=store).run.id == newest.id
    loaded = planish.load_run(oldest.id[:6], store=store)
    assert loaded.finalists
    assert [record["index"] for record in loaded.trials()] == [0, 1, 2]
    assert loaded.trials()[0]["time_s"] > 0
    assert {record["state"] for record in loaded.trials()} <= {"measured", "failed"}
    with planish.open_store(store) as opened:
        assert planish.runs(opened) == [newest, oldest]
        assert planish.load_run(oldest.id, store=opened).run == loaded.run
    assert planish.runs(opened) == [newest, oldest], "a closed store is opened again"
    with pytest.raises(StoreError, match="no run 'ffff'"):
        planish.load_run("ffff", store=store)


class SomePath:
    """A path of a class of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


@pytest.mark.parametrize("kind", [str, Path, SomePath])
def test_a_path_may_be_a_text_or_any_path(kind: Any, tmp_path: Path) -> None:
    place = kind(tmp_path / "planish.db")
    program = matmul(8, 8, 8)
    level = LoopsLevel()
    task = task_of(level, program, Settings())
    steps = Candidate()
    with planish.open_store(place) as opened, store_at(place) as again:
        run = opened.begin_run(task, searcher="random", space="template", seed=0)
        opened.add_trials(run, [Trial(steps, Measured({"time_s": 1.0}), 0, 0, {}, "host", 0.0)])
        opened.finish_run(run)
        assert again.runs()
    assert [each.id for each in planish.runs(place)] == [run]
    result = planish.load_run(run, store=place)
    written = result.export(kind(tmp_path / "new" / "out"))
    assert {file.suffix for file in written} == {".s", ".h", ".json"}
    assert all(isinstance(file, Path) and file.exists() for file in written)
    assert write_report(result, kind(tmp_path / "page.html")) == tmp_path / "page.html"
    with pytest.raises(PlanishError, match="refer to no files"):
        planish.load_run(store=place, files=[kind(tmp_path / "any")])
    with pytest.raises(PlanishError, match="refer to no files"):
        planish.validate(run, store=place, files=[kind(tmp_path / "any")])
    (tmp_path / "f.ll").write_text("define i32 @f(i32 %x) {\n  ret i32 %x\n}\n")
    with pytest.raises(PlanishError, match="absent"):
        planish.tune(kind(tmp_path / "f.ll"), store=place, function=kind(Path("absent")))
    recording = Recording("task", "space", result.objective, {}, {})
    save_recording(recording, kind(tmp_path / "a.jsonl.gz"))
    assert load_recording(kind(tmp_path / "a.jsonl.gz")) == recording
    private = private_folder(kind(tmp_path / "private"))
    assert not is_locked(kind(private / "lock"))


def test_no_runs_are_listed_where_nothing_was_tuned_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLANISH_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert planish.runs() == []
    with pytest.raises(StoreError, match="there is no store"):
        planish.runs(tmp_path / "mistyped.db")
    with pytest.raises(StoreError, match="there is no store"):
        planish.load_run()


def test_threads_tune_side_by_side(tmp_path: Path) -> None:
    found, errors = dict[str, Result](), list[BaseException]()

    def tune(name: str) -> None:
        try:
            settings = Settings(searcher="random", workers=1, finalists=1)
            budget = Budget(trials=2)
            found[name] = planish.tune(
                MATMUL, size=SIZE, budget=budget, settings=settings, store=tmp_path / f"{name}.db"
            )
        except BaseException as error:  # noqa: BLE001  (it is raised in the main thread)
            errors.append(error)

    threads = [threading.Thread(target=tune, args=[name]) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [found[name].run.trials for name in ("a", "b")] == [2, 2]


def test_no_terminal_and_no_standard_error_are_needed(tmp_path: Path) -> None:
    """As under `pythonw` or in a service: `sys.stderr` is None."""
    program = (
        "import sys; sys.stdout = sys.stderr = None\n"
        "from quick_runs import shorten_comparisons\n"
        "shorten_comparisons(setattr)\n"
        "import planish\n"
        f"result = planish.tune({MATMUL!r}, size={SIZE!r}, searcher='random', trials=2, store='planish.db')\n"
        "open('done', 'w').write(str(result.run.trials))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, env=environment)
    assert (tmp_path / "done").read_text() == "2"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"budget_s": "1"}, "budget_s= takes a number, not '1' (str). Write budget_s=1.0."),
        ({"cores": 0}, "cores= takes a whole number of at least 1, not 0"),
        ({"store": 3}, "store= takes an open store, a file or a URL, not 3"),
    ],
)
def test_einsum_and_kernel_name_a_wrong_argument(arguments: dict[str, Any], said: str) -> None:
    array = np.ones((3, 5), np.float32)
    for function in (planish.einsum, planish.kernel):
        with pytest.raises(ArgumentError, match=re.escape(said)):
            function("ij,kj->ik", array, array, **arguments)
