"""Workloads as users write them: what is read, what is refused, which examples are drawn."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels.hlo.workloads import INFERENCE, PREDICT, STEP, TRAINING, WEIGHTS, task, write_all, write_data
from planish.core import PlanishError, ProgramError
from planish.levels.hlo import program_from
from planish.levels.hlo.ir.mlir import TensorType
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.scored import ScoredProgram
from planish.levels.hlo.workload import Data, Images, Split, Training, Workload
from planish.levels.hlo.workload.arguments import first_parameters, fit, labels_as, shaped
from planish.levels.hlo.workload.examples import PARTS, LabeledExamples, split_positions
from planish.levels.hlo.workload.files import read_workload
from planish.levels.hlo.workload.spec import workload_from

TURNED = STEP.replace(
    "%new, %loss : tensor<4x3xf32>, tensor<f32>", "%loss, %new : tensor<f32>, tensor<4x3xf32>"
).replace("-> (tensor<4x3xf32>, tensor<f32>)", "-> (tensor<f32>, tensor<4x3xf32>)")
EXAMPLE = Path(__file__).parents[4] / "examples" / "hlo" / "2fcnet.mlir"


def load(path: Path, **options: str) -> ScoredProgram:
    return HloLevel().load(str(path), options)


def test_a_program_brings_its_workload_in_its_text(tmp_path: Path) -> None:
    program = load(write_all(tmp_path, STEP, TRAINING))
    assert program.workload.split == Split(train=25, search=9, validation=6)
    assert program.workload.training == Training(epochs=4, search_steps=12)
    assert program.workload.data.folder == str(tmp_path / "data")
    assert HloLevel().load(program.text, {}) == program
    assert program.text.startswith("// @main: a step of training on data\n")
    assert HloLevel().accepts(program.text)


def test_the_example_needs_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLANISH_DATA", raising=False)
    program = load(EXAMPLE)
    assert program.workload.data.stand_in == ("digits" if find_spec("sklearn") else "made")
    assert fit(program.module, program.workload).evolved.batch == 32


def test_a_workload_of_python(tmp_path: Path) -> None:
    module = write_all(tmp_path, STEP, TRAINING)
    (tmp_path / "net.toml").rename(tmp_path / "other.toml")
    (tmp_path / "net.py").write_text(
        "from planish.levels.hlo.workload import Data, Split, Training, Workload\n"
        "workload = Workload(Data(folder='data'), Split(train=25, search=9, validation=6),\n"
        "                    training=Training(epochs=4, search_steps=12))\n"
    )
    code = str(tmp_path / "net.py")
    assert load(module, workload=code) == load(module, workload=str(tmp_path / "other.toml"))
    found = (tmp_path / "net.py").read_text()
    (tmp_path / "net.py").write_text(found.replace("search=9", "search=0"))
    with pytest.raises(ProgramError, match="no examples"):
        load(module, workload=code)
    (tmp_path / "net.py").write_text("workload = 3\n")
    with pytest.raises(ProgramError, match="gives no workload"):
        load(module, workload=code)
    (tmp_path / "net.py").write_text("1 / 0\n")
    with pytest.raises(ProgramError, match="ZeroDivisionError"):
        load(module, workload=code)


def test_where_the_data_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_all(tmp_path, PREDICT, INFERENCE)
    write_data(tmp_path / "root" / "set", 70)
    write_data(tmp_path / "given", 80)
    monkeypatch.setenv("PLANISH_DATA", str(tmp_path / "root"))
    assert load(path).workload.data.folder == str(tmp_path / "data")
    assert load(path, data=str(tmp_path / "given")).workload.data.folder == str(tmp_path / "given")
    path.with_suffix(".toml").write_text(INFERENCE.replace("folder", "name").replace('"data"', '"set"'))
    assert load(path).workload.data.folder == str(tmp_path / "root" / "set")
    path.with_suffix(".toml").write_text(INFERENCE.replace("folder", "name"))
    assert load(path).workload.data.folder == str(tmp_path / "root")
    monkeypatch.setenv("PLANISH_DATA", str(tmp_path / "missing"))
    with pytest.raises(ProgramError, match=r"missing' of PLANISH_DATA.*data="):
        load(path)


@pytest.mark.parametrize(
    ("module", "workload", "said"),
    [
        (PREDICT, "[data", "is not valid TOML"),
        (PREDICT, INFERENCE.replace("search", "saerch"), "Did you mean 'search'"),
        (PREDICT, INFERENCE.replace("search = 9", 'search = "9"'), "type int"),
        (PREDICT, INFERENCE.replace("search = 9", "search = -9"), "0 or more"),
        (PREDICT, INFERENCE.replace("search = 9", "search = 0"), "no examples"),
        (STEP, TRAINING.replace("train = 25\n", ""), "no examples to train on"),
        (STEP, TRAINING.replace("epochs = 4", "epochs = 0"), "no steps"),
        (PREDICT, "data = 3\n", "not a table"),
        (PREDICT, INFERENCE + '[images]\nlayout = "NWHC"\n', "NHWC"),
        (PREDICT, INFERENCE + "[images]\ndeviation = [0.0]\n", "deviation of 0"),
        (PREDICT, INFERENCE + '[images]\nargument = "image"\n', "Did you mean 'images'"),
        (PREDICT, INFERENCE.replace('folder = "data"', 'folder = "dota"'), "dota' that .* does not exist"),
        (PREDICT, INFERENCE.replace("w.npz", "v.npz"), "cannot read the weights"),
        (STEP, TRAINING + 'predict = "score"\n', "no function 'score'"),
        (STEP, TRAINING + 'labels = "label"\n', "Did you mean 'labels'"),
        (TURNED, TRAINING, "result 0 of 'main'"),
        (PREDICT, TRAINING, "no function 'predict'|no argument 'labels'"),
        (STEP, INFERENCE, r"tensor<4x3xf32>, beside a batch of 5"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(tmp_path: Path, module: str, workload: str, said: str) -> None:
    path = write_all(tmp_path, module, workload)
    with pytest.raises(ProgramError, match=said) as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("workload", "change", "said"),
    [
        (INFERENCE.replace("search = 9", "search = 80"), "", "the split asks for 86 examples, there are 60"),
        (INFERENCE.replace("validation = 6", "validation = 52"), "", "asks for 61 examples, there are 60"),
        (INFERENCE, "labels", "label 3, the module gives 3 classes"),
        (INFERENCE, "images", r"shape \[3, 2\], the module takes \[4\]"),
        (INFERENCE, "weights", "no array 'w'"),
        (INFERENCE.replace('weights = "w.npz"\n', ""), "", "has no weights"),
        (TRAINING.replace("train = 25", "train = 4"), "step", "fewer examples to train on"),
    ],
)
def test_data_that_does_not_fit_is_one_line(tmp_path: Path, workload: str, change: str, said: str) -> None:
    module = STEP if change == "step" else PREDICT
    path = write_all(tmp_path, module, workload)
    draw = np.random.default_rng(0)
    if change == "labels":
        np.savez(tmp_path / "data" / "set.npz", images=draw.random((60, 4), "f"), labels=np.full(60, 3))
    if change == "images":
        np.savez(tmp_path / "data" / "set.npz", images=draw.random((60, 3, 2), "f"), labels=np.zeros(60))
    if change == "weights":
        np.savez(tmp_path / "w.npz", v=WEIGHTS)
    with pytest.raises(PlanishError, match=said):
        HloLevel().evaluator(task(path))()


def test_a_module_without_a_workload_asks_for_one() -> None:
    with pytest.raises(ProgramError, match="workload="):
        HloLevel().load(PREDICT, {})
    with pytest.raises(PlanishError, match="Did you mean 'workload'"):
        HloLevel().load(PREDICT, {"worklaod": "x"})


@given(st.integers(0, 9), *[st.integers(1, 30)] * 4, st.booleans())
def test_no_example_is_in_two_parts(
    seed: int, train: int, search: int, validation: int, more: int, own: bool
) -> None:
    split = Split(seed, train, search, validation, 0)
    there = train + search + validation + more
    parts = [
        split_positions(split, part, there, own=False).tolist()
        for part in PARTS
        if not (own and part == "final")
    ]
    drawn = [index for part in parts for index in part]
    assert len(set(drawn)) == len(drawn) == there - (more if own else 0)
    assert parts == [
        split_positions(split, part, there, own=False).tolist()
        for part in PARTS
        if not (own and part == "final")
    ]
    if own:
        assert sorted(split_positions(split, "final", more, own=True)) == list(range(more))


def test_the_test_images_are_opened_at_the_end_alone(tmp_path: Path) -> None:
    program = load(write_all(tmp_path, PREDICT, INFERENCE))
    fitted = fit(program.module, program.workload)
    opened: list[str] = []

    class Watched(LabeledExamples):
        def _open(self, group):  # type: ignore[no-untyped-def]
            opened.append(group)
            return super()._open(group)

    parts = Watched(program.workload, fitted, at_the_end=True)
    for part in ("search", "validation"):
        parts.calls(part, fitted.predict)
    assert opened == ["train"]
    parts.calls("final", fitted.predict)
    assert opened == ["train", "test"]


def test_pixels_are_shaped_as_the_module_takes_them() -> None:
    images = np.arange(2 * 2 * 3 * 3, dtype=np.uint8).reshape(2, 2, 3, 3)
    how = Images(mean=(0.1, 0.2, 0.3), deviation=(0.5, 0.6, 0.7))
    wanted = (images / 255 - [0.1, 0.2, 0.3]) / [0.5, 0.6, 0.7]
    plain = shaped(images, TensorType((4, 2, 3, 3), "f32"), how)
    assert plain.dtype == np.float32
    np.testing.assert_allclose(plain, wanted, rtol=1e-5)
    turned = shaped(images, TensorType((4, 3, 2, 3), "f32"), replace(how, layout="NCHW"))
    np.testing.assert_allclose(turned, wanted.transpose(0, 3, 1, 2), rtol=1e-5)
    flat = shaped(images, TensorType((4, 18), "f64"), how)
    np.testing.assert_allclose(flat, wanted.reshape(2, 18), rtol=1e-5)
    with pytest.raises(ProgramError, match="layout"):
        shaped(images, TensorType((4, 3, 2, 3), "f32"), how)
    with pytest.raises(ProgramError, match=r"2 .* channels"):
        shaped(images, TensorType((4, 18), "f32"), Images(mean=(0.1, 0.2)))


def test_labels_are_numbers_or_rows() -> None:
    labels = np.array([2, 0])
    assert labels_as(labels, TensorType((2,), "i32")).tolist() == [2, 0]
    assert labels_as(labels, TensorType((2, 3), "f32")).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_json_gives_the_same_workload_again() -> None:
    workload = Workload(Data("a", "/b", "", "c"), images=Images(mean=(0.5,)), training=None)
    assert workload_from(json.loads(workload.text), "it") == workload


def test_arguments_may_be_named_by_their_places(tmp_path: Path) -> None:
    module = program_from(PREDICT.replace('loc("images")', "").replace('loc("w")', ""))
    write_all(tmp_path, PREDICT, INFERENCE + '[images]\nargument = "1"\n')
    fitted = fit(module, read_workload(tmp_path / "net.toml"))
    assert (fitted.predict.images, fitted.predict.names[0], fitted.classes) == (1, "argument 0", 3)


@pytest.mark.skipif(
    find_spec("safetensors") is None and os.environ.get("CI") != "true", reason="safetensors is not installed"
)
def test_weights_may_be_made_later_and_what_they_are_trained_on_is_apart(tmp_path: Path) -> None:
    path = write_all(tmp_path, PREDICT, INFERENCE + "train = 10\n").with_suffix(".toml")
    (tmp_path / "w.npz").unlink()
    with pytest.raises(ProgramError, match="cannot read the weights"):
        read_workload(path)
    workload = read_workload(path, weights=False)
    assert workload.weights is None
    fitted = fit(program_from(PREDICT), workload)
    parts = LabeledExamples(workload, fitted)
    assert parts.count("train") == 10
    call = fitted.evolved
    seen = {
        part: {image.tobytes() for each in parts.calls(part, call).varying for image in each[call.images]}
        for part in ("train", "search")
    }
    assert seen["search"].isdisjoint(seen["train"])


def test_safetensors_are_read(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    write_all(tmp_path, PREDICT, INFERENCE)
    save_file({"w": WEIGHTS}, tmp_path / "w.safetensors")
    (tmp_path / "net.toml").write_text(INFERENCE.replace(".npz", ".safetensors"))
    program = load(tmp_path / "net.mlir")
    (found,) = first_parameters(program.workload, fit(program.module, program.workload).evolved)
    assert np.array_equal(found, WEIGHTS)
    (tmp_path / "w.safetensors").write_bytes(b"none")
    with pytest.raises(ProgramError, match="changed after the program was read"):
        first_parameters(program.workload, fit(program.module, program.workload).evolved)
    with pytest.raises(ProgramError, match="cannot read the weights"):
        HloLevel().evaluator(task(tmp_path / "net.mlir"))()
