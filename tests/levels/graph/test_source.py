"""Bad input: one clear line each."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.external_data_helper import set_external_data

from levels.graph.models import constant, convolutions, model, one_node, tokens, write
from planish.core import MissingFileError, PlanishError, ProgramError
from planish.levels.graph import source
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.program import GraphProgram, Port
from planish.levels.graph.source import parse_shapes, read_model, read_text
from planish.measure.executors import InlineExecutor
from planish.tuning.api import task_of
from planish.tuning.settings import Settings


@pytest.mark.parametrize("source", ["", "C[m] += A[m]"])
def test_what_is_no_file_is_reported(source: str) -> None:
    with pytest.raises(ProgramError, match=r"cannot read '.*': "):
        GraphLevel().load(source, {})


def test_a_model_is_named_by_path_content_and_inputs(tmp_path: Path) -> None:
    program = read_model(write(convolutions(), tmp_path / "net.onnx"), {"allow": "int8, fp16"})
    assert program.title == "net.onnx: 11 nodes, x float32 1x3x8x8"
    assert program.inputs == (Port("x", "float32", (1, 3, 8, 8)),)
    assert program.allow == ("intent.fp16", "intent.int8")
    assert program.text.startswith("# net.onnx: 11 nodes")
    assert GraphLevel().load(program.text, {}) == program
    assert GraphLevel().accepts(program.text)


def test_a_model_reads_back_whatever_its_file_is_called(tmp_path: Path) -> None:
    program = read_model(write(convolutions(), tmp_path / 'two\nlines, "quoted".onnx'), {})
    assert GraphLevel().load(program.text, {}) == program


def test_a_path_that_is_no_text_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"no text \xff")
    folder.mkdir()
    (folder / "net.onnx").write_bytes(convolutions().SerializeToString())
    with pytest.raises(ProgramError, match="is not valid UTF-8"):
        read_model(folder / "net.onnx", {})


def external(folder: Path) -> Path:
    """Write a model whose weights are in a file beside it."""
    file = folder / "net.onnx"
    onnx.save(convolutions(), file, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return file


def test_weights_may_be_in_a_file_beside_the_model(tmp_path: Path) -> None:
    file = external(tmp_path)
    program = read_model(file, {})
    assert source.load_checked(program).graph.initializer[0].raw_data
    content = bytearray((tmp_path / "weights.bin").read_bytes())
    content[0] ^= 1
    (tmp_path / "weights.bin").write_bytes(content)
    with pytest.raises(ProgramError, match=r"is not what it was when it was tuned\. Tune it anew\."):
        read_text(program.text)


def test_weights_are_found_where_a_link_to_the_model_leads(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    link = tmp_path / "link.onnx"
    link.symlink_to(external(tmp_path / "net"))
    program = read_model(link, {})
    assert program.size > (tmp_path / "net" / "weights.bin").stat().st_size
    assert read_text(program.text).digest == program.digest


def _cut(weights: Path) -> None:
    weights.write_bytes(weights.read_bytes()[:-1])


def _elsewhere(weights: Path) -> None:
    outside = weights.absolute().parent.parent / "weights.bin"
    weights.rename(outside)
    weights.symlink_to(outside)


def _fifo(weights: Path) -> None:
    weights.unlink()
    os.mkfifo(weights)


def _device(weights: Path) -> None:
    weights.unlink()
    weights.symlink_to("/dev/zero")


def _socket(weights: Path) -> None:
    weights.unlink()
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(weights))


def _folder(weights: Path) -> None:
    weights.unlink()
    weights.mkdir()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_cut, r"the weights of '.*net\.onnx' cannot be read: "),
        (_elsewhere, r"the weights of '.*net\.onnx' are in '.*weights\.bin', a link out of its folder"),
        (_fifo, r"cannot read '.*weights\.bin': it is a FIFO, not a regular file"),
        (_device, "a link out of its folder"),
        (_socket, "it is a socket, not a regular file"),
        (_folder, "it is a folder, not a regular file"),
    ],
)
def test_weights_that_are_no_regular_file_beside_the_model_are_reported(
    spoil: Callable[[Path], None], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net").mkdir()
    file = external(tmp_path / "net")
    monkeypatch.chdir(tmp_path / "net")  # the address of a socket is short
    spoil(Path("weights.bin"))
    with pytest.raises(ProgramError, match=said) as raised:
        source.load_checked(read_model(file, {}))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("location", ["/dev/zero", "../weights.bin", "a/../../weights.bin"])
def test_weights_outside_of_the_models_folder_are_reported(location: str, tmp_path: Path) -> None:
    made = convolutions()
    tensor = made.graph.initializer[0]
    set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    with pytest.raises(ProgramError, match=f"the model has weights in '{location}', outside of its folder"):
        read_model(write(made, tmp_path / "net.onnx"), {})


@pytest.mark.parametrize("name", ["net.onnx", "in.npz"])
def test_a_fifo_is_no_model_and_no_input(name: str, tmp_path: Path) -> None:
    write(convolutions(), tmp_path / "net.onnx")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(ProgramError, match=f"cannot read '.*{name}': it is a FIFO, not a regular file"):
        read_model(tmp_path / "net.onnx", {"inputs": str(tmp_path / "in.npz")})


def _missing(folder: Path) -> Path:
    return folder / "missing.onnx"


def _text(folder: Path) -> Path:
    (folder / "text.onnx").write_text("a text and no model", encoding="utf-8")
    return folder / "text.onnx"


def _empty(folder: Path) -> Path:
    (folder / "empty.onnx").touch()
    return folder / "empty.onnx"


def _short(folder: Path) -> Path:
    (folder / "short.onnx").write_bytes(convolutions().SerializeToString()[:-100])
    return folder / "short.onnx"


def _lost_weights(folder: Path) -> Path:
    file = external(folder)
    (folder / "weights.bin").unlink()
    return file


def _opset(folder: Path) -> Path:
    return write(model([helper.make_node("Relu", ["x"], ["y"])], [], opset=999), folder / "new.onnx")


def _custom(folder: Path) -> Path:
    return write(model([helper.make_node("Foo", ["x"], ["y"], domain="acme")], []), folder / "c.onnx")


def branches(*then: onnx.NodeProto) -> onnx.ModelProto:
    """Make a model with an `If`, one of whose branches has these nodes."""
    node = helper.make_node
    result = [helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None)]
    first = helper.make_graph(list(then), "then", [], result)
    second = helper.make_graph([node("Relu", ["x"], ["z"])], "else", [], result)
    cast = node("Cast", ["m"], ["c"], to=onnx.TensorProto.BOOL)
    nodes = [node("ReduceMax", ["x"], ["m"], keepdims=0), cast]
    return model([*nodes, node("If", ["c"], ["y"], then_branch=first, else_branch=second)], [])


def _custom_inside(folder: Path) -> Path:
    return write(branches(helper.make_node("Foo", ["x"], ["z"], domain="acme")), folder / "c.onnx")


def _lost_constant(folder: Path) -> Path:
    value = constant("", np.zeros(8, np.float32))
    set_external_data(value, "weights.bin")
    value.ClearField("raw_data")
    return write(branches(helper.make_node("Constant", [], ["z"], value=value)), folder / "net.onnx")


def _open(folder: Path) -> Path:
    return write(convolutions(("n", 3, 8, 8)), folder / "open.onnx")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_missing, r"cannot read .*missing\.onnx': No such file.*Check the path\."),
        (_text, "is not an ONNX model"),
        (_empty, "is not an ONNX model"),
        (_short, "is not an ONNX model, or is truncated"),
        (_lost_constant, r"cannot read .*weights\.bin'.*The weights of .* belong there"),
        (_lost_weights, r"cannot read .*weights\.bin'.*The weights of .* belong there"),
        (_opset, r"is of opset 999; the newest that onnx knows here is \d+"),
        (_custom, r"has a custom operator, acme\.Foo, which cannot be run here"),
        (_custom_inside, r"has a custom operator, acme\.Foo, which cannot be run here"),
        (_open, r"input 'x' of .* has an open shape: n, 3, 8, 8\. Give it: shape=.x=1,3,8,8.\."),
    ],
)
def test_what_cannot_be_read_is_reported_in_one_line(
    make: Callable[[Path], Path], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ProgramError, match=said) as raised:
        GraphLevel().load(str(make(tmp_path)), {})
    assert "\n" not in str(raised.value)


def test_models_that_are_too_large_are_refused(tmp_path: Path) -> None:
    """Of holes: they take no room on the disk, and are not read."""
    with (tmp_path / "large.onnx").open("wb") as file:
        file.truncate(source.LARGEST + 1)
    with pytest.raises(ProgramError, match="Models over 2 GiB cannot be rewritten"):
        read_model(tmp_path / "large.onnx", {})
    model = external(tmp_path)
    with (tmp_path / "weights.bin").open("r+b") as file:
        file.truncate(source.LARGEST)
    with pytest.raises(ProgramError, match=r"has 2\.0 GiB with its weights"):
        read_model(model, {})


def test_a_moved_file_is_reported(tmp_path: Path) -> None:
    file = write(convolutions(), tmp_path / "net.onnx")
    program = read_model(file, {})
    file.rename(tmp_path / "other.onnx")
    with pytest.raises(MissingFileError, match=r"no longer at '.*net\.onnx': .*: files=.*NEW_PATH"):
        read_text(program.text)


@pytest.mark.parametrize(
    ("stored", "options", "shape"),
    [
        ("n", {"shape": "x=2,3,8,8"}, (2, 3, 8, 8)),
        ("n", {"shape": "x=2x3x8x8"}, (2, 3, 8, 8)),
        ("n", {"shape": "n=4"}, (4, 3, 8, 8)),
        ("n", {"batch": "5"}, (5, 3, 8, 8)),
        (-1, {"shape": "x=2,3,8,8"}, (2, 3, 8, 8)),
        (-1, {"batch": "5"}, (5, 3, 8, 8)),
    ],
)
def test_open_shapes_are_given(
    stored: int | str, options: dict[str, str], shape: tuple[int, ...], tmp_path: Path
) -> None:
    program = read_model(write(convolutions((stored, 3, 8, 8)), tmp_path / "net.onnx"), options)
    assert program.inputs[0].shape == shape
    assert program.batch == shape[0]


def test_a_stored_extent_of_0_is_a_size(tmp_path: Path) -> None:
    program = read_model(write(convolutions((0, 3, 8, 8)), tmp_path / "net.onnx"), {"batch": "5"})
    assert program.inputs[0].shape == (0, 3, 8, 8)
    assert program.batch == 1
    with pytest.raises(ProgramError, match=r"has the shape 0,3,8,8, not \(1, 3, 8, 8\)"):
        read_model(tmp_path / "net.onnx", {"shape": "x=1,3,8,8"})
    (port,) = source.load_checked(program).graph.input
    assert port.type.tensor_type.shape.dim[0].HasField("dim_value")


@pytest.mark.parametrize("given", ["x=0,3,8,8", "n=0"])
def test_an_open_extent_may_be_given_as_0(given: str, tmp_path: Path) -> None:
    program = read_model(write(convolutions(("n", 3, 8, 8)), tmp_path / "net.onnx"), {"shape": given})
    assert program.inputs[0].shape == (0, 3, 8, 8)
    assert read_text(program.text).inputs == program.inputs


def test_extents_below_0_reach_no_pass(tmp_path: Path) -> None:
    program = read_model(write(convolutions((-1, 3, 8, 8)), tmp_path / "net.onnx"), {"batch": "2"})
    (port,) = source.load_checked(program).graph.input
    first, *others = port.type.tensor_type.shape.dim
    assert not first.HasField("dim_value")
    assert [dim.dim_value for dim in others] == [3, 8, 8]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shape": "z=1"}, r"no input or dimension 'z'\. "),
        ({"shape": "x=1,3,8"}, r"has the shape \?,3,8,8, not \(1, 3, 8\)"),
        ({"shape": "x=1,4,8,8"}, "has the shape"),
        ({"shape": "x=a"}, "is not understood"),
        ({"shape": "1,2"}, "is not understood"),
        ({"batch": "0"}, "expected a batch size such as 8, got '0'"),
        ({"inputs": "missing.npz", "batch": "1"}, "cannot read 'missing.npz'"),
    ],
)
def test_wrong_options_are_reported(options: dict[str, str], said: str, tmp_path: Path) -> None:
    file = write(convolutions(("n", 3, 8, 8)), tmp_path / "net.onnx")
    with pytest.raises(ProgramError, match=said):
        read_model(file, options)


def test_several_shapes_are_read() -> None:
    assert parse_shapes("x=1,3,y=2x4,n=7") == {"x": (1, 3), "y": (2, 4), "n": (7,)}


def evaluator_of(program: GraphProgram) -> InlineExecutor:
    level = GraphLevel()
    return InlineExecutor(level.evaluator(task_of(level, program, Settings()))())


def test_answers_that_are_not_finite_before_anything_is_changed_are_reported(tmp_path: Path) -> None:
    nodes = [helper.make_node("Mul", ["x", "w"], ["m"]), helper.make_node("Log", ["m"], ["y"])]
    broken = model(nodes, [constant("w", np.full((), -np.inf, np.float32))])
    with pytest.raises(ProgramError, match="returns numbers that are not finite, before anything is changed"):
        evaluator_of(read_model(write(broken, tmp_path / "net.onnx"), {}))


@pytest.mark.parametrize("trains", [True, False])
def test_a_model_that_answers_at_random_is_reported(trains: bool, tmp_path: Path) -> None:
    nodes = [helper.make_node("Dropout", ["x", "ratio", "trains"], ["y"])]
    weights = [constant("ratio", np.array(0.5, np.float32)), constant("trains", np.array(trains))]
    program = read_model(write(model(nodes, weights), tmp_path / "net.onnx"), {})
    if not trains:
        evaluator_of(program)
        return
    with pytest.raises(ProgramError, match=r"answers at random: it has Dropout\. Export it for inference"):
        evaluator_of(program)


def test_an_input_may_be_a_number(tmp_path: Path) -> None:
    program = read_model(
        write(model([helper.make_node("Relu", ["x"], ["y"])], [], ()), tmp_path / "n.onnx"), {}
    )
    evaluator_of(program)


def test_what_the_runtime_refuses_is_reported(tmp_path: Path) -> None:
    made = write(model([helper.make_node("NoSuchOperator", ["x"], ["y"])], []), tmp_path / "net.onnx")
    with pytest.raises(PlanishError, match=r"ONNX Runtime does not run .*NoSuchOperator") as raised:
        evaluator_of(read_model(made, {}))
    assert "\n" not in str(raised.value)


def test_inputs_that_are_no_numbers_are_reported(tmp_path: Path) -> None:
    made = one_node("Identity")
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    with pytest.raises(ProgramError, match=r"input 'x' of .* is not a tensor of numbers"):
        read_model(write(made, tmp_path / "net.onnx"), {})


def test_token_ids_keep_their_type(tmp_path: Path) -> None:
    program = read_model(write(tokens(), tmp_path / "t.onnx"), {})
    assert program.inputs == (Port("x", "int64", (2, 4)),)
