"""Reading of ONNX models, with one line of error where one cannot be tuned."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import MissingFileError, ProgramError, did_you_mean, register_file
from planish.core.files import read_regular, regular_parts
from planish.levels.graph.installed import SEARCH
from planish.levels.graph.model_protos import all_nodes, all_tensors
from planish.levels.graph.passes import find_pass, passes_of_kind
from planish.levels.graph.program import DataFile, GraphProgram, Port, with_own_files
from planish.levels.graph.sessions import first_line

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto


def _read_inputs(path: Path, model: ModelProto, options: Mapping[str, str]) -> tuple[Port, ...]:
    """Return a model's inputs, by the options `shape` and `batch` where an extent is open."""
    given = parse_shapes(options.get("shape", ""))
    # Before version 4 of ONNX's IR, weights had to be among the inputs.
    weights = {tensor.name for tensor in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in weights]
    named = {dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim}
    known = {value.name for value in values} | named - {""}
    for name in sorted(given.keys() - known):
        raise ProgramError(f"'{path}' has no input or dimension '{name}'", did_you_mean(name, known))
    text = options.get("batch", "")
    if text and (not text.isdecimal() or not int(text)):
        raise ProgramError(f"expected a batch size such as 8, got '{text}'", "Write batch=8.")
    return tuple(_port(path, value, given, int(text) if text else None) for value in values)


def parse_shapes(text: str) -> Mapping[str, tuple[int, ...]]:
    """Read `x=1,3,224,224,length=128`; extents may have `x` between them too, and be 0.

    Raises:
        ProgramError: it is not of that form.
    """
    found: dict[str, list[int]] = {}
    name = ""
    for piece in filter(None, (each.strip() for each in text.split(","))):
        head, equals, rest = piece.rpartition("=")
        if equals:
            name = head.strip()
            if name in found:
                raise ProgramError(f"shape '{text}' names '{name}' twice", "Give each name one shape.")
            found[name] = []
        numbers = rest.strip().split("x")
        if not name or not all(number.isdecimal() for number in numbers):
            raise ProgramError(f"shape '{text}' is not understood", 'Write shape="NAME=1,3,224,224".')
        found[name] += map(int, numbers)
    return {key: tuple(extents) for key, extents in found.items()}


def _port(path: Path, value: ValueInfoProto, given: Mapping[str, tuple[int, ...]], batch: int | None) -> Port:
    from onnx.helper import tensor_dtype_to_np_dtype

    kind = value.type.tensor_type.elem_type
    dtype = tensor_dtype_to_np_dtype(kind).name if kind else ""
    # NumPy has texts as objects.
    if dtype in ("", "object"):
        raise ProgramError(f"input '{value.name}' of '{path}' is not a tensor of numbers")
    dims = value.type.tensor_type.shape.dim
    # An open extent is not set, or stored as a number below 0. ONNX Runtime takes a stored 0 for a size, as
    # of a list of detections in which there are none.
    declared = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None for dim in dims]
    shown = ["?" if extent is None else str(extent) for extent in declared]
    found = given.get(value.name)
    if found is not None:
        fits = len(declared) == len(found) and all(
            one in (None, other) for one, other in zip(declared, found, strict=True)
        )
        if declared and not fits:
            has = f"has the shape {','.join(shown)}, not {found}"
            raise ProgramError(f"input '{value.name}' of '{path}' {has}")
        return Port(value.name, dtype, found)
    extents = list(declared)
    for index, dim in enumerate(dims):
        if extents[index] is None and given.get(dim.dim_param):
            extents[index] = given[dim.dim_param][0]
        if extents[index] is None and index == 0:
            extents[index] = batch
    if None in extents:
        names = [dim.dim_param or text for dim, text in zip(dims, shown, strict=True)]
        example = ",".join("1" if extent is None else str(extent) for extent in extents)
        what = f"input '{value.name}' of '{path}' has an open shape: {', '.join(names)}"
        raise ProgramError(what, f'Give it: shape="{value.name}={example}".')
    return Port(value.name, dtype, tuple(extents))


