"""Shared library of a network: machine code of its kernels, a C file that calls them, and the weights.

The library's one entry is `model_run(inputs, outputs, workspace)`. It keeps no state: constant inputs are
packed while the library is made, and all else is in the workspace of the call.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from planish.core import Candidate, PlanishError, Target, TargetError
from planish.core.documents import versioned
from planish.core.files import copy_regular
from planish.levels.loops.build import backend_of, compile_with, tree_of
from planish.levels.loops.codegen.kernel import MachineCode
from planish.levels.loops.ir.tree import LoopTree, leaves
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import DTYPES, Program
from planish.levels.loops.runtime.kernels import Kernel as LoopsKernel
from planish.levels.loops.runtime.kernels import LaunchRecord
from planish.network.fusion import Kernel
from planish.network.model import Array, Network
from planish.network.plan import Arena, Lifetime, plan_arena, rounded
from planish.sandbox.tool import run_tool

MOST_BUILD_S = 300.0
"""Seconds that the C compiler may take."""
_FEATURES: Mapping[str, Sequence[str]] = {
    "x86-avx512": ("avx512f", "avx512vl", "avx512dq", "fma"),
    "x86-avx2": ("avx2", "fma"),
}
_C_TYPES = {"float32": "float", "int32": "int32_t", "int64": "int64_t"}
_SCRATCH = "scratch"


@dataclass(frozen=True)
class Schedule:
    """A kernel's schedule, compiled.

    Args:
        program: what it computes.
        candidate: the schedule.
        tree: lowered.
        code: what it gave.
    """

    program: Program
    candidate: Candidate
    tree: LoopTree
    code: MachineCode

    @property
    def scratch_bytes(self) -> int:
        """Return what a call needs of memory beside its operands."""
        return self.code.layout.shared_bytes + self.code.layout.private_bytes


def compile_schedule(program: Program, candidate: Candidate, target: Target) -> Schedule:
    """Compile a kernel's schedule."""
    tree = tree_of(program, candidate)
    code = compile_with(backend_of(candidate) or target.toolchain["backend"], tree)
    return Schedule(program, candidate, tree, code)


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
    def content(self) -> bytes:
        """Return the block."""
        return b"".join(self._parts)


@dataclass(frozen=True)
class Built:
    """Text and constants of a library.

    Args:
        c: of the C file.
        assembly: of the kernels.
        header: of the C header.
        manifest: what the library is, and its layers.
        weights: the constants.
        arena: the plan of the workspace.
    """

    c: str
    assembly: str
    header: str
    manifest: Mapping[str, Any]
    weights: bytes
    arena: Arena


def build(
    network: Network, kernels: Sequence[Kernel], schedules: Mapping[str, Schedule], target: Target
) -> Built:
    """Write the parts of a library.

    Args:
        network: what is computed.
        kernels: its kernels, in their order.
        schedules: by the text of a kernel's program.
        target: the machine that they are for.
    """
    names = {text: f"model_kernel{index}" for index, text in enumerate(schedules)}
    writer = _Writer(network, kernels, schedules, names)
    steps = [writer.step(index, kernel) for index, kernel in enumerate(kernels)]
    steps += [writer.copy(name, index) for name, index in writer.copies]
    assembly = "\n".join(schedules[text].code.assembly(name) for text, name in names.items())
    backends = {backend_of(s.candidate) or target.toolchain["backend"] for s in schedules.values()}
    manifest = versioned(
        {
            "network": network.name,
            "inputs": [_port(network, name) for name in network.inputs],
            "outputs": [_port(network, name) for name in network.outputs],
            "workspace_bytes": writer.arena.size,
            "least_workspace_bytes": writer.arena.least,
            "weights_bytes": writer.weights.size,
            "copies": len(writer.copies),
            "target": json.loads(target.text),
            "layers": [
                {
                    "operators": kernel.operators,
                    "nodes": [node.name for node in kernel.nodes],
                    "shape": list(network.shape(kernel.output)),
                    "kernel": names[kernel.program.text],
                    "program": kernel.program.text,
                    "flops": kernel.program.flops,
                    "steps": [step.to_json() for step in schedules[kernel.program.text].candidate.steps],
                }
                for kernel in kernels
            ],
        }
    )
    c = _c_file(network, steps, writer, sorted({f for b in backends for f in _FEATURES.get(b, ())}))
    return Built(c, assembly, _header(network, writer.arena), manifest, writer.weights.content, writer.arena)


