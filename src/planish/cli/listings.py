"""`planish levels`, `planish searchers` and `planish targets`: lists of what is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planish.cli import options as given

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planish.core import PlanishError
    from planish.search import SearcherInfo


def levels(form: given.Format = "text") -> None:
    """List the kinds of programs that can be tuned.

    Each level has its objectives, its spaces, and searchers that do well on it. A level is not ready if its
    libraries are not installed; then the command that installs them is printed.
    """
    from planish.cli.output import document, say, table
    from planish.core import registry
    from planish.core.registry import LEVELS, level_named

    usable, broken = registry.each_usable(LEVELS, level_named)
    found = list(usable.values())
    _remark_broken(broken)
    if form == "json":
        listed = [
            {
                "name": level.name,
                "version": level.version,
                "objectives": [
                    {"name": o.name, "unit": o.unit, "direction": o.direction, "exact": o.exact}
                    for o in level.objectives.values()
                ],
                "spaces": list(level.spaces),
                "searchers": list(level.searchers),
                "missing": level.missing(),
            }
            for level in found
        ]
        document({"levels": listed})
        return
    missing = {level.name: text for level in found if (text := level.missing())}
    rows = [
        [
            level.name,
            level.version,
            "no" if level.name in missing else "yes",
            *map(", ".join, (level.objectives, level.spaces, level.searchers)),
        ]
        for level in found
    ]
    table(["level", "version", "ready", "objectives", "spaces", "searchers that do well"], rows)
    for name, text in missing.items():
        say(f"{name}: {text}")


def searchers(form: given.Format = "text") -> None:
    """List the searchers, the operations that each needs of a space, and their options."""
    from planish.cli.output import document, say
    from planish.core import registry
    from planish.search import describe_searcher
    from planish.search.factory import GROUP

    usable, broken = registry.each_usable(GROUP, describe_searcher)
    found = list(usable.values())
    _remark_broken(broken)
    if form == "json":
        document({"searchers": [_document(info) for info in found]})
    else:
        say("\n\n".join(map(_text, found)))


def _text(info: SearcherInfo) -> str:
    options = [
        f"  --set {o.name}={str(o.default).lower() if isinstance(o.default, bool) else o.default}"
        f"  {o.option.help} ({o.legal})"
        for o in info.options
    ]
    return "\n".join([info.name, f"  {info.summary}", f"  needs {', '.join(info.needs)}", *options])


def _document(info: SearcherInfo) -> dict[str, Any]:
    options = [
        {"name": o.name, "default": o.default, "takes": o.legal, "help": o.option.help} for o in info.options
    ]
    return {"name": info.name, "summary": info.summary, "needs": list(info.needs), "options": options}


def targets(form: given.Format = "text") -> None:
    """Show this machine as each level sees it.

    loops: the processor, its cores and code generators, and the measured peak of one core. llvm: the
    versions of LLVM, the passes that they have, and C compilers. hlo: XLA and IREE. graph: libraries, passes,
    and counters of power, energy and temperature.
    """
    from planish.cli.output import document, facts, say
    from planish.core import registry
    from planish.core.registry import LEVELS

    found, broken = registry.each_usable(LEVELS, _machine)
    _remark_broken(broken)
    if form == "json":
        document({"targets": found})
        return
    for name, machine in found.items():
        say(name)
        facts({f"  {fact}": text for fact, text in machine.items()})


def _machine(name: str) -> Mapping[str, str]:
    from planish.core import registry
    from planish.core.registry import LEVELS, level_named

    level = level_named(name)
    with registry.attributed(LEVELS, name):
        return level.machine()


def _remark_broken(broken: Iterable[PlanishError]) -> None:
    """Write, on standard error, what other packages offer and cannot be used."""
    from planish.cli.output import remark
    from planish.core.arguments import as_options

    for error in broken:
        remark(as_options(f"planish: {error}"))
