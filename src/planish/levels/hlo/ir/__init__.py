"""StableHLO modules by the bindings of jaxlib: reading, ids, normal form, hashing and printing."""

from planish.levels.hlo.ir.mlir import (
    UID,
    TensorType,
    context,
    functions,
    ir,
    mlir_type,
    number,
    printed,
    set_uid,
    tensor_type,
    uid_of,
    walk,
)
from planish.levels.hlo.ir.normal import (
    argument_names,
    canonical_hash,
    chosen_function,
    entry_text,
    live_uids,
    load,
    name_arguments,
    named_location,
    normal_text,
)
from planish.levels.hlo.ir.parsing import first_line

__all__ = [
    "UID",
    "TensorType",
    "argument_names",
    "canonical_hash",
    "chosen_function",
    "context",
    "entry_text",
    "first_line",
    "functions",
    "ir",
    "live_uids",
    "load",
    "mlir_type",
    "name_arguments",
    "named_location",
    "normal_text",
    "number",
    "printed",
    "set_uid",
    "tensor_type",
    "uid_of",
    "walk",
]
