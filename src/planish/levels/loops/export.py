"""Exports of a candidate: a kernel's files, and a Python function.

The files are assembly, a C header and the schedule, to be used without planish. The header has a function on
plain pointers around the machine functions. Names of tensors and kernels give way to the keywords of C and
C++, to macros, and to the names of <stdint.h>.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, PlanishError, ProgramError, Target, Task, content_hash
from planish.core.hashing import versioned
from planish.levels.loops.backends import (
    available_backends,
    backend_of,
    code_of,
    compile_with,
    executable_of,
    library_of,
    preferred_backend,
    tree_of,
)
from planish.levels.loops.codegen.kernel import ALIGNMENT, Entry, MachineCode
from planish.levels.loops.evaluator import refuse_wrong
from planish.levels.loops.ir.tree import LoopTree, Node, leaves
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import DTYPES, Program
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.runtime.dispatch import ArraySpec, CompiledKernel, check_operands, results_of
from planish.levels.loops.runtime.kernels import Arrays, Kernel

# Names in C

_WORDS = """
    NULL alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t
    class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
    contract_assert decltype default delete do double dynamic_cast else enum explicit export extern false
    float for friend goto i386 if inline int linux long main mutable namespace new noexcept not not_eq nullptr
    offsetof operator or or_eq pascal private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename typeof typeof_unqual union unix unsigned using virtual void volatile
    wchar_t while xor xor_eq max_align_t nullptr_t ptrdiff_t size_t ssize_t errno
