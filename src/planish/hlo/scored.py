"""Programs of this level: a module with a workload, in one text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from planish.core import Program as AnyProgram
from planish.hlo.program import Program, program_from
from planish.hlo.workload import Workload, workload_from

_MARK = "// planish scores it by "
_NAMED = re.compile(r'planish\.function = "([^"]+)"')


@dataclass(frozen=True)
class ScoredProgram:
    """A module, and how it is run and scored.

    Args:
        module: what is evolved.
        workload: located, and it fits the module.
    """

    module: Program
    workload: Workload

    level = "hlo"

    @property
    def text(self) -> str:
        """The canonical text: a line that names it, the workload in a comment, and the module."""
        return f"// {self.title}\n{_MARK}{self.workload.text}\n{self.module.text}"

    @property
    def title(self) -> str:
        """What it is, in a few words: `@main: a step of training on mnist`."""
        named = _NAMED.search(self.module.text)
        data = self.workload.data
        name = data.name or Path(data.folder).name or data.stand_in
        what = "a step of training on" if self.workload.training else "predicting"
        return f"@{named[1] if named else 'main'}: {what} {name}"


def is_scored(text: str) -> bool:
    """Whether a text is canonical: whether it brings its workload."""
    return text.partition("\n")[2].startswith(_MARK)


def read_scored(text: str) -> ScoredProgram:
    """Read a canonical text; its data is not looked for.

    Raises:
        ProgramError: it is malformed.
    """
    _, line, module = text.split("\n", 2)
    workload = workload_from(json.loads(line.removeprefix(_MARK)), "the stored workload")
    return ScoredProgram(program_from(module), workload)


def scored_program(program: AnyProgram) -> ScoredProgram:
    """Give a program of this level its type."""
    assert isinstance(program, ScoredProgram)
    return program
