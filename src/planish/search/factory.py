"""Finding a searcher by name, and making sure that it fits the space."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from planish.core import UNTAUGHT, Objective, PlanishError, SearchContext, Searcher, Space, registry
from planish.search.options import OptionInfo, OptionValue, options_of, read_options

GROUP = "planish.searchers"


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
) -> Searcher:
    """Make a searcher by name.

    Args:
        name: one of `planish searchers`.
        space: where to search; it must offer what the searcher needs.
        objectives: at least one; the first leads.
        seed: the run's seed, not negative.
        options: option name to value; texts are converted.
        context: what was learned before.

    Raises:
        PlanishError: the searcher or an option is unknown, an option's value is not legal, or the
            space lacks what the searcher needs; the hint names the searchers that fit.
    """
    factory = registry.load(GROUP, name)
    if not _fits(factory, space):
        lacking = ", ".join(m for m in _methods(_needs(factory)) if not hasattr(space, m))
        raise PlanishError(
            f"searcher '{name}' needs what {type(space).__name__} does not offer: {lacking}",
            f"Searchers that fit: {', '.join(fitting_searchers(space)) or 'none'}.",
        )
    return factory(space, objectives, seed, context, **read_options(factory, options or {}))


def fitting_searchers(space: Space) -> list[str]:
    """Name the installed searchers that can search a space; those whose library is missing cannot."""
    return [name for name in registry.names(GROUP) if _loads_and_fits(name, space)]


def describe_searcher(name: str) -> SearcherInfo:
    """Tell what a searcher does, needs and takes.

    Raises:
        PlanishError: the name is unknown.
    """
    factory = registry.load(GROUP, name)
    summary = (factory.__doc__ or "").strip().partition("\n")[0]
    needs = tuple(method for method in _methods(_needs(factory)) if method != "start")
    return SearcherInfo(name, summary, needs, tuple(options_of(factory).values()))


def _needs(factory: Callable[..., Any]) -> type:
    return getattr(factory, "needs", Space)


def _fits(factory: Callable[..., Any], space: Space) -> bool:
    return all(hasattr(space, method) for method in _methods(_needs(factory)))


def _loads_and_fits(name: str, space: Space) -> bool:
    try:
        factory = registry.load(GROUP, name)
    except ImportError:
        return False
    library = getattr(factory, "library", None)  # what a searcher imports only when it is made
    return _fits(factory, space) and (library is None or find_spec(library) is not None)


def _methods(protocol: type) -> list[str]:
    return [name for name in dir(protocol) if not name.startswith("_")]
