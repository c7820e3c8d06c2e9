"""Dispatch in a library: the functions that compute a network step by step, and the tables that they read.

The functions are `dispatch.ll`, which LLVM compiles; all that is of one network is in the tables.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.objects import (
    CODE,
    CONSTANTS,
    RELOCATED,
    Relocation,
    Section,
    Symbol,
    read_object,
)
from planish.levels.loops.lang.program import BFLOAT16X2, QUADS
from planish.levels.loops.runtime.kernels import (
    FIELDS,
    LANE,
    LANE_WORDS,
    MASK_WORDS,
    SLICE_NS,
    TEAM_WORDS,
    team_functions,
)
from planish.network.ir import Network
from planish.network.library.elf import Architecture, architecture_name
from planish.network.library.header import ReturnCode

# Steps

OWN, INPUTS, OUTPUTS = 0, 1, 2
"""Tables of addresses in a call: the library's own, and its arguments."""
NONE, WEIGHTS, WORKSPACE = 0, 1, 2
"""Indices in `OWN`."""


class Address(NamedTuple):
    """Address of a tensor in a call.

    Args:
        table: `OWN`, `INPUTS` or `OUTPUTS`.
        entry: index of an address there.
        offset: is added, in bytes.
    """

    table: int
    entry: int
    offset: int = 0


class KernelCall(NamedTuple):
    """KernelCall of a function.

    Args:
        symbol: of the function.
        iterations: of its loop.
        is_shared: whether the threads of the library share them.
    """

    symbol: str
    iterations: int
    is_shared: bool = False


class DispatchStep(NamedTuple):
    """DispatchStep of a call: some functions, all with the same arguments.

    Args:
        arguments: their addresses.
        calls: the functions.
        private_bytes: from the last argument of one thread to that of the next.
    """

    arguments: Sequence[Address]
    calls: Sequence[KernelCall]
    private_bytes: int = 0


# Functions

