"""Shared library of a network: machine code of its kernels, the functions that call them, and the weights.

The library's one entry is `model_run(inputs, outputs, workspace)`. It keeps no state: constant inputs are
packed while the library is made, and all else is in the workspace of the call. No compiler is needed: LLVM
compiles what calls the kernels (`planish.network.dispatch`), and `planish.network.elf` links.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from planish.core import Candidate, PlanishError, Target
from planish.core.documents import versioned
from planish.core.files import copy_regular
from planish.levels.loops.backends import NEEDED, PREFERRED, backend_of, code_of, compile_with, tree_of
from planish.levels.loops.codegen.kernel import MachineCode
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.llvm.compile import compile_for
from planish.levels.loops.codegen.llvm.straight import compile_straight
from planish.levels.loops.codegen.objects import Section
from planish.levels.loops.ir.tree import LoopTree, leaves
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import Program
from planish.levels.loops.runtime.kernels import Kernel as LoopsKernel
from planish.levels.loops.runtime.kernels import LaunchRecord, is_shared
from planish.network.dispatch import (
    BITS,
    INPUTS,
    NONE,
    OUTPUTS,
    OWN,
    WEIGHTS,
    WORKSPACE,
    Address,
    Call,
    Step,
    functions,
    port_tables,
    step_tables,
)
from planish.network.elf import ARCHITECTURES, Architecture, architecture_name, link
from planish.network.fusion import Kernel
from planish.network.header import header
from planish.network.model import Array, Network
from planish.network.plain import PlainKernel, compile_kernel
from planish.network.plan import ALIGNMENT, Arena, Lifetime, plan_arena, rounded

_AVX2 = ("avx2", "bmi", "bmi2", "f16c", "fma", "movbe")
_FEATURES: Mapping[str, Sequence[str]] = {
    **{f"x86-{isa}": sorted(needed) for isa, needed in NEEDED.items()},
    "aarch64": (),
    "x86-64": (),
    "x86-64-v3": _AVX2,
    "x86-64-v4": (*_AVX2, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
"""What the code of a back end, or for another processor, needs of the processor."""
_SCRATCH = "scratch"


@dataclass(frozen=True)
class Schedule:
    """A kernel's schedule, compiled.

    Args:
        program: what it computes.
        candidate: the schedule.
        tree: lowered.
        code: what it gave.
        cores: threads that share its loops.
        packs: code of the same tree for this machine, which packs constants.
        is_transform: whether the tree is that of a transform.
    """

    program: Program
    candidate: Candidate
    tree: LoopTree
    code: MachineCode
    cores: int
    packs: MachineCode
    is_transform: bool = False

    @property
    def scratch_bytes(self) -> int:
        """Return what a call needs of memory beside its operands."""
        return self.code.layout.shared_bytes + self.cores * self.code.layout.private_bytes

    @property
    def is_shared(self) -> bool:
        """Return whether it has a loop that threads share."""
        return self.cores > 1 and any(map(is_shared, self.code.entries))


def compile_schedule(kernel: Kernel, candidate: Candidate, target: Target) -> Schedule:
    """Compile a kernel's schedule, whose loops as many threads share as the target has cores."""
    if kernel.transform:
        return _transform(kernel.program, candidate, kernel.transform.tree, target)
    return _compiled(kernel.program, candidate, tree_of(kernel.program, candidate), target)


def schedule_for(schedule: Schedule, target: Target) -> Schedule:
    """Compile the same schedule for another target."""
    compiled = _transform if schedule.is_transform else _compiled
    return compiled(schedule.program, schedule.candidate, schedule.tree, target)


def _transform(program: Program, candidate: Candidate, tree: LoopTree, target: Target) -> Schedule:
    machine = jit.host_machine()
    if is_foreign(target):
        triple, cpu, features = (target.toolchain[name] for name in ("triple", "cpu", "features"))
        machine = jit.describe(triple, cpu, features)
    code = compile_straight(tree, machine)
    return Schedule(program, candidate, tree, code, target.cores, code, is_transform=True)


def _compiled(program: Program, candidate: Candidate, tree: LoopTree, target: Target) -> Schedule:
    backend = backend_of(candidate) or target.toolchain["backend"]
    if backend == PREFERRED[-1] and not tree.ahead and not is_foreign(target):
        # It is linked, and not called here: to load it too would take LLVM twice the time.
        code = compile_for(tree, jit.host_machine())
    else:
        code = code_of(candidate, target, tree)
    packs = compile_with(PREFERRED[-1], tree) if tree.ahead and is_foreign(target) else code
    return Schedule(program, candidate, tree, code, target.cores, packs)