LARGEST = (1 << 31) - 1
"""Bytes of the largest message that protobuf, and so every rewriting pass, can hold."""

_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc")


def read_model(path: Path, options: Mapping[str, str], *, any_size: bool = False) -> GraphProgram:
    """Read a model from a file.

    Args:
        path: of the file.
        options: by name, as on the command line.
        any_size: whether the files of its weights may be larger than a message.

    Raises:
        ProgramError: the file is missing, no model, cut short or too large; its weights, opset or operators
            are not there; an input's shape is open; an option is wrong.
    """
    content = _bytes(path)
    file = path.resolve()
    try:
        str(file).encode()
    except UnicodeEncodeError as error:
        what = f"the path {str(file)!a} is not valid UTF-8, and ONNX Runtime opens no other paths"
        raise ProgramError(what, "Give the file, or its folder, another name.") from error
    model = _parsed(path, content)
    _check_operators(path, model)
    inputs = _read_inputs(path, model, options)
    named = {name: data_file(Path(options[name])) for name in ("inputs", "labels") if options.get(name)}
    # Weights are beside the file itself, where a link leads to it: ONNX Runtime looks for them there.
    size = len(content) + sum(_size(file.parent / name) for name in set(external_files(model)))
    if size > LARGEST and not any_size:
        raise _too_large(path, size)
    digest = digest_of(file, content, model)
    register_file(digest, file)
    for each in named.values():
        register_file(each.digest, each.path)
    title = f"{path.name}: {len(model.graph.node):,} nodes, {', '.join(map(str, inputs))}"
    session = options.get("session", "")
    if session not in ("", SEARCH):
        raise ProgramError(f"session cannot be '{session}'", did_you_mean(session, [SEARCH]))
    return GraphProgram(
        str(file),
        digest,
        " ".join(title.splitlines()),  # whatever the file and the model's inputs are called
        inputs,
        size,
        named.get("inputs"),
        named.get("labels"),
        _allowed(options.get("allow", "")),
        session=bool(session),
        providers=options.get("provider") == SEARCH,
        tolerance=_tolerance(options.get("tolerance", "")),
    )


def read_text(text: str) -> GraphProgram:
    """Read a canonical text, and make sure that its files are what they were.

    Raises:
        ProgramError: it is malformed; a file that this user named has been moved or changed.
    """
    program = with_own_files(text)
    if not program.path:
        return program
    _unchanged(program)
    for file in (program.data, program.labels):
        if file is not None and file.path and data_file(Path(file.path)) != file:
            raise _changed(file.path)
    return program


def load_checked(program: GraphProgram, *, with_weights: bool = True) -> ModelProto:
    """Return a program's model.

    Args:
        program: from `read_model`.
        with_weights: whether weights in other files are read into the model; else it refers to them.

    Raises:
        ProgramError: as `read_text`; or the files of the weights are cut short, or not in the model's folder.
    """
    import onnx

    model = _unchanged(program)
    try:
        if with_weights:
            onnx.load_external_data_for_model(model, str(program.file.parent))
    # ONNX raises many kinds of errors for a wrong offset, length or key.
    except Exception as error:
        what = f"the weights of '{program.path}' cannot be read: {first_line(error).rstrip('.')}"
        raise ProgramError(what, "Export it again, with its weights in a file beside it.") from error
    # Extents that are stored as a number below 0 are open: passes take them for sizes.
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                dim.ClearField("dim_value")
    return model


def _unchanged(program: GraphProgram) -> ModelProto:
    """Read a program's model, and make sure that it is what it was."""
    if not program.file.exists():
        what = f"the model is no longer at '{program.path}': it was moved or deleted"
        raise MissingFileError(what, 'Name it where it is now: files=["NEW_PATH"].')
    content = _bytes(program.file)
    model = _parsed(program.file, content)
    if digest_of(program.file, content, model) != program.digest:
        raise _changed(program.path)
    return model


def _changed(path: str) -> ProgramError:
    return ProgramError(f"'{path}' is not what it was when it was tuned", "Tune it anew.")


def data_file(path: Path) -> DataFile:
    """Name a file of inputs or labels by its content."""
    return DataFile(str(path.resolve()), _digest(_bytes(path)))


