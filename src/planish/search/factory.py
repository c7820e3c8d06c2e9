"""Searchers and policies by name: options, and construction of one that fits the space.

An option is a keyword-only argument of a searcher's constructor, with a type, a default and, by `Option`, a
help text and bounds. So the command line can list and check the options of any installed searcher.
"""

import inspect
import math
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, Protocol, get_args, get_origin, runtime_checkable

from planish.core import (
    EMPTY_CONTEXT,
    CanStep,
    Objective,
    PlanishError,
    Policy,
    PolicyState,
    SearchContext,
    Searcher,
    Space,
    Step,
    ValueHead,
    registry,
    unknown,
)

OptionValue = bool | int | float | str

_KINDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Option:
    """Documents an option where it is declared: `width: Annotated[int, Option("...", least=1)] = 4`.

    Args:
        help: what it does, in a few words.
        least: the smallest legal number.
        most: the largest legal number.
    """

    help: str = ""
    least: float = -math.inf
    most: float = math.inf


@dataclass(frozen=True)
class OptionInfo:
    """Option of a searcher.

    Args:
        name: as the user writes it.
        kind: bool, int, float or str.
        default: its value where none is given.
        option: its help and bounds.
    """

    name: str
    kind: type
    default: OptionValue
    option: Option

    def read(self, value: OptionValue) -> OptionValue:
        """Check a value, and convert it where it is a text.

        Raises:
            PlanishError: it is of another type, or out of bounds.
        """
        found, bounds = self._converted(value), self.option
        if isinstance(found, str) or (
            found is not None and math.isfinite(found) and bounds.least <= found <= bounds.most
        ):
            return found
        raise PlanishError(f"option '{self.name}' takes {self.legal}, not {value!r}")

    @property
    def legal(self) -> str:
        """Return the option's type and values, in words."""
        least, most = self.option.least, self.option.most
        lower = f", at least {least:g}" if least > -math.inf else ""
        upper = f", at most {most:g}" if most < math.inf else ""
        return _KINDS[self.kind] + lower + upper

    def _converted(self, value: OptionValue) -> Any:
        if self.kind is bool and isinstance(value, str):
            return {"true": True, "false": False}.get(value.lower())
        # By type and not isinstance, for which True is a whole number.
        if isinstance(value, str) or (self.kind is float and type(value) is int):
            try:
                return self.kind(value)
            except ValueError:
                return None
        return value if type(value) is self.kind else None


def options_of(factory: Callable[..., Any]) -> dict[str, OptionInfo]:
    """List the options of a searcher: its keyword-only arguments, in their order.

    Args:
        factory: a searcher's class or function; each option has a default and the type bool, int,
            float or str, plain or `Annotated[type, Option(...)]`.
    """
    # Evaluated: under `from __future__ import annotations` they are texts, which have no bounds.
    found: dict[str, OptionInfo] = {}
    for name, parameter in inspect.signature(factory, eval_str=True).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            kind, notes = parameter.annotation, ()
            if get_origin(kind) is Annotated:
                # Other libraries may annotate the same argument, so only notes of ours are read.
                kind, *notes = get_args(kind)
            option = next((note for note in notes if isinstance(note, Option)), Option())
            found[name] = OptionInfo(name, kind, parameter.default, option)
    return found


