"""Assembly of a library: machine code of kernels, the functions that call them, and the weights.

The library's one entry is `model_run(inputs, outputs, workspace)`. It keeps no state: constant inputs are
packed while the library is made, and all else is in the workspace of the call. No compiler is needed: LLVM
compiles what calls the kernels (`dispatch.py`), and `elf.py` links.
"""

from __future__ import annotations

import json
import mmap
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from planish.core import Target
from planish.core.hashing import versioned
from planish.levels.loops.backends import PREFERRED, backend_of
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.objects import Section
from planish.levels.loops.ir.tree import leaves
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.runtime.kernels import Kernel as LoopsKernel
from planish.levels.loops.runtime.kernels import LaunchRecord, is_shared
from planish.network.fusion import FusedKernel, Kernels, NetworkKernel
from planish.network.ir import Array, Network
from planish.network.library.arena import ALIGNMENT, Arena, Lifetime, align_up, plan_arena
from planish.network.library.dispatch import (
    INPUTS,
    NONE,
    OUTPUTS,
    OWN,
    PACKED_FEATURES,
    WEIGHTS,
    WORKSPACE,
    Address,
    DispatchStep,
    KernelCall,
    functions,
    port_tables,
    step_tables,
)
from planish.network.library.elf import ARCHITECTURES, Architecture, architecture_name
from planish.network.library.header import header
from planish.network.library.in_place import overwritable_inputs
from planish.network.library.rows import move_rows
from planish.network.library.schedule import Schedule, code_features
from planish.network.placing import kernel_outputs, rows_apart
from planish.network.python_kernels.compiler import compile_kernel
from planish.network.python_kernels.program import PythonKernel
from planish.sandbox.scratch import shared_folder

_SCRATCH = "scratch"
LEAST_ELEMENTS, LEAST_FLOPS = 1 << 15, 1 << 17
"""Elements or operations of a Python kernel that pay for more than one core."""


class Weights:
    """The constants of a library in one block; equal ones are there once.

    They are in a file, and not in memory: those of a large network may be larger than that.
    """

    def __init__(self) -> None:
        self._offsets: dict[bytes, int] = {}
        self._file = tempfile.TemporaryFile(dir=shared_folder())  # noqa: SIM115 (as long as the object)
        self.size = 0

    def __del__(self) -> None:
        self._file.close()

    def add(self, array: Array) -> int:
        """Add the bytes of an array; return their offset."""
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        digest = sha256(content).digest()
        if digest not in self._offsets:
            self._offsets[digest] = self.size
            self._file.write(content)
            self._file.write(bytes(-len(content) % ALIGNMENT))
            self.size += align_up(len(content))
        return self._offsets[digest]

    @property
    def content(self) -> memoryview:
        """Return the block so far; it is not empty."""
        self._file.flush()
        if not self.size:
            return memoryview(bytes(ALIGNMENT))
        return memoryview(mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ))


@dataclass(frozen=True)
class Built:
    """Content of a library.

    Args:
        sections: code and tables.
        architecture: of the code.
        header: of the C header.
        manifest: what the library is, and its layers.
        weights: the constants.
        arena: the plan of the workspace.
        machine: any processor of the architecture.
        has_threads: whether it makes threads, which run as long as the process.
        exported: symbols that programs see.
    """

    sections: Sequence[Section]
    architecture: Architecture
    header: str
    manifest: Mapping[str, Any]
    weights: memoryview
    arena: Arena
    machine: jit.Machine
    has_threads: bool
    exported: Sequence[str]


def build(
    network: Network,
    kernels: Kernels,
    schedules: Mapping[str, Schedule],
    target: Target,
    weights: Weights | None = None,
) -> Built:
    """Make the parts of a library.

    Args:
        network: what is computed.
        kernels: its kernels, in their order.
        schedules: by the text of a kernel's program; kernels of a Python kernel have none.
        target: the machine that they are for.
        weights: constants that it shares with other libraries; None for its own.
    """
    machine = jit.describe(target.toolchain.get("triple") or jit.host_machine().triple, "", "")
    architecture = ARCHITECTURES[architecture_name(machine.triple)]
    writer = _Writer(network, kernels, schedules, target, weights or Weights())
    steps = [writer.step(index, kernel) for index, kernel in enumerate(kernels)]
    steps += [writer.copy(name, index) for name, index in writer.copies]
    features = writer.features(target)
    sections = [
        *writer.code(jit.describe(machine.triple, "", ",".join(f"+{feature}" for feature in features))),
        *step_tables(steps, architecture),
        *port_tables("model_inputs", network, network.inputs, architecture),
        *port_tables("model_outputs", network, network.outputs, architecture),
        *functions(steps, features, machine, writer.cores, needs_workspace=bool(writer.arena.size)),
    ]
    manifest = writer.manifest(target)
    text = header([[manifest["inputs"], manifest["outputs"]]], writer.arena.size)
    return Built(
        sections, architecture, text, manifest, writer.weights.content, writer.arena, machine,
        writer.cores > 1, ("model_inputs", "model_outputs", "model_run", "model_run_layers"),
    )  # fmt: skip


