"""The inputs of a model, with a number for every extent that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import ProgramError, did_you_mean
from planish.graph.program import Port

if TYPE_CHECKING:
    from onnx import ModelProto, TensorShapeProto, TypeProto, ValueInfoProto

Given = Mapping[str, tuple[int, ...]]


def read_inputs(path: Path, model: ModelProto, options: Mapping[str, str]) -> tuple[Port, ...]:
    """Give a model's inputs.

    Args:
        path: the model's; for messages.
        model: the model.
        options: `shape` (inputs or named dimensions to extents) and `batch`.

    Raises:
        ProgramError: an extent is open and not given, or what is given does not fit.
    """
    given = parse_shapes(options.get("shape", ""))
    # Before version 4 of ONNX's IR, weights had to be among the inputs.
    weights = {tensor.name for tensor in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in weights]
    named = {dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim}
    known = {value.name for value in values} | named - {""}
    for name in given:
        if name not in known:
            what = f"'{path}' has no input or dimension '{name}'"
            raise ProgramError(what, did_you_mean(name, known))
    return tuple(_port(path, value, given, _batch(options)) for value in values)


def parse_shapes(text: str) -> Given:
    """Read `x=1,3,224,224,length=128`; extents may have `x` between them too.

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
        if not name or not all(number.isdecimal() and int(number) > 0 for number in numbers):
            raise ProgramError(f"shape '{text}' is not understood", "Write --shape NAME=1,3,224,224.")
        found[name] += map(int, numbers)
    return {key: tuple(extents) for key, extents in found.items()}


def dtype_of(kind: TypeProto) -> str:
    """Name the type of a tensor's elements as NumPy does; empty for what is no tensor of numbers."""
    from onnx.helper import tensor_dtype_to_np_dtype

    if not kind.HasField("tensor_type") or not kind.tensor_type.elem_type:
        return ""
    return tensor_dtype_to_np_dtype(kind.tensor_type.elem_type).name


def _extents(kind: TypeProto) -> tuple[int | None, ...]:
    return tuple(_extent(dim) or None for dim in kind.tensor_type.shape.dim)


def _extent(dim: TensorShapeProto.Dimension) -> int:
    """Return an extent; 0 where it is open: it is not set then, or stored as a number below 0."""
    return max(dim.dim_value, 0)


def _batch(options: Mapping[str, str]) -> int | None:
    text = options.get("batch", "")
    if not text:
        return None
    if not text.isdecimal() or not int(text):
        raise ProgramError(f"batch '{text}' is no positive number", "Write --option batch=8.")
    return int(text)


def _port(path: Path, value: ValueInfoProto, given: Given, batch: int | None) -> Port:
    dtype = dtype_of(value.type)
    # NumPy has texts as objects.
    if dtype in ("", "object"):
        raise ProgramError(f"input '{value.name}' of '{path}' is no tensor of numbers")
    dims = value.type.tensor_type.shape.dim
    declared = _extents(value.type)
    found = given.get(value.name)
    if found is not None:
        _check_fits(path, value.name, declared, found)
        return Port(value.name, dtype, found)
    extents = [
        _extent(dim)
        or (given.get(dim.dim_param) or (0,))[0]
        or (batch if place == 0 and batch is not None else 0)
        for place, dim in enumerate(dims)
    ]
    if not all(extents):
        names = [dim.dim_param or str(_extent(dim) or "?") for dim in dims]
        example = ",".join(str(extent or 1) for extent in extents)
        what = f"input '{value.name}' of '{path}' has an open shape: {', '.join(names)}"
        raise ProgramError(what, f"Give it: --shape {value.name}={example}.")
    return Port(value.name, dtype, tuple(extents))


def _check_fits(path: Path, name: str, declared: tuple[int | None, ...], found: tuple[int, ...]) -> None:
    fits = len(declared) == len(found) and all(
        one in (None, other) for one, other in zip(declared, found, strict=True)
    )
    if declared and not fits:
        shape = ",".join("?" if extent is None else str(extent) for extent in declared)
        raise ProgramError(f"input '{name}' of '{path}' has the shape {shape}, not {found}")
