"""The file of a user's own metric, looked at before it is executed."""

from __future__ import annotations

import ast
from pathlib import Path

from planish.core import ProgramError


def check_defines(path: Path, function: str) -> None:
    """Look whether a file has a function of a name; it is not executed, which may take long.

    A name that is bound anywhere in the file will do, and any where it imports all names of a module.

    Raises:
        ProgramError: the file cannot be read, is no Python, or binds no such name.
    """
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        raise ProgramError(f"the metric '{path}' fails: {type(error).__name__}: {error}") from error
    bound = {name for node in ast.walk(tree) for name in _bound(node)}
    if not bound & {function, "*"}:
        raise ProgramError(f"the metric '{path}' has no function '{function}'", "Define it.")


def _bound(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [each.asname or each.name.partition(".")[0] for each in node.names]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []
