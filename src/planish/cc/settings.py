"""Settings of a compilation, from planish's own options and variables, and its messages."""

from __future__ import annotations

import os
import sys

SECONDS, EVALUATIONS, RUN = "PLANISH_SECONDS", "PLANISH_EVALUATIONS", "PLANISH_RUN"
_USUAL_S, _PROGRAM_S = 2.0, 20.0
_SIZE, _FLASH, _TIME = "size", "flash", "time"


class UsageError(Exception):
    """An option or a variable of planish's that cannot be read."""


class SearchError(Exception):
    """There is nothing but clang's result; the message is for the user."""


class ReadsFilesError(Exception):
    """An object may depend on files that are not known, so that clang has to make it each time.

    Args:
        directive: of its assembly.
    """

    def __init__(self, directive: str) -> None:
        super().__init__(f"its assembly has '{directive}', which may read files")


class CompileSettings:
    """Settings of `planish cc`, from its options and the environment.

    Attributes:
        seconds: of the search for each file.
        evaluations: pass lists that may be tried on functions; 0: as many as the time allows.
        budget: names the evaluations where they alone are the budget; then an object follows from them.
        lock: path of the lock file; empty: there is none.
        reports: whether each compilation says what it saved.
        strict: whether it is an error where clang's own result must do.
        for_time: whether fast code shall be made faster.
        for_flash: whether all that is loaded counts, and not code first.
        run: how the program is run whose time counts, as in a shell; empty: it is not given.
        program_seconds: of the search for each program that is run.
    """

    __slots__ = (
        *(
            "budget",
            "evaluations",
            "for_flash",
            "for_time",
            "lock",
            "program_seconds",
            "reports",
            "run",
            "seconds",
        ),
        "strict",
    )

    def __init__(self) -> None:
        seconds, self.evaluations = _number(SECONDS), int(_number(EVALUATIONS) or 0)
        self.program_seconds = _PROGRAM_S if seconds is None else seconds
        self.budget = self.lock = ""
        if seconds is None and self.evaluations:
            seconds, self.budget = float("inf"), f"{self.evaluations} evaluations"
        self.seconds = _USUAL_S if seconds is None else seconds
        self.run = os.environ.get(RUN, "")
        self.reports = self.strict = self.for_time = self.for_flash = False

    @property
    def variant(self) -> str:
        """Name what an object follows from besides its inputs; empty for less code by seconds."""
        return f"{self.budget} {_FLASH}" if self.for_flash else self.budget

    def fall_back(self, why: str, made: str = "", kept: str = "clang's result") -> None:
        """Report why the compiler's own result is kept.

        Args:
            why: without a full stop.
            made: the result's path, where it is there already.
            kept: whose result it is.

        Raises:
            UsageError: that is not allowed (--planish-strict); then the result is removed.
        """
        why = " ".join(why.split()).rstrip(".")
        if self.strict:
            if made and os.path.exists(made):
                os.unlink(made)  # or the next make would take it for made
            raise UsageError(f"{why} (--planish-strict)")
        say(f"warning: {why}; {kept} is kept")


def read_settings(words: list[str]) -> tuple[CompileSettings, list[str]]:
    """Take planish's options out of a command line; what is left is clang's.

    Raises:
        UsageError: one of them is wrong.
    """
    settings, rest = CompileSettings(), list[str]()
    left = iter(words)
    for word in left:
        if not word.startswith("--planish-"):
            rest.append(word)
            continue
        name, _, value = word.removeprefix("--planish-").partition("=")
        if name == "objective":
            objective = value or next(left, "")
            if objective not in (_SIZE, _FLASH, _TIME):
                known = f"{_SIZE}, {_FLASH} or {_TIME}"
                raise UsageError(f"--planish-objective cannot be '{objective}': it is {known}")
            settings.for_time, settings.for_flash = objective == _TIME, objective == _FLASH
        elif name == "lock":
            settings.lock = value or next(left, "")
            if not settings.lock:
                raise UsageError("--planish-lock needs the path of a file")
        elif name == "report" and not value:
            settings.reports = True
        elif name == "strict" and not value:
            settings.strict = True
        else:
            known = "--planish-lock, --planish-objective, --planish-report and --planish-strict"
            raise UsageError(f"there is no option '{word}': there are {known}")
    if settings.lock and settings.for_time:
        raise UsageError("--planish-lock is for code size, and --planish-objective time has no such file")
    return settings, rest


def say(text: str) -> None:
    """Print a line on standard error."""
    pass_on(f"planish: {text}\n".encode(sys.getfilesystemencoding(), "surrogateescape"))


def pass_on(messages: bytes) -> None:
    """Write what clang says on standard error, as far as it can be written."""
    try:
        while messages:
            messages = messages[os.write(2, messages) :]
    except OSError:
        pass  # closed, or full: the object is there


def _number(name: str) -> float | None:
    """Read a variable; None for its default, also where it cannot be read: no build fails because of it."""
    text = os.environ.get(name)
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if 0 <= number < float("inf"):
        return number
    say(f"warning: {name} cannot be '{text}': it is a number, 0 or more; the default is used")
    return None