"""
_OF_HEADERS = (
    r"u?int(?:_least|_fast)?\d+_t|u?int(?:ptr|max)_t|U?INT(?:_LEAST|_FAST)?\d+_(?:MAX|MIN|WIDTH|C)"
    r"|U?INT(?:PTR|MAX)_(?:MAX|MIN|WIDTH|C)|(?:PTRDIFF|SIG_ATOMIC|SIZE|WCHAR|WINT)_(?:MAX|MIN|WIDTH)"
)
_TAKEN = re.compile(rf"(?:{'|'.join(_WORDS.split())}|{_OF_HEADERS})_*")
# Of these every implementation may have macros.
_OF_IMPLEMENTATION = re.compile(r"t*_[A-Z_]\w*")
_OF_FUNCTION = re.compile(r"(?:args|prepared|workspace|threads?|wait|barrier)_*")


def can_name_function(name: str) -> bool:
    """Return whether a C and a C++ compiler take a name for a function beside <stdint.h>."""
    letters = name.isascii() and name.isidentifier()
    return letters and not _TAKEN.fullmatch(name) and not _OF_IMPLEMENTATION.fullmatch(name)


def parameter_name(tensor: str, kernel: str) -> str:
    """Return the name of a tensor in the function of a kernel; other tensors have other names.

    Args:
        tensor: its name in the program.
        kernel: the function's name, and the prefix of all other symbols and macros of the header.
    """
    if _OF_IMPLEMENTATION.fullmatch(tensor):
        return f"t{tensor}"
    own = tensor.startswith((f"{kernel}_", f"{kernel.upper()}_"))
    return f"{tensor}_" if own or _TAKEN.fullmatch(tensor) or _OF_FUNCTION.fullmatch(tensor) else tensor


# Header

_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    "int32": "int32_t",
    "int8": "int8_t",
    "qint8": "int8_t",
    "uint8x4": "uint32_t",
    "int8x4": "int32_t",
    "bfloat16x2": "uint32_t",
    "int64": "int64_t",
}
"""C has no name for the narrow ones that all compilers know, so there it is their bits."""


@dataclass(frozen=True)
class Exported:
    """A kernel on its way out.

    Args:
        name: of the C function, and the prefix of all other symbols.
        program: what it computes.
        tree: what was compiled.
        code: what that gave.
    """

    name: str
    program: Program
    tree: LoopTree
    code: MachineCode


def header(kernel: Exported, title: str) -> str:
    """Write the header.

    It declares `NAME(inputs, outputs)`, with `prepared` after them where inputs are packed ahead, and
    `workspace` where the kernel needs one. Parallel loops run in the calling thread; `NAME_thread`
    runs them in the threads of the program.

    Args:
        kernel: what is exported.
        title: lines for the comment at the top.
    """
    guard = f"{kernel.name.upper()}_H"
    run, prepare = _symbols(kernel)
    note = "Packs what does not change; call it once, and again when one of its inputs has changed."
    parts = [
        _comment(*title.splitlines(), "", *_tensors(kernel.program), "", *_usage(kernel)),
        f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        *_sizes(kernel),
        _entries([*run, *prepare]),
        *([_function(kernel, "_prepare", kernel.tree.ahead, prepare, note)] if prepare else []),
        _function(kernel, "", kernel.tree.body, run, "Computes the outputs from the inputs."),
        *([_thread_function(kernel, run)] if _has_threads(kernel) else []),
        "#ifdef __cplusplus\n}\n#endif\n",
        f"#endif /* {guard} */\n",
    ]
    return "\n".join(parts)


def _comment(*lines: str) -> str:
    # A title is the user's text, which must not end the comment.
    safe = [line.replace("*/", "* /").replace("/*", "/ *") for line in lines]
    return "/*\n" + "".join(f" * {line}".rstrip() + "\n" for line in safe) + " */"


def _tensors(program: Program) -> list[str]:
    lines: list[str] = []
    for name in (*program.inputs, *program.outputs):
        kind = program.type[name]
        c_type = _C_TYPES[kind.dtype]
        bits = f", the bits of {kind.dtype}, " if c_type == "uint16_t" else ""
        shape = "".join(f"[{n}]" for n in kind.shape)
        lines.append(f"{name}: {c_type}{bits}{shape}{' (output)' if name in program.outputs else ''}")
    return lines


def _usage(kernel: Exported) -> list[str]:
    """Show how the functions are called, and what is to be known of threads."""
    upper, layout = kernel.name.upper(), kernel.code.layout
    work = ["workspace"] * bool(layout.shared_bytes + layout.private_bytes)
    ahead = ["prepared"] * bool(kernel.code.ahead_entries)
    aligned = f"    static _Alignas({ALIGNMENT}) char"
    lines = ["Usage:", *(f"{aligned} {name}[{upper}_{name.upper()}_BYTES];" for name in (*ahead, *work))]
    if ahead:
        names = _parameters(kernel, kernel.tree.ahead)
        lines.append(f"    {kernel.name}_prepare({', '.join([*names, *ahead, *work])});  once")
    names = _parameters(kernel, kernel.tree.body)
    lines.append(f"    {kernel.name}({', '.join([*names, *ahead, *work])});")
    if work:
        lines.append("Calls that run at the same time need one workspace each.")
    if _has_threads(kernel):
        size = f", and a workspace of {upper}_WORKSPACE_BYTES_FOR(threads)" if work else ""
        lines.append(
            f"{kernel.name} runs in the calling thread. To run it in several, call {kernel.name}_thread in"
        )
        lines.append(f"each of them, with the same arguments{size}.")
    return lines


def _has_threads(kernel: Exported) -> bool:
    return any(entry.parallel for entry in kernel.code.entries)


def _parameters(kernel: Exported, nodes: tuple[Node, ...]) -> list[str]:
    """Name the tensors that the function of some nodes takes."""
    touched = {ref.buffer for leaf in leaves(nodes) for ref in leaf.refs}
    own = [b.name for b in kernel.tree.buffers if b.kind not in ("temporary", "ahead")]
    return [parameter_name(name, kernel.name) for name in own if name in touched]


def _prepared(tree: LoopTree) -> tuple[dict[str, int], int]:
    """Place the ahead buffers in one block: name to byte offset, and the block's size."""
    ahead = [b for b in tree.buffers if b.kind == "ahead"]
    # Rounded up, so that each buffer in the block begins as aligned as the block does.
    sizes = [_aligned_bytes(b.size * DTYPES[b.dtype]) for b in ahead]
    starts = [0, *accumulate(sizes)]
    return {b.name: start for b, start in zip(ahead, starts, strict=False)}, starts[-1]


