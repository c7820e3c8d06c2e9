"""Programs of this level: a module, and how it is run where it can be."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from planish.core import ProgramError, canonical_json

SOURCE = re.compile(r'^source_filename = "([^"]*)"', re.MULTILINE)
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2})")
_DEFINITION = re.compile(r'^define [^\n]*?@("[^"]*"|[-\w$.]+)\(', re.MULTILINE)
_RUN = "; planish runs it with "
_LINK = "; planish links it with "
# Stored programs bring theirs: other flags, and paths, could have the linker run or read anything.
_LINKED = re.compile(r"-l\w[\w+.-]*|-pthread", re.ASCII)
_SANITIZERS = re.compile(r"-l(clang_rt\.)?(a|l|m|t|hwa)san\b.*|-fsanitize=.*", re.ASCII)


def is_ir(source: str) -> bool:
    """Return whether a source is IR itself, and not a file's path."""
    return "define " in source and "\n" in source.strip()


@dataclass(frozen=True)
class Harness:
    """Code with a `main` that calls the module.

    Args:
        kind: "c" or "ll".
        text: the source.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class RunInput:
    """Input of a run.

    Args:
        args: what follows the program's name on its command line.
        stdin: what it reads from standard input.
    """

    args: tuple[str, ...] = ()
    stdin: bytes = b""


@dataclass(frozen=True)
class Running:
    """The way a program is run: its arguments, input and environment.

    Args:
        args: what follows the program's name on its command line.
        stdin: what it reads from standard input.
        harness: has the `main` where the module has none.
        asked: whether the user asked for it to be run, also where no objective needs that.
        link: the libraries that it is linked with, as `-lz` and `-pthread`.
        cases: further inputs, on which answers are compared, too; it is timed with the first one alone.

    Raises:
        ProgramError: `link` has anything else, or a sanitizer.
    """

    args: tuple[str, ...] = ()
    stdin: bytes = b""
    harness: Harness | None = None
    asked: bool = False
    link: tuple[str, ...] = ()
    cases: tuple[RunInput, ...] = ()

    def __post_init__(self) -> None:
        for word in self.link:
            if _SANITIZERS.fullmatch(word):
                # It would end with an error of its own, which looks like the program's answer.
                raise ProgramError(
                    f"a sanitizer ('{word}') reserves more addresses than the sandbox allows",
                    "Build the program without -fsanitize.",
                )
            if not _LINKED.fullmatch(word):
                raise ProgramError(
                    f"programs are not linked with '{word}'", "Write libraries, as link='-lz -pthread'."
                )

    @property
    def inputs(self) -> tuple[RunInput, ...]:
        """Return all inputs on which answers are compared; the first is the one that is timed."""
        return RunInput(self.args, self.stdin), *self.cases

    @property
    def text(self) -> str:
        """The canonical JSON; empty where the program is run with nothing."""
        if self == Running():
            return ""
        harness = self.harness and [self.harness.kind, self.harness.text]
        asked = {"run": True} if self.asked else {}
        # JSON has no bytes: latin-1 makes each of them the character of that number, and back.
        given = {"args": self.args, "stdin": self.stdin.decode("latin-1"), "harness": harness}
        link = {"link": self.link} if self.link else {}
        cases = [[list(each.args), each.stdin.decode("latin-1")] for each in self.cases]
        return canonical_json({**given, **asked, **link, **({"cases": cases} if cases else {})})

    @staticmethod
    def read(text: str) -> Running:
        """Read the canonical JSON back."""
        if not text:
            return Running()
        data = json.loads(text)
        harness = Harness(*data["harness"]) if data["harness"] else None
        stdin = data["stdin"].encode("latin-1")
        args, link = (tuple(map(str, words)) for words in (data["args"], data.get("link", ())))
        cases = [RunInput(tuple(map(str, a)), s.encode("latin-1")) for a, s in data.get("cases", ())]
        return Running(args, stdin, harness, bool(data.get("run")), link, tuple(cases))


OBJECTS, PROGRAM = "\0objects", "\0program"
"""Words of a command for the objects that are exchanged, and for the program: no word is like them."""


@dataclass(frozen=True)
class LinkCommand:
    """The command that links objects to a program.

    Args:
        compiler: what compiles and links.
        words: what follows; `OBJECTS` and `PROGRAM` are replaced by them.
        reads: files and folders that linking reads, and running.
    """

    compiler: tuple[str, ...]
    words: tuple[str, ...]
    reads: tuple[str, ...] = ()

    def filled(self, objects: Sequence[Path], program: Path) -> list[str]:
        """Return the compiler's arguments to make a program of some objects."""
        given = {OBJECTS: list(map(str, objects)), PROGRAM: [str(program)]}
        return [each for word in self.words for each in given.get(word, [word])]