def _port(network: Network, name: str) -> Mapping[str, Any]:
    value = network.values[name]
    return {"name": name, "dtype": value.dtype, "shape": list(value.shape)}


class _Writer:
    """Writes steps, by where each tensor is: an argument of the call, a weight, or in the workspace."""

    def __init__(
        self,
        network: Network,
        kernels: Sequence[Kernel],
        schedules: Mapping[str, Schedule],
        names: Mapping[str, str],
    ) -> None:
        self.network, self.schedules, self.names = network, schedules, names
        self.weights = Weights()
        written = {kernel.output for kernel in kernels}
        self.direct: dict[str, int] = {}
        self.copies: list[tuple[str, int]] = []
        for index, name in enumerate(network.outputs):
            root = network.root(name)
            if root in written and root not in self.direct:
                self.direct[root] = index
            else:
                self.copies.append((name, index))
        self.arena = plan_arena(list(self._lifetimes(kernels)))

    def _lifetimes(self, kernels: Sequence[Kernel]) -> Iterator[Lifetime]:
        last: dict[str, int] = {}
        for index, kernel in enumerate(kernels):
            last |= dict.fromkeys(map(self.network.root, kernel.operands.values()), index)
        for index, kernel in enumerate(kernels):
            if kernel.output not in self.direct:
                size = 4 * self.network.values[kernel.output].size
                yield Lifetime(kernel.output, size, index, last.get(kernel.output, index))
            if scratch := self.schedules[kernel.program.text].scratch_bytes:
                yield Lifetime(f"{_SCRATCH} {index}", scratch, index, index)

    def address(self, tensor: str, own: Mapping[str, Array]) -> str:
        """Write the address of a tensor."""
        root = self.network.root(tensor)
        if root in own or root in self.network.constants:
            array = own.get(root, self.network.constants.get(root))
            assert array is not None
            return f"(void *)(model_weights + {self.weights.add(np.ascontiguousarray(array).tobytes())})"
        if root in self.network.inputs:
            return f"(void *)(uintptr_t)call->inputs[{self.network.inputs.index(root)}]"
        if root in self.direct:
            return f"call->outputs[{self.direct[root]}]"
        return f"call->workspace + {self.arena.offsets[root]}"

    def step(self, index: int, kernel: Kernel) -> str:
        """Write the function of a kernel's call."""
        schedule, name = self.schedules[kernel.program.text], self.names[kernel.program.text]
        packed = self._packed(kernel, schedule)
        read = {ref.buffer for leaf in leaves(schedule.tree.body) for ref in leaf.refs}
        read |= set(schedule.tree.indices)
        words = list[str]()
        for buffer in schedule.tree.buffers:
            if buffer.kind == "ahead":
                words.append(f"(void *)(model_weights + {self.weights.add(packed[buffer.name])})")
            elif buffer.kind == "temporary":
                continue
            elif buffer.name in kernel.operands:
                needed = buffer.name in read
                words.append(self.address(kernel.operands[buffer.name], kernel.constants) if needed else "0")
            else:
                words.append(self.address(kernel.output, {}))
        scratch = self.arena.offsets.get(f"{_SCRATCH} {index}", 0)
        words.append(f"call->workspace + {scratch}")
        words.append(f"call->workspace + {scratch + schedule.code.layout.shared_bytes}")
        calls = "".join(
            f"    {name}_run{i}(args, 0, {entry.iterations});\n"
            for i, entry in enumerate(schedule.code.entries)
        )
        listed = ",\n        ".join(words)
        return f"{{\n    void *args[] = {{\n        {listed}\n    }};\n{calls}}}\n"

    def copy(self, name: str, index: int) -> str:
        """Write the step that copies a tensor to an output: one an input, a weight or another output."""
        value = self.network.values[name]
        size = value.size * DTYPES[value.dtype]
        return f"{{\n    memcpy(call->outputs[{index}], {self.address(name, {})}, {size});\n}}\n"

    def _packed(self, kernel: Kernel, schedule: Schedule) -> Mapping[str, bytes]:
        """Run the part of a kernel that goes ahead of all calls; return what it fills."""
        if not schedule.code.ahead_entries:
            return {}
        constants = {
            local: self._array(kernel, local)
            for local in kernel.operands
            if local in kernel.program.constants
        }
        made = LoopsKernel(kernel.program, schedule.tree, schedule.code)
        lanes, owned = made.thread_arguments(constants)
        LaunchRecord(schedule.code.ahead_entries, lanes).run(1)
        ahead = [buffer.name for buffer in schedule.tree.buffers if buffer.kind == "ahead"]
        return {name: memory.tobytes() for name, memory in zip(ahead, owned, strict=False)}

    def _array(self, kernel: Kernel, local: str) -> Array:
        tensor, wanted = kernel.operands[local], kernel.program.type[local]
        array = kernel.constants.get(tensor, self.network.constants.get(tensor))
        assert array is not None
        return np.ascontiguousarray(array, numpy_type(wanted.dtype)).reshape(wanted.shape)