def any_digest(path: Path) -> str:
    """Name a file by its content: a model with its weights, or inputs or labels."""
    content = _bytes(path)
    return digest_of(path, content, _parsed(path, content)) if path.suffix == ".onnx" else _digest(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def digest_of(path: Path, content: bytes, model: ModelProto) -> str:
    """Hash a model's content, with that of the files that hold its weights.

    Raises:
        ProgramError: a file of weights is missing, no regular file or outside of the model's folder.
    """
    digest = hashlib.sha256(content)
    for name in sorted(set(external_files(model))):
        file = path.parent / name
        # ONNX Runtime and onnx refuse such a link too, each with an error of its own.
        if not file.resolve().is_relative_to(path.parent.resolve()):
            what = f"the weights of '{path}' are in '{file}', a link out of its folder"
            raise ProgramError(what, "Copy the model and its weights into one folder: cp -L.")
        try:
            for part in regular_parts(file):
                digest.update(part)
        except OSError as error:
            hint = f"The weights of '{path}' belong there."
            raise ProgramError(f"cannot read '{file}': {error.strerror}", hint) from error
    return digest.hexdigest()[:32]


def external_files(model: ModelProto) -> Iterator[str]:
    """List the files that hold weights, relative to the model's folder.

    Raises:
        ProgramError: one is elsewhere, so that a model could have any file read.
    """
    for tensor in all_tensors(model):
        for entry in tensor.external_data:
            if entry.key == "location":
                if Path(entry.value).is_absolute() or ".." in Path(entry.value).parts:
                    what = f"the model has weights in '{entry.value}', outside of its folder"
                    raise ProgramError(what, "Export it again, with its weights in a file beside it.")
                yield entry.value


def _bytes(path: Path) -> bytes:
    try:
        if _size(path) > LARGEST:
            raise _too_large(path, _size(path))
        return read_regular(path)
    except OSError as error:
        raise ProgramError(f"cannot read '{path}': {error.strerror}", "Check the path.") from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _too_large(path: Path, size: int) -> ProgramError:
    what = f"'{path}' has {size / (1 << 30):.1f} GiB with its weights"
    return ProgramError(what, "Models over 2 GiB cannot be rewritten; give a part of it.")


def _parsed(path: Path, content: bytes) -> ModelProto:
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    model = ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise ProgramError(f"'{path}' is not an ONNX model, or is truncated", "Export it again.") from error
    # An empty file, too, is a message of protobuf.
    if not model.ir_version or not model.opset_import or not model.graph.output:
        what = f"'{path}' is not an ONNX model: it has no opset or no outputs"
        raise ProgramError(what, "Export it again.")
    return model


def _check_operators(path: Path, model: ModelProto) -> None:
    from onnx.defs import onnx_opset_version

    newest = onnx_opset_version()
    for opset in model.opset_import:
        # Other domains have versions of their own.
        if opset.domain in _DOMAINS[:2] and opset.version > newest:
            what = f"'{path}' is of opset {opset.version}; the newest that onnx knows here is {newest}"
            raise ProgramError(what, "Export it for an older one, or install a newer onnx.")
    own = {(function.domain, function.name) for function in model.functions}
    for node in all_nodes(model):
        if node.domain not in _DOMAINS and (node.domain, node.op_type) not in own:
            what = f"'{path}' has a custom operator, {node.domain}.{node.op_type}, which cannot be run here"
            raise ProgramError(what, "Replace it by standard operators, or define it as a function.")


def _allowed(text: str) -> tuple[str, ...]:
    known = {each.name.removeprefix("intent."): each.name for each in passes_of_kind("intent")}
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise ProgramError(f"cannot allow '{name}'", did_you_mean(name, known))
    return tuple(find_pass(known[name]).name for name in sorted(set(wanted)))


def _tolerance(text: str) -> float | None:
    try:
        found = float(text) if text else None
    except ValueError:
        found = math.nan
    if found is not None and not 0 < found <= 1:
        raise ProgramError(f"tolerance cannot be '{text}'", "Give a share of the largest number: 0.02.")
    return found
