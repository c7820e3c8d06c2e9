"""Compilation of a whole command line: whether planish handles it, and each of its objects.

An object comes from the cache where it is known, also without a start of clang (see `manifest`). Else clang
makes it, and a smaller one is searched for. One clang differs from another by its program, the libraries
that it loads, and configuration files that add options.
"""

from __future__ import annotations

import os
from time import monotonic

from planish.cc.arguments import Invocation, Source
from planish.cc.clang import Compiler, Unit, read_file, run, shell_code, wait
from planish.cc.job import CompileJob, left_to_clang, note, refused
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest, open_cache
from planish.cc.settings import CompileSettings, ReadsFilesError, SearchError, pass_on, say

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from collections.abc import Sequence

_KIND = "installations"
_FOLDERS = (b"System configuration file directory: ", b"User configuration file directory: ")
INSTALLATION_VARIABLES = ("HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "CLANG_NO_DEFAULT_CONFIG")
"""Variables from which the files follow, or whether they count."""
_ASK = ("-v", "-###", "-x", "c", "-c", "/dev/null")
_CLANG = b"clang version "
_DEEPEST = 9
"""Files may name others; clang refuses what names itself."""


def find_installation(compiler: Compiler, cache: ObjectCache, configurations: Sequence[str] = ()) -> bool:
    """Set what distinguishes a compiler's installation; False where it is not clang.

    Which of the configuration files clang reads follows from its name and the target. All in the folders
    where it looks are taken: that is right for any, and asks clang nothing.

    Args:
        compiler: whose it is.
        cache: keeps which files belong to it, for which clang is asked once.
        configurations: files that the command line names, too.
    """
    variables = [os.fsencode(os.environ.get(name, "")) for name in INSTALLATION_VARIABLES]
    key = digest(compiler.identity.encode(), *variables)
    data = cache.read(_KIND, key)
    if data is None:
        data = _asked(compiler)
        if not data:
            return False
        cache.put(_KIND, key, data)
    folders, _, programs = data.partition(b"\0\0")
    parts = [*variables, *map(_stamp, programs.split(b"\0"))]
    own = os.fsencode(os.path.dirname(os.path.realpath(compiler.path)))
    for folder in (own, *filter(None, folders.split(b"\0"))):
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(b".cfg"))
        except OSError:
            continue
        for name in names:
            parts += _configuration(folder + b"/" + name, _DEEPEST)
    for path in configurations:
        parts += _configuration(os.fsencode(path), _DEEPEST)
    compiler.installation = digest(*parts)
    return True


def _asked(compiler: Compiler) -> bytes:
    """Ask clang for the folders of its configuration, its program and libraries; empty where it is not clang.

    The program is another one than the compiler's where that is a script, or a wrapper.
    """
    ended = run([*compiler.command, *_ASK])
    if _CLANG not in ended.messages:
        return b""
    lines = ended.messages.splitlines()
    folders = [line[len(said) :] for line in lines for said in _FOLDERS if line.startswith(said)]
    program = next((line.split(b'"')[1] for line in lines if b'"-cc1"' in line), b"")
    # The loader lists what it would load, and does not start the program.
    loaded = run([os.fsdecode(program)], LD_TRACE_LOADED_OBJECTS="1").written if program else b""
    words = [word for line in loaded.splitlines() for word in line.split() if word.startswith(b"/")]
    return b"\0\0".join([b"\0".join(folders), b"\0".join([program, *words])])


def _stamp(path: bytes) -> bytes:
    """Name a file, and which version of it is there."""
    try:
        found = os.stat(path)
    except OSError:
        return path
    return b"%b %d %d" % (path, found.st_size, found.st_mtime_ns)


def _configuration(path: bytes, depth: int) -> list[bytes]:
    """Return a file's name and content, and those of the files that it names."""
    data = read_file(path)
    if data is None:
        return [path]
    parts = [path, data]
    for word in data.split() if depth else ():
        if word.startswith(b"@"):
            parts += _configuration(os.path.join(os.path.dirname(path), word[1:].strip(b"\"'")), depth - 1)
    return parts


def make_alone(job: CompileJob) -> int:
    """Make one of several objects, by clang where planish does not; return the exit code."""
    return 0 if make(job) else _make_by_clang(job)


def _make_by_clang(job: CompileJob) -> int:
    ended = job.run_clang()
    pass_on(ended.messages)
    return shell_code(ended.code)