_RUN = """
static int model_check(const void *const *inputs, void *const *outputs, void *workspace)
{{
{check}
    if (!inputs || !outputs || (!workspace && MODEL_WORKSPACE_BYTES))
        return MODEL_NO_MEMORY;
    return (uintptr_t)workspace % MODEL_ALIGNMENT ? MODEL_MISALIGNED : MODEL_OK;
}}

int model_run_layers(
    const void *const *inputs, void *const *outputs, void *workspace, int first, int behind)
{{
    const struct model_call call = {{inputs, outputs, workspace}};
    int code = model_check(inputs, outputs, workspace);
    for (int i = first; code == MODEL_OK && i < behind; i++)
        model_steps[i](&call);
    return code;
}}

int model_run(const void *const *inputs, void *const *outputs, void *workspace)
{{
    return model_run_layers(inputs, outputs, workspace, 0, MODEL_LAYERS);
}}
"""


def _c_file(network: Network, steps: Sequence[str], writer: _Writer, features: Sequence[str]) -> str:
    """Write the C file: a function for each step, and the entries that call them in turn."""
    hidden = '__attribute__((visibility("hidden")))'
    entries = [
        f"{hidden} void {name}_run{i}(void **args, int64_t begin, int64_t end);"
        for text, name in writer.names.items()
        for i in range(len(writer.schedules[text].code.entries))
    ]
    supported = " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in features)
    check = f"    if (!({supported}))\n        return MODEL_NO_INSTRUCTIONS;" if features else ""
    listed = ", ".join(f"step{i}" for i in range(len(steps)))
    parts = [
        '#include "model.h"\n\n#include <string.h>\n',
        f"{hidden} extern const char model_weights[];",
        "struct model_call { const void *const *inputs; void *const *outputs; char *workspace; };",
        *entries,
        _ports("model_inputs", network, network.inputs),
        _ports("model_outputs", network, network.outputs),
        *(f"static void step{i}(const struct model_call *call)\n{step}" for i, step in enumerate(steps)),
        f"#define MODEL_LAYERS {len(steps)}",
        f"static void (*const model_steps[])(const struct model_call *) = {{{listed}}};",
        _RUN.format(check=check),
    ]
    return "\n".join(parts)


def _ports(name: str, network: Network, tensors: Sequence[str]) -> str:
    rows = [
        f"    {{{json.dumps(tensor)}, {json.dumps(value.dtype)}, {len(value.shape)}, "
        f"{{{', '.join(map(str, value.shape)) or '0'}}}}}"
        for tensor in tensors
        for value in (network.values[tensor],)
    ]
    return f"const struct model_tensor {name}[] = {{\n" + ",\n".join(rows) + "\n};\n"


