"""Copies code of examples into the pages that show it.

    .venv/bin/python docs/snippets.py

A page names the code in a comment, and the fenced block below it is written anew:

    <!-- examples/plugin_searcher/src/planish_climb/__init__.py: climb -->

After the colon stands a class or function, or `from "..."` for all from the line that begins so.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SNIPPET = re.compile(r"^(<!-- (examples/\S+): ([^\n]+) -->\n)```(\w+)\n.*?^```$", re.MULTILINE | re.DOTALL)


def updated(page: str) -> str:
    """Return the text of a page with its snippets as the examples have them.

    Raises:
        LookupError: an example does not have what the page names.
    """
    return _SNIPPET.sub(lambda found: f"{found[1]}```{found[4]}\n{_code(found[2], found[3])}\n```", page)


def _code(path: str, name: str) -> str:
    source = (ROOT / path).read_text(encoding="utf-8")
    if name.startswith("from "):
        start = source.find(f"\n{name[6:-1]}")
        if start < 0:
            raise LookupError(f"{path} has no line that begins with {name[5:]}")
        return source[start + 1 :].rstrip()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            return "\n".join(source.splitlines()[first - 1 : node.end_lineno])
    raise LookupError(f"{path} has no class or function {name}")


def main() -> None:
    """Write the snippets of all pages anew."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        page.write_text(updated(text), encoding="utf-8")


if __name__ == "__main__":
    main()
