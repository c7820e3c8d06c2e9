"""The machine code that takes a call of Python's: it finds the plan for the operands, and runs it.

Made by LLVM once in a process, on first use. CPython calls it as a built-in function. It reads NumPy's arrays
where NumPy's C interface has them, and looks for a plan whose operands are of the same class, type, shape and
strides. A plan is run by machine code, or handed to another function with the same arguments. Where there is
no plan, or the memory of its kernel is in use by another thread, the call goes to the table's fallback.

A table is a record of 64-bit words: [mask, place of the first operand, fallback, buckets...]; where the first
operand is at 1, the subscripts are at 0. A plan is a record too, see `PLAN`; plans in one bucket are a list.
An operand is [type, dimensions, address of the extents, address of the strides].
"""

from __future__ import annotations

import ctypes
from functools import cache

from planish.loops.runtime.dispatch.finding import FIND
from planish.loops.runtime.dispatch.interface import ALIGNED, FIELDS, addresses
from planish.loops.runtime.dispatch.running import DISPATCH, RUN

BUCKETS = 3
"""Words of a table before its buckets."""
PLAN = (
    "next",  # the next plan of the bucket, or 0; must be the first
    "subscripts",  # Python's string; 0 for none
    "operands",  # how many
    "operand",  # the first one's record; the others follow
    "hand",  # a function to hand the call to; 0 for a kernel
    "skip",  # how many of the arguments that one does not get
    "type",  # of the result
    "dimensions",
    "extents",
    "strides",  # 0 where the result is row-major
    "entries",
    "entry",  # the first one's address and iterations; the others follow
    "lanes",
    "lane",  # the addresses of the lanes' arguments
    "slots",  # for each operand, and then for the result, its place in the arguments
    "busy",  # whether the memory of the kernel is in use
    "long",  # whether other threads of Python may run meanwhile
    "team",  # a function that runs the entries with other threads; 0 to run them here
)
"""The words of a plan."""


@cache
def dispatch_address() -> int | None:
    """Make the function, and give its address; None where Python or NumPy are not as it needs them."""
    found = addresses()
    if found is None:
        return None
    from planish.loops.codegen.llvm.jit import load
    from planish.loops.codegen.llvm.machine import host_machine

    text = FIND + RUN + DISPATCH
    numbers = {f"plan.{name}": place for place, name in enumerate(PLAN)} | dict(FIELDS)
    numbers |= {"ALIGNED": ALIGNED, "BUCKETS": BUCKETS}
    numbers |= {name: found[name] for name in ("ARRAY_TYPE", "TEXT_TYPE")}
    for name, number in numbers.items():
        text = text.replace(f"@{name}@", str(number))
    for name, address in found.items():
        text = text.replace(f"@{name}@", f"inttoptr (i64 {address} to ptr)")
    owner, (address,) = load(text, ["dispatch"], host_machine(), 1)
    # Built-in functions made of it may be called until the very end of the process.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    return address
