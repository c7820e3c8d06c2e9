"""Reading of StableHLO modules as ONNX models, and their answers by XLA."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.core import ProgramError
from planish.levels.graph.sessions import SessionSettings
from planish.levels.hlo import read_program
from planish.levels.hlo.ir.mlir import functions, ir, type_of
from planish.levels.hlo.ir.normal import chosen_function, entry_text, load, named_location
from planish.levels.hlo.program import program_from
from planish.levels.hlo.workload.arguments import signature
from planish.network.ir import Array, Network
from planish.network.stablehlo.control_flow import FLOW_RULES, unroll
from planish.network.stablehlo.products import PRODUCT_RULES
from planish.network.stablehlo.reductions import REDUCTION_RULES
from planish.network.stablehlo.rules import DTYPES, ELEMENT_RULES, HINT, Rule
from planish.network.stablehlo.writer import GraphWriter, Tensor
from planish.network.verification import MOST_ROUNDING, difference
from planish.sandbox.tool import run_tool

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from planish.network.reader import SourceModel

_OPSET, _IR_VERSION = 20, 9
_LARGEST = (1 << 31) - (1 << 20)
"""Bytes of weights that an ONNX model holds, with something left for its nodes."""
_SECONDS = 600.0
"""Seconds at most in which XLA compiles and runs a module."""
_MOST_DIFFERENCE = 1e-3
"""Largest difference of a translated model from its module, as a share of an output's largest number.

Both sum in orders of their own, and a mistake in the translation makes a larger difference.
"""
RULES: dict[str, Rule] = {**ELEMENT_RULES, **REDUCTION_RULES, **PRODUCT_RULES, **FLOW_RULES}
"""Rule of each operation that is covered, but for loops."""
_LOOP = "stablehlo.while"


def read_module(path: Path) -> tuple[ModelProto, str]:
    """Read a StableHLO module, of text, bytecode or a portable artifact, as an ONNX model.

    Args:
        path: of the file; its function `main` is read, whose arguments are the model's inputs.

    Returns:
        The model, and the text of a module that has this function alone.

    Raises:
        ProgramError: the module cannot be read, or an operation or type in it is not covered.
    """
    root = load(read_program(path).text)
    name = chosen_function(root)
    return _translate(dict(functions(root))[name], f"'{path}'", path.stem), entry_text(root, name)


def _translate(function: ir.Operation, path: str, title: str) -> ModelProto:
    from onnx import helper, numpy_helper

    block, writer = function.regions[0].blocks[0], GraphWriter()
    if missing := sorted({_described(op) for op in _operations(block) if op.name not in RULES}):
        raise ProgramError(f"operations of {path} are not covered: {', '.join(missing)}", HINT)
    if not len(block.arguments):
        raise ProgramError(f"the function of {path} takes no arguments", "Its results are constant.")
    known, inputs = dict["ir.Value[Any]", Tensor](), list[Any]()
    for index, argument in enumerate(block.arguments):
        held = type_of(argument)
        if held.element not in DTYPES:
            raise ProgramError(f"argument {index} of {path} is of type {held}, which is not covered", HINT)
        name = named_location(argument.location) or f"argument{index}"
        name = f"{name}.{index}" if name in {each.name for each in inputs} else name
        known[argument] = writer.plain(name, held.shape, DTYPES[held.element])
        inputs.append(_port(known[argument]))
    results, outputs = _run(writer, block, known), list[Any]()
    writer.layer = ""
    for index, tensor in enumerate(results):
        name = "output" if len(results) == 1 else f"output{index}"
        writer.nodes.append(helper.make_node("Identity", [writer.dense(tensor)], [name], name=name))
        outputs.append(_port(writer.plain(name, tensor.shape, tensor.dtype)))
    nodes, read = _without_unread(writer.nodes, [each.name for each in outputs])
    constants = {name: array for name, array in writer.weights.items() if name in read}
    if sum(each.nbytes for each in constants.values()) > _LARGEST:
        raise ProgramError(f"the constants of {path} take more than 2 GiB", "Make them arguments.")
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, title, inputs, outputs, weights)
    opset = helper.make_opsetid("", _OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)


def _operations(block: ir.Block) -> Iterator[ir.Operation]:
    """List the operations of a block and of the loops in it, but for what ends a block, and the loops."""
    *body, _ = (each.operation for each in block.operations)
    for op in body:
        if op.name != _LOOP:
            yield op
            continue
        for region in op.regions:
            yield from _operations(region.blocks[0])


def _run(writer: GraphWriter, block: ir.Block, known: Mapping[ir.Value[Any], Tensor]) -> list[Tensor]:
    """Write the operations of a block; return what it returns.

    Args:
        writer: writes nodes.
        block: of a function or a loop.
        known: values of its arguments, and of the blocks around it.
    """
    *body, end = (each.operation for each in block.operations)
    found = dict(known)

    def inner(other: ir.Block, values: Sequence[Tensor]) -> Sequence[Tensor]:
        return _run(writer, other, {**found, **dict(zip(other.arguments, values, strict=True))})

    for op in body:
        writer.layer = named_location(op.location)
        operands = [found[each] for each in op.operands]
        if op.name == _LOOP:
            results = unroll(writer, op, operands, inner)
        else:
            results = RULES[op.name](writer, op, operands)
        found.update(zip(op.results, results, strict=True))
    return [found[each] for each in end.operands]


def _without_unread(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> tuple[list[NodeProto], set[str]]:
    """Return the nodes whose results are read, and all names that are read."""
    kept, read = list["NodeProto"](), set(outputs)
    for node in reversed(nodes):
        if not read.isdisjoint(node.output):
            kept.append(node)
            read.update(node.input)
    return kept[::-1], read


def _described(op: ir.Operation) -> str:
    """Return an operation's name, and that of what a custom call calls."""
    if op.name != "stablehlo.custom_call":
        return op.name
    return f"{op.name} {op.attributes['call_target_name']}"