def _make_bitcode(job: CompileJob) -> int:
    """Have clang make bitcode, which is optimized when it is linked; return the exit code."""
    code = _make_by_clang(job)
    if not code and (job.settings.program_seconds or job.settings.lock):
        from planish.cc.unoptimized import keep_unoptimized

        keep_unoptimized(job)
    return code


def make(job: CompileJob) -> bool:
    """Make an object; False where clang has to make it, or to say why it cannot be made."""
    try:
        return _make(job)
    except SearchError as error:  # of the lock file
        job.settings.fall_back(f"{job.unit.source}: {error}")
        return False


def _make(job: CompileJob) -> bool:
    job.open_lock()
    # What was found without a lock file is to be entered in it.
    is_entered = job.lock is None or bool(job.lock.entries)
    if is_entered and (found := job.manifest.get()):
        entry, dependencies = job.known(found[0]), job.unit.dependency_file
        if entry and (dependencies is None or _written(dependencies, found[1])):
            return _take(job, entry)
    if not job.run_front_end():
        return False
    job.match_lock()
    if entry := job.known(job.key):
        if job.lock and not job.locked and not entry.is_clangs:
            job.enter_in_lock(entry.about)
            job.cache.keep(job.key, entry)
        if job.needs_no_clang(entry):
            job.manifest.put(job.key, job.reading())
        return _take(job, entry)
    if job.lock and not job.locked and not job.settings.seconds:
        raise SearchError(f"{job.lock.path} has no entry of it, and there is no time to search")
    return bool(job.locked or job.settings.for_time or job.settings.seconds) and _search(job)


def _take(job: CompileJob, entry: CachedObject) -> bool:
    """Write the object that is known, and say what clang would; False where clang shall make it."""
    if entry.is_clangs:
        job.note("clang", entry.about)
        return False
    messages = job.messages
    if entry.has_diagnostics:
        ended = job.run_clang()
        if ended.code:
            return False
        messages = ended.messages
    pass_on(messages)
    if not _written(job.unit.output, entry.code):
        return False
    job.note("known", entry.about, job.seconds)
    return True


def _written(path: str, data: bytes) -> bool:
    """Write a file; False where it cannot be: clang finds another way, or says what is wrong."""
    try:
        atomic_write(path, data)
    except OSError:
        return False
    return True


def _search(job: CompileJob) -> bool:
    """Have clang make the object, and search for a smaller one or record what it was made of.

    Returns:
        False where clang has to say why it cannot be made.
    """
    from planish.cc.interrupts import Stoppable  # here: a known object needs none

    with Stoppable():
        own = job.run_clang()
        if own.code:
            return False
        job.clang_s, job.has_diagnostics = job.seconds, own.messages != job.messages
        pass_on(own.messages)
        try:
            if job.settings.for_time:
                from planish.cc.timed_program import keep_timed_unit

                job.note("compiled", keep_timed_unit(job), job.seconds)
            else:
                from planish.cc.optimize import improve

                if entry := improve(job):
                    job.keep(entry)
                    job.note("searched", entry.about, job.seconds)
        except ReadsFilesError as error:
            entry = left_to_clang(str(error))
            job.keep(entry)
            job.note("clang", entry.about)
        return True


def compile_and_link(
    compiler: Compiler, invocation: Invocation, settings: CompileSettings, cache: ObjectCache
) -> int:
    """Make a program: each source by itself, then clang links the objects. Return the exit code."""
    import tempfile  # here: a known object needs neither

    from planish.cc.interrupts import Stoppable

    words = list(invocation.words)
    program = invocation.output or "a.out"
    failed = 0
    with Stoppable(), tempfile.TemporaryDirectory(prefix="planish-") as folder:
        for source in invocation.sources:
            if source.language:
                name = os.path.splitext(os.path.basename(source.path))[0]
                path = os.path.join(folder, f"{name}-{source.index}.o")
                unit = Unit(compiler, invocation, source, path, program)
                job = CompileJob(unit, settings, cache)
                failed = (_make_bitcode if invocation.has_lto else make_alone)(job) or failed
                words[source.index] = path
        if failed:
            return failed
        if invocation.has_lto:
            from planish.cc.link import link_program

            return link_program(compiler, words, program, settings, cache, is_asked=invocation.is_small)
        command = [*compiler.command, *words, "-Qunused-arguments"]
        code = shell_code(wait(os.posix_spawn(compiler.path, command, os.environ)))
        if not code and settings.for_time:
            _speed_up(compiler, words, program, settings, cache)
        return code


