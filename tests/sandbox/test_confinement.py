"""What security.md says of confinement, shown by a C program that tries: it can where nothing confines it."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from planish.core import PlanishError
from planish.levels.llvm.execution import find_linker
from planish.sandbox import linux
from planish.sandbox.confinement import sandbox_status

HELPER = """
# All that is needed later is loaded now: another user may be unable to read this Python.
import concurrent.futures.thread, encodings.ascii, json, os, subprocess, sys, tempfile
from pathlib import Path
from planish.sandbox import confinement
from planish.sandbox.confinement import SandboxPolicy, end_orphans, apply_sandbox, launch, program_environment
program, confined, reads, user = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:5])
if user:
    os.setgroups([]), os.setgid(user), os.setuid(user)
replies, pipe = os.pipe()
os.set_blocking(replies, False)
confinement._PROCESSES = 40
lacking = ()
if confined != "free":
    confinement.settle()
    confinement.cap_memory(4 << 30)
    policy = SandboxPolicy(tuple(reads)) if confined == "program" else SandboxPolicy.for_code()
    lacking = apply_sandbox(policy)
scratch = tempfile.gettempdir()
own = {"WORKER": str(os.getpid()), "SCRATCH": scratch, "file": scratch + "/file", "new": scratch + "/new"}
file = Path(scratch, "file")
def start(words):
    said = dict(stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return subprocess.run([program, *words], env=program_environment(), **said)
def tried(words):
    words = [own.get(word, word) for word in words]
    file.touch()
    done = launch(lambda: start(words)) if confined == "program" else start(words)
    end_orphans()
    for made in Path(scratch).glob("*e*"):
        made.unlink()
    return done.stdout.decode().strip()
said = [tried(words.split()) for words in sys.argv[5:]]
try:
    caught = os.read(replies, 99).decode()
except BlockingIOError:
    caught = ""
print(json.dumps([said, lacking, caught]))
"""
CALLS, FILES, SIGNALS = "no seccomp", "no Landlock", "signals to your other processes"
NOBODY = 65534
USERS = [None, NOBODY] if os.geteuid() == 0 else [None]
PAGE = Path(__file__).parents[2] / "docs" / "security.md"


def need(lacking: str) -> None:
    if lacking in sandbox_status():
        pytest.skip(sandbox_status())


@dataclass(frozen=True)
class Prober:
    """Runs a probe: free, as a program that a worker measures, or as code in a worker.

    Args:
        program: the executable.
        scratch: the folder that is its scratch.
        other: a process of the user, and a file of his.
        port: of a server that listens.
    """

    program: Path
    scratch: Path
    other: int
    file: Path
    port: int

    def run(self, confined: str, words: str, user: int | None = None, reads: Sequence[str] = ()) -> str:
        return self.run_all(confined, (words,), user, reads)[0]

    def run_all(
        self, confined: str, probes: Sequence[str], user: int | None, reads: Sequence[str] = ()
    ) -> Sequence[str]:
        """Run probes, each a name and on what, and return what each printed."""
        named = {"OTHER": self.other, "FILE": self.file, "PORT": self.port}
        own = [" ".join(str(named.get(word, word)) for word in probe.split()) for probe in probes]
        given = [json.dumps([str(self.program), *reads]), json.dumps(user)]
        secrets = {"PLANISH_STORE": "postgresql://me:secret@host", "PGPASSWORD": "secret"}
        done = subprocess.run(
            [sys.executable, "-c", HELPER, str(self.program), confined, *given, *own],
            capture_output=True,
            text=True,
            env={**os.environ, **secrets, "OMP_NUM_THREADS": "2", "TMPDIR": str(self.scratch)},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said, lacking, caught = json.loads(done.stdout)
        assert lacking == []
        assert not (confined != "free" and caught), "a program wrote to the worker's pipe"
        return said


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    """Return the program, where any user can run it."""
    try:
        linker = find_linker()
    except PlanishError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "scratch").mkdir()
        (folder / "scratch").chmod(0o777)
        source = Path(__file__).with_name("probes.c")
        subprocess.run([*linker, str(source), "-o", str(folder / "probes")], check=True)
        (folder / "file").touch()
        waits = [sys.executable, "-c", "input()"]
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            subprocess.Popen(waits, stdin=subprocess.PIPE) as other,
        ):
            port = server.getsockname()[1]
            yield Prober(folder / "probes", folder / "scratch", other.pid, folder / "file", port)
            assert other.poll() is None, "nothing confined has ended it"
            other.kill()


BOTH: Mapping[str, Sequence[tuple[str, str]]] = {
    "write, create or remove files outside of the worker's scratch folder": [
        ("write FILE", "EACCES"),
        ("truncate FILE", "EACCES"),
        ("remove FILE", "EACCES"),
        ("write new", "done"),
        ("remove file", "done"),
        ("write /dev/null", "done"),
    ],
    "use the network or any socket": [("connect PORT", "EPERM"), ("unix", "EPERM")],
    "signal your other processes": [("kill OTHER", "EPERM")],
    "change limits or priorities of your other processes": [
        ("limit OTHER", "EPERM"),
        ("renice OTHER", "EPERM"),
    ],
    "see the memory, open files or environment of your other processes": [("reach OTHER", "0")],
    "trace processes, leave its session, create namespaces, mount, use io_uring, bpf or keys": [
        ("ptrace", "EPERM"),
        ("attach OTHER", "EPERM"),
        ("setsid", "EPERM"),
        ("unshare", "EPERM"),
        ("mount SCRATCH", "EPERM"),
        ("io_uring", "EPERM"),
        ("bpf", "EPERM"),
        ("key", "EPERM"),
    ],
    "change permissions, owners, times or attributes of files, create devices or named pipes": [
        ("chmod FILE", "EPERM"),
        ("chown FILE", "EPERM"),
        ("utime FILE", "EPERM"),
        ("xattr FILE", "EPERM"),
        ("attributes FILE", "EPERM"),
        ("mkfifo new", "EPERM"),
        ("mknod new", "EPERM"),
    ],
    "create or use System V shared memory, semaphores or queues, set the clock or the host name": [
        ("shmget", "EPERM"),
        ("shmctl", "EPERM"),
        ("semctl", "EPERM"),
        ("msgctl", "EPERM"),
        ("semget", "EPERM"),
        ("msgget", "EPERM"),
        ("clock", "EPERM"),
        ("adjust", "EPERM"),
        ("hostname", "EPERM"),
    ],
    "use unlimited memory, files or disk": [
        ("private 5", "ENOMEM"),
        ("private 1", "done"),
        ("raise", "EPERM"),
        ("core", "EPERM"),
        ("grow file", "EFBIG"),
        ("files", "EMFILE"),
    ],
}
"""Rows of the first table, and probes of each: what is tried, and what comes of it."""
PROGRAMS: Mapping[str, Sequence[tuple[str, str]]] = {
    "read files, except those of the system, Python and the compiler, its own, and paths in its `--args`": [
        ("read FILE", "EACCES"),
        ("read /etc/passwd", "done"),
        ("read /dev/shm", "EACCES"),
        ("read /dev/ptmx", "EACCES"),
    ],
    "signal its worker or the worker's process group": [
        ("kill WORKER", "EPERM"),
        ("tgkill WORKER", "EPERM"),
        ("kill 0", "EPERM"),
        ("kill -1", "EPERM"),
        ("signalled WORKER", "EPERM"),
    ],
    "hold the lock of timed runs, or any lock of flock()": [("flock /etc/passwd", "EPERM")],
    "see or write the memory, open files or environment of its worker": [
        ("reach WORKER", "0"),
        ("attach WORKER", "EPERM"),
    ],
    "see environment variables other than those of the locale, the loader, the allocator and threads": [
        ("environment PLANISH_STORE", "not there"),
        ("environment PGPASSWORD", "not there"),
        ("environment OMP_NUM_THREADS", "2"),
    ],
    "have more shared memory than memory": [
        ("shared 6", "ENOMEM"),
        ("shared 0", "done"),
        ("memfd", "EPERM"),
    ],
    "leave processes behind": [("linger", "PID")],
}
"""Rows of the second table, likewise."""


def rows_of(page: str, header: str) -> list[str]:
    """List what the rows of a table say may not be done."""
    (_, table) = page.split(f"| {header} ", 1)
    lines = table.split("\n\n", 1)[0].splitlines()[2:]
    return [line.split(" | ")[0].removeprefix("| ") for line in lines]


def test_each_row_of_the_page_has_probes() -> None:
    page = PAGE.read_text()
    assert rows_of(page, "a sandboxed process cannot") == list(BOTH)
    assert rows_of(page, "your own program also cannot") == list(PROGRAMS)


def trials(tables: Sequence[Mapping[str, Sequence[tuple[str, str]]]]) -> list[tuple[str, str]]:
    return [probe for table in tables for probes in table.values() for probe in probes if probe[1] != "PID"]


def needs(words: str) -> str:
    """Tell without what a probe would not be refused."""
    what, _, on = words.partition(" ")
    if on == "OTHER" and what == "kill":
        return SIGNALS
    return FILES if what in ("write", "truncate", "remove", "read") else CALLS


@pytest.fixture(scope="module")
def results(prober: Prober) -> Callable[[str, int | None, str], str]:
    """Look up what a probe says; all of a kind are run when the first is asked for, in one worker."""

    @cache
    def run(confined: str, user: int | None) -> Mapping[str, str]:
        kinds = {"program": [BOTH, PROGRAMS], "code": [BOTH], "free": [BOTH, PROGRAMS]}
        wanted = [words for words, _ in trials(kinds[confined]) if confined != "free" or words in FREE]
        return dict(zip(wanted, prober.run_all(confined, wanted, user), strict=True))

    return lambda confined, user, words: run(confined, user)[words]


Results = Callable[[str, int | None, str], str]


@pytest.mark.parametrize("user", USERS, ids=lambda user: "me" if user is None else "nobody")
@pytest.mark.parametrize(("words", "expected"), trials([BOTH, PROGRAMS]))
def test_a_program_that_is_measured(results: Results, words: str, expected: str, user: int | None) -> None:
    need(needs(words))
    assert results("program", user, words) == expected


@pytest.mark.parametrize(("words", "expected"), trials([BOTH]))
def test_code_in_a_worker(results: Results, words: str, expected: str) -> None:
    need(needs(words))
    assert results("code", None, words) == expected


FREE = [
    *(f"{what} FILE" for what in ("write", "read", "truncate", "chmod", "chown", "utime")),
    *("connect PORT", "unix", "ptrace", "setsid", "shmget", "semget", "msgget", "memfd", "files"),
    *("shared 6", "private 5", "mkfifo new", "limit OTHER", "renice OTHER", "signalled WORKER", "raise"),
    *("shmctl", "semctl", "msgctl", "flock /etc/passwd", "read /dev/shm", "core"),
]
"""What the same program can do where nothing confines it: else a probe would show nothing."""


@pytest.mark.parametrize("words", FREE)
def test_without_confinement_it_is_possible(results: Results, words: str) -> None:
    assert results("free", None, words) == "done"


def test_without_confinement_a_program_reaches_its_parent(prober: Prober) -> None:
    assert int(prober.run("free", "look WORKER")) > 3


def test_a_file_that_is_named_may_be_read_and_not_written(prober: Prober, tmp_path: Path) -> None:
    need(FILES)
    named = tmp_path / "input"
    named.touch()
    assert prober.run("program", f"read {named}", reads=(str(named),)) == "done"
    assert prober.run("program", f"write {named}", reads=(str(named),)) == "EACCES"
    assert prober.run("code", f"read {named}") == "done"


def test_who_lingers_is_ended(prober: Prober) -> None:
    pid = int(prober.run("program", "linger"))
    assert not Path(f"/proc/{pid}").exists()
    pid = int(prober.run("free", "linger"))
    os.kill(pid, 9)  # raises where it is not there


def test_processes_are_bounded(prober: Prober) -> None:
    """Root has no such bound, so it is another user's."""
    assert prober.run("program", "fork", user=USERS[-1]) == "EAGAIN"


def test_a_sandbox_is_for_good() -> None:
    code = "from planish.sandbox.confinement import SandboxPolicy, apply_sandbox\n"
    code += "for _ in 1, 2: apply_sandbox(SandboxPolicy())\napply_sandbox(SandboxPolicy(('/srv',)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.rstrip().endswith("Use another worker.")


def test_the_status_says_what_holds() -> None:
    assert ("Landlock (ABI" in sandbox_status()) == bool(linux.abi())
    assert (", seccomp" in sandbox_status()) == linux.is_there()
    assert ("root has no limit" in sandbox_status()) == (os.geteuid() == 0)


def test_without_filters_the_network_goes_by_a_namespace() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = (
            "import os, socket, sys\nfrom planish.sandbox.linux import leave_network\n"
            "if why := leave_network():\n    sys.exit(why)\n"
            "assert os.access(sys.argv[2], os.W_OK), 'it is the same user'\n"
            "try:\n    socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)\n"
            "except OSError:\n    sys.exit(0)\nsys.exit('connected')\n"
        )
        words = [sys.executable, "-c", code, str(server.getsockname()[1]), tempfile.gettempdir()]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if "not permitted" in done.stderr or "No space left" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr


def test_every_worker_and_its_children_have_no_network() -> None:
    need(CALLS)
    code = (
        "import subprocess, sys\nfrom planish.sandbox import linux\nassert linux.restrict_calls() == ''\n"
        "import socket\nsocket.socket(socket.AF_UNIX).close()\n"
        "inner = 'import socket; socket.socket()'\n"
        "sys.exit(subprocess.run([sys.executable, '-c', inner], stderr=subprocess.DEVNULL).returncode)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
