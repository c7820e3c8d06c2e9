"""Tensor cores: which nests they compute, and their instructions in CUDA and, emulated, in OpenCL.

A warp loads fragments from rows in shared memory (PTX: `ldmatrix`), each thread with the address of a row,
and multiplies them (`mma.sync.m16n8k16`). OpenCL has no such instructions: there threads exchange addresses
and fragments in shared memory, by the layouts that PTX documents, so that all index arithmetic is executed
without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod

from planish.core import ScheduleError
from planish.levels.loops.gpu.kernels import EXCHANGED_WORDS, Arrangement, Mma
from planish.levels.loops.gpu.layout import TensorLoops
from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopId, Node, Ref, refs
from planish.levels.loops.lang.program import TF32

FRAGMENT_ROWS, FRAGMENT_COLUMNS = 16, 8
"""Rows and columns of a fragment of the result."""
ROW_ELEMENTS = 8
"""Elements of a row that are loaded at once: 16 bytes, which begin at a multiple of 16 bytes."""
INSTRUCTIONS = ("mma", "wgmma")
GROUP, GROUP_WARPS = "wgmma", 4
"""The instruction of a group of warps, and how many these are."""
NARROW = ("float16", "bfloat16", TF32)
"""Types of operands; sums are in float32."""


def fragment_depth(dtype: str) -> int:
    """Return elements of the reduction in a fragment: 32 bytes of a row."""
    return 8 if dtype == TF32 else 16


def only_leaf(node: Node) -> Leaf:
    """Return the only leaf of a nest; raises ScheduleError where there are several."""
    while isinstance(node, Loop):
        if len(node.body) != 1:
            raise ScheduleError("tensor cores compute a nest of one statement", "Leave TensorTile out.")
        node = node.body[0]
    return node


def fragments_of(
    leaf: Leaf,
    loops: TensorLoops,
    trips: Mapping[LoopId, int],
    depth: int,
    types: Mapping[str, str],
    *,
    bulk: bool = False,
) -> Mma:
    """Divide a nest into fragments.

    Args:
        leaf: of the nest, by references into the kernel's own layout.
        loops: of the nest.
        trips: loop to its iterations at most.
        depth: elements of the reduction in a tile.
        types: buffer to element type.
        bulk: whether operands are arranged as bulk copies do.

    Raises:
        ScheduleError: tensor cores cannot compute it.
    """
    value = leaf.value
    if leaf.reduce != "add" or not isinstance(value, Call) or value.function != "mul":
        raise ScheduleError("tensor cores compute sums of products alone", "Leave TensorTile out.")
    found = {types[ref.buffer] for ref in refs(value)}
    if len(list(refs(value))) != len(value.args) or len(found) > 1 or not found <= {*NARROW}:
        known = f"{', '.join(NARROW[:-1])} or {NARROW[-1]}"
        what = f"tensor cores multiply {known}, not {', '.join(sorted(found)) or 'numbers'}"
        raise ScheduleError(what, "Leave TensorTile out.")
    fixed = {loops.high: 2, loops.row: 8, loops.column: 4, loops.pair: 2}
    if loops.warp:
        fixed[loops.warp] = GROUP_WARPS
    if any(trips.get(loop, 1) != count for loop, count in fixed.items()):
        rows = FRAGMENT_ROWS * (GROUP_WARPS if loops.warp else 1)
        what = f"a fragment has {rows} rows and 8 columns: an axis is too short"
        raise ScheduleError(what, f"Rows are more than {rows - 8}, columns more than 6.")
    dtype = found.pop()
    deep = fragment_depth(dtype)
    if depth % deep:
        what = f"a tile of the reduction has {depth} elements, which is not a multiple of {deep}"
        raise ScheduleError(what, f"Use ReduceTile({loops.inner[0]!r}, {2 * deep}).")
    rows, columns, depths = (
        ((loop, count),) if loop and loop in trips else ()
        for loop, count in (
            (loops.rows, trips.get(loops.rows or loops.high, 1)),
            (loops.columns, trips.get(loops.columns or loops.pair, 1)),
            (loops.depth, depth // deep),
        )
    )
    fragment = (loops.high, loops.row, loops.column, loops.pair)
    inner = ((loops.half, 2), (loops.inner, 8)) if loops.half else ((loops.inner, deep),)
    made = Mma(leaf, rows, columns, depths, *fragment, inner, dtype, loops.warp)
    a, b = made.operands
    for ref, along in ((a, loops.row), (b, loops.pair)):
        if bulk or dtype == TF32:
            continue  # bulk copies check their tiles; elements of tf32 are loaded one by one
        if loops.half:
            _check_matrices(ref, along, loops)
        else:
            _check_rows(ref, along, loops)
    return made


def _check_matrices(ref: Ref, along: LoopId, loops: TensorLoops) -> None:
    """Refuse an operand whose matrices of 8 x 8 elements do not lie in sequence."""
    step, inner = ref.stride.get(along, 0), ref.stride.get(loops.inner, 0)
    within = {loops.inner, loops.row, loops.pair, loops.column}
    aligned = all(stride % ROW_ELEMENTS == 0 for loop, stride in ref.strides if loop not in within)
    if along == loops.row:
        high = ref.stride.get(loops.high, 0)
        aligned = aligned and loops.warp is not None and ref.stride.get(loops.warp) == 2 * high
    else:
        aligned = aligned and ref.stride.get(loops.column) == 2 * step
    if sorted((step, inner)) != [1, ROW_ELEMENTS] or not aligned or ref.offset % ROW_ELEMENTS:
        what = f"'{ref.buffer}' has no matrices of 8 x 8 elements in sequence"
        raise ScheduleError(what, "Leave TensorTile out, or use its instruction 'mma'.")


def _check_rows(ref: Ref, along: LoopId, loops: TensorLoops) -> None:
    """Refuse an operand whose rows `ldmatrix` cannot load."""
    step, inner = ref.stride.get(along, 0), ref.stride.get(loops.inner, 0)
    # Loops inside a row; all others move by whole rows of 16 bytes.
    within = (
        {loops.inner} if inner == 1 else {loops.row} if along == loops.row else {loops.pair, loops.column}
    )
    aligned = all(stride % ROW_ELEMENTS == 0 for loop, stride in ref.strides if loop not in within)
    halves = along != loops.row or ref.stride.get(loops.high) == ROW_ELEMENTS * step
    pairs = along == loops.row or ref.stride.get(loops.column) == 2 * step
    if inner == 1:
        aligned = aligned and step % ROW_ELEMENTS == 0
    if 1 not in (step, inner) or not (aligned and halves and pairs) or ref.offset % ROW_ELEMENTS:
        what = f"rows of '{ref.buffer}' have no 8 neighboring elements that begin at a multiple of 16 bytes"
        raise ScheduleError(what, "Leave TensorTile out, or use another pad.")


# Instructions


def is_transposed(item: Mma, ref: Ref) -> bool:
    """Return whether the rows of an operand lie along the reduction, so that fragments are transposed."""
    return ref.stride.get(item.inner[-1][0]) != 1


def row_terms(item: Mma, ref: Ref) -> tuple[int, int, int]:
    """Return how a thread's number moves the row that it loads: its bits 0 to 2, bit 3 and bit 4.

    The 16 x 16 elements of a have four matrices of 8 x 8, first along the rows, and then along the reduction;
    the 16 x 8 elements of b have two, along the reduction.
    """
    inner = ref.stride[item.inner[-1][0]]
    if item.row not in ref.stride:
        step = ref.stride[item.pair]
        return inner if inner != 1 else step, ROW_ELEMENTS * inner, 0
    step = ref.stride[item.row]
    return inner if inner != 1 else step, ROW_ELEMENTS * step, ROW_ELEMENTS * inner


def load_name(count: int, *, transposed: bool) -> str:
    """Return the function that loads a number of matrices of 8 x 8."""
    return f"p_load_{count}{'_transposed' if transposed else ''}"


def product_name(dtype: str) -> str:
    """Return the function that multiplies fragments."""
    return f"p_multiply_{dtype}"


def matrix_strides(item: Mma, ref: Ref, order: Arrangement | None) -> tuple[int, int]:
    """Return elements between matrices of 8 x 8 elements: along the reduction, and along the other axis.

    Of swizzled tiles: between panels, and between groups of 8 rows.
    """
    if order is not None:
        width = order.multiple
        return (order.panel and order.rows * width) or ROW_ELEMENTS, 8 * width
    (half, _), _ = item.inner
    if item.row in ref.stride:
        return ref.stride[half], ref.stride[item.high]
    # A single matrix has no next one.
    return ref.stride[half], ref.stride[item.columns[0][0]] if item.columns else 0


def group_function(item: Mma, orders: Sequence[Arrangement | None], *, cuda: bool) -> tuple[str, str]:
    """Return name and text of the function by which a group of warps multiplies.

    Accumulators are elements of an array, at distances that the function has in it.

    Args:
        item: the product.
        orders: of the operands' elements; None for matrices of 8 x 8 elements in sequence.
        cuda: in which dialect.
    """
    a, b = item.operands
    flags = [int(is_transposed(item, ref)) for ref in (a, b)]
    columns = prod(n for _, n in item.columns)
    target = item.leaf.target.stride
    apart = [
        target.get(loop, 0)
        for loop in (item.columns[0][0] if item.columns else item.pair, item.high, item.pair)
    ]
    across, high, pair = apart
    bits = [order.bits if order else 0 for order in orders]
    name = "p_group_" + "_".join(map(str, (item.dtype, columns, *flags, *apart, *bits * any(bits))))
    if not cuda:
        read = _OPENCL_GROUP_READS[item.dtype]
        text = _OPENCL_GROUP.format(
            *(read.format(at, f"{at}_at") for at in ("a", "b")),
            name=name,
            columns=columns,
            **{
                at: _emulated_place(at, along, order, transposed=bool(flag))
                for at, along, flag, order in zip("ab", ("row", "column"), flags, orders, strict=True)
            },
            a_first="" if orders[0] is None else " int a_first,",
            b_first="" if orders[1] is None else " int b_first,",
            across=across,
            high=high,
            pair=pair,
        )
        return name, text
    places = [j * across + i * high + p * pair for j in range(columns) for i in range(2) for p in range(2)]
    count = len(places)
    text = _CUDA_GROUP.format(
        name=name,
        shape=f"m64n{8 * columns}k16",
        kind={"float16": "f16", "bfloat16": "bf16"}[item.dtype],
        registers=", ".join(f"%{i}" for i in range(count)),
        a=f"%{count}",
        b=f"%{count + 1}",
        flags=", ".join(map(str, flags)),
        # Of descriptors: 1 for a swizzle of 128 bytes, 2 for 64, 3 for 32, and 0 for none.
        a_order=bits[0] and 4 - bits[0],
        b_order=bits[1] and 4 - bits[1],
        sums=", ".join(f'"+f"(c[{place}])' for place in places),
    )
    return name, text


def _emulated_place(at: str, along: str, order: Arrangement | None, *, transposed: bool) -> str:
    """Find an element as the instruction does, from a descriptor's start and strides."""
    if order is None:
        inside = f"k % 8 * 8 + {along} % 8" if transposed else f"{along} % 8 * 8 + k % 8"
        return f"{along} / 8 * {at}_other + k / 8 * {at}_next + {inside}"
    width = order.multiple
    place = (
        f"{along} / {width} * {at}_next + {along} % {width} + k / 8 * {at}_other + k % 8 * {width}"
        if transposed
        else f"{along} / 8 * {at}_other + {along} % 8 * {width} + k"
    )
    plain = f"({at}_first + {place})"
    return f"{plain} ^ ({plain} >> {order.shift} & {order.mask})"