def _speed_up(
    compiler: Compiler, words: list[str], program: str, settings: CompileSettings, cache: ObjectCache
) -> None:
    """Exchange objects of a program for faster ones, and link it again.

    Raises:
        UsageError: that cannot be done, and has to be (--planish-strict).
    """
    from planish.cc.timed_program import TimedProgram
    from planish.core import PlanishError

    began, seconds = monotonic(), settings.program_seconds
    try:
        timed = TimedProgram(compiler, words, settings.run, cache)
        if known := timed.known(seconds):
            how, (about, objects) = "known", known
        elif not seconds:
            how, about, objects = "clang", refused("there is no time to search in"), {}
        else:
            from planish.cc.timed_search import search_program  # what is known needs no engine

            how, (about, objects) = "searched", search_program(timed, seconds)
        timed.link_again(program, objects)
    except (SearchError, PlanishError, OSError) as error:
        settings.fall_back(f"{program}: {error}", program)
    else:
        note(cache, settings, program, program, how, about, monotonic() - began)


VARIABLES = (
    *("CCC_OVERRIDE_OPTIONS", "QA_OVERRIDE_GCC3_OPTIONS", "RC_DEBUG_OPTIONS", "AS_SECURE_LOG_FILE"),
    *("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "CC_LOG_DIAGNOSTICS", "CC_PRINT_HEADERS"),
    *("CC_PRINT_OPTIONS", "CC_PRINT_PROC_STAT", "CC_PRINT_INTERNAL_STAT"),
)
"""Variables by which clang takes other options, or writes something else besides."""


def compile_all(compiler: Compiler, invocation: Invocation, settings: CompileSettings) -> int | None:
    """Make a command line's objects, and link them where it says so.

    Returns:
        The exit code; None where clang shall do it all by itself: as for sources with errors, so that the
        messages are its own.
    """
    cache = open_cache()
    if why := _refusal(invocation, settings):
        for source in invocation.sources:
            if source.language:
                note(cache, settings, _output(invocation, source), source.path, "clang", refused(why), 0.0)
        return None
    if not find_installation(compiler, cache, invocation.configurations):
        settings.fall_back(f"{compiler.path} is not clang", kept="its own result")
        return None
    try:
        if not invocation.compiles:
            return compile_and_link(compiler, invocation, settings, cache)
        outputs = [_output(invocation, source) for source in invocation.sources]
        pairs = zip(invocation.sources, outputs, strict=True)
        units = [Unit(compiler, invocation, source, path, path) for source, path in pairs]
        if invocation.has_lto:
            return max(_make_bitcode(CompileJob(unit, settings, cache)) for unit in units)
        if len(units) == 1:
            return 0 if make(CompileJob(units[0], settings, cache)) else None
        return max([make_alone(CompileJob(unit, settings, cache)) for unit in units])
    finally:
        if cache.error:
            say(f"warning: {cache.error}")


def _output(invocation: Invocation, source: Source) -> str:
    if invocation.output is not None:
        return invocation.output
    return os.path.splitext(os.path.basename(source.path))[0] + ".o"


def _refusal(invocation: Invocation, settings: CompileSettings) -> str:
    """Return why clang's own result must stay; empty where it need not."""
    output = invocation.output
    if variable := next(filter(os.environ.get, VARIABLES), None):
        return f"the variable {variable} changes what clang does"
    if invocation.keeps:
        return f"planish cc does not handle {invocation.keeps}"
    if invocation.has_lto and settings.for_time:
        return "planish cc does not handle -flto with --planish-objective time"
    if any(source.path == "-" or not os.path.isfile(source.path) for source in invocation.sources):
        return "a source can be read only once"
    if output is not None and (
        output == "-" or os.path.islink(output) or (os.path.exists(output) and not os.path.isfile(output))
    ):
        return f"the output {output} is not a file"
    return _refusal_to_compile(invocation) if invocation.compiles else _refusal_to_link(invocation)


def _refusal_to_compile(invocation: Invocation) -> str:
    if any(source.language is None for source in invocation.sources):
        return "a source is neither C nor C++"
    shared = invocation.output is not None or invocation.dependency_file is not None
    return "several sources have one output" if shared and len(invocation.sources) > 1 else ""


def _refusal_to_link(invocation: Invocation) -> str:
    if invocation.makes_dependencies and invocation.sources:
        return "it links, and writes dependencies"
    return "it links, and says what language its inputs are in" if invocation.language_given else ""