def _divided(network: Network, kernels: Kernels, cores: int) -> set[str]:
    """Return the programs of Python kernels whose iterations the cores divide."""
    found = set[str]()
    for kernel in kernels:
        if isinstance(kernel, PythonKernel) and 1 < cores <= kernel.program.division[1]:
            elements = sum(network.types[name].size for name in kernel.outputs.values())
            if elements >= LEAST_ELEMENTS or kernel.flops >= LEAST_FLOPS:
                found.add(kernel.program.text)
    return found


_Code = tuple[str, tuple[tuple[str, tuple[int, int]], ...]]
"""The text of a program, and which of its operands have rows apart: kernels of both have the same code."""


def _code_of(network: Network, kernel: NetworkKernel) -> _Code:
    return kernel.program.text, tuple(rows_apart(network, kernel).items())


def _names(network: Network, kernels: Kernels) -> Mapping[_Code, str]:
    """Name all distinct code for debuggers and profilers, by the operators of the first kernel of it."""
    names = dict[_Code, str]()
    for kernel in kernels:
        operators = re.sub(r"\W+", "_", kernel.operators).lower()[:60]
        names.setdefault(_code_of(network, kernel), f"kernel{len(names)}_{operators}")
    return names


def _port(network: Network, name: str) -> Mapping[str, Any]:
    value, shape = network.types[name], network.shape_outputs.get(name)
    port = {"name": name, "dtype": value.dtype, "shape": list(value.shape)}
    return port if shape is None else {**port, "shape_output": network.outputs.index(shape)}


