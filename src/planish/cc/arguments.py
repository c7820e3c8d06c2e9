"""Command lines of clang, as far as planish has to know them.

A line is read as clang reads it, with response files (`@file`) and `-Wp,` expanded. Options are known that
bring no input into an object but their own words, and headers that clang lists.

The cache has one rule: **a key holds every byte and variable that can change the object.** The words of a
command line are in the key. So an option may be known here if all it does follows from its own word: its
value is not a file (or is one of the linker's, which runs each time), it reads no file by a fixed name, and
clang writes nothing besides the object and its dependencies. Whatever is not known is left to clang: its
object is neither taken from the cache nor kept there. That holds for options of a later clang, too.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# With or without `no-`. Those of GCC that clang ignores are here, too.
_FLAGS = frozenset(
    """PIC PIE aapcs-bitfield-load aapcs-bitfield-width access-control addrsig align-functions align-jumps
    align-labels align-loops aligned-allocation aligned-new allow-store-data-races approx-func asm asm-blocks
    associative-math assume-nothrow-exception-dtor assume-sane-operator-new assume-unique-vtables
    async-exceptions asynchronous-unwind-tables blocks bounds-check branch-count-reg builtin
    c++-static-destructors caller-saves caret-diagnostics cf-protection char8_t check-new color-diagnostics
    common complete-member-pointers conserve-stack coro-aligned-allocation coroutines crossjumping
    cx-fortran-rules cx-limited-range cxx-exceptions data-sections debug-info-for-profiling debug-macro
    debug-types-section declspec default-inline defer-pop delayed-template-parsing
    delete-null-pointer-checks devirtualize diagnostics-absolute-paths diagnostics-color
    diagnostics-fixit-info diagnostics-parseable-fixits diagnostics-show-hotness
    diagnostics-show-line-numbers diagnostics-show-note-include-stack diagnostics-show-option
    diagnostics-show-template-tree digraphs direct-access-external-data discard-value-names
    dollars-in-identifiers double-square-bracket-attributes dwarf-exceptions dwarf2-cfi-asm
    elide-constructors elide-type eliminate-unused-debug-symbols eliminate-unused-debug-types
    emit-all-decls emulated-tls enable-matrix exceptions expensive-optimizations extended-identifiers
    extend-variable-liveness fast-math file-reproducible fine-grained-bitfield-accesses finite-loops
    finite-math-only fixed-point float-store for-scope force-dwarf-frame force-emit-vtables
    force-enable-int128 freestanding friend-injection function-sections gcse gcse-after-reload gcse-las
    gcse-sm global-isel gnu-inline-asm gnu-keywords gnu89-inline gnu-unique guess-branch-probability
    honor-infinities honor-nans hosted ident implicit-templates inline inline-functions
    inline-functions-called-once inline-hint-functions inline-small-functions integrated-cc1 ipa-cp ipa-ra
    ipa-sra ivopts jump-tables keep-inline-functions keep-static-consts lax-vector-conversions
    limit-debug-info loop-interchange math-errno merge-all-constants merge-constants modulo-sched
    ms-compatibility ms-define-stdc ms-extensions ms-volatile named-loops new-infallible non-call-exceptions
    omit-frame-pointer openmp openmp-extensions openmp-simd openmp-use-tls operator-names
    optimize-sibling-calls optimize-strlen pack-struct pascal-strings pcc-struct-return peel-loops permissive
    pic pie plt pointer-tbaa prefetch-loop-arrays raw-string-literals reciprocal-math reg-struct-return
    register-global-dtors-with-atexit rename-registers reorder-blocks reorder-functions ropi rounding-math
    rtlib-add-rpath rtti rtti-data rwpi schedule-insns schedule-insns2 semantic-interposition
    separate-named-sections short-enums short-wchar show-column show-source-location signaling-math
    signaling-nans signed-bitfields signed-char signed-zeros single-precision-constant sized-deallocation
    sjlj-exceptions slp-vectorize spell-checking split-machine-functions split-stack split-wide-types
    stack-check stack-clash-protection stack-protector stack-protector-all stack-protector-strong
    stack-size-section standalone-debug strength-reduce strict-aliasing strict-enums
    strict-float-cast-overflow strict-overflow strict-return strict-vtable-pointers struct-path-tbaa
    thread-jumps threadsafe-statics toplevel-reorder tracer trapping-math trapv tree-dce tree-loop-im
    tree-loop-vectorize tree-slp-vectorize tree-ter tree-vectorize tree-vrp trigraphs
    unique-basic-block-section-names unique-internal-linkage-names unique-section-names unit-at-a-time
    unroll-all-loops unroll-loops unsafe-math-optimizations unsigned-bitfields unsigned-char unswitch-loops
    unwind-tables use-cxa-atexit use-init-array use-line-directives use-linker-plugin var-tracking
    var-tracking-assignments vectorize verbose-asm visibility-inlines-hidden
    visibility-inlines-hidden-static-local-var visibility-ms-compat web working-directory wrapv wrapv-pointer
    writable-strings zero-initialized-in-bss
    """.split()
)
# What these turn off would not be known itself.
_OFF = frozenset(
    f"-fno-{name}"
    for name in """autolink coverage-mapping crash-diagnostics modules openmp-target-debug plugin
    profile-arcs profile-generate profile-instr-generate profile-instr-use profile-sample-use profile-use
    record-command-line record-gcc-switches save-optimization-record split-dwarf-inlining stack-usage
    time-report time-trace whole-program whole-program-vtables xray-instrument
    """.split()
)
# `-f...=`: the value is a number, a word of clang's, or text that is put into the object.
_VALUES = frozenset(
    f"-f{name}"
    for name in """align-functions align-jumps align-labels align-loops bracket-depth c++-abi cf-protection
    clang-abi-compat complex-arithmetic constexpr-backtrace-limit constexpr-depth constexpr-steps
    coverage-compilation-dir coverage-prefix-map debug-compilation-dir debug-default-version debug-prefix-map
    denormal-fp-math diagnostics-color diagnostics-format diagnostics-show-category emit-dwarf-unwind
    error-limit excess-precision exec-charset extend-variable-liveness file-compilation-dir
    file-prefix-map fp-contract fp-eval-method fp-exception-behavior fp-model gnuc-version inline-limit
    inline-max-stacksize input-charset lax-vector-conversions macro-backtrace-limit macro-prefix-map
    max-errors max-tokens max-type-align message-length ms-compatibility-version new-alignment openmp
    openmp-version operator-arrow-depth pack-struct patchable-function-entry random-seed
    randomize-layout-seed show-overloads simd-cost-model spell-checking-limit stack-limit-register
    stack-limit-symbol strict-flex-arrays symbol-partition tabstop template-backtrace-limit template-depth
    tls-model trap-function trivial-auto-var-init trivial-auto-var-init-max-size
    trivial-auto-var-init-stop-after use-ld vect-cost-model visibility zero-call-used-regs
    """.split()
)
_DEBUG = frozenset(
    f"-g{name}"
    for name in """0 1 2 3 call-site-info codeview column-info dbx dwarf dwarf-2 dwarf-3 dwarf-4 dwarf-5
    dwarf-aranges dwarf32 dwarf64 embed-source full gdb gdb0 gdb1 gdb2 gdb3 gnu-pubnames inline-line-tables
    key-instructions line-directives-only line-tables-only lldb no-call-site-info no-column-info
    no-embed-source no-gnu-pubnames no-inline-line-tables no-key-instructions no-modules
    no-omit-unreferenced-methods no-pubnames no-record-command-line no-record-gcc-switches
    no-simple-template-names no-split-dwarf no-strict-dwarf no-structor-decl-linkage-names no-template-alias
    omit-unreferenced-methods pubnames sce simple-template-names strict-dwarf structor-decl-linkage-names
    template-alias used z
    """.split()
) | {"-g"}
_WORDS = (
    frozenset(
        """-ansi --ansi -c -canonical-prefixes -no-canonical-prefixes -MD -MMD -MP -MV -no-pie -no-pthread
    -nobuiltininc -nodefaultlibs -nolibc -nostartfiles -nostdinc -nostdinc++ -nostdlib -nostdlib++
    -nostdlibinc -pedantic --pedantic -pedantic-errors -pie -pipe --pipe -pthread -Qn -Qy
    -Qunused-arguments --start-no-unused-arguments --end-no-unused-arguments -rdynamic -s -shared --shared
    -shared-libgcc -static --static -static-libgcc -static-libstdc++ -static-pie -trigraphs -undef -w
    -fno-sanitize=all -fintegrated-as -integrated-as --no-default-config
    """.split()
    )
    | _OFF
    | _DEBUG
)
# The next word is the value.
_WITH_VALUE = frozenset(
    """-o -x -I -D -U -L -l -T -B -u -z -e -MF -MT -MQ -include -imacros -isystem -isystem-after
    -cxx-isystem -stdlib++-isystem -idirafter -iquote -isysroot -iwithsysroot -Xlinker -target --sysroot
    --param -resource-dir -rpath -soname -fdebug-compilation-dir -meabi -mthread-model
    """.split()
)
# The value is joined. All of `-m` and `-W` are about the machine and messages, but for the exceptions below.
_JOINED = tuple(
    """-D -U -I -L -l -o -x -T -B -z -m -W -MF -MT -MQ -O0 -O1 -O2 -O3 -O4 -Os -Oz -Og -Ofast -isystem -iquote
    -idirafter -isysroot -include -std= --std= -stdlib= --stdlib= -rtlib= --rtlib= -unwindlib= --unwindlib=
    --target= --sysroot= --gcc-toolchain= --gcc-install-dir= --gcc-triple= --param= --ld-path= -gz=
    -resource-dir= -fno-builtin- -ftemplate-depth-
    """.split()
)
_NOT_JOINED = tuple(
    """-I- -include-pch -obj -Wp, -Wa, -Wsystem-headers-in-module -mllvm -mmlir -module -multi
    -mlink-builtin -mzos
    """.split()
)
_FOR_PREPROCESSOR = ("-D", "-U")
_FOR_ASSEMBLER = frozenset(
    """--noexecstack --fatal-warnings --no-warn --compress-debug-sections --nocompress-debug-sections
    -mrelax-relocations=yes -mrelax-relocations=no -mbig-obj
    """.split()
)


def is_known(word: str) -> bool:
    """Return whether all that an option does follows from its word, and from its value in the next word."""
    name, equals, _ = word.partition("=")
    if word.startswith("-Wp,"):
        return all(part.startswith(_FOR_PREPROCESSOR) for part in word.split(",")[1:])
    if word.startswith("-Wa,"):
        return _FOR_ASSEMBLER.issuperset(word.split(",")[1:])
    if word.startswith("-f") and not equals and word[2:].removeprefix("no-") in _FLAGS:
        return True
    alone = word in _WORDS or word in _WITH_VALUE or word == "-O"
    joined = word.startswith(_JOINED) and not word.startswith(_NOT_JOINED)
    return alone or joined or bool(equals and name in _VALUES)


_DEEPEST = 20
_SPACES = " \t\n\r\v\f\0"


class ResponseError(Exception):
    """A response file that cannot be read: clang has its own words for that."""


def expand(words: list[str], depth: int = 0) -> list[str]:
    """Replace response files by their words; a file that is not there stays a word.

    Raises:
        ResponseError: one cannot be read, or they name each other.
    """
    if not any(word.startswith("@") for word in words):
        return words
    if depth == _DEEPEST:
        raise ResponseError("response files name each other")
    found: list[str] = []
    for word in words:
        if word.startswith("@") and os.path.isfile(word[1:]):
            found += expand(split(_read(word[1:])), depth + 1)
        else:
            found.append(word)
    return found


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ResponseError(str(error)) from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "surrogateescape")
    return os.fsdecode(data.removeprefix(b"\xef\xbb\xbf"))


def split(text: str) -> list[str]:
    """Split a response file as GNU tools do: quotes and backslashes as in a shell, nothing else."""
    words: list[str] = []
    word: list[str] | None = None
    quote = ""
    characters = iter(text)
    for character in characters:
        if not quote and character in _SPACES:
            if word is not None:
                words.append("".join(word))
            word = None
            continue
        word = [] if word is None else word
        if character == "\\" and quote != "'":
            word.append(next(characters, ""))
        elif character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
        else:
            word.append(character)
    return words if word is None else [*words, "".join(word)]


def _configured(path: str) -> list[str]:
    """Return the words of a configuration file.

    Raises:
        ResponseError: it cannot be read, or clang would look for it in its own folders, or it names others.
    """
    if "/" not in path:
        raise ResponseError(f"{path} has no folder")
    lines = _read(path).replace("\\\n", " ").splitlines()
    words = split("\n".join(line for line in lines if not line.lstrip().startswith("#")))
    if any(word.startswith("@") or "<CFGDIR>" in word for word in words):
        raise ResponseError(f"{path} names other files")
    return words


def translated(words: list[str]) -> list[str]:
    """Spell out `-Wp,-MD,FILE` as clang does: Linux, BusyBox and U-Boot compile everything with it."""
    found: list[str] = []
    for word in words:
        parts = word.split(",")
        if len(parts) == 3 and parts[0] == "-Wp" and parts[1] in ("-MD", "-MMD"):
            found += [parts[1], "-MF", parts[2]]
        else:
            found.append(word)
    return found


C, CXX = "c", "c++"
LANGUAGES = {"c": C, "cpp-output": C, "c++": CXX, "c++-cpp-output": CXX}
"""Names that `-x` has for the languages that are improved."""
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
_LTO = frozenset(("-flto", "-flto=full", "-flto=thin", "-flto=auto", "-fno-lto"))
_ASK_BEGINNINGS = ("-print-", "--print-", "--help", "-rewrite", "-emit-", "-ccc-print", "-module-file-info")
# What does not follow from the unoptimized bitcode, and has no part in making code of it.
_FRONT_JOINED = ("-I", "-D", "-U", "-MF", "-MT", "-MQ", "-isystem", "-iquote", "-idirafter", "-L", "-l")
_FRONT_SEPARATE = frozenset(
    (*_FRONT_JOINED, "-include", "-imacros", "-o", "-x", "-isystem-after", "-cxx-isystem")
)
_FRONT_ALONE = frozenset(("-c", "-MD", "-MMD", "-MP", "-MV"))


def grouped(words: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of a command line with their indices: an option with the word that is its value."""
    index = 0
    while index < len(words):
        group = list(words[index : index + 1 + (words[index] in _SEPARATE)])
        yield index, group
        index += len(group)