def _port(tensor: Tensor) -> Any:
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
    return helper.make_tensor_value_info(tensor.name, kind, tensor.shape)


def write_translation(path: Path, folder: Path) -> tuple[Path, str]:
    """Write a StableHLO module as an ONNX model to a folder; return its path, and the module's text."""
    model, text = read_module(path)
    written = folder / f"{path.stem}.onnx"
    written.write_bytes(model.SerializeToString())
    return written, text


def verify_translation(
    module: str, network: Network, model: SourceModel, feeds: Sequence[Mapping[str, Array]]
) -> str:
    """Compare the answers of a translated model by ONNX Runtime with those of its module by XLA.

    Args:
        module: its text.
        network: that was read of the model.
        model: the translated one.
        feeds: sets of inputs.

    Returns:
        How far they are apart, in words.

    Raises:
        ProgramError: they differ, or XLA or ONNX Runtime does not run them.
    """
    wanted = xla_answers(module, [[feed[name] for name in network.inputs] for feed in feeds])
    session, worst = model.open(SessionSettings(), as_it_is=True), 0.0
    for feed, right in zip(feeds, wanted, strict=True):
        for index, (found, each) in enumerate(zip(session.run(feed), right, strict=True)):
            apart, limit = difference(np.asarray(found), each), _MOST_DIFFERENCE
            if not apart <= limit:
                # Where a network amplifies rounding, it also amplifies the last bits of its inputs.
                other = difference(np.asarray(session.run(_next(feed))[index]), np.asarray(found))
                limit = max(limit, MOST_ROUNDING * other) if np.isfinite(other) else limit
            if not apart <= limit:
                what = f"the module's translation differs from XLA by {apart:.2g} of its largest output"
                raise ProgramError(what, "Nothing was written. Report it as a defect, with the module.")
            worst = max(worst, apart)
    return f"read as an ONNX model, which differs from XLA by {worst:.1e} at most"


def _next(feed: Mapping[str, Array]) -> dict[str, Array]:
    """Return inputs whose floats are the next larger ones."""
    return {
        name: np.nextafter(array, np.array(np.inf, array.dtype)) if array.dtype.kind == "f" else array
        for name, array in feed.items()
    }


def xla_answers(text: str, feeds: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Run a module by XLA, in a process of its own: XLA starts threads, and this process may fork.

    Args:
        text: of the module; its `main` is run.
        feeds: sets of inputs, in the order of its arguments.

    Raises:
        ProgramError: XLA does not compile or run it.
    """
    arrays = {f"{i}.{j}": each for i, feed in enumerate(feeds) for j, each in enumerate(feed)}
    given = io.BytesIO()
    arrays["text"] = np.frombuffer(text.encode(), np.uint8)
    np.savez(given, allow_pickle=False, **arrays)
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    try:
        ran = run_tool(command, seconds=_SECONDS, given=given.getvalue())
    except TimeoutError as error:
        raise ProgramError(f"XLA did not run the module within {_SECONDS:g} s") from error
    if ran.code:
        last = (ran.message.strip().splitlines() or ["it ended without a message"])[-1]
        raise ProgramError(f"XLA does not run the module: {last}")
    return _sets(dict(np.load(io.BytesIO(ran.output), allow_pickle=False)))


def _sets(arrays: Mapping[str, Array]) -> list[list[Array]]:
    """Return arrays by set; their names have its number, and the index in it, and are in this order."""
    found: dict[str, list[Array]] = {}
    for name, array in arrays.items():
        found.setdefault(name.partition(".")[0], []).append(array)
    return list(found.values())


def main() -> None:
    """Run a module on sets of inputs: those of the standard input."""
    from planish.levels.hlo.backend import BackendError, compute, open_backend

    arrays = dict(np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False))
    text = arrays.pop("text").tobytes().decode()
    backend = open_backend("xla")
    types = signature(program_from(text)).arguments
    try:
        executable = backend.compile(text)
        found = [compute(backend, executable, types, feed) for feed in _sets(arrays)]
    except BackendError as error:
        sys.exit(error.message)
    results = {f"{i}.{j}": each for i, outputs in enumerate(found) for j, each in enumerate(outputs)}
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **results)
    sys.stdout.buffer.write(written.getvalue())
