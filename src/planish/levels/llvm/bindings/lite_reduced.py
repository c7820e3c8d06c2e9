"""Reduced bindings: what llvmlite's public interface offers of LLVM.

That is about 40 transformations and the default pipelines. To import this module imports llvmlite.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby
from typing import Any

import llvmlite.binding as llvm

from planish.core import PlanishError, TargetError
from planish.levels.llvm.bindings.protocol import IRError, Module, PassError, SharedContext
from planish.levels.llvm.bindings.reading import invalid, is_bitcode, processor, target_line, unreadable

_OPEN: set[Context] = set()


class Context(SharedContext):
    """A context; it is kept from Python's collector, which may end a context before the modules in it."""

    def __init__(self) -> None:
        super().__init__()
        self.ref = llvm.create_context()
        _OPEN.add(self)

    def free(self) -> None:
        _OPEN.remove(self)
        self.ref.close()


_FUNCTION = {
    "adce": "aggressive_dce",
    "aggressive-instcombine": "aggressive_instcombine",
    "break-crit-edges": "break_critical_edges",
    "dce": "dead_code_elimination",
    "dse": "dead_store_elimination",
    "instcombine<no-verify-fixpoint>": "instruction_combine",
    "instnamer": "instruction_namer",
    "jump-threading": "jump_threading",
    "lcssa": "lcssa",
    "loop-simplify": "loop_simplify",
    "loop-unroll": "loop_unroll",
    "loop-unroll<O2>": "loop_unroll",
    "lower-atomic": "lower_atomic",
    "lower-invoke": "lower_invoke",
    "lower-switch": "lower_switch",
    "memcpyopt": "mem_copy_opt",
    "mergereturn": "unify_function_exit_nodes",
    "newgvn": "new_gvn",
    "reassociate": "reassociate",
    "reg2mem": "register_to_memory",
    "sccp": "sccp",
    "simplifycfg": "simplify_cfg",
    "sink": "sinking",
    "sroa<preserve-cfg>": "sroa",
    "tailcallelim": "tail_call_elimination",
}
_LOOP = {
    "loop-deletion": "loop_deletion",
    "loop-reduce": "loop_strength_reduce",
    "loop-rotate": "loop_rotate",
    "loop-rotate<header-duplication>": "loop_rotate",
    "loop-unroll-and-jam": "loop_unroll_and_jam",
}
_PASSES = {
    "always-inline": "always_inliner",
    "constmerge": "constant_merge",
    "deadargelim": "dead_arg_elimination",
    "globaldce": "global_dead_code_eliminate",
    "globalopt": "global_opt",
    "internalize": "internalize",
    "ipsccp": "ipsccp",
    "loop-extract": "loop_extract",
    "mergefunc": "merge_functions",
    "partial-inliner": "partial_inliner",
    "rpo-function-attrs": "rpo_function_attrs",
    "strip": "strip_symbols",
    "strip-dead-debug-info": "strip_dead_debug_info",
    "strip-dead-prototypes": "strip_dead_prototype",
    "strip-debug-declare": "strip_debug_declare",
    "strip-nondebug": "strip_non_debug_symbols",
    "cgscc(argpromotion)": "argument_promotion",
    "cgscc(function-attrs)": "post_order_function_attributes",
    **{f"function({name})": method for name, method in _FUNCTION.items()},
    **{f"function(loop({name}))": method for name, method in _LOOP.items()},
}
# Os and Oz are O2 on functions that say optsize and minsize: so LLVM 23 has it, which drops their pipelines.
_LEVELS = {**{f"default<O{level}>": level for level in range(4)}, "default<Os>": 2, "default<Oz>": 2}

Element = int | str
"""A level of optimization, or the text between `add_` and `_pass` in llvmlite's method."""


def elements(pipeline: str) -> list[Element]:
    """Read a pipeline; raises PassError where llvmlite's public interface cannot express an element."""
    found: list[Element] = []
    for text in _flatten(pipeline):
        element = _LEVELS.get(text, _PASSES.get(text))
        if element is None:
            raise PassError(
                f"llvmlite's public interface cannot run '{text}'",
                "Install LLVM's shared library (Debian: apt-get install libllvm22), or llvmlite 0.50.",
            )
        found.append(element)
    return found


def _flatten(pipeline: str) -> list[str]:
    """Write a pipeline as elements of one pass each: `function(a,b)` becomes `function(a)` and `function(b)`.

    A function pass sees its own function only, so to run each over the whole module makes the same code. With
    passes that share a manager of loops or of cgscc it would not: they stay one element.
    """
    flat: list[str] = []
    for part in _split(pipeline):
        manager = re.fullmatch(r"(module|function)\((.*)\)", part)
        if manager is None:
            flat.append(part)
        elif manager[1] == "module":
            flat += _flatten(manager[2])
        else:
            flat += [f"function({item})" for item in _flatten(manager[2])]
    return flat


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        # Options have commas of their own, in angle brackets.
        depth += (character in "(<") - (character in ")>")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in (p.strip() for p in parts) if part]


# In a body, an instruction's first line is indented by two spaces; the other lines of a switch or an invoke,
# and debug records, by more. A switch ends in "  ]".
_INSTRUCTION = re.compile(r"^  [^ \]]", re.MULTILINE)
_UNCOUNTED = re.compile(
    r"^  (?:%\S+ = )?(?:tail |musttail |notail )?call [^\n@]*"
    r"@llvm\.(?:lifetime\.|dbg\.|assume\(|experimental\.noalias\.scope\.decl\()",
    re.MULTILINE,
)


