"""What a program in a cage may not do, shown by C programs that try: each does it where there is no cage."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from planish.core import PlanishError
from planish.isolation import landlock, seccomp
from planish.isolation.cage import told
from planish.llvm.execution import find_linker

PROBES = """
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int said(int result) { puts(result < 0 ? strerrorname_np(errno) : "done"); return 0; }

int main(int count, char **words) {
  char *what = words[1], *on = count > 2 ? words[2] : "";
  if (!strcmp(what, "write")) return said(open(on, O_WRONLY | O_CREAT, 0600));
  if (!strcmp(what, "truncate")) return said(truncate(on, 0));
  if (!strcmp(what, "remove")) return said(unlink(on));
  if (!strcmp(what, "read")) return said(open(on, O_RDONLY));
  if (!strcmp(what, "connect")) {
    struct sockaddr_in to = {AF_INET, htons(atoi(on)), {htonl(INADDR_LOOPBACK)}};
    int end = socket(AF_INET, SOCK_STREAM, 0);
    return said(end < 0 ? end : connect(end, (struct sockaddr *)&to, sizeof to));
  }
  if (!strcmp(what, "unix")) return said(socket(AF_UNIX, SOCK_STREAM, 0));
  if (!strcmp(what, "setsid")) {
    int child = fork(), state;
    if (!child) exit(setsid() < 0 ? errno : 0);
    waitpid(child, &state, 0);
    errno = WEXITSTATUS(state);
    return said(errno ? -1 : 0);
  }
  if (!strcmp(what, "kill")) return said(kill(atoi(on), SIGTERM));
  if (!strcmp(what, "tgkill")) return said(syscall(SYS_tgkill, atoi(on), atoi(on), SIGTERM));
  if (!strcmp(what, "ptrace")) return said(ptrace(PTRACE_TRACEME, 0, 0, 0));
  if (!strcmp(what, "unshare")) return said(unshare(CLONE_NEWUSER));
  if (!strcmp(what, "linger")) {
    if (fork()) return 0;
    if (fork()) return 0;
    printf("%d\\n", getpid());
    fflush(stdout);
    close(1);
    sleep(60);
  }
  if (!strcmp(what, "fork")) {
    for (int children = 0;; ++children) {
      int child = children < 500 ? fork() : 1;
      if (children == 500) return said(0);
      if (child < 0) return said(-1);
      if (!child) { close(1); sleep(60); exit(0); }
    }
  }
  return 1;
}
"""
HELPER = """
import json, os, subprocess, sys, tempfile
from pathlib import Path
from planish.isolation import cage, confinement, strays
program, confined, reads, user = sys.argv[1], sys.argv[2] == "yes", *map(json.loads, sys.argv[3:5])
confinement._PROCESSES = 40
lacking = cage.enter(cage.Cage(tuple(reads))) if confined else ()
own = {"WORKER": str(os.getpid()), "SCRATCH/file": tempfile.gettempdir() + "/file"}
words = [own.get(word, word) for word in sys.argv[5:]]
done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, user=user)
strays.end_strays()
print(json.dumps([done.stdout.decode().strip(), lacking]))
"""
FILES, CALLS, SIGNALS = "no Landlock", "no seccomp", "signals to your other processes"


def need(lacking: str) -> None:
    if lacking in told():
        pytest.skip(told())


@dataclass(frozen=True)
class Prober:
    """Runs a probe, in a cage or free.

    Args:
        program: the executable.
        scratch: the folder that is its scratch.
    """

    program: Path
    scratch: Path

    def free(self, *words: object) -> str:
        return self._run("no", (), words, None)

    def caged(self, *words: object, reads: tuple[str, ...] = (), user: int | None = None) -> str:
        return self._run("yes", (str(self.program), *reads), words, user)

    def _run(self, confined: str, reads: tuple[str, ...], words: tuple[object, ...], user: int | None) -> str:
        helper = [
            sys.executable,
            "-c",
            HELPER,
            str(self.program),
            confined,
            json.dumps(reads),
            json.dumps(user),
        ]
        done = subprocess.run(
            [*helper, *map(str, words)],
            capture_output=True,
            text=True,
            env={**os.environ, "TMPDIR": str(self.scratch)},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said, lacking = json.loads(done.stdout)
        assert lacking == []
        return said


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    """Give the program, where any user can run it."""
    try:
        linker = find_linker()
    except PlanishError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "scratch").mkdir()
        (folder / "scratch").chmod(0o777)
        (folder / "probes.c").write_text(PROBES)
        subprocess.run([*linker, str(folder / "probes.c"), "-o", str(folder / "probes")], check=True)
        yield Prober(folder / "probes", folder / "scratch")


@pytest.mark.parametrize("what", ["write", "truncate", "remove", "read"])
def test_files_outside_of_the_scratch_are_out_of_reach(prober: Prober, what: str, tmp_path: Path) -> None:
    need(FILES)
    secret = tmp_path / ".ssh"
    secret.write_text("key")
    assert prober.caged(what, secret) == "EACCES"
    assert secret.read_text() == "key"
    assert prober.free(what, secret) == "done"


def test_the_scratch_may_be_written_and_the_system_read(prober: Prober, tmp_path: Path) -> None:
    need(FILES)
    assert prober.caged("write", "SCRATCH/file") == "done"
    assert prober.caged("write", "/dev/null") == "done"
    assert prober.caged("read", "/etc/passwd") == "done"
    named = tmp_path / "input"
    named.touch()
    assert prober.caged("read", named, reads=(str(named),)) == "done"
    assert prober.caged("write", named, reads=(str(named),)) == "EACCES"


def test_there_is_no_network(prober: Prober) -> None:
    need(CALLS)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert prober.caged("connect", port) == "EPERM"
        assert prober.free("connect", port) == "done"
    assert prober.caged("unix") == "EPERM"


@pytest.mark.parametrize("what", ["setsid", "ptrace"])
def test_calls_that_lead_out_are_refused(prober: Prober, what: str) -> None:
    need(CALLS)
    assert prober.caged(what) == "EPERM"
    assert prober.free(what) == "done"


def test_no_namespaces_are_made(prober: Prober) -> None:
    need(CALLS)
    assert prober.caged("unshare") == "EPERM"


@pytest.mark.parametrize("what", ["kill", "tgkill"])
def test_who_started_it_cannot_be_killed(prober: Prober, what: str) -> None:
    need(CALLS)
    assert prober.caged(what, "WORKER") == "EPERM"


@pytest.mark.parametrize("whom", [0, -1])
def test_neither_can_its_group_or_everybody(prober: Prober, whom: int) -> None:
    need(CALLS)
    assert prober.caged("kill", whom) == "EPERM"


def test_others_cannot_be_killed(prober: Prober) -> None:
    need(SIGNALS)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert prober.caged("kill", other.pid) == "EPERM"
        assert other.poll() is None
        assert prober.free("kill", other.pid) == "done"
        assert other.wait(10) == -15


def test_who_lingers_is_ended(prober: Prober) -> None:
    pid = int(prober.caged("linger"))
    assert not Path(f"/proc/{pid}").exists()
    pid = int(prober.free("linger"))
    os.kill(pid, 9)  # raises where it is not there


def test_processes_are_bounded(prober: Prober) -> None:
    """Root has no such bound, so it is somebody else's."""
    user = 65534 if os.geteuid() == 0 else None
    assert prober.caged("fork", user=user) == "EAGAIN"


def test_a_cage_is_for_good() -> None:
    code = (
        "from planish.isolation.cage import Cage, enter\nfor _ in 1, 2: enter(Cage())\nenter(Cage(('/srv',)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.rstrip().endswith("Use another worker.")


def test_it_is_told_what_holds() -> None:
    assert ("Landlock (ABI" in told()) == bool(landlock.abi())
    assert (", seccomp" in told()) == seccomp.is_there()
    assert ("root has no limit" in told()) == (os.geteuid() == 0)


def test_without_filters_the_network_goes_by_a_namespace() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = (
            "import os, socket, sys\nfrom planish.isolation.namespaces import leave_network\n"
            "if why := leave_network():\n    sys.exit(why)\n"
            "assert os.access(sys.argv[2], os.W_OK), 'it is who it was'\n"
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
        "import subprocess, sys\nfrom planish.measure import seccomp\nassert seccomp.restrict() == ''\n"
        "import socket\nsocket.socket(socket.AF_UNIX).close()\n"
        "inner = 'import socket; socket.socket()'\n"
        "sys.exit(subprocess.run([sys.executable, '-c', inner], stderr=subprocess.DEVNULL).returncode)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1
