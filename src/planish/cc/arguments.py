"""What a command line asks clang to do, as far as that has to be known."""

from __future__ import annotations

import os

from planish.cc.known_options import is_known

C, CXX = "c", "c++"
LANGUAGES = {"c": C, "cpp-output": C, "c++": CXX, "c++-cpp-output": CXX}
"""What `-x` calls the languages that are improved."""
_SUFFIXES = {".c": C, ".i": C, ".ii": CXX} | dict.fromkeys(
    (".cc", ".cp", ".cxx", ".cpp", ".c++", ".C", ".CPP", ".CC"), CXX
)
_SOURCES = frozenset((".s", ".S", ".sx", ".asm", ".ll", ".bc", ".m", ".mm", ".M", ".cu", ".hip", ".cppm"))
_SIZE = frozenset(("-Os", "-Oz"))
_TIME = frozenset(("-O2", "-O3", "-O4", "-Ofast"))
# Options whose value is the next word, where it is not joined.
_SEPARATE = frozenset(
    """-o -x -I -D -U -L -l -F -T -B -u -z -e -A -G -MF -MT -MQ -MJ -include -imacros -isystem
    -isystem-after -idirafter -iquote -iprefix -iwithprefix -iwithprefixbefore -iwithsysroot -isysroot
    -iframework -iframeworkwithsysroot -ivfsoverlay -vfsoverlay -include-pch -cxx-isystem -stdlib++-isystem
    -fdebug-compilation-dir -Xclang -Xclangas -Xlinker
    -Xassembler -Xpreprocessor -Xanalyzer -Xarch_device -Xarch_host
    -Xcuda-fatbinary -Xcuda-ptxas -Xopenmp-target -Xoffload-linker -mllvm -mmlir -arch -target -meabi
    -mthread-model -aux-info --param -resource-dir -working-directory -serialize-diagnostics -dumpbase
    -dumpdir -dumpbase-ext -fmodules-user-build-path -gen-cdb-fragment-path -dependency-file -dependency-dot
    -ccc-install-dir -ccc-gcc-name -rpath -soname --serialize-diagnostics --sysroot --config
    --output --language --include --include-directory --include-directory-after --define-macro
    --undefine-macro --library-directory --for-linker --imacros --prefix --assert --force-link
    """.split()
)
# What prints something, or stops before there is an object.
_ASKS = frozenset(
    """-E -M -MM -S -v -### -fsyntax-only -emit-llvm -emit-ast -emit-merged-ifs --precompile --analyze --help
    --version -help -dM -P --preprocess --assemble -r -gen-reproducer -dumpversion -dumpmachine
    """.split()
)
_ASK_BEGINNINGS = ("-print-", "--print-", "--help", "-rewrite", "-emit-", "-ccc-print", "-module-file-info")
# What does not follow from the unoptimised bitcode, and has no part in making code of it.
_FRONT_JOINED = ("-I", "-D", "-U", "-MF", "-MT", "-MQ", "-isystem", "-iquote", "-idirafter", "-L", "-l")
_FRONT_SEPARATE = frozenset(
    (*_FRONT_JOINED, "-include", "-imacros", "-o", "-x", "-isystem-after", "-cxx-isystem")
)
_FRONT_ALONE = frozenset(("-c", "-MD", "-MMD", "-MP", "-MV"))


class Source:
    """A source file: its place among the words, its path, and its language; None: not one of ours."""

    __slots__ = ("index", "language", "path")

    def __init__(self, index: int, path: str, language: str | None) -> None:
        self.index, self.path, self.language = index, path, language


class Invocation:
    """A command line, taken apart.

    Attributes:
        words: it, without the program, response files expanded.
        level: the last -O; empty where there is none.
        compiles: whether it ends with objects (-c).
        output: what -o names; None where it names nothing.
        sources: to be compiled or assembled.
        linked: places of inputs that are neither, such as objects.
        language_given: whether -x is there.
        makes_dependencies: whether -MD or -MMD is there.
        dependency_file: what -MF names; None where it names nothing.
        has_target: whether -MT or -MQ is there.
        asks: whether it asks for something else than an object or a program.
        keeps: an option that is not known to have no other effect than on the object; empty: there is none.
    """

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.level = ""
        self.compiles = self.makes_dependencies = self.has_target = self.language_given = self.asks = False
        self.output: str | None = None
        self.dependency_file: str | None = None
        self.sources: list[Source] = []
        self.linked: set[int] = set()
        self.keeps = ""
        self._language = "none"
        self._read()

    @property
    def is_small(self) -> bool:
        """Whether it asks for small code."""
        return self.level in _SIZE

    @property
    def is_fast(self) -> bool:
        """Whether it asks for fast code."""
        return self.level in _TIME

    def _read(self) -> None:
        words, i, count = self.words, 0, len(self.words)
        while i < count:
            word = words[i]
            if word == "--":  # what follows are inputs; seldom, and not worth a second way of reading
                self.keeps = self.keeps or word
            if word == "-" or not word.startswith("-"):
                self._input(i, word)
            else:
                value = words[i + 1] if word in _SEPARATE and i + 1 < count else None
                self._option(word, value)
                i += value is not None
            i += 1

    def _input(self, index: int, path: str) -> None:
        suffix = os.path.splitext(path)[1]
        if self._language != "none":
            self.sources.append(Source(index, path, LANGUAGES.get(self._language)))
        elif path == "-" or suffix in _SUFFIXES or suffix in _SOURCES:
            self.sources.append(Source(index, path, _SUFFIXES.get(suffix)))
        else:
            self.linked.add(index)

    def _option(self, word: str, value: str | None) -> None:
        if word in _ASKS or word.startswith(_ASK_BEGINNINGS):
            self.asks = True
        elif not is_known(word):
            self.keeps = self.keeps or word
        elif word == "-c":
            self.compiles = True
        elif word in ("-MD", "-MMD"):
            self.makes_dependencies = True
        elif word.startswith("-O"):
            self.level = word
        elif word.startswith(("-o", "-x", "-M")):
            self._joined(word[:3] if word.startswith("-M") else word[:2], word, value)

    def _joined(self, option: str, word: str, value: str | None) -> None:
        given = word[len(option) :] if value is None else value
        if option == "-o":
            self.output = given
        elif option == "-x":
            self._language, self.language_given = given, True
        elif option == "-MF":
            self.dependency_file = given
        elif option in ("-MT", "-MQ"):
            self.has_target = True


def code_options(words: list[str]) -> list[str]:
    """Leave of a command line, without its inputs, what has a part in making code of bitcode."""
    kept: list[str] = []
    i = 0
    while i < len(words):
        word = words[i]
        separate = word in _SEPARATE
        if word in _FRONT_SEPARATE or word in _FRONT_ALONE or word.startswith((*_FRONT_JOINED, "-x", "-o")):
            pass
        elif word.startswith("-"):
            kept += words[i : i + 1 + separate]
        i += 1 + separate
    return kept