GROUP_FUNCTIONS = """static __device__ __forceinline__ unsigned long long p_matrices(
  const ushort *p, int next, int other, unsigned long long order)
{
  const unsigned long long at = ((uint)__cvta_generic_to_shared(p) & 0x3ffff) >> 4;
  return at | (unsigned long long)(next >> 3) << 16 | (unsigned long long)(other >> 3) << 32 | order << 62;
}

static __device__ __forceinline__ void p_group_begin()
{
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void p_group_commit()
{
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void p_group_wait_0()
{
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

static __device__ __forceinline__ void p_group_wait_1()
{
  asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}

static __device__ __forceinline__ void p_fence()
{
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}"""
"""Of CUDA: descriptors of matrices in shared memory (of distances in elements), and what orders their use."""
_CUDA_GROUP = """static __device__ __forceinline__ void {name}(
  float *c, const ushort *a, int a_next, int a_other, const ushort *b, int b_next, int b_other)
{{
  asm volatile("{{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.{shape}.f32.{kind}.{kind} "
    "{{{registers}}}, {a}, {b}, p, 1, 1, {flags}; }}"
    : {sums}
    : "l"(p_matrices(a, a_next, a_other, {a_order})), "l"(p_matrices(b, b_next, b_other, {b_order})));
}}"""
_OPENCL_GROUP_READS = {
    "float16": "vload_half({1}, (const __local half *){0})",
    "bfloat16": "as_float((uint){0}[{1}] << 16)",
}
_OPENCL_GROUP = """static inline void {name}(
  float *c, const __local ushort *a,{a_first} int a_next, int a_other,
  const __local ushort *b,{b_first} int b_next, int b_other, int thread)
{{
  const int lane = thread % 32, warp = thread / 32 % 4;
  float rows[32];
  for (int i = 0; i < 2; ++i) {{
    const int row = warp * 16 + lane / 4 + 8 * i;
    for (int k = 0; k < 16; ++k) {{
      const int a_at = {a};
      rows[16 * i + k] = {0};
    }}
  }}
  for (int j = 0; j < 2 * {columns}; ++j) {{
    const int column = j / 2 * 8 + 2 * (lane % 4) + j % 2;
    float low = 0.0f, high = 0.0f;
    for (int k = 0; k < 16; ++k) {{
      const int b_at = {b};
      const float value = {1};
      low += rows[k] * value;
      high += rows[16 + k] * value;
    }}
    c[j / 2 * {across} + j % 2 * {pair}] += low;
    c[j / 2 * {across} + {high} + j % 2 * {pair}] += high;
  }}
}}"""