@dataclass(frozen=True)
class LinkedObject:
    """A program that is linked of several objects, of which a module is one.

    Args:
        link: links the program; the module's object is its word `OBJECTS`.
        compile: words that make an object, `OBJECTS`, of the bitcode on standard input.
        code: the object that the user's compiler made, which is the baseline.
        functions: what is defined in this object alone.
        key: names all that the program is made of besides; it is a part of the canonical text.
    """

    link: LinkCommand
    compile: tuple[str, ...]
    code: bytes = field(repr=False)
    functions: frozenset[str]
    key: str


@dataclass(frozen=True)
class IRProgram:
    """A module of LLVM IR.

    Args:
        ir: the module as the back end prints it.
        instructions: how many it has.
        running: how it is run; None: never, since it is a part of a program.
        backend: which LLVM the user asked for; empty for the preferred one. It is of the target, and not of
            the text.
        linked: the program that it is a part of, where that is linked of several objects. It is of this
            machine; a stored program has its key alone.
        fast: the same source as the passes of clang -O3 start from it; None where the source is IR. It is
            what is tuned where time leads, and of no other program's text.
    """

    ir: str
    instructions: int
    running: Running | None = field(default_factory=Running)
    backend: str = field(default="", compare=False)
    linked: LinkedObject | None = field(default=None, repr=False)
    fast: IRProgram | None = field(default=None, compare=False, repr=False)
    level: str = "llvm"

    @property
    def text(self) -> str:
        """The canonical text: a line that names the module, how it is run, and the module."""
        run = "null" if self.running is None else self.running.text
        linked = f"{_LINK}{self.linked.key}\n" if self.linked else ""
        return f"; {self.title}\n" + (f"{_RUN}{run}\n" if run else "") + linked + self.ir

    @cached_property
    def definitions(self) -> tuple[str, ...]:
        """The names of all functions that it defines, in order, without sigil and quotes."""
        return tuple(name.strip('"') for name in _DEFINITION.findall(self.ir))

    @property
    def title(self) -> str:
        """Describe it in a few words: `inflate.c: 10 functions, 2,345 instructions`."""
        source = SOURCE.search(self.ir)
        name = source[1] if source else ""
        # LLVM's escapes are undone; where a line cannot hold what comes out, they stay.
        plain = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), name.encode()).decode(errors="replace")
        if plain.isprintable() and "\ufffd" not in plain:
            name = plain
        defined = self.definitions
        what = f"@{defined[0]}" if len(defined) == 1 else f"{len(defined):,} functions"
        size = f"{self.instructions:,} instruction{'s' * (self.instructions != 1)}"
        return f"{name}{': ' if name else ''}{what}, {size}"

    @property
    def can_run(self) -> bool:
        """Return whether it is a program with a `main`: here, in the harness, or in another object."""
        running = self.running
        if running is None:
            return False
        return self.linked is not None or running.harness is not None or "main" in self.definitions


def linked_of(text: str) -> LinkedObject | None:
    """Return what a program is a part of that was printed as a canonical text: its key alone is known."""
    for line in text.split("\n", 3)[1:3]:
        if line.startswith(_LINK):
            return LinkedObject(LinkCommand((), ()), (), b"", frozenset(), line.removeprefix(_LINK))
    return None


