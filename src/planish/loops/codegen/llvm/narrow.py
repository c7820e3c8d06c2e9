"""Elements narrower than the arithmetic, in IR: moved as integers, and widened or rounded in registers.

A bfloat16 is the upper half of a float32. It is rounded to the nearest, ties to even, by adding what carries
into that half; what is not a number stays so, and is quiet. Of whole numbers the lowest bits are stored.
"""

from __future__ import annotations

from planish.loops.codegen.llvm.ir_writer import Lines, Writer
from planish.loops.lang.program import DTYPES

_LEAST, _ALMOST_HALF, _QUIET = 1, 0x7FFF, 0x00400000


def of_lanes(element: str, lanes: int) -> str:
    """Name the type of so many elements."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def widen(writer: Writer, dtype: str, bits: str, lanes: int, at: Lines | None = None) -> str:
    """Write the type of the arithmetic from the bits of a narrow one."""
    short, whole, wide = of_lanes(f"i{8 * DTYPES[dtype]}", lanes), writer.integer(lanes), writer.type(lanes)
    if dtype == "int8":
        return writer.define(f"sext {short} {bits} to {wide}", at)
    if dtype == "float16":
        half = of_lanes("half", lanes)
        return writer.define(
            f"fpext {half} {writer.define(f'bitcast {short} {bits} to {half}', at)} to {wide}", at
        )
    upper = writer.define(f"zext {short} {bits} to {whole}", at)
    moved = writer.define(f"shl {whole} {upper}, {_splat(writer, 16, lanes)}", at)
    return writer.define(f"bitcast {whole} {moved} to {wide}", at)


def narrow(writer: Writer, dtype: str, value: str, lanes: int) -> str:
    """Write the bits of a narrow type from the type of the arithmetic."""
    w, whole, wide = writer, writer.integer(lanes), writer.type(lanes)
    short = of_lanes(f"i{8 * DTYPES[dtype]}", lanes)
    if dtype == "int8":
        return w.define(f"trunc {wide} {value} to {short}")
    if dtype == "float16":
        half = of_lanes("half", lanes)
        return w.define(f"bitcast {half} {w.define(f'fptrunc {wide} {value} to {half}')} to {short}")
    bits = w.define(f"bitcast {wide} {value} to {whole}")
    # 0x7FFF and the lowest bit that is kept: it carries above a half, and at a half where that bit is odd.
    odd = w.define(f"and {whole} {_upper(w, bits, lanes)}, {_splat(w, _LEAST, lanes)}")
    carry = w.define(f"add {whole} {odd}, {_splat(w, _ALMOST_HALF, lanes)}")
    rounded = w.define(f"add {whole} {bits}, {carry}")
    quiet = w.define(f"or {whole} {bits}, {_splat(w, _QUIET, lanes)}")
    nan = w.define(f"fcmp uno {wide} {value}, {value}")
    chosen = w.define(f"select {of_lanes('i1', lanes)} {nan}, {whole} {quiet}, {whole} {rounded}")
    return w.define(f"trunc {whole} {_upper(w, chosen, lanes)} to {short}")


def _upper(writer: Writer, bits: str, lanes: int) -> str:
    return writer.define(f"lshr {writer.integer(lanes)} {bits}, {_splat(writer, 16, lanes)}")


def _splat(writer: Writer, value: int, lanes: int) -> str:
    return str(value) if lanes == 1 else f"splat (i{writer.bits} {value})"
