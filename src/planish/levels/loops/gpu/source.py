"""Source of GPU kernels in C, in the dialects of OpenCL and CUDA.

Both have the same structure: names of tensors begin with `t_`, and those of iterations with `i_`. Functions
are those of the language, with the rules of NumPy for NaN. Elements of narrow types are widened where they
are read, and rounded to the nearest where they are written.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import prod

from planish.levels.loops.gpu.bulk import BOX_BYTES, BULK_FUNCTIONS, COPYING, MAPS, box_function, registers_of
from planish.levels.loops.gpu.dialect import CUDA, CUDA_COPIES, OPENCL, Dialect
from planish.levels.loops.gpu.elements import ElementWriter, buffer_name
from planish.levels.loops.gpu.kernels import (
    ALIGNED_BYTES,
    PRIVATE,
    SHARED,
    Barrier,
    Box,
    Compute,
    Condition,
    Cooperative,
    Counts,
    GpuKernel,
    GpuProgram,
    Item,
    Mma,
    Pipelined,
    Serial,
    Single,
    all_items,
    barrier_bytes,
    boxes,
    buffer_bytes,
    computations,
    dynamic_bytes,
    exchanged_bytes,
    tensor_maps,
    walked_loops,
)
from planish.levels.loops.gpu.tensor import (
    GROUP_FUNCTIONS,
    cuda_functions,
    group_function,
    is_transposed,
    load_name,
    matrix_strides,
    opencl_functions,
    product_name,
    row_terms,
)
from planish.levels.loops.ir.tree import LoopId, Ref
from planish.levels.loops.lang.program import DTYPES, TF32

WARP = 32
NO_LOOPS: Mapping[LoopId, int] = {}


def kernel_source(program: GpuProgram, dialect: Dialect) -> str:
    """Write all kernels of a program."""
    writer = _Writer(program, dialect)
    bodies = [writer.kernel(kernel) for kernel in (*program.ahead, *program.kernels)]
    return "\n\n".join([*writer.preamble(), *writer.functions.values(), *bodies]) + "\n"


_WORDS = {4: "uint", 8: "uint2", 16: "uint4"}
"""Bytes to the type that copies as many at once."""


@dataclass
class _Text:
    """Lines of a kernel, indented by depth."""

    lines: list[str] = field(default_factory=list[str])
    depth: int = 1

    def add(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    @contextmanager
    def block(self, head: str, *more: str) -> Generator[None]:
        """Write heads of blocks around what is added meanwhile, each of which ends with a brace."""
        for line in (head, *more):
            self.add(line)
            self.depth += 1
        yield
        for _ in (head, *more):
            self.depth -= 1
            self.add("}")


class _Writer(ElementWriter):
    """Writes kernels."""

    def preamble(self) -> Iterator[str]:
        types = {b.dtype for b in self.program.tree.buffers}
        if self.dialect is OPENCL and "float64" in types:
            yield "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"
        if self.dialect is CUDA:
            yield "typedef unsigned short ushort;\ntypedef unsigned int uint;"
            plain = [item for k in self.program.kernels if not k.copying for item in all_items(k.body)]
            if any(isinstance(item, Pipelined) for item in plain):
                yield CUDA_COPIES
            if any(kernel.copying for kernel in self.program.kernels):
                yield MAPS

    # Kernels

    def kernel(self, kernel: GpuKernel) -> str:
        self.names = _loop_names(kernel)
        own = {b.name: b for b in (*kernel.shared, *kernel.private)}
        self.buffers = {**self.program.tree.buffer, **own}
        self.spaces = dict.fromkeys((b.name for b in kernel.shared), SHARED)
        self.spaces |= dict.fromkeys((b.name for b in kernel.private), PRIVATE)
        self.text = text = _Text()
        self.copies_ahead = False
        products = [each for each in computations(kernel.body) if isinstance(each, Mma)]
        self.groups = any(each.warp for each in products)
        self.arranged, self.bulk = kernel.arranged, kernel.copying > 0
        d = self.dialect
        pointer = f"{d.memory['global']}{{0}}{{1}} *{d.restrict} {{2}}"
        parameters = [
            pointer.format(const, d.types[self.buffers[name].dtype], buffer_name(name))
            for const, names in (("const ", kernel.inputs), ("", kernel.outputs))
            for name in names
        ]
        if self.bulk and d is CUDA:
            parameters += [f"const __grid_constant__ p_map {map_name(m.target)}" for m in tensor_maps(kernel)]
        self._declare(kernel)
        self.block_size, self.threads = kernel.block_size, kernel.threads
        text.add(f"const int block = {d.block};")
        text.add(f"const int thread = {d.thread};")
        if kernel.flat:
            total = prod(n for _, n in kernel.threads)
            text.add(f"const {self.index} item = ({self.index})block * {kernel.block_size} + thread;")
            if total % kernel.block_size:
                text.add(f"if (item >= {total}) return;")
            self._decode("item", kernel.threads)
        else:
            if kernel.raster:
                text.add(f"const int at = {self._rastered(kernel)};")
            self._decode("at" if kernel.raster else "block", kernel.blocks)
            self._decode("thread", kernel.threads)
        if self.bulk:
            self._items_beside_copies(kernel)
        else:
            self._items(kernel.body)
        bounds = ", ".join(map(str, (kernel.launched, *[kernel.resident] * (kernel.resident > 0))))
        first = d.kernel.format(kernel.launched if d is OPENCL else bounds)
        head = f"{first} {kernel.name}({', '.join(parameters)})"
        return "\n".join([f"{head}\n{{", *text.lines, "}"])

    def _declare(self, kernel: GpuKernel) -> None:
        """Declare shared and private buffers; where CUDA needs dynamic memory, shared ones are its parts."""
        d, text, offset = self.dialect, self.text, 0
        dynamic = dynamic_bytes(kernel) if d is CUDA else 0
        if dynamic:
            aligned = BOX_BYTES if kernel.copying else ALIGNED_BYTES
            text.add(f"extern __shared__ __align__({aligned}) unsigned char p_shared[];")
        for space, buffers in ((SHARED, kernel.shared), (PRIVATE, kernel.private)):
            for b in buffers:
                kind, name = d.types[b.dtype], buffer_name(b.name)
                if dynamic and space == SHARED:
                    text.add(f"{kind} *const {name} = ({kind} *)(p_shared + {offset});")
                    offset += buffer_bytes(b)
                elif kind == "half":
                    # There are pointers to halves, but no arrays of them.
                    memory = d.memory.get(space, "")
                    text.add(f"{memory}ushort {name}_bits[{b.size}]{d.aligned};")
                    text.add(f"{memory}half *const {name} = ({memory}half *){name}_bits;")
                else:
                    text.add(f"{d.memory.get(space, '')}{kind} {name}[{b.size}]{d.aligned};")
        if d is CUDA and (barriers := barrier_bytes(kernel)):
            text.add(f"unsigned long long *const p_full = (unsigned long long *)(p_shared + {offset});")
            text.add(f"unsigned long long *const p_empty = p_full + {barriers // 16};")
        if d is OPENCL and (exchanged := exchanged_bytes(kernel)):
            text.add(f"__local uint p_exchange[{exchanged // 4}];")

    def _rastered(self, kernel: GpuKernel) -> str:
        """Find the row-major number of a block from its number in bands; see `GpuKernel.raster`."""
        rows, columns = (n for _, n in kernel.blocks[-2:])
        width, whole = kernel.raster, rows * columns
        text = self.text
        text.add(f"const int rest = block % {whole}, band = rest / {width * columns} * {width};")
        text.add(f"const int wide = {rows} - band < {width} ? {rows} - band : {width};")
        text.add(f"const int within = rest - band * {columns};")
        return f"block - rest + (band + within % wide) * {columns} + within / wide"

    def _decode(self, number: str, loops: Counts) -> None:
        """Find the iterations that a number stands for, in row-major order."""
        rest = prod(n for _, n in loops)
        whole = rest
        for loop, count in loops:
            rest //= count
            value = number if rest == 1 else f"{number} / {rest}"
            if rest * count != whole:
                value = f"{value} % {count}" if rest > 1 else f"{number} % {count}"
            self.text.add(f"const int {self.names[loop]} = {value if count > 1 else 0};")

    def _items(self, items: Sequence[Item]) -> None:
        for item in items:
            match item:
                case Compute():
                    self._compute(item)
                case Mma():
                    self._multiply(item)
                case Serial():
                    self._serial(item)
                case Pipelined():
                    self._pipelined(item)
                case Cooperative():
                    self._cooperative(item)
                case Single(loops, body):
                    tests = [f"{self.names[loop]} == 0" for loop in loops] or ["thread == 0"]
                    with self.text.block(f"if ({' && '.join(tests)}) {{"):
                        self._items(body)
                case Barrier():
                    self._barrier()

    def _serial(self, item: Serial) -> None:
        name, text = self.names[item.loop], self.text
        once = item.last - item.first == 1
        if not once:
            text.add("#pragma unroll" if item.unrolled else "#pragma unroll 1")
        with text.block("{" if once else _count(name, item.first, item.last)):
            if once:
                text.add(f"const int {name} = {item.first};")
            self._items(item.body)

    def _pipelined(self, item: Pipelined) -> None:
        name, tile, text = self.names[item.loop], self.names[item.tile], self.text
        ahead, cuda = item.ahead, self.dialect is CUDA

        def copies() -> None:
            with text.block(f"if ({name} < {item.last}) {{"):
                text.add(f"const int {tile} = {name} % {item.stages};")
                self.copies_ahead = cuda
                self._items(item.copies)
                self.copies_ahead = False
            if cuda:
                text.add("p_commit();")

        text.add("#pragma unroll 1")
        with text.block(_count(name, item.first, item.first + ahead)):
            copies()
        text.add("#pragma unroll 1")
        with text.block(_count("now", item.first, item.last)):
            if cuda:
                text.add(f"p_wait_{ahead - 1}();")
            if self.block_size > 1:
                self._barrier()
            with text.block("{"):
                text.add(f"const int {name} = now + {ahead};")
                copies()
            text.add(f"const int {name} = now;")
            text.add(f"const int {tile} = {name} % {item.stages};")
            self._items(item.body)
        if cuda:
            head = self.dialect.function
            self.functions[f"p_wait_{ahead - 1}"] = (
                f"{head} void p_wait_{ahead - 1}()\n{{\n#if __CUDA_ARCH__ >= 800\n"
                f'  asm volatile("cp.async.wait_group {ahead - 1};" ::: "memory");\n#endif\n}}'
            )

    # Copies in bulk

    def _items_beside_copies(self, kernel: GpuKernel) -> None:
        """Write what copying threads do, and what the others do meanwhile."""
        text = self.text
        (loop,) = (item for item in kernel.body if isinstance(item, Pipelined))
        if self.dialect is OPENCL:
            for item in kernel.body:
                if item is loop:
                    self._pipelined_in_step(loop)
                    continue
                with text.block(f"if (thread < {self.block_size}) {{"):
                    self._items((item,))
            return
        self._begin_copies(loop, registers_of(kernel))
        for item in kernel.body:
            if item is loop:
                self._use_copies(loop)
            else:
                self._items((item,))

    def _begin_copies(self, loop: Pipelined, registers: tuple[int, int] | None) -> None:
        """Make barriers, and have the first copying thread copy all tiles; the others have nothing to do."""
        text = self.text
        self.functions |= BULK_FUNCTIONS
        with text.block("if (thread == 0) {"):
            with text.block(_count("i", 0, loop.stages)):
                text.add("p_barrier(p_full + i, 1);")
                text.add(f"p_barrier(p_empty + i, {self.block_size // WARP});")
            text.add("p_barriers_made();")
        text.add("__syncthreads();")
        name, tile = self.names[loop.loop], self.names[loop.tile]
        with text.block(f"if (thread >= {self.block_size}) {{"):
            if registers:
                text.add(f'asm volatile("setmaxnreg.dec.sync.aligned.u32 {registers[0]};");')
            with text.block(f"if (thread == {self.block_size}) {{"):
                text.add("#pragma unroll 1")
                with text.block(_count(name, 0, loop.last)):
                    text.add(f"const int {tile} = {name} % {loop.stages};")
                    text.add(f"p_await(p_empty + {tile}, ({name} / {loop.stages} + 1) & 1);")
                    size = sum(2 * box.elements for box in boxes(loop.copies))
                    text.add(f"p_expect(p_full + {tile}, {size});")
                    self._boxes(loop)
            text.add("return;")
        if registers:
            text.add(f'asm volatile("setmaxnreg.inc.sync.aligned.u32 {registers[1]};");')

    def _boxes(self, loop: Pipelined) -> None:
        """Copy boxes, a panel after the other: by the accelerator, or as it does, by the copying threads."""
        targets = {each.leaf.target.buffer: each.leaf.target for each in computations(loop.copies)}
        for box in boxes(loop.copies):
            self._box(box, targets[box.target], loop)

    def _box(self, box: Box, target: Ref, loop: Pipelined) -> None:
        text = self.text
        arranged, first = self.arranged[target.buffer], box.dimensions[0]
        width, rows = arranged.multiple, box.dimensions[box.rows].box
        tile = f"{self.names[loop.tile]} * {target.stride[loop.tile]}"
        for panel in range(first.box // width):
            at = f"{tile} + {panel * rows * width}"
            starts = [self._sum(panel * width if d is first else 0, d.start) for d in box.dimensions]
            if self.dialect is CUDA:
                name = f"p_box_{len(starts)}"
                self.functions[name] = box_function(len(starts))
                to, barrier = f"{buffer_name(target.buffer)} + {at}", f"p_full + {self.names[loop.tile]}"
                text.add(f"{name}({to}, &{map_name(target.buffer)}, {', '.join(starts)}, {barrier});")
                continue
            places = [f"p % {width}" if d is first else f"p / {width}" for d in box.dimensions]
            inside = [f"p_{d} < {dimension.extent}" for d, dimension in enumerate(box.dimensions)]
            source = " + ".join(f"p_{d} * {dimension.stride}" for d, dimension in enumerate(box.dimensions))
            place = f"({at} + p) ^ ({at} + p >> {arranged.shift} & {arranged.mask})"
            head = f"for (int p = thread - {self.block_size}; p < {width * rows}; p += {COPYING}) {{"
            with text.block(head):
                for d, start in enumerate(starts):
                    text.add(f"const int p_{d} = {start}{f' + {places[d]}' if d in (0, box.rows) else ''};")
                text.add(
                    f"((__local ushort *){buffer_name(target.buffer)})[{place}] = {' && '.join(inside)}"
                    f" ? ((const __global ushort *){buffer_name(box.source)})[{source}] : 0;"
                )

    def _use_copies(self, loop: Pipelined) -> None:
        """Use tiles when they are full, and leave them when products have read them."""
        name, tile, text = self.names[loop.loop], self.names[loop.tile], self.text
        text.add("#pragma unroll 1")
        ready = f"{name} >= {loop.unfinished} && " if loop.unfinished else ""
        used = f"({name} - {loop.unfinished}) % {loop.stages}" if loop.unfinished else tile
        with text.block(_count(name, 0, loop.last)):
            text.add(f"const int {tile} = {name} % {loop.stages};")
            text.add(f"p_await(p_full + {tile}, {name} / {loop.stages} & 1);")
            self._items(loop.body)
            text.add(f"p_group_wait_{loop.unfinished}();")
            text.add(f"if ({ready}(thread & {WARP - 1}) == 0) p_arrive(p_empty + {used});")
        if loop.unfinished:
            text.add("p_group_wait_0();")

    def _pipelined_in_step(self, loop: Pipelined) -> None:
        """Copy and use tiles in step, as OpenCL has no barriers for some threads alone."""
        name, tile, text = self.names[loop.loop], self.names[loop.tile], self.text

        def copies() -> None:
            with text.block(f"if ({name} < {loop.last} && thread >= {self.block_size}) {{"):
                text.add(f"const int {tile} = {name} % {loop.stages};")
                self._boxes(loop)

        with text.block(_count(name, 0, loop.ahead)):
            copies()
        with text.block(_count("now", 0, loop.last)):
            text.add(self.dialect.barrier)
            with text.block("{"):
                text.add(f"const int {name} = now + {loop.ahead};")
                copies()
            with text.block(f"if (thread < {self.block_size}) {{"):
                text.add(f"const int {name} = now;")
                text.add(f"const int {tile} = {name} % {loop.stages};")
                self._items(loop.body)

    def _cooperative(self, item: Cooperative) -> None:
        text, total = self.text, prod(n for _, n in item.loops)
        if self.block_size == 1:
            with ExitStack() as stack:
                for loop, count in item.loops:
                    stack.enter_context(text.block(_count(self.names[loop], 0, count)))
                self._items(item.body)
            return
        turns, rest = divmod(total, self.block_size)
        if not rest:
            text.add("#pragma unroll" if turns <= 16 else "#pragma unroll 4")
        uneven = f"for (int work = thread; work < {total}; work += {self.block_size}) {{"
        with text.block(uneven if rest else _count("turn", 0, turns)):
            if not rest:
                text.add(f"const int work = turn * {self.block_size} + thread;")
            self._decode("work", item.loops)
            self._items(item.body)

    # Elements

    def _compute(self, item: Compute) -> None:
        text, lanes = self.text, item.lanes
        if lanes is None and self._copies_alone(item):
            size = DTYPES[self.buffers[item.leaf.target.buffer].dtype]
            to, source = (self._address(ref, None) for ref in item.leaf.refs)
            self._guarded(item.conditions, f"p_copy_{size}({to}, {source});")
            return
        if lanes is None:
            self._guarded(item.conditions, self._statement(item, None))
            return
        loop, width = lanes
        name = self.names[loop]
        if item.aligned:
            self._guarded(item.conditions, self._copied(item, loop, width), {loop: 0})
            return
        if not self.dialect.vectors:
            text.add("#pragma unroll")
            with text.block(_count(name, 0, width)):
                self._guarded(item.conditions, self._statement(item, None))
            return
        vector = self._statement(item, lanes)
        if not item.conditions:
            text.add(vector)
            return
        last = [self._condition(each, {loop: width - 1}) for each in item.conditions]
        with text.block(f"if ({' && '.join(last)}) {{"):
            text.add(vector)
        with text.block("else {", _count(name, 0, width)):
            self._guarded(item.conditions, self._statement(item, None))

    def _guarded(
        self, conditions: Sequence[Condition], statement: str, fixed: Mapping[LoopId, int] = NO_LOOPS
    ) -> None:
        tests = " && ".join(self._condition(each, fixed) for each in conditions)
        self.text.add(f"if ({tests}) {statement}" if tests else statement)

    def _copied(self, item: Compute, loop: LoopId, width: int) -> str:
        """Copy neighboring elements of one type at once."""
        source = item.leaf.value
        assert isinstance(source, Ref)
        size = width * DTYPES[self.buffers[source.buffer].dtype]
        to, value = (self._address(ref, (loop, width)) for ref in (item.leaf.target, source))
        if self.copies_ahead:
            return f"p_copy_{size}({to}, {value});"
        kind, d = _WORDS[size], self.dialect
        spaces = [d.memory.get(self.spaces.get(r.buffer, "global"), "") for r in (item.leaf.target, source)]
        spaces = spaces if d is OPENCL else ["", ""]
        return f"*({spaces[0]}{kind} *)({to}) = *(const {spaces[1]}{kind} *)({value});"

    def _address(self, ref: Ref, lanes: tuple[LoopId, int] | None) -> str:
        return f"{buffer_name(ref.buffer)} + {self._at(ref, lanes)}"

    def _copies_alone(self, item: Compute) -> bool:
        """Return whether an element is copied asynchronously by itself."""
        source, target = item.leaf.value, item.leaf.target
        if not (self.copies_ahead and isinstance(source, Ref) and item.leaf.reduce is None):
            return False
        types = {self.buffers[ref.buffer].dtype for ref in (source, target)}
        return len(types) == 1 and DTYPES[types.pop()] in _WORDS

    # Tensor cores

    def _multiply(self, item: Mma) -> None:
        """Load the fragments of a step of the reduction, then multiply each row of them with each column."""
        if item.warp:
            self._multiply_group(item)
            return
        text, cuda = self.text, self.dialect is CUDA
        rest = "" if cuda else ", p_exchange, thread"
        self.functions |= dict((cuda_functions if cuda else opencl_functions)(item.dtype))
        load = self._load_elements if item.dtype == TF32 else self._load_rows
        rows, columns = (max([1, *(n for _, n in loops)]) for loops in (item.rows, item.columns))
        target, numbers = item.leaf.target, list[str]()
        high, pair = (target.stride.get(loop, 0) for loop in (item.high, item.pair))
        base = self._sum(target.offset, [t for t in target.strides if t[0] not in (item.high, item.pair)])
        sums = [
            f"&{buffer_name(target.buffer)}[{base} + {offset}]" for offset in (0, pair, high, high + pair)
        ]
        with self._loops(item.depth):
            text.add(f"uint p_a[{rows}][4], p_b[{columns}][2];")
            for ref, loops, to, count in zip(
                item.operands, (item.rows, item.columns), ("p_a", "p_b"), (4, 2), strict=True
            ):
                number = self.names[loops[0][0]] if loops else "0"
                numbers.append(f"{to}[{number}]")
                with self._loops(loops):
                    load(item, ref, numbers[-1], count)
            with self._loops((*item.rows, *item.columns)):
                text.add(f"{product_name(item.dtype)}({', '.join((*sums, *numbers))}{rest});")

    def _load_rows(self, item: Mma, ref: Ref, to: str, count: int) -> None:
        """Load matrices of a fragment by the addresses of their rows, a row for each thread."""
        name, row = load_name(count, transposed=is_transposed(item, ref)), self._row(item, ref)
        whole = f"{buffer_name(ref.buffer)}"
        if self.dialect is CUDA:
            self.text.add(f"{name}({to}, (ushort *){whole} + {row});")
        else:
            self.text.add(f"{name}({to}, (__local ushort *){whole}, {row}, p_exchange, thread);")

    def _load_elements(self, item: Mma, ref: Ref, to: str, count: int) -> None:
        """Load a thread's elements of a fragment of tf32, each by itself, rounded to the nearest."""
        (inner, _), stride = item.inner[0], ref.stride
        own = (item.high, item.row, item.column, item.pair, inner)
        base = self._sum(ref.offset, [term for term in ref.strides if term[0] not in own])
        if item.row in stride:
            line = f"(thread >> 2 & 7) * {stride[item.row]}"
            steps = [high * stride[item.high] + deep * stride[inner] for deep in (0, 4) for high in (0, 1)]
        else:
            line = f"(thread >> 3 & 3) * {stride[item.column]} + (thread >> 2 & 1) * {stride[item.pair]}"
            steps = [deep * stride[inner] for deep in (0, 4)]
        for i, step in enumerate(steps[:count]):
            at = self._placed(ref.buffer, f"{base} + {line} + (thread & 3) * {stride[inner]} + {step}")
            self.text.add(f"{to}[{i}] = p_to_tf32({buffer_name(ref.buffer)}[{at}]);")

    def _multiply_group(self, item: Mma) -> None:
        """Multiply tiles in shared memory by the instruction of four warps."""
        text, cuda, target = self.text, self.dialect is CUDA, item.leaf.target
        orders = [self.arranged.get(ref.buffer) for ref in item.operands]
        name, function = group_function(item, orders, cuda=cuda)
        self.functions |= {"p_group_begin": GROUP_FUNCTIONS} if cuda else {}
        self.functions[name] = function
        own = {item.high, item.row, item.column, item.pair, item.warp}
        own |= {loop for loop, _ in (*item.inner, *item.columns)}
        if cuda:
            text.add("p_group_begin();")
        with self._loops((*item.depth, *item.rows)):
            sums = self._sum(target.offset, [term for term in target.strides if term[0] not in own])
            arguments = [f"&{buffer_name(target.buffer)}[{sums}]"]
            for ref, order in zip(item.operands, orders, strict=True):
                base = self._sum(ref.offset, [term for term in ref.strides if term[0] not in own])
                base = self._placed(ref.buffer, base)
                whole = f"({'' if cuda else '__local '}ushort *){buffer_name(ref.buffer)}"
                # Swizzles are of addresses in the whole buffer, which the emulation is given.
                arguments += [f"{whole} + {base}"] if cuda or order is None else [whole, base]
                arguments += map(str, matrix_strides(item, ref, order))
            text.add(f"{name}({', '.join(arguments)}{'' if cuda else ', thread'});")
        if cuda:
            text.add("p_group_commit();")
        if cuda and not self.bulk:
            text.add("p_group_wait_0();")

    def _barrier(self) -> None:
        """Wait for all threads; what they copied is seen by the instructions of groups of warps, too."""
        if self.groups and self.dialect is CUDA:
            self.text.add("p_fence();")
        self.text.add(self.dialect.barrier)

    def _row(self, item: Mma, ref: Ref) -> str:
        """Find the row that a thread loads."""
        own = (item.high, item.row, item.column, item.pair, item.inner[0][0])
        base = self._sum(ref.offset, [term for term in ref.strides if term[0] not in own])
        low, middle, high = row_terms(item, ref)
        parts = [f"(thread & 7) * {low}", f"(thread >> 3 & 1) * {middle}"]
        parts += [f"(thread >> 4 & 1) * {high}"] * (high > 0)
        return self._placed(ref.buffer, " + ".join([base, *parts]))

    @contextmanager
    def _loops(self, loops: Counts) -> Generator[None]:
        """Write loops, or a block where there are none, around what is written meanwhile."""
        with ExitStack() as stack:
            for loop, count in loops:
                if self.dialect is CUDA:
                    self.text.add("#pragma unroll")
                stack.enter_context(self.text.block(_count(self.names[loop], 0, count)))
            if not loops:
                stack.enter_context(self.text.block("{"))
            yield


def _count(name: str, first: int, last: int) -> str:
    """Write the head of a loop over the numbers from the first to before the last."""
    return f"for (int {name} = {first}; {name} < {last}; ++{name}) {{"


def map_name(buffer: str) -> str:
    """Return what the map of a tensor is called that is copied to a buffer in boxes."""
    return f"m_{buffer_name(buffer)}"


def _loop_names(kernel: GpuKernel) -> dict[LoopId, str]:
    """Name the iterations of all loops of a kernel."""
    loops: dict[LoopId, None] = dict.fromkeys(loop for loop, _ in (*kernel.blocks, *kernel.threads))
    loops |= dict.fromkeys(walked_loops(kernel.body))
    names: dict[LoopId, str] = {}
    for axis, step in loops:
        stem = name = "i_" + re.sub(r"\W", "_", axis if step == 1 else f"{axis}_{step}")
        number = 2
        while name in names.values():
            name, number = f"{stem}_{number}", number + 1
        names[axis, step] = name
    return names