def count(text: str) -> int:
    """Count the instructions that make code, in a module as LLVM prints it."""
    return len(_INSTRUCTION.findall(text)) - len(_UNCOUNTED.findall(text))


def run(module: Any, machine: Any, elements: list[Element]) -> None:
    """Run elements in their order on llvmlite's module, with its machine of the module's target."""
    for is_level, group in groupby(elements, key=lambda element: isinstance(element, int)):
        # Each level by itself, and passes in a row together.
        for batch in [[level] for level in group] if is_level else [list(group)]:
            _run_with(module, machine, batch)


def _run_with(module: Any, machine: Any, batch: list[Element]) -> None:
    """Run a level, or passes; a pass builder serves one run: a used one calls back what is gone."""
    level, *_ = batch
    is_level = isinstance(level, int)
    options = llvm.create_pipeline_tuning_options(speed_level=level if is_level else 2)
    builder = llvm.create_pass_builder(machine, options)
    manager = builder.getModulePassManager() if is_level else llvm.create_new_module_pass_manager()
    for name in [] if is_level else batch:
        getattr(manager, f"add_{name}_pass")()
    manager.run(module, builder)
    for made in (manager, builder, options):
        made.close()


class ReducedModule(Module):
    """A module of llvmlite; `machine` is llvmlite's, of the module's target."""

    def __init__(self, module: Any, machine: Any, context: SharedContext) -> None:
        super().__init__(module, context)
        self._machine = machine

    def clone(self) -> ReducedModule:
        return ReducedModule(self._handle.clone(), self._machine, self._context.share())

    def run(self, pipeline: str) -> None:
        run(self._handle, self._machine, elements(pipeline))

    def verify(self) -> str:
        try:
            self._handle.verify()
        except RuntimeError as error:
            return str(error).strip()
        return ""

    def instructions(self) -> int:
        return count(self.text())

    def object_code(self) -> bytes:
        # The code generator changes the module that it compiles.
        copy = self._handle.clone()
        try:
            return self._machine.emit_object(copy)
        except RuntimeError as error:
            raise IRError(f"LLVM makes no code of the module: {error}") from error
        finally:
            copy.close()

    def bitcode(self) -> bytes:
        return self._handle.as_bitcode()

    def text(self) -> str:
        return str(self._handle)

    def _dispose(self, handle: Any) -> None:
        handle.close()


_HEADLINE = "parsing error\n"
_READER = "<string>"
_SOURCE = re.compile(rb"^source_filename =", re.MULTILINE)
_ESCAPED = re.compile(rb"[^ !#-\[\]-~]")


class ReducedBindings:
    """Bindings that run only what `runs` says; see the protocol `Bindings`.

    Here LLVM prints what it warns of, and ends the process on an error of its code generator.
    """

    name = "llvmlite-reduced"
    full = False

    def __init__(self, lifetime: int | None) -> None:
        self.lifetime = lifetime
        self.version = ".".join(map(str, llvm.llvm_version_info))
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        llvm.initialize_native_asmparser()

    def runs(self, pipeline: str) -> bool:
        try:
            elements(pipeline)
        except PassError:
            return False
        return True

    def parse(self, ir: str | bytes, name: str = "module") -> ReducedModule:
        data = ir.encode("utf-8", "surrogateescape") if isinstance(ir, str) else ir
        lines = _source_line(data, name) + target_line(data, _target_text)
        context = Context()
        try:
            module = _read(lines + data, context.ref)
        except UnicodeEncodeError as error:
            context.release()
            what = f"{name} is not valid UTF-8, which llvmlite's public interface needs"
            raise IRError(what, "Install LLVM's shared library: apt-get install libllvm22.") from error
        except RuntimeError as error:
            context.release()
            said = str(error).partition(_HEADLINE)[2].replace(_READER, name, 1)
            raise unreadable(name, data, said, self.version, lines.count(b"\n")) from error
        try:
            parsed = ReducedModule(module, _aim(module), context)
            if violation := parsed.verify():
                raise invalid(name, data, violation, self.version)
        except PlanishError:
            module.close()
            context.release()
            raise
        return parsed


def _source_line(data: bytes, name: str) -> bytes:
    """Name a text that does not name its source, as LLVM's C API does: this reader would write <string>."""
    if is_bitcode(data) or _SOURCE.search(data):
        return b""
    plain = _ESCAPED.sub(lambda found: b"\\%02X" % found[0][0], name.encode("utf-8", "surrogateescape"))
    return b'source_filename = "%b"\n' % plain


def _read(data: bytes, context: Any) -> Any:
    if is_bitcode(data):
        return llvm.parse_bitcode(data, context)
    return llvm.parse_assembly(data.decode("utf-8", "surrogateescape"), context)


def _aim(module: Any) -> Any:
    triple = (module.triple or llvm.get_default_triple()).encode()
    machine = _machine(triple)
    module.triple = triple.decode()
    if not module.data_layout:
        module.data_layout = str(machine.target_data)
    return machine


def _target_text(triple: bytes) -> tuple[bytes, bytes]:
    triple = triple or llvm.get_default_triple().encode()
    return triple, str(_machine(triple).target_data).encode()


@cache
def _machine(triple: bytes) -> Any:
    try:
        target = llvm.Target.from_triple(triple.decode())
    except RuntimeError as error:
        raise TargetError(f"LLVM makes no code for {triple.decode()}: {error}") from error
    return target.create_target_machine(
        cpu=processor(triple).decode(), opt=2, reloc="pic", codemodel="default"
    )