def cuda_functions(dtype: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of all functions for CUDA."""
    if dtype == TF32:
        yield "p_to_tf32", _CUDA_TO_TF32
        name = product_name(dtype)
        yield name, _CUDA_PRODUCT.format(name=name, depth=8, kind=TF32)
        return
    for count, transposed in product((2, 4), (False, True)):
        name = load_name(count, transposed=transposed)
        places = ", ".join(f"%{i}" for i in range(count))
        outputs = ", ".join(f'"=r"(to[{i}])' for i in range(count))
        word = f"x{count}.trans" if transposed else f"x{count}"
        yield name, _CUDA_LOAD.format(name=name, word=word, places=places, last=count, outputs=outputs)
    kind, name = {"float16": "f16", "bfloat16": "bf16"}[dtype], product_name(dtype)
    yield name, _CUDA_PRODUCT.format(name=name, depth=16, kind=kind)


_CUDA_LOAD = """static __device__ __forceinline__ void {name}(uint *to, const ushort *from)
{{
  asm volatile("ldmatrix.sync.aligned.m8n8.{word}.shared.b16 {{{places}}}, [%{last}];"
    : {outputs} : "r"((uint)__cvta_generic_to_shared(from)) : "memory");
}}"""
_CUDA_TO_TF32 = """static __device__ __forceinline__ uint p_to_tf32(float x)
{
  uint y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}"""
_CUDA_PRODUCT = """static __device__ __forceinline__ void {name}(
  float *c0, float *c1, float *c2, float *c3, const uint *a, const uint *b)
{{
  asm volatile("mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32 "
    "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
    : "+f"(*c0), "+f"(*c1), "+f"(*c2), "+f"(*c3)
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}}"""


def opencl_functions(dtype: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of all functions for OpenCL, where threads exchange what warps do by themselves."""
    if dtype == TF32:
        yield "p_to_tf32", _OPENCL_TO_TF32
        name = product_name(dtype)
        a, b = (f"as_float(exchange[{at}])" for at in ("a_from", "b_from"))
        yield name, _OPENCL_PRODUCT.format(name=name, words=EXCHANGED_WORDS, a=a, b=b, depth=8, pair=1)
        return
    for count, transposed in product((2, 4), (False, True)):
        name = load_name(count, transposed=transposed)
        low, high = (
            (
                f"exchange[first + 2 * (lane % 4) + {i}] + lane / 4"
                if transposed
                else f"exchange[first + lane / 4] + 2 * (lane % 4) + {i}"
            )
            for i in range(2)
        )
        yield name, _OPENCL_LOAD.format(name=name, count=count, low=low, high=high)
    name, read = product_name(dtype), _OPENCL_READS[dtype]
    a, b = (read.format(f"(exchange + {at})") for at in ("a_from", "b_from"))
    yield name, _OPENCL_PRODUCT.format(name=name, words=EXCHANGED_WORDS, a=a, b=b, depth=16, pair=2)


_OPENCL_LOAD = """static inline void {name}(
  uint *to, const __local ushort *from, int row, __local uint *exchange, int thread)
{{
  const int lane = thread % 32;
  exchange[thread] = row;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < {count}; ++i) {{
    const int first = thread - lane + 8 * i;
    to[i] = from[{low}] | (uint)from[{high}] << 16;
  }}
  barrier(CLK_LOCAL_MEM_FENCE);
}}"""
_OPENCL_READS = {
    "float16": "vload_half(k % 2, (const __local half *){0})",
    "bfloat16": "as_float((uint)((const __local ushort *){0})[k % 2] << 16)",
}
_OPENCL_TO_TF32 = """static inline uint p_to_tf32(float x)
{
  return isfinite(x) ? (as_uint(x) + 0x1000u) & ~0x1fffu : as_uint(x);
}"""
_OPENCL_PRODUCT = """static inline void {name}(
  float *c0, float *c1, float *c2, float *c3, const uint *a, const uint *b,
  __local uint *exchange, int thread)
{{
  const int lane = thread % 32, warp = thread - lane;
  for (int i = 0; i < 4; ++i) exchange[thread * {words} + i] = a[i];
  for (int i = 0; i < 2; ++i) exchange[thread * {words} + 4 + i] = b[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < 4; ++i) {{
    const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
    float sum = 0.0f;
    for (int k = 0; k < {depth}; ++k) {{
      const int lane_of = k / {pair} % 4, half_of = k / {pair} / 4;
      const int a_from = (warp + row % 8 * 4 + lane_of) * {words} + row / 8 + 2 * half_of;
      const int b_from = (warp + column * 4 + lane_of) * {words} + 4 + half_of;
      sum += {a} * {b};
    }}
    float *c = i == 0 ? c0 : i == 1 ? c1 : i == 2 ? c2 : c3;
    *c += sum;
  }}
  barrier(CLK_LOCAL_MEM_FENCE);
}}"""
