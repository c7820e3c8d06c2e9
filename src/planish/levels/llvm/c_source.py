"""C source as a candidate: functions of a program, written anew, and the rules that they keep.

The source may come from a client that is not trusted, so it is compiled in the sandbox, and measured only
where the program is run: every run's answer is compared. The rules leave it nothing to do but to compute. It
calls functions of the program, and those of C's library that compute; it keeps nothing between two calls; it
reads no file; and its symbols replace those of the program alone, so that no function of the library or of
the harness becomes another one.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property

from planish.core import Candidate, ProgramError, Step
from planish.core.hashing import content_hash
from planish.levels.llvm.bindings.elf import linked_symbols, sections
from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.clang import FAST, Compiler
from planish.levels.llvm.ir.attributes import for_processor, for_size, without_optnone
from planish.levels.llvm.ir.functions import declaration, taken
from planish.levels.llvm.ir.syntax import ModuleStatement, statements
from planish.levels.llvm.passes.pipeline import Pass, print_pipeline
from planish.levels.llvm.source import AIM, compiler_of

FORMAT = (
    "C that defines functions of the program, instead of theirs. It may call functions of the program, "
    "malloc, and those of <string.h>, <stdlib.h> and <math.h> that only compute. It has no variables outside "
    "of functions, no static ones, no assembly, and no #include but those of C's own headers."
)
"""Description of the language for clients."""

SOURCE_BYTES = 64 << 10
_COMPILE_S = 20.0
_HEADERS = "arm_neon float immintrin inttypes limits math stdalign stdbool stddef stdint stdlib string"
_INCLUDE = re.compile(
    rf"^[ \t]*#[ \t]*include[ \t]*<(?:{'|'.join(_HEADERS.split())})\.h>[ \t]*$", re.MULTILINE
)
_PRAGMA = re.compile(
    r"^[ \t]*#[ \t]*pragma[ \t]+(?:clang[ \t]+(?:loop|fp)|GCC[ \t]+(?:ivdep|unroll)|unroll|nounroll)\b"
    r"[\w \t(),]*$",
    re.MULTILINE,
)
_SPLICE = re.compile(r"\\[ \t\v\f]*(?:\r\n|\n|\r)")
# What reads files, or passes text on to the assembler. It is refused in comments, too: to find them would
# need the lexer of the compiler.
_REFUSED = re.compile(
    r"\b(?:include|include_next|__include_macros|import|embed|pragma|_Pragma|__pragma|__has_include"
    r"|__has_include_next|__has_embed|asm|__asm|__asm__|incbin)\b"
)
_QUOTED = re.compile(r'"[^"]*"')
_INTERNAL = re.compile(r"define (?:\w+ )*?(?:private|internal|available_externally) ")

_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs "
    "fdim floor fma fmax fmin fmod frexp hypot ldexp lgamma llrint llround log log10 log1p log2 logb lrint "
    "lround modf nearbyint nextafter pow remainder rint round scalbn sin sincos sinh sqrt tan tanh tgamma "
    "trunc"
)
_LIBRARY = (
    "abs labs llabs bsearch qsort malloc calloc realloc free aligned_alloc memchr memcmp memcpy memmove "
    "memset bcmp strchr strcmp strcspn strlen strncmp strrchr strspn strstr _GLOBAL_OFFSET_TABLE_"
)
COMPUTING = {*_LIBRARY.split(), *(f"{name}{kind}" for name in _MATH.split() for kind in ("", "f", "l"))}
"""Functions of C's library that a source may call, which compute and do nothing else."""
# Functions of compiler-rt: arithmetic that a processor lacks.
_ARITHMETIC = re.compile(r"__[a-z]+(?:[qhsdtx][if]){1,2}\d?")
_SECTIONS = re.compile(r"\.(?:text|rodata|data\.rel\.ro|eh_frame)(?:\..*)?|\.rela?\..*|\.note\..*|\.comment")
_LOADED = 2


@dataclass(frozen=True)
class CSource(Step):
    """Replace functions of the program by others, written in C.

    Args:
        text: the source.
    """

    text: str

    def __str__(self) -> str:
        lines = self.text.count("\n") + 1
        return f"C source {content_hash(self.text)[:8]}, {lines} line{'s' * (lines != 1)}"


def is_source(candidate: Candidate) -> bool:
    """Return whether a candidate has a source in C."""
    return any(isinstance(step, CSource) for step in candidate.steps)


def source_of(candidate: Candidate) -> tuple[str, tuple[str, ...]]:
    """Return the source of a candidate, and the passes that follow it.

    Raises:
        ProgramError: it has two sources, or other steps.
    """
    first, *others = candidate.steps
    if not isinstance(first, CSource) or not all(isinstance(each, Pass) for each in others):
        raise ProgramError("a candidate in C is one source, first, and the passes that are run on it")
    return first.text, tuple(each.name for each in others if isinstance(each, Pass))


@dataclass(frozen=True)
class SourceBuild:
    """Objects of a candidate in C.

    Args:
        codes: of the submitted functions, and of the rest of the program.
        instructions: of both.
    """

    codes: tuple[bytes, bytes]
    instructions: int


