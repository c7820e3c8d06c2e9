"""A back end of LLVM that miscompiles on purpose."""

from __future__ import annotations

from planish.levels.llvm.bindings.protocol import Bindings, Module

UNSOUND = "attributor"
"""A pass that the catalogue keeps out, for it makes wrong code of the small programs."""


class BrokenBindings:
    """Runs an unsound pass after each pipeline that has a pass in it, or has the verifier object.

    Args:
        real: what does the work.
        guilty: the pass that is made to look unsound.
        invalid: whether the verifier then objects, too.
    """

    def __init__(self, real: Bindings, guilty: str, *, invalid: bool = False) -> None:
        self._real = real
        self._guilty = guilty
        self._invalid = invalid

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def parse(self, ir: str | bytes, name: str = "module") -> BrokenModule:
        return BrokenModule(self._real.parse(ir, name), self._guilty, invalid=self._invalid)


class BrokenModule:
    def __init__(self, real: Module, guilty: str, *, invalid: bool) -> None:
        self._real = real
        self._guilty = guilty
        self._invalid = invalid
        self._broken = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def run(self, pipeline: str) -> None:
        self._real.run(pipeline)
        if self._guilty in pipeline:
            self._real.run(UNSOUND)
            self._broken = self._invalid

    def verify(self) -> str:
        return "a use without a definition" if self._broken else self._real.verify()
