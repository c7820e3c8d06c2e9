"""Process of a pass probe: `python -m planish.levels.graph.pass_probe_server LIFELINE`.

It answers lines of JSON from standard input, the first of which names the model, by plain data
(`planish.sandbox.plain_data`). What passes print goes to standard error, and is never read as an answer.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from planish.core import PlanishError
from planish.core.disk_cache import DiskCache
from planish.levels.graph.evaluator import sandbox_of
from planish.levels.graph.model_protos import identity, node_counts
from planish.levels.graph.pass_probe import Optimised, reply_type
from planish.levels.graph.program import program_from
from planish.levels.graph.rewriting import Rewriter
from planish.levels.graph.sessions import SessionSettings, first_line, open_session
from planish.sandbox.confinement import apply_sandbox, die_with_parent, settle
from planish.sandbox.plain_data import dumps, framed

_FIRED = re.compile(rb"GraphTransformer (\S+) modified: ([01])")


class Examining:
    """Answers questions about one model.

    Args:
        rewriter: applies passes.
        settings: of the runtime's sessions.
        scratch: a folder for files.
    """

    def __init__(self, rewriter: Rewriter, settings: SessionSettings, scratch: Path) -> None:
        self._rewriter, self._settings, self._scratch = rewriter, settings, scratch

    def name(self, rewrites: Sequence[str]) -> str:
        """Name the model after some passes."""
        return self._rewriter.model_key(rewrites)

    def counts(self, rewrites: Sequence[str]) -> Mapping[str, int]:
        """Count the nodes by type after some passes."""
        return node_counts(self._rewriter.model(rewrites))

    def load(self, rewrites: Sequence[str]) -> bool:
        """Load the model after some passes; raises RefusedError where the runtime does not take it."""
        open_session(self._rewriter.rewritten(rewrites).file, self._settings, as_it_is=True)
        return True

    def fired(self, rewrites: Sequence[str]) -> Mapping[str, bool]:
        """Return which of the runtime's transformers there are, and whether they change the model."""
        log = _said(
            lambda: open_session(self._rewriter.rewritten(rewrites).file, self._settings, verbose=True)
        )
        found: dict[str, bool] = {}
        # A transformer runs more than once, in several steps: any of them counts.
        for name, modified in _FIRED.findall(log):
            found[name.decode()] = found.get(name.decode(), False) or modified == b"1"
        return found

    def optimised(self, rewrites: Sequence[str], disabled: Sequence[str], optimization: str) -> Optimised:
        """Name and count what the runtime makes of the model where some of its passes are left out."""
        import onnx

        kept = self._scratch / "optimised.onnx"
        settings = replace(self._settings, optimization=optimization or self._settings.optimization)
        file = self._rewriter.rewritten(rewrites).file
        open_session(file, settings, disabled, keep=kept)
        made = onnx.load(kept, load_external_data=False)
        # The runtime names the files of weights that it did not change as they stand beside the model.
        onnx.load_external_data_for_model(made, str(file.parent))
        return Optimised(identity(made), node_counts(made))

    def write(
        self, rewrites: Sequence[str], disabled: Sequence[str], names: Sequence[str], how: Sequence[str]
    ) -> bool:
        """Write the model after some passes to the scratch folder; optimised by the runtime if "offline"."""
        import onnx

        file = self._scratch / names[0]
        if "offline" in how:
            made = self._rewriter.rewritten(rewrites).file
            open_session(made, self._settings, disabled, keep=file, apart=True)
        else:
            onnx.save(self._rewriter.model(rewrites), file)
        return True


def _said(work: Callable[[], object]) -> bytes:
    """Do work, and give what native code wrote to standard error meanwhile."""
    with tempfile.TemporaryFile() as file:
        # By descriptor: native code writes past Python's sys.stderr.
        old = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            work()
        finally:
            os.dup2(old, 2)
            os.close(old)
        file.seek(0)
        return file.read()


def main(lifeline: int) -> None:
    """Answer until standard input ends."""
    die_with_parent(lifeline)
    settle()
    # Kept apart, for libraries print to standard output as they like.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    first = json.loads(sys.stdin.readline())
    scratch = Path(first["scratch"])
    program, settings = program_from(first["program"]), SessionSettings(**first["settings"])
    # Before libraries are loaded, whose threads could not be confined later.
    apply_sandbox(sandbox_of(program, settings))
    examining: Examining | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            examining = examining or Examining(
                Rewriter(program, DiskCache(scratch), scratch), settings, scratch
            )
            answer, why = getattr(examining, asked["what"])(*asked["of"]), ""
        except PlanishError as error:
            answer, why = None, error.message
        # Libraries raise anything on a model that they did not foresee.
        except Exception as error:  # noqa: BLE001
            answer, why = None, f"{type(error).__name__}: {first_line(error)}"
        answers.write(framed(dumps((answer, why, time.process_time()), reply_type(asked["what"]))))
        answers.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