def _aligned_bytes(size: int) -> int:
    """Round a size up, so that what follows is aligned as well."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _sizes(kernel: Exported) -> list[str]:
    layout = kernel.code.layout
    upper, total = kernel.name.upper(), layout.shared_bytes + layout.private_bytes
    parts: list[str] = []
    if total:
        parts += [
            _comment(
                f"Bytes of scratch memory that {kernel.name} needs, at a multiple of {ALIGNMENT}. The first",
                f"{upper}_SHARED_BYTES of it are shared by all threads, the rest belongs to one.",
            ),
            f"#define {upper}_WORKSPACE_BYTES {total}\n#define {upper}_SHARED_BYTES {layout.shared_bytes}\n",
        ]
    if total and _has_threads(kernel):
        each = _aligned_bytes(layout.private_bytes)
        parts.append(
            f"#define {upper}_WORKSPACE_BYTES_FOR(threads) ({layout.shared_bytes} + (threads) * {each})\n"
        )
    if kernel.code.ahead_entries:
        parts += [
            _comment(f"Bytes that {kernel.name}_prepare fills, at a multiple of {ALIGNMENT}."),
            f"#define {upper}_PREPARED_BYTES {_prepared(kernel.tree)[1]}\n",
        ]
    return parts


def _entries(symbols: list[tuple[str, Entry]]) -> str:
    """Declare the machine functions."""
    note = _comment(
        "The machine functions. args: the addresses of inputs, outputs and prepared buffers, of the shared",
        "workspace, and of the thread's own. Of parallel ones, parts [begin, end) may run at the same time.",
    )
    lines = [note]
    for symbol, entry in symbols:
        about = f" /* parallel: [0, {entry.iterations}) */" if entry.parallel else ""
        lines.append(f"void {symbol}(void **args, int64_t begin, int64_t end);{about}")
    return "\n".join(lines) + "\n"


def _symbols(kernel: Exported) -> tuple[list[tuple[str, Entry]], list[tuple[str, Entry]]]:
    """Name the entries of the body, and those of the ahead part."""
    run = [(f"{kernel.name}_run{i}", e) for i, e in enumerate(kernel.code.entries)]
    return run, [(f"{kernel.name}_prepare{i}", e) for i, e in enumerate(kernel.code.ahead_entries)]


def _function(
    kernel: Exported, suffix: str, nodes: tuple[Node, ...], entries: list[tuple[str, Entry]], note: str
) -> str:
    """Define a function on the tensors that nodes touch; the other words of args are null."""
    parameters, args = _arguments(kernel, nodes, ahead=bool(suffix))
    calls = [f"    {symbol}(args, 0, {entry.iterations});" for symbol, entry in entries]
    return _definition(f"{kernel.name}{suffix}", parameters, args, calls, _comment(note))


def _thread_function(kernel: Exported, entries: list[tuple[str, Entry]]) -> str:
    """Define what each of several threads calls: its share of parallel loops, and barriers between."""
    parameters, args = _arguments(kernel, kernel.tree.body, ahead=False)
    private = _aligned_bytes(kernel.code.layout.private_bytes)
    if args[-1] != "0":
        args[-1] += f" + thread * {private}"
    parameters += ["int64_t thread", "int64_t threads", "void (*wait)(void *)", "void *barrier"]
    calls = list[str]()
    for symbol, entry in entries:
        calls += ["    wait(barrier);"] if calls else []
        if entry.parallel:
            first, last = (f"{entry.iterations} * {of} / threads" for of in ("thread", "(thread + 1)"))
            calls.append(f"    if ({first} < {last}) {symbol}(args, {first}, {last});")
        else:
            calls.append(f"    if (thread == 0) {symbol}(args, 0, {entry.iterations});")
    calls += ["    (void)wait;\n    (void)barrier;"] if len(entries) == 1 else []
    note = _comment(
        "The same by several threads: each calls it once, at the same time, with its number from 0 and",
        "their count. wait(barrier) returns when all of them have called it; it comes between the loops.",
    )
    return _definition(f"{kernel.name}_thread", parameters, args, calls, note)


def _arguments(kernel: Exported, nodes: tuple[Node, ...], *, ahead: bool) -> tuple[list[str], list[str]]:
    """List the parameters of a function on the tensors that nodes touch, and the words of its args."""
    touched = {ref.buffer for leaf in leaves(nodes) for ref in leaf.refs}
    layout, (prepared, size) = kernel.code.layout, _prepared(kernel.tree)
    parameters, args = list[str](), list[str]()
    for b in kernel.tree.buffers:
        if b.kind == "ahead":
            args.append(f"(char *)(uintptr_t)prepared + {prepared[b.name]}")
        elif b.kind != "temporary" and b.name not in touched:
            args.append("0")
        elif b.kind != "temporary":
            name, const = parameter_name(b.name, kernel.name), "const " if b.kind == "input" else ""
            parameters.append(f"{const}{_C_TYPES[b.dtype]} *{name}")
            args.append(f"(void *)(uintptr_t){name}")
    parameters += [f"{'' if ahead else 'const '}void *prepared"] * bool(size)
    work = layout.shared_bytes + layout.private_bytes
    parameters += ["void *workspace"] * bool(work)
    args += ["workspace", f"(char *)workspace + {layout.shared_bytes}"] if work else ["0", "0"]
    return parameters, args


def _definition(
    name: str, parameters: Sequence[str], args: Sequence[str], calls: Sequence[str], note: str
) -> str:
    listed = ",\n".join(f"        {a}" for a in args)
    body = "\n".join([f"    void *args[] = {{\n{listed}\n    }};", *calls])
    return f"{note}\nstatic inline void {name}({', '.join(parameters)})\n{{\n{body}\n}}\n"


# Files


def export_kernel(task: Task[Program], candidate: Candidate, path: Path, name: str = "") -> list[Path]:
    """Write NAME.s, NAME.h and NAME.json.

    Args:
        task: of a program of this level.
        candidate: a schedule.
        path: the folder; it is made if it is not there.
        name: of the C function and the files; by default `kernel_` and eight hexadecimal digits, which
            state the program and the schedule.

    Returns:
        The files.

    Raises:
        ProgramError: the candidate is a library's implementation, or the name is none for C.
        PlanishError: the kernel gives a wrong answer on this machine, or a file cannot be written.
        TargetError: the back end cannot make code of it for the task's target.
    """
    library = library_of(candidate)
    if library:
        raise ProgramError(
            f"this result is computed by {library}: there is no kernel to export", "Export a schedule."
        )
    program = task.program
    name = kernel_name(name, program, candidate)
    tree = tree_of(program, candidate)
    code = code_of(candidate, task.target, tree)
    if code.owner is None:  # for another processor: the schedule is verified in this one's code
        refuse_wrong(Kernel(program, tree, compile_with(preferred_backend(), tree)))
    elif (backend_of(candidate) or task.target.toolchain["backend"]) in available_backends():
        refuse_wrong(Kernel(program, tree, code, task.target.cores))
    title = f"{program.text}\nMade by planish for {task.target.processor}."
    texts = {
        "s": code.assembly(name),
        "h": header(Exported(name, program, tree, code), title),
        "json": json.dumps(kernel_record(name, task, candidate), indent=2) + "\n",
    }
    written = write_kernel(path, name, {suffix: text.encode() for suffix, text in texts.items()})
    if others := _other_kernels(path, name):
        warnings.warn(
            f"the folder {path} also has the kernel {', '.join(others)}: link the one you want", stacklevel=2
        )
    return written


def kernel_name(name: str, program: Program, candidate: Candidate) -> str:
    """Return the name of an exported kernel; by default one for the program and the schedule.

    Raises:
        ProgramError: it is none for C.
    """
    name = name or f"kernel_{content_hash(program.text + candidate.text)[:8]}"
    if not can_name_function(name):
        hint = "Use letters, digits and underscores, and no word of C, C++ or <stdint.h>."
        raise ProgramError(f"'{name}' cannot name a C function", hint)
    return name


def kernel_record(name: str, task: Task[Program], candidate: Candidate) -> dict[str, Any]:
    """Return the record of an exported kernel: its program, its target and its steps."""
    return versioned(
        {
            "name": name,
            "level": task.level,
            "level_version": task.level_version,
            "program": task.program.text,
            "target": json.loads(task.target.text),
            "steps": [step.to_json() for step in candidate.steps],
        }
    )


def write_kernel(folder: Path, name: str, contents: Mapping[str, bytes]) -> list[Path]:
    """Write the files of a kernel into a folder, which is made if it is missing; return their paths.

    Args:
        folder: where they are written.
        name: of the files, without the suffix.
        contents: by suffix.

    Raises:
        PlanishError: nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, content in contents.items():
            (folder / f"{name}.{suffix}").write_bytes(content)
    except OSError as error:
        raise PlanishError(
            f"cannot write to '{folder}': {error.strerror}", "Choose another folder."
        ) from error
    return [folder / f"{name}.{suffix}" for suffix in contents]