def is_foreign(target: Target) -> bool:
    """Return whether a target is another processor, by its name, and not this machine."""
    return "triple" in target.toolchain


def runs_here(target: Target) -> bool:
    """Return whether this machine runs the code for a target."""
    if not is_foreign(target):
        return True
    here = jit.host_machine()
    has = {feature.removeprefix("+") for feature in here.features.split(",") if feature.startswith("+")}
    same = target.toolchain["triple"].split("-")[0] == here.triple.split("-", maxsplit=1)[0]
    return same and has.issuperset(_FEATURES[target.processor])


class Weights:
    """The constants of a library in one block; equal ones are there once."""

    def __init__(self) -> None:
        self._offsets: dict[bytes, int] = {}
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, content: bytes) -> int:
        """Add bytes; return their offset."""
        digest = sha256(content).digest()
        if digest not in self._offsets:
            self._offsets[digest] = self.size
            self._parts.append(content.ljust(rounded(len(content)), b"\0"))
            self.size += rounded(len(content))
        return self._offsets[digest]

    @property
    def parts(self) -> Sequence[bytes]:
        """Return the parts of the block so far, in their order; it is not empty."""
        return tuple(self._parts) or (bytes(ALIGNMENT),)


@dataclass(frozen=True)
class Built:
    """Content of a library.

    Args:
        sections: code and tables.
        architecture: of the code.
        header: of the C header.
        manifest: what the library is, and its layers.
        weights: the constants, in parts.
        arena: the plan of the workspace.
        machine: any processor of the architecture.
        has_threads: whether it makes threads, which run as long as the process.
        exported: symbols that programs see.
    """

    sections: Sequence[Section]
    architecture: Architecture
    header: str
    manifest: Mapping[str, Any]
    weights: Sequence[bytes]
    arena: Arena
    machine: jit.Machine
    has_threads: bool
    exported: Sequence[str]


def build(
    network: Network,
    kernels: Sequence[Kernel | PlainKernel],
    schedules: Mapping[str, Schedule],
    target: Target,
    weights: Weights | None = None,
) -> Built:
    """Make the parts of a library.

    Args:
        network: what is computed.
        kernels: its kernels, in their order.
        schedules: by the text of a kernel's program; kernels of plain code have none.
        target: the machine that they are for.
        weights: constants that it shares with other libraries; None for its own.
    """
    machine = jit.describe(target.toolchain.get("triple") or jit.host_machine().triple, "", "")
    architecture = ARCHITECTURES[architecture_name(machine.triple)]
    names, cores = _names(kernels), max((s.cores for s in schedules.values() if s.is_shared), default=1)
    plain = {kernel.program.text: kernel.program for kernel in kernels if isinstance(kernel, PlainKernel)}
    writer = _Writer(network, kernels, schedules, names, weights or Weights())
    steps = [writer.step(index, kernel) for index, kernel in enumerate(kernels)]
    steps += [writer.copy(name, index) for name, index in writer.copies]
    ports = [[_port(network, name) for name in names] for names in (network.inputs, network.outputs)]
    manifest = versioned(
        {
            "network": network.name,
            "inputs": ports[0],
            "outputs": ports[1],
            "workspace_bytes": writer.arena.size,
            "least_workspace_bytes": writer.arena.least,
            "weights_bytes": writer.weights.size,
            "copies": len(writer.copies),
            "cores": cores,
            "target": json.loads(target.text),
            "layers": [
                {
                    "operators": kernel.operators,
                    "nodes": [node.name for node in kernel.nodes],
                    "shape": list(network.shape(kernel.output)),
                    "kernel": names[kernel.program.text],
                    "program": kernel.program.text,
                    "flops": kernel.flops,
                    **_schedule_of(schedules.get(kernel.program.text), cores),
                }
                for kernel in kernels
            ],
        }
    )
    backends = {backend_of(s.candidate) or target.toolchain["backend"] for s in schedules.values()}
    backends |= {target.toolchain["backend"]} if plain else set()
    features = sorted({feature for backend in backends for feature in _features(backend, target)})
    processor = jit.describe(machine.triple, "", ",".join(f"+{feature}" for feature in features))
    sections = [
        *(
            part
            for text, name in names.items()
            if text in schedules
            for part in schedules[text].code.sections(name)
        ),
        *(part for text, each in plain.items() for part in compile_kernel(each, names[text], processor)),
        *step_tables(steps, architecture),
        *port_tables("model_inputs", network, network.inputs, architecture),
        *port_tables("model_outputs", network, network.outputs, architecture),
        *functions(steps, features, machine, cores, needs_workspace=bool(writer.arena.size)),
    ]
    return Built(
        sections,
        architecture,
        header([ports], writer.arena.size),
        manifest,
        writer.weights.parts,
        writer.arena,
        machine,
        cores > 1,
        ("model_inputs", "model_outputs", "model_run", "model_run_layers"),
    )


