"""`planish levels`."""

from __future__ import annotations

from planish.cli import options as given


def levels(form: given.Format = "text") -> None:
    """List the kinds of programs that can be tuned."""
    from planish.cli.output import document, table
    from planish.core import registry
    from planish.levels import GROUP, level_named

    found = [level_named(name) for name in registry.names(GROUP)]
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
            }
            for level in found
        ]
        document({"levels": listed})
        return
    rows = [
        [level.name, level.version, *map(", ".join, (level.objectives, level.spaces, level.searchers))]
        for level in found
    ]
    table(["level", "version", "objectives", "spaces", "searchers that do well"], rows)
