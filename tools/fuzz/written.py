"""What was tried, as a file of JSON that is tried again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from planish.core import Candidate, candidate_from_json
from planish.levels.loops.level import LoopsLevel


@dataclass(frozen=True)
class Written:
    """A candidate of a program for a code generator.

    Args:
        program: the canonical text.
        steps: the candidate's canonical JSON.
        backend: which code generator.
    """

    program: str
    steps: str
    backend: str

    @property
    def candidate(self) -> Candidate:
        """The steps, read back."""
        return candidate_from_json(json.loads(self.steps), LoopsLevel().steps)

    def to_json(self, found: str) -> str:
        """Write it, with what was found."""
        return json.dumps({**asdict(self), "steps": json.loads(self.steps), "found": found}, indent=2) + "\n"

    @classmethod
    def of_json(cls, text: str) -> Self:
        """Read it back."""
        data: dict[str, Any] = json.loads(text)
        del data["found"]
        data["steps"] = json.dumps(data["steps"])
        return cls(**data)
