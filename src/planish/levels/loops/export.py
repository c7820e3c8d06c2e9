"""Export of a kernel: assembly, a C header and the schedule, to be used without planish.

The header has a function on plain pointers around the machine functions. Names of tensors and kernels give
way to the keywords of C and C++, to macros, and to the names of <stdint.h>.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from planish.core import Candidate, PlanishError, ProgramError, Task, content_hash
from planish.levels.loops.backends import available_backends
from planish.levels.loops.build import backend_of, compile_with, library_of, tree_of
from planish.levels.loops.codegen.kernel import ALIGNMENT, Entry, MachineCode
from planish.levels.loops.ir.tree import LoopTree, Node, leaves
from planish.levels.loops.lang.program import DTYPES, Program
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.verifying import refuse_wrong

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
_OF_FUNCTION = re.compile(r"(?:args|prepared|workspace)_*")


def can_name_function(name: str) -> bool:
    """Return whether a C and a C++ compiler take a name for a function beside <stdint.h>."""
    letters = name.isascii() and name.isidentifier()
    return letters and not _TAKEN.fullmatch(name) and not _OF_IMPLEMENTATION.fullmatch(name)


def parameter_name(tensor: str, kernel: str) -> str:
    """Return what a tensor is called in the function of a kernel; other tensors have other names.

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

    It declares `NAME(inputs, outputs)`, with `prepared` behind them where inputs are packed ahead, and
    `workspace` where the kernel needs one. Parallel loops run in the calling thread; the machine
    functions are declared too, for programs that have threads of their own.

    Args:
        kernel: what is exported.
        title: lines for the comment at the top.
    """
    guard = f"{kernel.name.upper()}_H"
    run, prepare = _symbols(kernel)
    note = "Packs what does not change; call it once, and again when one of its inputs has changed."
    parts = [
        _comment(*title.splitlines(), "", *_tensors(kernel.program)),
        f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        *_sizes(kernel),
        _entries([*run, *prepare]),
        *([_function(kernel, "_prepare", kernel.tree.ahead, prepare, note)] if prepare else []),
        _function(kernel, "", kernel.tree.body, run, "Computes the outputs from the inputs."),
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


def _prepared(tree: LoopTree) -> tuple[dict[str, int], int]:
    """Place the ahead buffers in one block: name to byte offset, and the block's size."""
    ahead = [b for b in tree.buffers if b.kind == "ahead"]
    # Rounded up, so that each buffer in the block begins as aligned as the block does.
    sizes = [-(-b.size * DTYPES[b.dtype] // ALIGNMENT) * ALIGNMENT for b in ahead]
    starts = [0, *accumulate(sizes)]
    return {b.name: start for b, start in zip(ahead, starts, strict=False)}, starts[-1]


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
    parameters += [f"{'' if suffix else 'const '}void *prepared"] * bool(size)
    work = layout.shared_bytes + layout.private_bytes
    parameters += ["void *workspace"] * bool(work)
    args += ["workspace", f"(char *)workspace + {layout.shared_bytes}"] if work else ["0", "0"]
    calls = [f"    {symbol}(args, 0, {entry.iterations});" for symbol, entry in entries]
    signature = f"static inline void {kernel.name}{suffix}({', '.join(parameters)})"
    listed = ",\n".join(f"        {a}" for a in args)
    body = "\n".join([f"    void *args[] = {{\n{listed}\n    }};", *calls])
    return f"{_comment(note)}\n{signature}\n{{\n{body}\n}}\n"


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
    """
    library = library_of(candidate)
    if library:
        raise ProgramError(
            f"this result is computed by {library}: there is no kernel to export", "Export a schedule."
        )
    program = task.program
    name = name or f"kernel_{content_hash(program.text + candidate.text)[:8]}"
    if not can_name_function(name):
        hint = "Use letters, digits and underscores, and no word of C, C++ or <stdint.h>."
        raise ProgramError(f"'{name}' cannot name a C function", hint)
    tree = tree_of(program, candidate)
    backend = backend_of(candidate) or task.target.toolchain["backend"]
    code = compile_with(backend, tree)
    if backend in available_backends():  # else it is for another machine
        refuse_wrong(Kernel(program, tree, code, task.target.cores))
    record = {
        "name": name,
        "level": task.level,
        "level_version": task.level_version,
        "program": program.text,
        "target": json.loads(task.target.text),
        "steps": [step.to_json() for step in candidate.steps],
    }
    title = f"{program.text}\nMade by planish for {task.target.processor}."
    texts = {
        "s": code.assembly(name),
        "h": header(Exported(name, program, tree, code), title),
        "json": json.dumps(record, indent=2) + "\n",
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        for suffix, text in texts.items():
            (path / f"{name}.{suffix}").write_text(text)
    except OSError as error:
        raise PlanishError(f"cannot write to '{path}': {error.strerror}", "Choose another folder.") from error
    return [path / f"{name}.{suffix}" for suffix in texts]
