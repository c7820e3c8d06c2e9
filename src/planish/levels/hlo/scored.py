"""Programs of this level: a module with a workload, in one text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from planish.core import ProgramError
from planish.levels.hlo.program import Program, program_again
from planish.levels.hlo.workload import Workload
from planish.levels.hlo.workload.files import with_own_files
from planish.levels.hlo.workload.spec import workload_from

_MARK = "// planish scores it by "
_CALLBACK = re.compile(r"custom_call @\"?(\w*callback\w*)")
"""XLA lets a module call functions of the process by their number."""
_NAMED = re.compile(r'planish\.function = "([^"]+)"')


@dataclass(frozen=True)
class ScoredProgram:
    """A module, and how it is run and scored.

    Args:
        workload: located, and it fits the module.
        stored: the workload as a store has it, where the program comes from one: its paths count for the text
            alone, and `workload` has those of this user's own files.
        backend: the compiler that the user asked for; empty for the preferred one. It is of the target,
            and not of the text.
    """

    module: Program
    workload: Workload
    stored: Workload | None = field(default=None, compare=False)
    backend: str = field(default="", compare=False)

    level = "hlo"

    @property
    def text(self) -> str:
        """The canonical text: a line that names it, the workload in a comment, and the module."""
        return f"// {self.title}\n{_MARK}{(self.stored or self.workload).text}\n{self.module.text}"

    @property
    def title(self) -> str:
        """The program in a few words: `@main: a step of training on mnist`."""
        named = _NAMED.search(self.module.text)
        workload = self.stored or self.workload
        data = workload.data
        name = data.name or Path(data.folder).name or data.stand_in
        if workload.inputs is not None:
            return f"@{named[1] if named else 'main'}: answering on {name or 'random inputs'}"
        what = "a step of training on" if self.workload.training else "predicting"
        return f"@{named[1] if named else 'main'}: {what} {name}"


def is_scored(text: str) -> bool:
    """Return whether a text is canonical, which is to bring its workload."""
    return text.partition("\n")[2].startswith(_MARK)


def read_scored(text: str) -> ScoredProgram:
    """Read a canonical text; of the files that it refers to, those are found which this user named.

    Raises:
        ProgramError: it is malformed.
    """
    _, line, module = [*text.split("\n", 2), "", ""][:3]
    if not line.startswith(_MARK):
        raise ProgramError("the stored module has no workload")
    try:
        table = json.loads(line.removeprefix(_MARK))
    except (ValueError, RecursionError) as error:
        raise ProgramError(f"the stored workload cannot be read: {error}") from error
    stored = workload_from(table, "the stored workload")
    program = program_again(module)
    # A store is data: a number of a function that lay in another process would be called in this one.
    if found := _CALLBACK.search(program.text):
        what = f"the stored module calls back into its host, by '{found[1]}'"
        raise ProgramError(what, "Tune one that computes alone.")
    return ScoredProgram(program, with_own_files(stored), stored)