def read_options(factory: Callable[..., Any], values: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Check options against what a searcher takes; texts are converted to the option's type.

    Raises:
        PlanishError: an option is unknown, of another type or out of bounds.
    """
    known = options_of(factory)
    # A misspelt option would silently be its default, and a whole search would be run with it.
    for name in values:
        if name not in known:
            raise unknown("unknown option", name, known)
    return {name: known[name].read(value) for name, value in values.items()}


def split_settings(settings: Iterable[str]) -> dict[str, str]:
    """Read `name=value` texts, as a command line has them.

    Raises:
        PlanishError: a text is not of that form, or a name comes twice.
    """
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not (name and equals) or name in found:
            wrong = "is given twice" if name in found else "is not of the form name=value"
            raise PlanishError(f"option '{setting}' {wrong}", "Write each option once, as name=value.")
        found[name] = value
    return found


GROUP = "planish.searchers"


@runtime_checkable
class SearcherClass(Protocol):
    """Class of searchers, as an entry point names it.

    Attributes:
        needs: what a space must offer: `Space`, a capability, or a protocol that joins some.
        library: the package that it imports when it is made; None where it needs none but planish's own.
    """

    needs: type
    library: str | None

    def __call__(
        self,
        space: Space,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext,
        /,
        **options: OptionValue,
    ) -> Searcher:
        """Make the searcher; its options are keyword-only arguments with defaults."""
        ...


@dataclass(frozen=True)
class SearcherInfo:
    """Description of a searcher.

    Args:
        name: as on the command line.
        summary: what it does, in one line.
        needs: the methods that a space must offer, apart from those that every space has.
        options: in the order they are declared.
    """

    name: str
    summary: str
    needs: tuple[str, ...]
    options: tuple[OptionInfo, ...]


def make_searcher(
    name: str,
    space: Space,
    objectives: Sequence[Objective],
    seed: int,
    options: Mapping[str, OptionValue] | None = None,
    context: SearchContext = EMPTY_CONTEXT,
    others: Mapping[str, Callable[[], Space]] | None = None,
) -> Searcher:
    """Make a searcher by name.

    Args:
        name: one of `planish searchers`.
        space: where to search; it must offer what the searcher needs.
        objectives: at least one; the first leads.
        seed: the run's seed, not negative.
        options: option name to value; texts are converted.
        context: what was learned before.
        others: name to other spaces of the program, of which the hint names one that fits.

    Raises:
        PlanishError: the searcher or an option is unknown, an option's value is not legal, the space refuses
            its program, or it lacks what the searcher needs; the hint names what fits.
    """
    factory = searcher_class(name)
    if not _fits(factory, space):
        lacking = ", ".join(m for m in _methods(factory.needs) if not hasattr(space, m))
        fitting = next((other for other, make in (others or {}).items() if _offers(factory, make)), "")
        raise PlanishError(
            f"searcher '{name}' needs what {type(space).__name__} does not offer: {lacking}",
            (f'Name a space that does: settings=Settings(space="{fitting}"). ' if fitting else "")
            + f"Searchers that fit: {', '.join(fitting_searchers(space)) or 'none'}.",
        )
    # Many searchers ask for their start only when they are asked themselves, and a run has begun by then.
    space.start()
    given = read_options(factory, options or {})
    with registry.attributed(GROUP, name):
        return factory(space, objectives, seed, context, **given)


def fitting_searchers(space: Space) -> list[str]:
    """List the installed searchers that can search a space, without those that cannot be imported."""
    return [name for name in registry.names(GROUP) if _loads_and_fits(name, space)]


def describe_searcher(name: str) -> SearcherInfo:
    """Return the description of a searcher, with its requirements and options.

    Raises:
        PlanishError: the name is unknown, or another package's searcher cannot be used.
    """
    factory = searcher_class(name)
    with registry.attributed(GROUP, name):
        summary = (factory.__doc__ or "").strip().partition("\n")[0]
        every = set(_methods(Space))
        needs = tuple(method for method in _methods(factory.needs) if method not in every)
        return SearcherInfo(name, summary, needs, tuple(options_of(factory).values()))


def searcher_class(name: str) -> SearcherClass:
    """Import a searcher.

    Raises:
        PlanishError: the name is unknown, or what it names lacks what a searcher must have.
    """
    found = registry.load(GROUP, name)
    if isinstance(found, SearcherClass):
        return found
    lacking = " and ".join(f"'{each}'" for each in ("needs", "library") if not hasattr(found, each))
    hint = "Give it needs = Space, or what it needs of a space, and library = None; RoundSearcher has both."
    with registry.attributed(GROUP, name):
        raise PlanishError(f"searcher '{name}' has no attribute {lacking}", hint)


def _fits(factory: SearcherClass, space: Space) -> bool:
    # By name and not by isinstance: a searcher may ask for a protocol that is not checkable at run time.
    return all(hasattr(space, method) for method in _methods(factory.needs))


def _offers(factory: SearcherClass, make: Callable[[], Space]) -> bool:
    try:
        return _fits(factory, make())
    except PlanishError:  # it cannot be made of this program, or here
        return False


def _loads_and_fits(name: str, space: Space) -> bool:
    try:
        factory = searcher_class(name)
    except (ImportError, PlanishError):  # asking for this one says why
        return False
    # Looked for and not imported: a list of names should not take as long as loading a tokenizer.
    return _fits(factory, space) and (factory.library is None or find_spec(factory.library) is not None)


def _methods(protocol: type) -> list[str]:
    # Private names are the machinery of `Protocol`, which every class has.
    return [name for name in dir(protocol) if not name.startswith("_")]


class TimedPolicy:
    """Asks another policy, and counts the seconds.

    Args:
        policy: is asked.

    Attributes:
        seconds: that its answers took so far.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.seconds = 0.0

    def begin(self, space: Space) -> PolicyState:
        """Begin as the policy does."""
        with self._timed():
            return self._policy.begin(space)

    def extend(self, state: PolicyState, step: Step) -> PolicyState:
        """Extend as the policy does."""
        with self._timed():
            return self._policy.extend(state, step)

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Return the policy's probabilities."""
        with self._timed():
            return self._policy.log_probabilities(states)

    @contextmanager
    def _timed(self) -> Generator[None]:
        started = time.perf_counter()
        try:
            yield
        # A policy that fails has taken its time as well.
        finally:
            self.seconds += time.perf_counter() - started


class TimedValueHead(TimedPolicy):
    """Counts the seconds of the value head, too."""

    def __init__(self, policy: ValueHead) -> None:
        super().__init__(policy)
        self._value_head = policy

    def value(self, states: Sequence[PolicyState]) -> Sequence[float]:
        """Return the policy's values."""
        with self._timed():
            return self._value_head.value(states)


def timed_policy(space: CanStep, name: str, context: SearchContext = EMPTY_CONTEXT) -> TimedPolicy:
    """Find a policy, whose time is counted.

    Args:
        space: where it is to walk.
        name: as `planish.models.named_policies.policy_named` takes it.
        context: what was learned before.

    Raises:
        PlanishError: there is none, or it is for another space.
    """
    from planish.models.named_policies import policy_named

    policy = policy_named(space, name, context)
    return TimedValueHead(policy) if isinstance(policy, ValueHead) else TimedPolicy(policy)
