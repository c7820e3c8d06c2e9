"""Link-time optimization of programs: the merged module of a link, and the link with its object.

The build's own linker resolves all symbols. Asked for IR, it merges the bitcode of its inputs into one module
in which all that no other input needs is internal. The search makes that module's code smaller, and the same
linker links the object in place of the bitcode, so that archives, linker scripts, version scripts, garbage
collection and folding work as they do without planish. In doubt clang's result is kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import NoReturn

from planish.cc.archives import ARCHIVE, members
from planish.cc.arguments import code_options, grouped
from planish.cc.clang import Compiler, CompletedProcess, run, shell_code, wait
from planish.cc.code_choice import Choice, Chooser, ProgramChoice, by_level, cost_of, is_smaller
from planish.cc.code_options import CodeGenerator, search_options
from planish.cc.interrupts import Stoppable
from planish.cc.job import note, refused
from planish.cc.lock import LockEntry, SourceLock
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest
from planish.cc.optimize import check_version, locked_options, locked_plan, patience_s
from planish.cc.reporting import sizes
from planish.cc.settings import CompileSettings, ReadsFilesError, SearchError, pass_on
from planish.cc.size_search import SmallerModule, make_smaller, search
from planish.cc.unoptimized import BITCODE, find_unoptimized
from planish.core import PlanishError
from planish.levels.llvm.bindings.elf import interface, needed_libraries
from planish.levels.llvm.modules.evaluator import make_planned
from planish.levels.llvm.modules.transform import Level, single, survived, whole_bindings
from planish.sandbox.scratch import Scratch

_MERGE = "-Wl,-plugin-opt=emit-llvm,-plugin-opt=O0"
_TRACE = "-Wl,-t,-t"
"""Has a linker print each file that it reads, and the members of archives."""
# `(libx.a)member.o` by GNU ld, `libx.a(member.o)` by others.
_MEMBER = re.compile(r"\(([^()]+)\)([^()]+)|([^()]+)\(([^()]+)\)")
_CODE = ("-ffunction-sections", "-fdata-sections", "-fno-lto")
"""As linkers have it for what they optimize."""
# What a link with an object may do otherwise, and options on link-time optimization.
_REFUSED = re.compile(
    r"--?(?:wrap|start-lib|plugin|lto|thinlto|save-temps|mllvm|relocatable|opt-remarks)|-(?:r|i|Ur)$"
)
_ALSO_WRITTEN = re.compile(
    r"--?(?:Map|print|M$|cref|dependency-file|out-implib|trace|t$|why|stats|reproduce|verbose)"
)
"""Options by which a linker writes or prints more than the program."""


@dataclass
class LinkInputs:
    """The bitcode among the inputs of a link.

    Args:
        bitcode: paths of files that are bitcode.
        archives: paths of archives whose members are bitcode, each with the members that are linked.
    """

    bitcode: dict[str, bytes] = field(default_factory=dict[str, bytes])
    archives: dict[str, dict[str, bytes]] = field(default_factory=dict[str, dict[str, bytes]])

    @property
    def has_bitcode(self) -> bool:
        """Return whether there is any."""
        return bool(self.bitcode or self.archives)

    def named_by(self, group: Sequence[str]) -> str:
        """Return which of the paths an option or a word names; empty for all other words."""
        word = group[0]
        if word.startswith("-l"):
            name = word[2:] or group[-1]
            file = name[1:] if name.startswith(":") else f"lib{name}.a"
            return next((path for path in self.archives if os.path.basename(path) == file), "")
        path = "" if word.startswith("-") else os.path.realpath(word)
        return path if path in self.bitcode or path in self.archives else ""


def read_inputs(trace: bytes) -> LinkInputs:
    """Read from the list of files that a linker printed which of them are bitcode.

    Raises:
        SearchError: an archive has two members of one name.
        OSError: a file cannot be read.
    """
    found = LinkInputs()
    linked: dict[str, list[str]] = {}
    for line in map(os.fsdecode, trace.splitlines()):
        if match := _MEMBER.fullmatch(line):
            path, member = (match[1], match[2]) if match[1] else (match[3], match[4])
            if os.path.isfile(path):
                linked.setdefault(os.path.realpath(path), []).append(member)
        elif os.path.isfile(line):
            with open(line, "rb") as file:
                if (head := file.read(4)) in BITCODE:
                    found.bitcode[os.path.realpath(line)] = head + file.read()
    for path, names in linked.items():
        data = Path(path).read_bytes()
        if not data.startswith(ARCHIVE):
            raise SearchError(f"{path} is a thin archive")
        rows = [row for row in members(data) if row[0] in names]
        if any(content.startswith(BITCODE) for _, content in rows):
            if len({name for name, _ in rows}) < len(rows):
                raise SearchError(f"{path} has several members of one name")
            found.archives[path] = dict(rows)
    return found


class Link:
    """One link with -flto.

    Args:
        compiler: which links.
        words: of its command line, without sources.
        output: the program or library.
        folder: for what is made meanwhile.
    """

    def __init__(self, compiler: Compiler, words: Sequence[str], output: str, folder: Path) -> None:
        self.compiler, self.output, self._folder = compiler, output, folder
        self.groups = [group for _, group in grouped(words) if not group[0].startswith("-o")]
        self._words = [word for group in self.groups for word in group]

    @cached_property
    def _for_linker(self) -> list[str]:
        found: list[str] = []
        for group in self.groups:
            found += group[1:] if group[0] == "-Xlinker" else group[0].split(",")[1:]
        return found

    @property
    def writes_more(self) -> bool:
        """Return whether the linker writes or prints more than the program."""
        return any(map(_ALSO_WRITTEN.match, self._for_linker))

    @property
    def code_options(self) -> list[str]:
        """The options by which code is made of the merged module, for the linker's kind of output."""
        options = code_options(self._words)
        kept = [word for word in options if not word.startswith(("-flto", "-Wl,", "-fuse-ld"))]
        if "-shared" in options:
            kept.append("-fPIC")
        elif not {"-no-pie", "-static"}.isdisjoint(options):
            kept += ["-fno-pic", "-fno-pie"]
        return ["-Oz", *kept, *_CODE]

    def run_clang(self, words: Sequence[str] | None = None) -> int:
        """Have clang link, and print what it prints; return the exit code.

        Args:
            words: in place of those of the link.
        """
        command = [*self.compiler.command, *(words or self._words), "-o", self.output]
        return shell_code(wait(os.posix_spawn(self.compiler.path, command, os.environ)))

    def merge(self) -> tuple[LinkInputs, bytes]:
        """Have the linker resolve all symbols; return its inputs, and the bitcode as one module.

        Raises:
            SearchError: it does not, or what the link does is not known to be the same with an object.
        """
        path = self._folder / "merged.bc"
        ended = self._trial([*self._words, _MERGE], path)
        inputs = read_inputs(ended.written)
        data = path.read_bytes() if path.exists() else b""
        if not inputs.has_bitcode:
            if data.startswith(BITCODE):
                raise SearchError("the linker, such as gold, does not list which of its inputs are bitcode")
            return inputs, b""
        if word := next(filter(_REFUSED.match, self._for_linker), None):
            raise SearchError(f"planish cc does not optimize a link with {word}")
        if ended.code or not data.startswith(BITCODE):
            raise SearchError("the linker does not merge the bitcode of its inputs")
        return inputs, data

    def merge_unoptimized(self, inputs: LinkInputs, cache: ObjectCache) -> bytes:
        """Have the linker merge what the bitcode of its inputs was made of; empty where that is not known.

        Args:
            inputs: the bitcode.
            cache: has what it was made of.
        """
        members = [content for each in inputs.archives.values() for content in each.values()]
        codes = [code for code in (*inputs.bitcode.values(), *members) if code.startswith(BITCODE)]
        others = {code: find_unoptimized(cache, code) for code in codes}
        if not all(others.values()):
            return b""
        path = self._folder / "unoptimized.bc"
        ended = self._trial([*self._exchanged(inputs, others), _MERGE], path)
        data = path.read_bytes() if path.exists() else b""
        return b"" if ended.code or not data.startswith(BITCODE) else data

    def with_object(self, code: bytes, inputs: LinkInputs) -> tuple[bytes, bytes]:
        """Link an object in place of the bitcode; return the program, and what the linker says.

        Raises:
            SearchError: it cannot be linked so.
        """
        program = self._folder / "program"
        (self._folder / "merged.o").write_bytes(code)
        ended = self._trial(self._exchanged(inputs), program)
        if ended.code:
            _raise(ended, "the object of the merged module cannot be linked")
        if read_inputs(ended.written).has_bitcode:
            raise SearchError("the linker takes bitcode besides the merged module")
        return program.read_bytes(), ended.messages

    def install(self, program: bytes, inputs: LinkInputs) -> None:
        """Replace the output by the program that `with_object` made last.

        Raises:
            SearchError: it cannot be linked in place.
        """
        if not self.writes_more:
            atomic_write(self.output, program, 0o777)
        elif self.run_clang(self._exchanged(inputs)):
            raise SearchError("the object of the merged module cannot be linked")

    def _trial(self, words: Sequence[str], output: Path) -> CompletedProcess:
        return run([*self.compiler.command, *words, _TRACE, "-o", str(output), "-Qunused-arguments"])

    def _exchanged(self, inputs: LinkInputs, others: Mapping[bytes, bytes] | None = None) -> list[str]:
        """Replace bitcode, and archives with bitcode by their members that are linked.

        Args:
            inputs: the bitcode.
            others: bitcode in place of bitcode; None: the object of the merged module in place of all of it.
        """
        found, waiting = list[str](), {**inputs.archives, **{path: {} for path in inputs.bitcode}}
        new = [str(self._folder / "merged.o")] if others is None else []
        for group in self.groups:
            path = inputs.named_by(group)
            if not path:
                found += group
                continue
            found += new  # where the first bitcode is
            new = []
            members = waiting.pop(path, {})
            if path in inputs.bitcode:
                members = {os.path.basename(path): inputs.bitcode[path]}
            for name, content in members.items():
                if not content.startswith(BITCODE):
                    found.append(self._written(path, name, content))
                elif others is not None:
                    found.append(self._written(path, name, others[content]))
        if waiting:
            raise SearchError(f"bitcode is in {min(waiting)}, which no word of the command names")
        return found

    def _written(self, path: str, member: str, content: bytes) -> str:
        folder = self._folder / digest(path.encode(errors="surrogateescape"), content[:4])
        folder.mkdir(exist_ok=True)
        file = folder / Path(member).name
        file.write_bytes(content)
        return str(file)