_OSXSAVE = 1 << 27
PACKED_FEATURES: Mapping[str, str] = {
    **dict.fromkeys(QUADS, "avx512vnni"),
    BFLOAT16X2: "avx512bf16",
}
"""Type of elements of several numbers to the feature that code for their products needs."""
BITS: Mapping[str, tuple[str, int]] = {
    "fma": ("LEAF1_ECX", 12),
    "movbe": ("LEAF1_ECX", 22),
    "f16c": ("LEAF1_ECX", 29),
    "bmi": ("LEAF7_EBX", 3),
    "avx2": ("LEAF7_EBX", 5),
    "bmi2": ("LEAF7_EBX", 8),
    "avx512f": ("LEAF7_EBX", 16),
    "avx512dq": ("LEAF7_EBX", 17),
    "avx512cd": ("LEAF7_EBX", 28),
    "avx512bw": ("LEAF7_EBX", 30),
    "avx512vl": ("LEAF7_EBX", 31),
    "avx512vbmi": ("LEAF7_ECX", 1),
    "avx512vbmi2": ("LEAF7_ECX", 6),
    "gfni": ("LEAF7_ECX", 8),
    "avx512vnni": ("LEAF7_ECX", 11),
    "avx512bitalg": ("LEAF7_ECX", 12),
    "avx512vpopcntdq": ("LEAF7_ECX", 14),
    PACKED_FEATURES[BFLOAT16X2]: ("LEAF7_1_EAX", 5),
}
"""Feature to the register of CPUID that has it, and the bit."""
_NO_CHECK = """
define internal i1 @has_instructions() nounwind {
  ret i1 true
}
"""
_NO_TEAM = """
define internal i1 @assemble() nounwind {
  ret i1 false
}

define internal void @disband() nounwind {
  ret void
}

define internal void @share(ptr %function, i64 %iterations, ptr %lane_args) nounwind {
  ret void
}
"""
SYSTEM_CALLS = {
    "x86_64": {
        "READ": 0, "WRITE": 1, "BRK": 12, "SIGMASK": 14, "YIELD": 24, "GETPID": 39, "GETTID": 186,
        "FUTEX": 202, "SETAFFINITY": 203, "GETAFFINITY": 204, "CLOCK": 228, "EXIT": 231, "GETCPU": 309,
        "SETATTR": 314, "GETATTR": 315,
    },
    "aarch64": {
        "READ": 63, "WRITE": 64, "BRK": 214, "SIGMASK": 135, "YIELD": 124, "GETPID": 172, "GETTID": 178,
        "FUTEX": 98, "SETAFFINITY": 122, "GETAFFINITY": 123, "CLOCK": 113, "EXIT": 94, "GETCPU": 168,
        "SETATTR": 274, "GETATTR": 275,
    },
}  # fmt: skip
"""Numbers of Linux's system calls."""
_SYSTEM_CALL = {
    # mov rax, rdi; rdi, rsi; rsi, rdx; rdx, rcx; r10, r8; r8, r9; syscall; ret
    "x86_64": bytes.fromhex("4889f8 4889f7 4889d6 4889ca 4d89c2 4d89c8 0f05 c3"),
    # mov x8, x0; x0, x1; x1, x2; x2, x3; x3, x4; x4, x5; svc 0; ret
    "aarch64": struct.pack(
        "<8I", 0xAA0003E8, *(0xAA0003E0 | (n + 1) << 16 | n for n in range(5)), 0xD4000001, 0xD65F03C0
    ),
}
"""Code of `model_syscall(number, ...)`, which LLVM could only write with a parser of assembly."""
_LOCK_WORD = LANE_WORDS - 1
"""The word of a lane that holds its lock."""
_FOLDER = Path(__file__).parent
_CPUID = bytes.fromhex("53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3")
"""push rbx; mov r8, rdx; mov eax, edi; mov ecx, esi; cpuid; eax, ebx, ecx, edx to [r8]; pop rbx; ret"""
_XGETBV = bytes.fromhex("31c9 0f01d0 c3")
"""xor ecx, ecx; xgetbv; ret"""


def functions(
    steps: Sequence[DispatchStep],
    features: Sequence[str],
    machine: jit.Machine,
    cores: int,
    *,
    needs_workspace: bool,
) -> Iterator[Section]:
    """Compile the functions that compute steps.

    Args:
        steps: all of them.
        features: of x86-64, which the processor must have.
        machine: the processor's architecture.
        cores: threads that share the iterations of steps.
        needs_workspace: whether a call without a workspace is refused.
    """
    text = (_FOLDER / "dispatch.ll").read_text()
    text += (_FOLDER / "cpuid.ll").read_text() if features else _NO_CHECK
    text += _team(machine.triple, cores) if cores > 1 else _NO_TEAM
    masks = {"LEAF1_ECX": _OSXSAVE, "LEAF7_EBX": 0, "LEAF7_ECX": 0, "LEAF7_1_EAX": 0}
    for feature in features:
        register, bit = BITS[feature]
        masks[register] |= 1 << bit
    wide = any(feature.startswith("avx512") for feature in features)
    values: dict[str, object] = {name: _signed(mask) for name, mask in masks.items()}
    values |= {"XCR0": 0xE6 if wide else 0x6, "STEPS": len(steps)}
    values |= {"LANES": cores, "ARGUMENTS": max([len(step.arguments) for step in steps], default=1)}
    values |= {"NEEDS_WORKSPACE": "true" if needs_workspace else "false"}
    values |= {code.name: code.value for code in ReturnCode}
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    yield from read_object(jit.object_code(text, machine), "dispatch")
    if features:
        yield Section(CODE, _CPUID, [Symbol("model_cpuid", 0, len(_CPUID))])
        yield Section(CODE, _XGETBV, [Symbol("model_xgetbv", 0, len(_XGETBV))])
    if cores > 1:
        yield system_call(machine)