class _Writer:
    """Makes steps, by where each tensor is: an argument of the call, a weight, or in the workspace."""

    def __init__(
        self,
        network: Network,
        kernels: Kernels,
        schedules: Mapping[str, Schedule],
        target: Target,
        weights: Weights,
    ) -> None:
        self.network, self.kernels, self.schedules, self.weights = network, kernels, schedules, weights
        self.names, self.divided = _names(network, kernels), _divided(network, kernels, target.cores)
        self.compiled = {
            (text, rows): move_rows(schedules[text], dict(rows), target) if rows else schedules[text]
            for text, rows in self.names
            if text in schedules
        }
        shared = [s.cores for s in schedules.values() if s.is_shared]
        self.cores = target.cores if self.divided else max(shared, default=1)
        written = {network.memory(name)[0] for kernel in kernels for name in kernel_outputs(kernel)}
        self.direct: dict[str, int] = {}
        self.copies: list[tuple[str, int]] = []
        for index, name in enumerate(network.outputs):
            root = network.root(name)
            if root in written and root not in self.direct:
                self.direct[root] = index
            elif network.types[name].size:
                self.copies.append((name, index))
        self.packed: dict[tuple[str, tuple[int, ...]], tuple[Sequence[Array], Mapping[str, Array]]] = {}
        lifetimes = list(self._lifetimes(kernels))
        self.arena = plan_arena(lifetimes, self._overwrites(lifetimes))

    def _lifetimes(self, kernels: Kernels) -> Iterator[Lifetime]:
        first, last = dict[str, int](), dict[str, int]()
        for index, kernel in enumerate(kernels):
            for name in kernel_outputs(kernel):
                first.setdefault(self.network.memory(name)[0], index)
            for name in (*kernel.operands.values(), *kernel_outputs(kernel)):
                last[self.network.memory(name)[0]] = index
        for name, index in first.items():
            if name not in self.direct:
                yield Lifetime(name, self.network.types[name].bytes, index, last[name])
        for index, kernel in enumerate(kernels):
            if scratch := self._scratch(kernel):
                yield Lifetime(f"{_SCRATCH} {index}", scratch, index, index)

    def _overwrites(self, lifetimes: Sequence[Lifetime]) -> Mapping[str, str]:
        """Return tensors that may be written into the memory of what their kernel is the last to read."""
        known, found = {each.name: each for each in lifetimes}, dict[str, str]()
        for index, kernel in enumerate(self.kernels):
            if isinstance(kernel, PythonKernel):
                continue
            written, tree = known.get(kernel.output), self.compiled[_code_of(self.network, kernel)].tree
            if written is None or written.first < index:
                continue
            memory = {local: self.network.memory(name) for local, name in kernel.operands.items()}
            for local in overwritable_inputs(tree):
                read = known.get(memory[local][0])
                alone = [root for root, _ in memory.values()].count(memory[local][0]) == 1
                if read and alone and read.last == index and read.size == written.size:
                    found[written.name] = read.name
                    break
        return found

    def _scratch(self, kernel: NetworkKernel) -> int:
        if isinstance(kernel, PythonKernel):
            copies = self.cores if kernel.program.text in self.divided else 1
            return copies * sum(map(align_up, kernel.scratch.values()))
        return self.compiled[_code_of(self.network, kernel)].scratch_bytes

    def manifest(self, target: Target) -> Mapping[str, Any]:
        """Describe the library and its layers."""
        network = self.network
        return versioned(
            {
                "network": network.name,
                "inputs": [_port(network, name) for name in network.inputs],
                "outputs": [_port(network, name) for name in network.outputs],
                "workspace_bytes": self.arena.size,
                "least_workspace_bytes": self.arena.least,
                "weights_bytes": self.weights.size,
                "copies": len(self.copies),
                "cores": self.cores,
                "target": json.loads(target.text),
                "layers": list(map(self._layer, self.kernels)),
            }
        )

    def _layer(self, kernel: NetworkKernel) -> Mapping[str, Any]:
        text = kernel.program.text
        schedule = self.schedules.get(text)
        shared = text in self.divided if schedule is None else schedule.is_shared
        return {
            "operators": kernel.operators,
            "nodes": [node.name for node in kernel.nodes],
            "shape": list(self.network.shape(kernel.output)),
            "kernel": self.names[_code_of(self.network, kernel)],
            "program": text,
            "flops": kernel.flops,
            "cores": self.cores if shared else 1,
            "steps": [step.to_json() for step in schedule.candidate.steps] if schedule else [],
        }

    def features(self, target: Target) -> Sequence[str]:
        """Return what the code needs of the processor."""
        backends = {backend_of(s.candidate) or target.toolchain["backend"] for s in self.schedules.values()}
        if any(isinstance(kernel, PythonKernel) for kernel in self.kernels):
            backends.add(target.toolchain["backend"])
        found = {feature for backend in backends for feature in code_features(backend, target)}
        for schedule in self.schedules.values():
            if (backend_of(schedule.candidate) or target.toolchain["backend"]) == PREFERRED[0]:
                found |= {PACKED_FEATURES[dtype] for dtype in schedule.program.packed}
        return sorted(found)

    def code(self, processor: jit.Machine) -> Iterator[Section]:
        """Return the code of all programs, those of Python kernels compiled for a processor."""
        plain = {k.program.text: k.program for k in self.kernels if isinstance(k, PythonKernel)}
        for code, name in self.names.items():
            text, _ = code
            if code in self.compiled:
                yield from self.compiled[code].code.sections(name)
            else:
                yield from compile_kernel(plain[text], name, processor, divided=text in self.divided)

    def address(self, tensor: str, own: Mapping[str, Array]) -> Address:
        """Return the address of a tensor."""
        root, start = self.network.memory(tensor)
        if root in self.network.types and not self.network.types[root].size:
            return Address(OWN, NONE)
        if root in own or root in self.network.constants:
            array = own.get(root, self.network.constants.get(root))
            assert array is not None
            return Address(OWN, WEIGHTS, self.weights.add(array))
        offset = start * self.network.types[root].item_bytes
        if root in self.network.inputs:
            return Address(INPUTS, self.network.inputs.index(root), offset)
        if root in self.direct:
            return Address(OUTPUTS, self.direct[root], offset)
        return Address(OWN, WORKSPACE, self.arena.offsets[root] + offset)

    def step(self, index: int, kernel: NetworkKernel) -> DispatchStep:
        """Make the step of a kernel."""
        if isinstance(kernel, PythonKernel):
            return self._plain_step(index, kernel)
        code = _code_of(self.network, kernel)
        schedule, name = self.compiled[code], self.names[code]
        packed = self._packed(kernel, schedule)
        read = {ref.buffer for leaf in leaves(schedule.tree.body) for ref in leaf.refs}
        read |= set(schedule.tree.indices)
        arguments = list[Address]()
        for buffer in schedule.tree.buffers:
            if buffer.kind == "ahead":
                arguments.append(Address(OWN, WEIGHTS, self.weights.add(packed[buffer.name])))
            elif buffer.kind == "temporary":
                continue
            elif buffer.name in kernel.operands:
                needed = buffer.name in read
                tensor = kernel.operands[buffer.name]
                arguments.append(self.address(tensor, kernel.constants) if needed else Address(OWN, NONE))
            else:
                arguments.append(self.address(kernel.output, {}))
        scratch = self.arena.offsets.get(f"{_SCRATCH} {index}", 0)
        arguments.append(Address(OWN, WORKSPACE, scratch))
        arguments.append(Address(OWN, WORKSPACE, scratch + schedule.code.layout.shared_bytes))
        calls = [
            KernelCall(f"{name}_run{i}", entry.iterations, schedule.cores > 1 and is_shared(entry))
            for i, entry in enumerate(schedule.code.entries)
        ]
        return DispatchStep(arguments, calls, schedule.code.layout.private_bytes)

    def _plain_step(self, index: int, kernel: PythonKernel) -> DispatchStep:
        arguments, scratch = list[Address](), self.arena.offsets.get(f"{_SCRATCH} {index}", 0)
        for array, _ in kernel.program.arrays:
            if array in kernel.scratch:
                arguments.append(Address(OWN, WORKSPACE, scratch))
                scratch += align_up(kernel.scratch[array])
            elif array in kernel.outputs:
                arguments.append(self.address(kernel.outputs[array], {}))
            else:
                arguments.append(self.address(kernel.operands[array], kernel.constants))
        symbol = f"{self.names[_code_of(self.network, kernel)]}_run0"
        divided = kernel.program.text in self.divided
        # The last array is each core's own, if it is scratch: only one is where loops are divided.
        private = sum(map(align_up, kernel.scratch.values())) if divided else 0
        call = KernelCall(symbol, kernel.program.division[1] if divided else 1, divided)
        return DispatchStep(arguments, [call], private)

    def copy(self, name: str, index: int) -> DispatchStep:
        """Make the step that copies a tensor to an output: one an input, a weight or another output."""
        value = self.network.types[name]
        return DispatchStep(
            [self.address(name, {}), Address(OUTPUTS, index)], [KernelCall("model_copy", value.bytes)]
        )

    def _packed(self, kernel: FusedKernel, schedule: Schedule) -> Mapping[str, Array]:
        """Run the part of a kernel that goes ahead of all calls; return what it fills."""
        if not schedule.packs.ahead_entries:
            return {}
        constants = {local: self._array(kernel, local) for local in kernel.program.constants}
        # The strips of an image have the same weights.
        key = kernel.program.text, tuple(array.ctypes.data for array in constants.values())
        if key in self.packed:
            return self.packed[key][1]
        made = LoopsKernel(kernel.program, schedule.tree, schedule.packs)
        lanes, owned = made.thread_arguments(constants)
        for memory in owned:
            # Room behind elements is written to the file, too.
            memory.fill(0)
        LaunchRecord(schedule.packs.ahead_entries, lanes).run(1)
        ahead = [buffer.name for buffer in schedule.tree.buffers if buffer.kind == "ahead"]
        found = dict(zip(ahead, owned, strict=False))
        # With the arrays: their addresses are not those of others as long as they live.
        self.packed[key] = list(constants.values()), found
        return found

    def _array(self, kernel: FusedKernel, local: str) -> Array:
        tensor, wanted = kernel.operands[local], kernel.program.type[local]
        array = kernel.constants.get(tensor, self.network.constants.get(tensor))
        assert array is not None
        return np.ascontiguousarray(array, numpy_type(wanted.dtype)).reshape(wanted.shape)
