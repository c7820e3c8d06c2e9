"""What a function of a program takes and gives."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ProgramError, did_you_mean
from planish.hlo.ir import TensorType, functions, ir, load, named_location, tensor_type
from planish.hlo.program import Program


@dataclass(frozen=True)
class Signature:
    """The arguments and results of a function.

    Args:
        names: of the arguments, in order; empty where the module names none.
        arguments: their types.
        results: the types of the results.
    """

    names: tuple[str, ...]
    arguments: tuple[TensorType, ...]
    results: tuple[TensorType, ...]


def signature(program: Program, function: str = "main") -> Signature:
    """Read what a function takes and gives.

    Raises:
        ProgramError: there is no such function, or it takes or gives what is no tensor.
    """
    root = load(program.text)
    known = dict(functions(root))
    if function not in known:
        raise ProgramError(f"the module has no function '{function}'", did_you_mean(function, known))
    arguments = list(known[function].regions[0].blocks[0].arguments)
    type_ = known[function].attributes["function_type"]
    assert isinstance(type_, ir.TypeAttr)
    assert isinstance(type_.value, ir.FunctionType)
    return Signature(
        tuple(named_location(argument.location) for argument in arguments),
        tuple(_tensor(argument.type, function) for argument in arguments),
        tuple(_tensor(result, function) for result in type_.value.results),
    )


def _tensor(type_: ir.Type, function: str) -> TensorType:
    found = tensor_type(type_)
    if found is None:
        raise ProgramError(f"function '{function}' takes or gives {type_}, which is no tensor")
    return found