def _features(backend: str, target: Target) -> Sequence[str]:
    """Return what the code of a back end needs of the processor, of what can be asked for."""
    if is_foreign(target):
        return _FEATURES[target.processor]
    if backend in _FEATURES:
        return _FEATURES[backend]
    # LLVM uses whatever this processor has.
    has = jit.host_machine().features.split(",")
    return [feature for feature in BITS if f"+{feature}" in has]


def _schedule_of(schedule: Schedule | None, cores: int) -> Mapping[str, Any]:
    if schedule is None:
        return {"cores": 1, "steps": []}
    return {
        "cores": cores if schedule.is_shared else 1,
        "steps": [step.to_json() for step in schedule.candidate.steps],
    }


def _names(kernels: Sequence[Kernel | PlainKernel]) -> Mapping[str, str]:
    """Name each distinct program for debuggers and profilers, by the operators of the first kernel of it."""
    names = dict[str, str]()
    for kernel in kernels:
        operators = re.sub(r"\W+", "_", kernel.operators).lower()[:60]
        names.setdefault(kernel.program.text, f"kernel{len(names)}_{operators}")
    return names


def _port(network: Network, name: str) -> Mapping[str, Any]:
    value = network.values[name]
    return {"name": name, "dtype": value.dtype, "shape": list(value.shape)}


def _outputs(kernel: Kernel | PlainKernel) -> Sequence[str]:
    return list(kernel.outputs.values()) if isinstance(kernel, PlainKernel) else [kernel.output]