def _raise(ended: CompletedProcess, what: str) -> NoReturn:
    said = ended.messages.decode(errors="replace").strip().splitlines()
    raise SearchError(f"{what}: {said[0]}" if said else what)


_CLANGS = Choice("clang")


class LinkOptimization:
    """The optimization of one link: it begins with merging its bitcode.

    Args:
        link: it.
        settings: the time of the search.
        cache: has objects and searches.

    Attributes:
        inputs: the bitcode among the link's inputs.

    Raises:
        SearchError: the bitcode cannot be merged, or the lock file is for another program.
    """

    def __init__(self, link: Link, settings: CompileSettings, cache: ObjectCache) -> None:
        self._link, self._settings, self._cache = link, settings, cache
        self._seconds = inf if settings.budget else settings.program_seconds
        self.inputs, self._merged = link.merge()
        self._lock: SourceLock | None = None
        if self._merged and settings.lock:
            self._lock = SourceLock(settings.lock, link.output, link.groups)
            self._lock.match(self._start, cache)

    @cached_property
    def _start(self) -> bytes:
        """The module that the search starts from."""
        unoptimized = self._link.merge_unoptimized(self.inputs, self._cache)
        if not unoptimized:
            return self._merged
        # A library would export templates that clang has inlined everywhere and left out of its objects.
        more = survived(partial(_exports_more, unoptimized, self._merged), bool)
        return self._merged if more else unoptimized

    @property
    def _key(self) -> str:
        locked = self._lock.entry if self._lock else None
        parts = "link", self._link.compiler.identity, locked.digest if locked else self._settings.variant
        words = "\0".join([*parts, *self._link.code_options])
        return digest(os.fsencode(words), self._merged)

    def take_known(self) -> tuple[str, bytes] | None:
        """Link the object that is known, if there is one; return how it was made, and the report.

        A program with other symbols, or that needs a library that clang's did not need, is not known: the
        rest of the link has changed, so it is compared with clang's program of this link.

        Raises:
            SearchError: the object cannot be linked.
        """
        entry = self._cache.get(self._key)
        if not entry or not entry.is_enough(self._seconds, self._settings.evaluations):
            return None
        if self._lock and not self._lock.entry:
            self._lock.enter(entry.about)
            self._cache.keep(self._key, entry)
        if entry.is_clangs:
            return "clang", entry.about
        program, messages = self._link.with_object(entry.code, self.inputs)
        about = json.loads(entry.about)
        if about["interface"] != interface(program) or needed_libraries(program) - {*about["needed"]}:
            return None
        self._link.install(program, self.inputs)
        pass_on(messages)
        return "known", entry.about

    def improve(self, clang_s: float) -> tuple[str, bytes]:
        """Search for a smaller program, and leave it where clang's is.

        Args:
            clang_s: seconds that clang's link took.

        Returns:
            "searched" or "clang", and the report.

        Raises:
            SearchError: there is none but clang's, and it is not known whether another would be smaller.
            ReadsFilesError: its assembly may read files.
            PlanishError: LLVM refuses the module.
            OSError: a file cannot be read or written.
        """
        began = monotonic()
        check_version(self._link.compiler, self._cache)
        own = Path(self._link.output).read_bytes()
        if self._lock and self._lock.entry:
            choice, n_evaluations, seconds, given = self._locked(self._lock.entry), 0, inf, 0
        elif not self._seconds:
            return "clang", refused("there is no time to search in")
        elif not (levels := survived(partial(_levels, self._merged), tuple[Level, ...])):
            return "clang", refused("its functions are not compiled with -Oz or -Os")
        else:
            given = self._settings.evaluations
            options = search_options(whole_bindings().version, own) if "-Oz" in levels else ()
            make = partial(make_smaller, cost=cost_of(self._settings), options=options)
            wait_s = patience_s(self._seconds, clang_s)
            found = search(self._start, self._seconds, given or None, self._cache, wait_s, make)
            n_evaluations, seconds = found.evaluations, found.seconds
            choice = self._best(found, levels, own)
        program = self._linked(choice, own)
        choice = choice if program else _CLANGS
        times = {"clang_s": round(clang_s, 3), "search_s": round(monotonic() - began, 3)}
        report = {
            **sizes(own, program or own, choice.passes),
            **choice.to_json(),
            "interface": interface(own),
            "needed": sorted(needed_libraries(own)),
        }
        about = json.dumps({**report, "evaluations": n_evaluations, **times}).encode()
        if self._lock and not self._lock.entry:
            self._lock.enter(about)
        if program:
            self._link.install(program, self.inputs)
        entry = CachedObject(seconds, given, about, choice.code, has_diagnostics=False)
        self._cache.keep(self._key, entry)
        return "searched", about

    def _best(self, found: SmallerModule, levels: Collection[Level], own: bytes) -> Choice:
        link = partial(self._program_of, own=own)
        with self._generator() as generate:
            chooser = Chooser(own, generate, self._settings, link=link)
            return ProgramChoice(self._start, chooser).best(found, levels)

    @contextmanager
    def _generator(self) -> Generator[CodeGenerator]:
        with Scratch() as scratch:
            yield CodeGenerator(self._link.compiler, self._link.code_options, scratch.path)

    def _program_of(self, code: bytes, own: bytes) -> bytes:
        program = self._link.with_object(code, self.inputs)[0]
        if interface(program) != interface(own):
            raise SearchError("the program would have other symbols than clang's")
        # It may need fewer: libraries are linked as needed, and libgcc has functions that libgcc_s has, too.
        if more := needed_libraries(program) - needed_libraries(own):
            raise SearchError(f"the program would need {min(more)}, and clang's does not")
        return program

    def _linked(self, choice: Choice, own: bytes) -> bytes:
        """Link a choice; return the program, empty where it is no smaller than clang's."""
        if not choice.code:
            return b""
        program = self._program_of(choice.code, own)
        if is_smaller(program, own, for_flash=self._settings.for_flash):
            return program
        if self._link.writes_more:
            self._link.run_clang()  # what was tried has left its own
        return b""

    def _locked(self, entry: LockEntry) -> Choice:
        if entry.result == "clang":
            return _CLANGS
        choice = Choice(entry.result, options=locked_options(entry), end=entry.end)
        if entry.result == "passes":
            plan = locked_plan(entry)
            choice = replace(choice, plan=plan)
            make = partial(make_planned, self._start, plan, entry.begin, entry.end)
            bitcode = survived(make, bytes, "the lists of the lock file")
        else:
            bitcode = by_level(self._start, entry.result)
        with self._generator() as generate:
            return replace(choice, code=generate(bitcode, choice.options))


