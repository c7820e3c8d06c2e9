"""StableHLO modules by the bindings of jaxlib: reading, ids, normal form, hashing and printing."""

from planish.hlo.ir.entry import entry_text
from planish.hlo.ir.hashing import canonical_hash, live_uids
from planish.hlo.ir.mlir_context import context, ir
from planish.hlo.ir.naming import argument_names, name_arguments
from planish.hlo.ir.normal import chosen_function, load, named_location, normal_text
from planish.hlo.ir.parsing import first_line
from planish.hlo.ir.printing import printed
from planish.hlo.ir.types import TensorType, mlir_type, tensor_type
from planish.hlo.ir.uids import UID, functions, number, set_uid, uid_of, walk

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
