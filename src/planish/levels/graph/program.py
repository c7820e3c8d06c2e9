"""Programs of this level: an ONNX file, named by path and content, with what its inputs are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from planish.core import ProgramError, canonical_json, resolve_file, unresolved_file
from planish.core.disk_cache import DiskCache
from planish.levels.graph.passes import Selection

_MARK = "# planish runs the model "
_DIGEST = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class Port:
    """An input or output of a model.

    Args:
        name: as in the model.
        dtype: of its elements, as NumPy names it: "float32".
        shape: its extents; of an output None for what the model leaves open.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {'x'.join('?' if n is None else str(n) for n in self.shape)}"


@dataclass(frozen=True)
class DataFile:
    """A file of inputs or labels.

    Args:
        path: absolute; empty where it is known from a store alone.
    """

    path: str
    digest: str

    @property
    def file(self) -> Path:
        """The file; raises ProgramError where this user never named it."""
        if not self.path:
            raise unresolved_file("the inputs and labels")
        return Path(self.path)


@dataclass(frozen=True)
class GraphProgram:
    """An ONNX model.

    Args:
        path: the file's, absolute; empty where it is known from a store alone.
        digest: of its content, and of the files that hold its weights.
        title: what it is, in a few words.
        inputs: of concrete shapes.
        size: bytes of the file, and of those that hold its weights.
        data: the user's inputs; None: random ones are made.
        labels: what the first output should be for `data`.
        allow: passes that change results which the user asked for: names of `intent` passes.
        session: whether the user asked for settings of the session to be searched too.
        providers: whether the user asked for the runtime to be searched too.
        tolerance: how far answers may be off where passes change results, as a share of the largest number;
            None: the user did not say.
        without: passes of ONNX Runtime that make this model answer wrongly: the baseline and all candidates
            leave them out.
        settings: of the session, as the user asked for them; empty for ONNX Runtime's defaults. They are of
            the target, and not of the text.
        stored: the canonical text, where the program comes from a store: the paths that stand there count for
            the text alone.
    """

    path: str
    digest: str
    title: str
    inputs: tuple[Port, ...]
    size: int
    data: DataFile | None = None
    labels: DataFile | None = None
    allow: tuple[str, ...] = ()
    session: bool = False
    providers: bool = False
    tolerance: float | None = None
    without: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    stored: str = field(default="", compare=False)

    level = "graph"

    @property
    def text(self) -> str:
        """The canonical text: a line that names the model, and all that `read_text` needs."""
        return self.stored or f"# {self.title}\n{_MARK}{canonical_json(self._document())}\n"

    @property
    def file(self) -> Path:
        """The file; raises ProgramError where this user never named it."""
        if not self.path:
            raise unresolved_file(f"{self.title.partition(':')[0]} and its data")
        return Path(self.path)

    @property
    def baseline(self) -> Selection:
        """The file as it came, under the runtime's defaults, but for passes that make it answer wrongly."""
        return Selection(disabled=frozenset(self.without))

    @property
    def batch(self) -> int:
        """Return how many items one call answers for: the first extent of the first input.

        It is 1 for a number, and for an input of no rows: calls are counted then.
        """
        first = self.inputs[0].shape if self.inputs else ()
        return (first[0] or 1) if first else 1

    def _document(self) -> dict[str, Any]:
        files = {"data": self.data, "labels": self.labels}
        options = {"session": self.session, "providers": self.providers, "without": self.without}
        return {
            "path": self.path,
            "digest": self.digest,
            "size": self.size,
            "inputs": [[port.name, port.dtype, port.shape] for port in self.inputs],
            "allow": self.allow,
            **{name: [file.path, file.digest] for name, file in files.items() if file is not None},
            **{name: value for name, value in options.items() if value},
            **({"tolerance": self.tolerance} if self.tolerance is not None else {}),
        }


def user_cache() -> DiskCache:
    """Return the cache of facts about models, among the user's caches."""
    return DiskCache.of_user("graph")


def is_canonical(text: str) -> bool:
    """Return whether a text is canonical."""
    return text.partition("\n")[2].startswith(_MARK)


def program_from(text: str) -> GraphProgram:
    """Read a canonical text that this process, or its parent, wrote: its files are not looked for.

    Raises:
        ProgramError: it is malformed.
    """
    try:
        first, second = text.split("\n")[:2]
        data = json.loads(second.removeprefix(_MARK))
        if not _DIGEST.fullmatch(data["digest"]) or not isinstance(data["size"], int):
            raise ValueError("its digest or size is none")
        files = {name: DataFile(*data[name]) for name in ("data", "labels") if name in data}
        return GraphProgram(
            data["path"],
            data["digest"],
            first.removeprefix("# "),
            tuple(Port(name, dtype, tuple(shape)) for name, dtype, shape in data["inputs"]),
            data["size"],
            files.get("data"),
            files.get("labels"),
            tuple(data["allow"]),
            session=data.get("session", False),
            providers=data.get("providers", False),
            tolerance=data.get("tolerance"),
            without=tuple(data.get("without", ())),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ProgramError(f"the stored model cannot be read: {type(error).__name__}: {error}") from error


def with_own_files(text: str) -> GraphProgram:
    """Read a canonical text as it comes from a store; of its files those are found which this user named.

    The paths that the store has are not looked at: contents decide.

    Raises:
        ProgramError: it is malformed.
    """
    program = program_from(text)
    data, labels = (
        file and DataFile(resolve_file(file.digest), file.digest) for file in (program.data, program.labels)
    )
    return replace(program, path=resolve_file(program.digest), data=data, labels=labels, stored=text)