def _other_kernels(folder: Path, name: str) -> list[str]:
    """List the kernels that earlier exports left in a folder."""
    headers = (file for file in folder.glob("*.h") if file.stem != name)
    return sorted(file.stem for file in headers if all(file.with_suffix(s).exists() for s in (".s", ".json")))


# Functions


def function_of(program: Program, candidate: Candidate, target: Target) -> Callable[..., Any]:
    """Make what computes a program by a candidate, called with row-major arrays in the program's order.

    Raises:
        PlanishError: a kernel of it is wrong on inputs that the search did not see.
    """
    if library_of(candidate):
        return _AllocatingFunction(
            program, candidate, target, lambda arrays: numpy_callable(program, arrays)()
        )
    kernel = executable_of(program, candidate, target, tree_of(program, candidate))
    refuse_wrong(kernel)
    if isinstance(kernel, Kernel):
        return CompiledKernel(kernel)

    def run(arrays: Arrays) -> None:
        outputs = {name: arrays[name] for name in program.outputs}
        kernel.bind({name: arrays[name] for name in program.inputs}, outputs).repeat(1)

    return _AllocatingFunction(program, candidate, target, run)


class _AllocatingFunction:
    """Takes operands and returns new arrays, by what fills arrays; pickled, it is created again.

    Args:
        program: what is computed.
        candidate: by what.
        target: on which machine.
        run: computes the outputs among the arrays that it is given, by name.
    """

    def __init__(
        self, program: Program, candidate: Candidate, target: Target, run: Callable[[Arrays], object]
    ) -> None:
        types = program.type
        self._specs = [ArraySpec.row_major(types[name].shape, types[name].dtype) for name in program.inputs]
        self._made_of = program, candidate, target
        self._program, self._run = program, run

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return function_of, self._made_of

    def __call__(self, *operands: NDArray[Any]) -> Any:
        program, types = self._program, self._program.type
        check_operands(program.inputs, self._specs, operands)
        outputs = {
            name: np.empty(types[name].shape, numpy_type(types[name].dtype)) for name in program.outputs
        }
        self._run({**dict(zip(program.inputs, operands, strict=True)), **outputs})
        return results_of(list(outputs.values()))