class Source:
    """A source file: its index among the words, its path, and its language; None: not one of ours."""

    __slots__ = ("index", "language", "path")

    def __init__(self, index: int, path: str, language: str | None) -> None:
        self.index, self.path, self.language = index, path, language


class Invocation:
    """A command line, parsed.

    Attributes:
        words: it, without the program, response files expanded.
        level: the last -O; empty where there is none.
        compiles: whether it ends with objects (-c).
        output: what -o names; None where it names nothing.
        sources: to be compiled or assembled.
        linked: indices of inputs that are neither, such as objects.
        language_given: whether -x is there.
        makes_dependencies: whether -MD or -MMD is there.
        dependency_file: what -MF names; None where it names nothing.
        has_target: whether -MT or -MQ is there.
        has_lto: whether it asks for link-time optimization.
        asks: whether it asks for something else than an object or a program.
        configurations: paths of configuration files that --config names.
        keeps: an option that is not known to have no other effect than on the object; empty: there is none.
    """

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.level = ""
        self.compiles = self.makes_dependencies = self.has_target = self.language_given = self.asks = False
        self.has_lto = False
        self.output: str | None = None
        self.dependency_file: str | None = None
        self.sources: list[Source] = []
        self.linked: set[int] = set()
        self.configurations: list[str] = []
        self.keeps = ""
        self._language = "none"
        self._read()

    @property
    def is_small(self) -> bool:
        """Return whether it asks for small code."""
        return self.level in _SIZE

    @property
    def may_link_small(self) -> bool:
        """Return whether it links with -flto, and asks for no other level than that of its objects."""
        return self.has_lto and not self.compiles and (self.is_small or not self.level)

    @property
    def is_fast(self) -> bool:
        """Return whether it asks for fast code."""
        return self.level in _TIME

    def _read(self) -> None:
        for index, (word, *value) in grouped(self.words):
            if word == "--":  # what follows are inputs; seldom, and not worth a second way of reading
                self.keeps = self.keeps or word
            if word == "-" or not word.startswith("-"):
                self._input(index, word)
            else:
                self._option(word, value[0] if value else None)

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
        elif word in _LTO:
            self.has_lto = word != "-fno-lto"
        elif word == "--config" or word.startswith("--config="):
            self._configuration(word, word.partition("=")[2] if value is None else value)
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

    def _configuration(self, word: str, path: str) -> None:
        """Read a configuration file; one with options on other things than code and headers is clang's."""
        try:
            words = _configured(path)
        except ResponseError:
            words = ["-"]
        more = Invocation(words)
        others = more.keeps or more.asks or more.level or more.sources or more.linked or more.language_given
        others = others or more.output or more.dependency_file or more.configurations
        if others or more.compiles or more.has_lto or more.makes_dependencies:
            self.keeps = self.keeps or word
        else:
            self.configurations.append(path)

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


def with_full_lto(words: list[str]) -> list[str]:
    """Ask for one module in place of thin ones: the search is for whole programs."""
    return ["-flto=full" if word == "-flto=thin" else word for word in words]


def code_options(words: list[str]) -> list[str]:
    """Leave of a command line, without its inputs, what has a part in making code of bitcode."""
    front = _FRONT_ALONE | _FRONT_SEPARATE
    return [
        word
        for _, group in grouped(words)
        if group[0].startswith("-") and group[0] not in front
        if not group[0].startswith((*_FRONT_JOINED, "-x", "-o"))
        for word in group
    ]
