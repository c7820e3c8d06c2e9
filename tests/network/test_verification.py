"""Verification of libraries: accesses beyond arrays, changed inputs, and ends of the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from network.compiled import built_library, small_model
from planish.core import ProgramError
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.objects import read_object
from planish.network.compiler import compile_model
from planish.network.ir import Array
from planish.network.library.assembly import Built
from planish.network.library.files import write_library
from planish.network.verification import Answers, answers_here


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return built_library(small_model(tmp_path_factory.mktemp("model") / "m.onnx"))


def answered(built: Built, folder: Path, shape: Sequence[int] = (1, 3, 8, 8), **other: Any) -> list[float]:
    """Run a library, whose manifest may be wrong, on inputs of ones and twos."""
    folder.mkdir()
    manifest: Mapping[str, Any] = {**built.manifest, **other}
    write_library(replace(built, manifest=manifest), folder)
    feeds = [[np.full(shape, 1 + number, np.float32)] for number in range(2)]
    return [float(outputs[0].sum()) for outputs in answers_here(folder, manifest)(feeds)]


def test_library_runs_on_guarded_arrays(built: Built, tmp_path: Path) -> None:
    one, two = answered(built, tmp_path / "net")
    assert 0 < one < two


def test_accesses_beyond_arrays_are_refused(built: Built, tmp_path: Path) -> None:
    output = {"name": "y", "dtype": "float32", "shape": [1, 4, 1, 1]}
    with pytest.raises(ProgramError, match="ends its process"):
        answered(built, tmp_path / "output", outputs=[output])
    with pytest.raises(ProgramError, match="ends its process"):
        answered(built, tmp_path / "workspace", workspace_bytes=64)
    with pytest.raises(ProgramError, match="ends its process"):
        answered(built, tmp_path / "input", (1, 3, 8, 7))


_FUNCTION = """
define i32 @model_run_layers(ptr %inputs, ptr %outputs, ptr %workspace, i32 %first, i32 %after) nounwind {
  %input = load ptr, ptr %inputs
  store float 9.0, ptr %input
  br label %@NEXT@
loop:
  br label %loop
end:
  ret i32 0
}
"""


@pytest.mark.parametrize(("following", "why"), [("end", "an input is changed"), ("loop", "ends its process")])
def test_libraries_that_misbehave_are_refused(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, following: str, why: str
) -> None:
    monkeypatch.setattr("planish.network.verification.RUN_LIMIT_S", 0.3)
    code = jit.object_code(_FUNCTION.replace("@NEXT@", following), built.machine)
    wrong = replace(built, sections=read_object(code, "wrong"), exported=["model_run_layers"])
    with pytest.raises(ProgramError, match=why):
        answered(wrong, tmp_path / "net")


def test_real_inputs_are_verified_and_must_fit(tmp_path: Path) -> None:
    path, seen = small_model(tmp_path / "m.onnx"), np.ones((3, 3, 8, 8), np.float32)
    np.savez(tmp_path / "x.npz", x=seen)
    compile_model(path, output=None, inputs=tmp_path / "x.npz", measures=False)
    np.savez(tmp_path / "y.npz", y=seen)
    with pytest.raises(ProgramError, match="has no array 'x'"):
        compile_model(path, output=None, inputs=tmp_path / "y.npz", measures=False)
    with pytest.raises(ProgramError, match="cannot read"):
        compile_model(path, output=None, inputs=tmp_path / "z.npz", measures=False)


@pytest.fixture
def break_where(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Array], bool]], None]:
    """Make libraries wrong on the inputs of which a test says so."""

    def break_it(is_off: Callable[[Array], bool]) -> None:
        def wrong(folder: Path, manifest: Mapping[str, Any]) -> Answers:
            right = answers_here(folder, manifest)

            def answers(feeds: Sequence[Sequence[Array]]) -> Sequence[Sequence[Array]]:
                found = zip(right(feeds), [is_off(feed[0]) for feed in feeds], strict=True)
                return [[each + is_off for each in one] for one, is_off in found]

            return answers

        monkeypatch.setattr("planish.network.verification.answers_here", wrong)

    return break_it


def test_a_difference_in_real_inputs_alone_is_seen(
    tmp_path: Path, break_where: Callable[[Callable[[Array], bool]], None]
) -> None:
    path = small_model(tmp_path / "m.onnx")
    given = np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8)
    np.savez(tmp_path / "x.npz", x=given)
    break_where(lambda array: np.array_equal(array, given))
    compile_model(path, output=None, measures=False)
    with pytest.raises(ProgramError, match="differs from ONNX Runtime's"):
        compile_model(path, output=None, inputs=tmp_path / "x.npz", measures=False)


def test_a_difference_in_extreme_inputs_alone_is_seen(
    tmp_path: Path, break_where: Callable[[Callable[[Array], bool]], None]
) -> None:
    break_where(lambda array: bool(np.abs(array).max() > 20 and (array == 0).any()))
    with pytest.raises(ProgramError, match="differs from ONNX Runtime's"):
        compile_model(small_model(tmp_path / "m.onnx"), output=None, measures=False)