class _Writer:
    """Makes steps, by where each tensor is: an argument of the call, a weight, or in the workspace."""

    def __init__(
        self,
        network: Network,
        kernels: Sequence[Kernel | PlainKernel],
        schedules: Mapping[str, Schedule],
        names: Mapping[str, str],
        weights: Weights,
    ) -> None:
        self.network, self.schedules, self.names, self.weights = network, schedules, names, weights
        written = {name for kernel in kernels for name in _outputs(kernel)}
        self.direct: dict[str, int] = {}
        self.copies: list[tuple[str, int]] = []
        for index, name in enumerate(network.outputs):
            root = network.root(name)
            if root in written and root not in self.direct:
                self.direct[root] = index
            elif network.values[name].size:
                self.copies.append((name, index))
        self.arena = plan_arena(list(self._lifetimes(kernels)))

    def _lifetimes(self, kernels: Sequence[Kernel | PlainKernel]) -> Iterator[Lifetime]:
        last: dict[str, int] = {}
        for index, kernel in enumerate(kernels):
            last |= dict.fromkeys(map(self.network.root, kernel.operands.values()), index)
        for index, kernel in enumerate(kernels):
            for name in _outputs(kernel):
                if name not in self.direct:
                    yield Lifetime(name, self.network.values[name].bytes, index, last.get(name, index))
            if scratch := self._scratch(kernel):
                yield Lifetime(f"{_SCRATCH} {index}", scratch, index, index)

    def _scratch(self, kernel: Kernel | PlainKernel) -> int:
        if isinstance(kernel, PlainKernel):
            return sum(map(rounded, kernel.scratch.values()))
        return self.schedules[kernel.program.text].scratch_bytes

    def address(self, tensor: str, own: Mapping[str, Array]) -> Address:
        """Return the address of a tensor."""
        root = self.network.root(tensor)
        if root in self.network.values and not self.network.values[root].size:
            return Address(OWN, NONE)
        if root in own or root in self.network.constants:
            array = own.get(root, self.network.constants.get(root))
            assert array is not None
            return Address(OWN, WEIGHTS, self.weights.add(np.ascontiguousarray(array).tobytes()))
        if root in self.network.inputs:
            return Address(INPUTS, self.network.inputs.index(root))
        if root in self.direct:
            return Address(OUTPUTS, self.direct[root])
        return Address(OWN, WORKSPACE, self.arena.offsets[root])

    def step(self, index: int, kernel: Kernel | PlainKernel) -> Step:
        """Make the step of a kernel."""
        if isinstance(kernel, PlainKernel):
            return self._plain_step(index, kernel)
        schedule, name = self.schedules[kernel.program.text], self.names[kernel.program.text]
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
            Call(f"{name}_run{i}", entry.iterations, schedule.cores > 1 and is_shared(entry))
            for i, entry in enumerate(schedule.code.entries)
        ]
        return Step(arguments, calls, schedule.code.layout.private_bytes)

    def _plain_step(self, index: int, kernel: PlainKernel) -> Step:
        arguments, scratch = list[Address](), self.arena.offsets.get(f"{_SCRATCH} {index}", 0)
        for array, _ in kernel.program.arrays:
            if array in kernel.scratch:
                arguments.append(Address(OWN, WORKSPACE, scratch))
                scratch += rounded(kernel.scratch[array])
            elif array in kernel.outputs:
                arguments.append(self.address(kernel.outputs[array], {}))
            else:
                arguments.append(self.address(kernel.operands[array], kernel.constants))
        return Step(arguments, [Call(f"{self.names[kernel.program.text]}_run0", 1)])

    def copy(self, name: str, index: int) -> Step:
        """Make the step that copies a tensor to an output: one an input, a weight or another output."""
        value = self.network.values[name]
        return Step([self.address(name, {}), Address(OUTPUTS, index)], [Call("model_copy", value.bytes)])

    def _packed(self, kernel: Kernel, schedule: Schedule) -> Mapping[str, bytes]:
        """Run the part of a kernel that goes ahead of all calls; return what it fills."""
        if not schedule.packs.ahead_entries:
            return {}
        constants = {
            local: self._array(kernel, local)
            for local in kernel.operands
            if local in kernel.program.constants
        }
        made = LoopsKernel(kernel.program, schedule.tree, schedule.packs)
        lanes, owned = made.thread_arguments(constants)
        LaunchRecord(schedule.packs.ahead_entries, lanes).run(1)
        ahead = [buffer.name for buffer in schedule.tree.buffers if buffer.kind == "ahead"]
        return {name: memory.tobytes() for name, memory in zip(ahead, owned, strict=False)}

    def _array(self, kernel: Kernel, local: str) -> Array:
        tensor, wanted = kernel.operands[local], kernel.program.type[local]
        array = kernel.constants.get(tensor, self.network.constants.get(tensor))
        assert array is not None
        return np.ascontiguousarray(array, numpy_type(wanted.dtype)).reshape(wanted.shape)


# Files


def write_library(built: Built, folder: Path) -> None:
    """Link a library; write `model.so`, its header and its manifest to a folder."""
    parts = link(
        built.sections, built.weights, built.architecture, "model.so", built.exported, stays=built.has_threads
    )
    with (folder / "model.so").open("wb") as file:
        file.writelines(parts)
    (folder / "model.h").write_text(built.header)
    write_manifest(built.manifest, folder)


def write_manifest(manifest: Mapping[str, Any], folder: Path) -> None:
    """Write what a library is beside it."""
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


WRITTEN = ("model.so", "model.h", "manifest.json")
"""The files of a compiled network."""


def check_folder(output: Path) -> None:
    """Raise PlanishError where a folder cannot be made or written, before time is spent on its files."""
    found = next(each for each in (output, *output.absolute().parents) if each.exists())
    if not (found.is_dir() and os.access(found, os.W_OK | os.X_OK)):
        what = f"cannot write to '{output}': '{found}' is {'not writable' if found.is_dir() else 'no folder'}"
        raise PlanishError(what, "Choose another folder: -o FOLDER.")


def write_files(built: Built, made: Path, output: Path) -> list[Path]:
    """Write a library that was made in one folder to another.

    Raises:
        PlanishError: the folder cannot be written.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        write_manifest(built.manifest, made)
        with tempfile.TemporaryDirectory(dir=output, prefix=".planish-") as folder:
            for name in WRITTEN:
                copy_regular(made / name, Path(folder) / name)
            for name in WRITTEN:
                (Path(folder) / name).replace(output / name)
    except OSError as error:
        hint = "Choose another folder: -o FOLDER."
        raise PlanishError(f"cannot write to '{output}': {error.strerror}", hint) from error
    return [output / name for name in WRITTEN]