def _exports_more(bitcode: bytes, other: bytes) -> bool:
    with (
        closing(single(whole_bindings().parse(bitcode))) as module,
        closing(single(whole_bindings().parse(other))) as compared,
    ):
        return not module.definitions().exported() <= compared.definitions().exported()


def _levels(bitcode: bytes) -> tuple[Level, ...]:
    """List the levels by which a module may become smaller; none where it is not compiled for size."""
    with closing(single(whole_bindings().parse(bitcode))) as module:
        definitions = module.definitions()
        if definitions.having("minsize"):
            return "-Os", "-Oz"
        return ("-Os",) if definitions.having("optsize") else ()


def link_program(
    compiler: Compiler,
    words: Sequence[str],
    output: str,
    settings: CompileSettings,
    cache: ObjectCache,
    *,
    is_asked: bool,
) -> int:
    """Link a program or library with -flto, and make its code smaller.

    Args:
        compiler: which links.
        words: of the command line, with objects in place of sources.
        output: what is made.
        settings: the time of the search.
        cache: has objects and searches.
        is_asked: whether the command asks for small code; else that depends on how its objects were compiled,
            and no failure is reported.

    Returns:
        The exit code, which is clang's.

    Raises:
        UsageError: clang's result must do, and may not (--planish-strict).
    """
    began = monotonic()
    with Stoppable(), Scratch() as scratch:
        link, optimization, known, why = Link(compiler, words, output, scratch.path), None, None, ""
        try:
            optimization = LinkOptimization(link, settings, cache)
            known = optimization.take_known() if optimization.inputs.has_bitcode else None
        except (SearchError, PlanishError, OSError) as error:
            why = str(error)
        if known and known[0] == "known":
            note(cache, settings, output, output, *known, monotonic() - began)
            return 0
        linking = monotonic()
        if code := link.run_clang():
            return code
        if optimization and not optimization.inputs.has_bitcode:
            return 0
        try:
            if why or not optimization:
                raise SearchError(why)
            how, about = known or optimization.improve(monotonic() - linking)
        except ReadsFilesError as error:
            how, about = "clang", refused(str(error))
        except (SearchError, PlanishError, OSError) as error:
            if link.writes_more:
                link.run_clang()  # what was tried has left its own
            if is_asked:
                settings.fall_back(f"{output}: {error}", output)
            how, about = "clang", refused(str(error))
        note(cache, settings, output, output, how, about, monotonic() - began)
        return 0
