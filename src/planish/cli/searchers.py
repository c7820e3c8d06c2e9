"""`planish searchers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planish.cli import options as given

if TYPE_CHECKING:
    from planish.search import SearcherInfo


def searchers(form: given.Format = "text") -> None:
    """List the searchers, what they need, and their options."""
    from planish.cli.output import document, say
    from planish.core import registry
    from planish.search import describe_searcher
    from planish.search.factory import GROUP

    found = [describe_searcher(name) for name in registry.names(GROUP)]
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