def _header(network: Network, arena: Arena) -> str:
    rank = max([len(network.shape(name)) for name in (*network.inputs, *network.outputs)] + [1])
    lines = [
        f"{kind} {index}: {_C_TYPES[network.values[name].dtype]} {list(network.shape(name))}"
        for kind, names in (("inputs", network.inputs), ("outputs", network.outputs))
        for index, name in enumerate(names)
    ]
    about = "".join(f" * {line}\n" for line in lines)
    return f"""/*
 * A network, compiled by planish. Tensors are row-major:
{about} */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Bytes of scratch memory for each call that runs at the same time, at a multiple of MODEL_ALIGNMENT. */
#define MODEL_WORKSPACE_BYTES {arena.size}
#define MODEL_ALIGNMENT 64
#define MODEL_INPUTS {len(network.inputs)}
#define MODEL_OUTPUTS {len(network.outputs)}

/* What the functions return. */
enum {{ MODEL_OK = 0, MODEL_NO_INSTRUCTIONS = 1, MODEL_NO_MEMORY = 2, MODEL_MISALIGNED = 3 }};

struct model_tensor {{
    const char *name, *type;
    int rank;
    int64_t shape[{rank}];
}};
extern const struct model_tensor model_inputs[], model_outputs[];

/* Computes the outputs. Several threads may call it at once, each with outputs and a workspace of its own. */
int model_run(const void *const *inputs, void *const *outputs, void *workspace);

/* Computes some layers alone, from first to before behind, to time them. */
int model_run_layers(
    const void *const *inputs, void *const *outputs, void *workspace, int first, int behind);

#ifdef __cplusplus
}}
#endif

#endif /* MODEL_H */
"""


_WEIGHTS = """
    .section .rodata
    .p2align 6
    .globl model_weights
    .hidden model_weights
model_weights:
    .incbin "weights.bin"
    .byte 0
    .section .note.GNU-stack,"",@progbits
"""


def link(built: Built, folder: Path) -> None:
    """Make the library by the C compiler: `model.so` beside the sources of it.

    Raises:
        TargetError: there is no C compiler, or it fails.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        what = "there is no C compiler to make the library with"
        raise TargetError(what, "Install gcc or clang: apt-get install gcc.")
    texts = {"model.c": built.c, "model.h": built.header, "kernels.s": built.assembly, "weights.s": _WEIGHTS}
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "weights.bin").write_bytes(built.weights)
    command = [compiler, "-O2", "-shared", "-fPIC", "-fvisibility=default", "-o", "model.so"]
    command += ["model.c", "kernels.s", "weights.s", "-Wl,-soname,model.so"]
    try:
        ran = run_tool([*command, "-Wl,-z,noexecstack"], seconds=MOST_BUILD_S, folder=folder)
    except (OSError, TimeoutError) as error:
        raise TargetError(f"the C compiler fails: {error}") from error
    if ran.code:
        line = next((line for line in ran.message.splitlines() if "error" in line.lower()), ran.message)
        raise TargetError(f"the C compiler fails: {line.strip()[:300]}", "Use gcc or clang of this system.")


WRITTEN = ("model.so", "model.h", "manifest.json")
"""The files of a compiled network."""


def write_files(built: Built, made: Path, output: Path) -> list[Path]:
    """Write a library that was made in one folder to another.

    Raises:
        PlanishError: the folder cannot be written.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        (made / "manifest.json").write_text(json.dumps(built.manifest, indent=2) + "\n")
        with tempfile.TemporaryDirectory(dir=output, prefix=".planish-") as folder:
            for name in WRITTEN:
                copy_regular(made / name, Path(folder) / name)
            for name in WRITTEN:
                (Path(folder) / name).replace(output / name)
    except OSError as error:
        hint = "Choose another folder: -o FOLDER."
        raise PlanishError(f"cannot write to '{output}': {error.strerror}", hint) from error
    return [output / name for name in WRITTEN]