def running_of(text: str) -> Running | None:
    """Return how a program is run that was printed as a canonical text; nothing for any other IR."""
    _, _, rest = text.partition("\n")
    line = rest.partition("\n")[0]
    if not line.startswith(_RUN):
        return Running()
    run = line.removeprefix(_RUN)
    return None if run == "null" else Running.read(run)


STDIN_MOST = 16 << 20
_YES = "yes"
_OPERATORS = frozenset("();<>|&")


def running_by(options: Mapping[str, str], stored: Running | None) -> Running | None:
    """Return how it is run; options for the run of a function imply a harness, so that it can be run."""
    if not any(options.get(name) for name in ("args", "stdin", "harness", "run", "link", "cases")):
        return stored
    options = _spelled_out(options)
    changed = stored or Running()
    if options.get("run"):
        changed = replace(changed, asked=True)
    if args := options.get("args"):
        changed = replace(changed, args=_words(args))
    if link := options.get("link"):
        changed = replace(changed, link=_words(link))
    if path := options.get("stdin"):
        changed = replace(changed, stdin=_stdin(path))
    if path := options.get("cases"):
        changed = replace(changed, cases=_cases(path))
    if path := options.get("harness"):
        changed = replace(changed, harness=_harness(path))
    return changed


def _stdin(path: str) -> bytes:
    data = read_bytes(path)
    if len(data) > STDIN_MOST:
        what = f"'{path}' has over {STDIN_MOST >> 20} MiB"
        raise ProgramError(what, "Give less input: it is stored with the program.")
    return data


def _cases(path: str) -> tuple[RunInput, ...]:
    """Read further inputs from a file: in each line arguments, and perhaps `< FILE`, as in a shell."""
    found = list[RunInput]()
    for line in read_bytes(path).decode(errors="replace").splitlines():
        if line.strip():
            given = _spelled_out({"run": f"./program {line}"})
            stdin = _stdin(given["stdin"]) if given.get("stdin") else b""
            found.append(RunInput(_words(given["args"]), stdin))
    return tuple(found)


def _spelled_out(options: Mapping[str, str]) -> Mapping[str, str]:
    """Return `args` and `stdin` where `run` is a command line.

    Raises:
        ProgramError: it cannot be read, needs a shell, or says what `args` or `stdin` say too.
    """
    run = options.get("run", "")
    if run in ("", _YES):
        return options
    if options.get("args") or options.get("stdin"):
        raise ProgramError("run= says what args= and stdin= say", "Leave out one or the other.")
    lexer = shlex.shlex(run, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise ProgramError(f"run={run} cannot be read: {error}", "Quote as in a shell.") from error
    if not words or _OPERATORS.issuperset(words[0]) or (words == [words[0]] and "/" not in run):
        raise ProgramError(f"run cannot be '{run}'", "Write run=yes, or as run='./prog 5 < input'.")
    args, path = (words[1:-2], words[-1]) if words[-2:-1] == ["<"] else (words[1:], "")
    for word in args:
        # No shell is started, so a pipe would silently be an argument.
        if _OPERATORS.issuperset(word):
            raise ProgramError(f"run={run} needs a shell for '{word}'", "Write it as run='./prog 5 < input'.")
    asked = {} if args or path else {"run": _YES}
    return {**options, "run": "", "args": shlex.join(args), "stdin": path, **asked}


def _words(args: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(args))
    except ValueError as error:
        raise ProgramError(f"the arguments cannot be read: {error}", "Quote them as in a shell.") from error


def _harness(path: str) -> Harness:
    kind = Path(path).suffix.removeprefix(".")
    if kind not in ("c", "ll"):
        raise ProgramError(f"the harness '{path}' is not a .c or .ll file", "Write it in C, or as LLVM IR.")
    try:
        return Harness(kind, read_bytes(path).decode())
    except UnicodeDecodeError as error:
        raise ProgramError(f"'{path}' is not a text: {error.reason}", "Write it in UTF-8.") from error


def read_bytes(path: str) -> bytes:
    """Read a file that the user named; raises ProgramError where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ProgramError(f"cannot read '{path}': {error.strerror}", "Check the path.") from error
