"""Options of clang that bring no input into an object but their own words, and headers that clang lists.

The cache has one rule: **a key holds every byte and variable that can change the object.** The words of a
command line are in the key. So an option may be here if all it does follows from its own word: its value is
no file (or is a file of the linker's, which runs each time), it reads no file by a fixed name, and clang
writes nothing besides the object and its dependencies. Whatever is not here is clang's own affair: its object
is neither taken from the cache nor kept there. That holds for options of a later clang, too.
"""

from __future__ import annotations

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
    for name in """autolink coverage-mapping crash-diagnostics lto modules openmp-target-debug plugin
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
