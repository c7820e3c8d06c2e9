"""What a user asks of the target goes with the program, and comes back with it from a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from planish import tune, validate
from planish.budget import Budget
from planish.core import Level
from planish.levels.registry import level_named
from planish.settings import Settings
from planish.store import open_store
from planish.tuning.result import read_result

QUICK = Settings(searcher="random", workers=1)
MATMUL = "C[m,n] += A[m,k] * B[k,n]"
IR = "define i32 @f(i32 %x) {\n  ret i32 %x\n}\n"
needs_hlo = pytest.mark.skipif(find_spec("iree") is None, reason="IREE is not installed")
needs_graph = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")


@dataclass(frozen=True)
class Asked:
    """What is loaded with an option, and what the target should say of it."""

    level: str
    source: str
    name: str
    value: str
    usual: str


def _loops(folder: Path) -> Asked:
    del folder
    text = level_named("loops").load(MATMUL, {"size": "m=8,n=8,k=8"}).text
    usual = level_named("loops").target(level_named("loops").load(text, {}), 1).toolchain["backend"]
    return Asked("loops", text, "backend", "portable", usual)


def _llvm(folder: Path) -> Asked:
    del folder
    level = level_named("llvm")
    usual = level.target(level.load(IR, {}), 1).toolchain["backend"]
    return Asked("llvm", IR, "backend", "llvmlite-reduced", usual)


def _hlo(folder: Path) -> Asked:
    from hlo.workloads import INFERENCE, PREDICT, write_all

    return Asked("hlo", str(write_all(folder, PREDICT, INFERENCE)), "backend", "iree", "xla")


def _graph(folder: Path) -> Asked:
    from graph.models import convolutions, write

    return Asked("graph", str(write(convolutions(), folder / "net.onnx")), "optimization", "basic", "all")


@pytest.mark.parametrize(
    "make",
    [_loops, _llvm, pytest.param(_hlo, marks=needs_hlo), pytest.param(_graph, marks=needs_graph)],
)
def test_programs_carry_their_options_and_levels_remember_nothing(
    make: Callable[[Path], Asked], tmp_path: Path
) -> None:
    asked = make(tmp_path)
    level: Level = level_named(asked.level)
    special = level.load(asked.source, {asked.name: asked.value})
    usual = level.load(asked.source, {})
    target = level.target(special, 1)
    assert target.toolchain[asked.name] == asked.value
    assert level.target(usual, 1).toolchain[asked.name] == asked.usual
    again = level_named(asked.level)
    for program, where in ((special, target), (usual, level.target(usual, 1))):
        stored = again.read(program.text, where)
        assert (stored.text, again.target(stored, 1)) == (program.text, where)


def test_a_stored_run_is_validated_by_the_back_end_that_it_was_tuned_for(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    result = tune(
        MATMUL,
        budget=Budget(trials=3),
        settings=QUICK,
        store=place,
        size="m=16,n=16,k=16",
        backend="portable",
    )
    checked = validate(result.run_id, store=place)
    assert "x86" not in " ".join(check.detail for check in checked.checks)
    with open_store(place) as store:
        stored = read_result(store, result.run_id)
    assert stored.level.target(stored.task.program, 1) == result.task.target


def test_a_program_and_its_options_may_be_paths(tmp_path: Path) -> None:
    (tmp_path / "f.ll").write_text(IR)
    store, budget = tmp_path / "a.db", Budget(trials=2)
    result = tune(tmp_path / "f.ll", budget=budget, settings=QUICK, store=store, function=Named("f"))
    assert "@f" in result.task.program.text


class Named:
    """What is no text, and has one."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text
