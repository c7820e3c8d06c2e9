"""A candidate that is run by a real worker, and tries to do harm: it is measured, and nothing came of it."""

import os
import socket
from pathlib import Path

import pytest

from levels.llvm.modules import COUNTED, require_linker
from levels.llvm.test_evaluator import SMALL, make
from planish.core import Measured, evaluate
from planish.levels.llvm.task_setup import evaluator_spec_of
from planish.measure.executors import LocalExecutor
from planish.sandbox import linux

pytestmark = pytest.mark.usefixtures("new_interpreters")
ATTACKER = """
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
static int count;
int bump(void) {{ return ++count; }}
int counted(void);
int main(void) {{
  struct sockaddr_in to = {{AF_INET, htons({port}), {{htonl(INADDR_LOOPBACK)}}}};
  int end = socket(AF_INET, SOCK_STREAM, 0), key = open("{secret}", O_RDWR);
  if (key >= 0 && write(key, "stolen", 6)) {{}}
  if (!connect(end, (struct sockaddr *)&to, sizeof to) && write(end, "hi", 2)) {{}}
  kill({parent}, SIGTERM);
  kill(getppid(), SIGTERM);
  for (int number = 0; number < 64; ++number) {{
    char pipe[64];
    snprintf(pipe, sizeof pipe, "/proc/%d/fd/%d", getppid(), number);
    int end = open(pipe, O_WRONLY | O_NONBLOCK);
    if (end >= 0 && write(end, "not an answer", 13)) {{}}
  }}
  kill(0, SIGTERM);
  if (!fork() && !fork()) {{
    setsid();
    close(1);
    execlp("sleep", "sleep", "61.{port}", NULL);
  }}
  FILE *own = fopen("scratch", "w");
  if (!own) return 1;
  fclose(own);
  return counted() < 1;
}}
"""


@pytest.mark.skipif(linux.abi() < linux.SCOPED, reason="this kernel's Landlock knows no signals")
@pytest.mark.skipif(not linux.is_there(), reason="this system has no seccomp")
def test_a_program_that_attacks_reaches_nothing(tmp_path: Path) -> None:
    require_linker()
    secret = tmp_path / "secret"
    secret.write_text("key")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.0)
        port = server.getsockname()[1]
        attacker = ATTACKER.format(port=port, secret=secret, parent=os.getpid())
        (tmp_path / "h.c").write_text(attacker)
        task = make(COUNTED, "time_s", harness=str(tmp_path / "h.c"))
        with LocalExecutor(evaluator_spec_of(task), lock=tmp_path / "lock") as executor:
            (answer,) = evaluate(executor, [SMALL])
            assert executor.notes == ()
            assert isinstance(answer.outcome, Measured), answer.outcome
            assert f"sleep\x0061.{port}\0" not in _running(), "what lingers is gone before the worker is"
        with pytest.raises(BlockingIOError):
            server.accept()
    assert secret.read_text() == "key"


def _running() -> set[str]:
    found: set[str] = set()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.add(process.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found
