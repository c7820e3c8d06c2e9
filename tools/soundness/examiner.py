"""Examines pass lists on one subject: transforms it, links it, runs it, and compares its answer."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from planish.levels.llvm.bindings.protocol import Bindings, IRError, Module, PassError
from planish.levels.llvm.execution import NotRunnableError, RunAnswer, Runner
from planish.sandbox import ExitStatus
from planish.sandbox.fork_pool import ForkLimits, in_child
from soundness.subject import Subject

Kind = Literal["right", "refused", "crashed", "hung", "invalid", "wrong"]
"""How a list did: LLVM refuses it, crashes, does not end, makes invalid IR, or the answer is wrong."""

UNSOUND: tuple[Kind, ...] = ("invalid", "wrong")
"""What must not happen. A list that LLVM crashes on costs one candidate only."""

COMPILING = ForkLimits(seconds=20, memory_bytes=4 << 30)
"""Of all modules of a subject."""
REFERENCE_S = 2.0
"""Seconds that the subject may run as it is."""
_SLOWER = 20.0
_LEAST_S = 10.0
"""How much longer a transformed program may run; long enough for a machine that is busy."""


@dataclass(frozen=True)
class Verdict:
    """What came of a list.

    Args:
        kind: how it did.
        code: names the transformed program by its content; empty where there is none.
        detail: what LLVM said, or how the answers differ.
        answer: the program's, where it ended.
    """

    kind: Kind
    code: str = ""
    detail: str = ""
    answer: RunAnswer | None = None


class Examiner:
    """Examines pass lists on one subject.

    Args:
        subject: the program.
        bindings: transforms and compiles it.
        folder: an empty folder for objects; it is left to the caller.

    Attributes:
        expected: the unoptimized program's answer.

    Raises:
        NotRunnableError: the subject cannot be linked, or runs longer than `REFERENCE_S`, or is killed.
    """

    def __init__(self, subject: Subject, bindings: Bindings, folder: Path) -> None:
        self.subject = subject
        self._folder = folder
        self._modules = [bindings.parse(ir, subject.name) for ir in subject.modules]
        self._runner = Runner(subject.running, bindings)
        self._verdicts: dict[str, Verdict] = {}
        self._known: dict[str, Verdict] = {}
        self.expected = self._reference()
        self._limit_s = max(_LEAST_S, _SLOWER * self.expected.seconds)

    @property
    def executed(self) -> int:
        """How many programs were run, the unoptimized one left out; equal code is run once."""
        return len(self._known)

    def close(self) -> None:
        """Free the modules."""
        for module in self._modules:
            module.close()

    def examine(self, pipeline: str, only: Collection[int] | None = None) -> Verdict:
        """Try a pipeline.

        Args:
            pipeline: as `opt -passes=` takes it.
            only: the indices of the modules that are transformed; all of them by default.
        """
        key = f"{pipeline} {sorted(only) if only is not None else ''}"
        if key not in self._verdicts:
            self._verdicts[key] = self._verdict(pipeline, only)
        return self._verdicts[key]

    def _reference(self) -> RunAnswer:
        objects = self._compiled("", None)
        if isinstance(objects, Verdict):
            raise NotRunnableError(f"{self.subject.name} does not compile: {objects.detail}")
        answer = self._answer(objects, REFERENCE_S)
        if answer.code < 0:
            raise NotRunnableError(f"{self.subject.name} ends by signal {-answer.code}")
        return answer

    def _verdict(self, pipeline: str, only: Collection[int] | None) -> Verdict:
        objects = self._compiled(pipeline, only)
        if isinstance(objects, Verdict):
            return objects
        code = hashlib.sha256(b"".join(hashlib.sha256(data).digest() for data in objects)).hexdigest()
        if code not in self._known:
            self._known[code] = self._judged(objects, code)
        return self._known[code]

    def _judged(self, objects: Sequence[bytes], code: str) -> Verdict:
        try:
            answer = self._answer(objects, self._limit_s)
        except NotRunnableError as error:
            return Verdict("wrong", code, error.message)
        different = answer.differs(self.expected)
        return Verdict("wrong" if different else "right", code, different, answer)

    def _answer(self, objects: Sequence[bytes], seconds: float) -> RunAnswer:
        with self._runner.executable(*objects) as program:
            return self._runner.answer(program, seconds)

    def _compiled(self, pipeline: str, only: Collection[int] | None) -> list[bytes] | Verdict:
        """Transform and compile the modules in a child."""
        made = in_child(partial(self._in_child, pipeline, only), list[str] | Verdict, COMPILING)
        if isinstance(made, ExitStatus):
            return Verdict("hung" if made.hung else "crashed", detail=made.detail)
        return made if isinstance(made, Verdict) else [self._object(name).read_bytes() for name in made]

    def _in_child(self, pipeline: str, only: Collection[int] | None) -> list[str] | Verdict:
        names: list[str] = []
        for index, module in enumerate(self._modules):
            try:
                module.run(pipeline if only is None or index in only else "")
            except PassError as error:
                return Verdict("refused", detail=error.message)
            if objection := module.verify():
                return Verdict("invalid", detail=objection)
            try:
                names.append(self._kept(module))
            except IRError as error:
                return Verdict("crashed", detail=error.message)
        return names

    def _kept(self, module: Module) -> str:
        """Compile a module, unless one like it was compiled before; return the object's name."""
        name = hashlib.sha256(module.bitcode()).hexdigest()
        path = self._object(name)
        if not path.exists():
            made = path.with_suffix(".made")
            made.write_bytes(module.object_code())
            made.rename(path)
        return name

    def _object(self, name: str) -> Path:
        return self._folder / f"{name}.o"