class SourceBuilder:
    """Compiles candidates in C for one program.

    Args:
        ir: the module, prepared for the objective.
        bindings: transform and compile.
        timed: whether the time leads, and not the size.
        passes: that are run where a candidate names none: those of the baseline.
    """

    def __init__(self, ir: str, bindings: Bindings, *, timed: bool, passes: Sequence[str]) -> None:
        self._ir, self._bindings, self._timed, self._passes = ir, bindings, timed, tuple(passes)

    @cached_property
    def _compiler(self) -> Compiler:
        found = compiler_of(self._bindings)
        # What is confined cannot write to the caches that a compiler has elsewhere.
        caches = dict.fromkeys(("ZIG_LOCAL_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR"), tempfile.gettempdir())
        return replace(found, environment={**found.environment, **caches})

    @cached_property
    def _functions(self) -> dict[str, ModuleStatement]:
        """The functions that a source may replace, by name."""
        tables = taken(self._ir)
        return {
            each.name.removeprefix("@").strip('"'): each
            for each in statements(self._ir)
            if each.kind == "define"
            and each.name not in {"@main", *tables}
            and not _INTERNAL.match(each.text.partition("\n")[0])
        }

    def build(self, candidate: Candidate) -> SourceBuild:
        """Compile a candidate.

        Raises:
            ProgramError: the source does not compile, or breaks a rule.
            IRError, PassError: LLVM refuses it.
            TargetError: there is no C compiler.
        """
        text, passes = source_of(candidate)
        check_text(text)
        level = FAST if self._timed else "O0"
        flags = ("-std=gnu17", "-fPIC", "-U_FORTIFY_SOURCE")
        own = self._compiler.to_ir("the source", flags, level, source=text, seconds=_COMPILE_S)
        if "target-cpu" in (aim := dict(AIM.findall(self._ir))):
            own = for_processor(own, aim)
        own = (without_optnone if self._timed else for_size)(own)
        check_module(own)
        pipeline = print_pipeline(passes or self._passes)
        code, count = self._compiled(own, pipeline)
        defined = check_object(code, self._functions)
        rest, others = self._compiled(self._without(defined), pipeline)
        return SourceBuild((code, rest), count + others)

    def _without(self, names: Collection[str]) -> str:
        """Return the program without some functions, which it declares."""
        replaced = {self._functions[name].text: declaration(self._functions[name], "") for name in names}
        return "\n".join(replaced.get(each.text, each.text) for each in statements(self._ir)) + "\n"

    def _compiled(self, ir: str, pipeline: str) -> tuple[bytes, int]:
        with closing(self._bindings.parse(ir)) as module:
            module.run(pipeline)
            if wrong := module.verify():
                raise ProgramError(f"the passes make invalid IR: {wrong}")
            return module.object_code(), module.instructions()


def check_text(text: str) -> None:
    """Refuse a source that reads files, or is too long; raises ProgramError where it does."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ProgramError(f"the source is not valid text: {error.reason}") from error
    if size > SOURCE_BYTES:
        raise ProgramError(f"the source has {size:,} bytes, and {SOURCE_BYTES:,} are allowed")
    if "\0" in text:
        raise ProgramError("the source has a zero byte")
    # As the compiler does it: a directive may stand on several lines, each but the last with a backslash.
    left = _PRAGMA.sub("", _INCLUDE.sub("", _SPLICE.sub("", text)))
    if found := _REFUSED.search(left):
        listed = ", ".join(f"<{name}.h>" for name in _HEADERS.split())
        raise ProgramError(
            f"the source has the word '{found[0]}', which may read files or write assembly",
            f"What may be included: {listed}, each on its own line. Comments may not have the word either.",
        )


def check_module(ir: str) -> None:
    """Refuse a module with assembly, sections of its own, or what runs by itself.

    Raises:
        ProgramError: it has them.
    """
    plain = _QUOTED.sub('""', ir)
    refused = {r"\basm\b": "assembly", r'\bsection ""': "a section of its own", r"\bifunc\b": "an ifunc"}
    refused |= {r"\bthread_local\b": "variables of threads", r"@llvm\.global_[cd]tors\b": "constructors"}
    for pattern, what in refused.items():
        if re.search(pattern, plain):
            raise ProgramError(f"the source has {what}, which is not allowed")


def check_object(code: bytes, replaceable: Collection[str]) -> set[str]:
    """Refuse an object that defines or uses other symbols than it may, or has variables.

    Args:
        code: the object.
        replaceable: functions of the program that it may define, and call.

    Returns:
        Those that it defines.

    Raises:
        ProgramError: it breaks a rule.
    """
    for section in sections(code):
        if section.flags & _LOADED and section.size and not _SECTIONS.fullmatch(section.name):
            raise ProgramError(
                f"the source has variables outside of functions, or code that runs by itself: {section.name}",
                "Constants are allowed: write const.",
            )
    defined, used = linked_symbols(code)
    if others := sorted(defined - set(replaceable)):
        raise ProgramError(
            f"the source defines '{others[0]}', which is not a function of the program that may be replaced",
            "Make it static, unless it replaces one.",
        )
    if not defined:
        raise ProgramError(
            "the source replaces no function", f"Define one of: {', '.join(sorted(replaceable))}."
        )
    allowed = {*replaceable, *COMPUTING}
    if others := sorted(name for name in used if name not in allowed and not _ARITHMETIC.fullmatch(name)):
        raise ProgramError(
            f"the source calls '{others[0]}', which is not allowed: it may do more than compute"
        )
    return defined
