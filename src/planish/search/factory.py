"""Finding a searcher by name, and making sure that it fits the space."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol, runtime_checkable

from planish.core import UNTAUGHT, Objective, PlanishError, SearchContext, Searcher, Space, registry
from planish.search.options import OptionInfo, OptionValue, options_of, read_options

GROUP = "planish.searchers"


@runtime_checkable
class SearcherClass(Protocol):
    """What an entry point of searchers names.

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
    """What a user may know of a searcher.

    Args:
        name: as on the command line.
        summary: what it does, in one line.
        needs: the methods that a space must offer, the start apart.
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
    context: SearchContext = UNTAUGHT,
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
            (f"Name a space that does: --space {fitting}. " if fitting else "")
            + f"Searchers that fit: {', '.join(fitting_searchers(space)) or 'none'}.",
        )
    # Many searchers ask for their start only when they are asked themselves, and a run has begun by then.
    space.start()
    return factory(space, objectives, seed, context, **read_options(factory, options or {}))


def fitting_searchers(space: Space) -> list[str]:
    """Name the installed searchers that can search a space; one that cannot be made is none of them."""
    return [name for name in registry.names(GROUP) if _loads_and_fits(name, space)]


def describe_searcher(name: str) -> SearcherInfo:
    """Tell what a searcher does, needs and takes.

    Raises:
        PlanishError: the name is unknown.
    """
    factory = searcher_class(name)
    summary = (factory.__doc__ or "").strip().partition("\n")[0]
    needs = tuple(method for method in _methods(factory.needs) if method != "start")
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
    raise PlanishError(
        f"searcher '{name}' has no attribute {lacking}",
        "Give it needs = Space, or what it needs of a space, and library = None; RoundSearcher has both.",
    )


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
    except (ImportError, PlanishError):  # whoever asks for this one is told why
        return False
    # Looked for and not imported: a list of names should not take as long as loading a tokeniser.
    return _fits(factory, space) and (factory.library is None or find_spec(factory.library) is not None)


def _methods(protocol: type) -> list[str]:
    # Private names are the machinery of `Protocol`, which every class has.
    return [name for name in dir(protocol) if not name.startswith("_")]