def system_call(machine: jit.Machine) -> Section:
    """Return the function `model_syscall(number, ...)`, which takes five arguments."""
    code = _SYSTEM_CALL[architecture_name(machine.triple)]
    return Section(CODE, code, [Symbol("model_syscall", 0, len(code))])


def _team(triple: str, cores: int) -> str:
    """Write the functions of the library's threads."""
    functions = {"YIELD": "@give_way", "ACQUIRE": "@acquire", "RELEASE": "@release", "CLOCK": "@read_clock"}
    functions |= {"GETCPU": "@processor", "GETAFFINITY": "@affinity", "SETAFFINITY": "@set_affinity"}
    text, numbers = (_FOLDER / "threads.ll").read_text(), SYSTEM_CALLS[architecture_name(triple)]
    values = {f"SYS_{name}": number for name, number in numbers.items()}
    values |= {"TEAM_SIZE": TEAM_WORDS + cores * LANE_WORDS, "BOUNDS": cores + 1, "LOCK_WORD": _LOCK_WORD}
    values |= {f"lane.{name}": LANE[name] for name in ("lock", "thread")}
    values |= {name: FIELDS[name] for name in ("lanes", "busy", "processor")}
    values |= {"MASK_WORDS": MASK_WORDS, "SLICE_NS": SLICE_NS}
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text + team_functions(triple, functions)


def _signed(mask: int) -> int:
    """Return 32 bits as LLVM writes them."""
    return mask - (1 << 32) if mask >> 31 else mask


def step_tables(steps: Sequence[DispatchStep], architecture: Architecture) -> Iterator[Section]:
    """Write the records of the steps, and the index of where each begins."""
    words, index, relocations = list[int](), list[int](), list[Relocation]()
    for step in steps:
        index.append(len(words))
        words += [len(step.arguments), len(step.calls), step.private_bytes]
        for address in step.arguments:
            words += address
        for call in step.calls:
            relocations.append(Relocation(8 * len(words), architecture.distance, call.symbol))
            words += [0, call.iterations, call.is_shared]
    for name, listed, moved in (("model_steps", words, relocations), ("model_index", index, ())):
        content = struct.pack(f"<{len(listed)}q", *listed) or bytes(8)
        yield Section(CONSTANTS, content, [Symbol(name, 0, len(content), is_function=False)], moved)


def port_tables(
    name: str, network: Network, tensors: Sequence[str], architecture: Architecture
) -> Iterator[Section]:
    """Write an array of `struct model_tensor`, and the strings that it points to."""
    content, strings, relocations = bytearray(), bytearray(), list[Relocation]()
    for tensor in tensors:
        value = network.types[tensor]
        for offset, text in ((0, tensor), (8, value.dtype)):
            relocations.append(
                Relocation(len(content) + offset, architecture.absolute, f"{name}.text", len(strings))
            )
            strings += text.encode() + b"\0"
        extents = value.shape + (0,) * (most_dimensions(network) - len(value.shape))
        width = value.bytes // value.size if value.size else 1
        shape_output = network.shape_outputs.get(tensor)
        receiver = -1 if shape_output is None else network.outputs.index(shape_output)
        facts = len(value.shape), width, receiver, 0
        content += struct.pack(f"<QQ4i{len(extents)}q", 0, 0, *facts, *extents)
    content = content or bytearray(8)
    symbols = [Symbol(name, 0, len(content), is_function=False)]
    yield Section(RELOCATED, bytes(content), symbols, relocations)
    yield Section(CONSTANTS, bytes(strings) or b"\0", [Symbol(f"{name}.text", 0, 0, is_function=False)])


def most_dimensions(network: Network) -> int:
    """Return the extent of the array `shape` in `struct model_tensor`."""
    return max([len(network.shape(name)) for name in (*network.inputs, *network.outputs)] + [1])
