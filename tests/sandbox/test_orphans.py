"""No worker outlives its parent, whatever it and its children are busy with."""

import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.processes import diary, dies_out, living

PARENT = """
import sys
from pathlib import Path
from planish.core import Candidate, evaluate
from planish.executors import LocalExecutor
from planish.testing.acting import Act, Diary
diary, lock, *names = sys.argv[1:]
executor = LocalExecutor(Diary(Path(diary)), lock=Path(lock))
print("answered", *evaluate(executor, [Candidate()]), flush=True)
print(*evaluate(executor, [Candidate(tuple(Act(name) for name in names))]), flush=True)
input()
"""


@pytest.mark.parametrize("acts", [["spin"], ["spin in C"], ["fork", "spin"], ["fork"]])
def test_workers_die_with_a_parent_that_is_killed(tmp_path: Path, acts: list[str]) -> None:
    book = tmp_path / "diary"
    command = [sys.executable, "-c", PARENT, str(book), str(tmp_path / "lock"), *acts]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        _wait_for(book, lines=2)
        ((group, _), _) = diary(book)
        while len(living(group)) < 1 + acts.count("fork"):
            assert parent.poll() is None
        parent.kill()
    assert dies_out(group)


def _wait_for(book: Path, lines: int) -> None:
    while len(diary(book)) < lines:
        pass
