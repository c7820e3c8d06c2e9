"""Files of a workload: TOML, or Python that assigns one, and the data, weights and code that it names."""

from __future__ import annotations

import ast
import os
import runpy
import tomllib
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path

from planish.core import ProgramError, register_file, resolve_file
from planish.core.files import read_regular
from planish.levels.hlo.workload.data import digest_of
from planish.levels.hlo.workload.spec import (
    OUTPUTS,
    Data,
    File,
    Inputs,
    Workload,
    check_metric,
    workload_from,
)


def check_defines(path: Path, function: str) -> None:
    """Check that a file has a function of a name; it is not executed, which may take long.

    A name that is bound anywhere in the file will do, and any where it imports all names of a module.

    Raises:
        ProgramError: the file cannot be read, is not Python, or binds no such name.
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


VARIABLE = "PLANISH_DATA"
_HINT = f"Name it with data= or by {VARIABLE}."


def read_workload(path: Path, data: str = "", *, weights: bool = True) -> Workload:
    """Read a workload, and find its files.

    Args:
        path: a `.toml` file, or a `.py` file that assigns a `Workload` to `workload`.
        data: the folder of the examples, before any other. Else it is the one that the workload names, else
            the one of the data set's name in PLANISH_DATA, or that itself; without all of these a stand-in.
        weights: whether there must be weights already; a script that makes them has none.

    Returns:
        The workload, with absolute paths and the digests of its files.

    Raises:
        ProgramError: it cannot be read or is malformed; a folder or file that was named is missing.
    """
    workload = _read(path)
    if workload.code is not None:
        raise ProgramError(f"'{path}' names code", 'Name it yourself: metric="FILE.py:FUNCTION".')
    folder = path.absolute().parent
    file = _located_file(workload.weights, folder, "weights") if workload.weights and weights else None
    original = workload.original and _located_file(workload.original, folder, "original module")
    located = _located(workload, folder, data)
    return replace(workload, data=located, weights=file, original=original)


def own_outputs(data: str = "") -> Workload:
    """Make the workload that compares a module's outputs with its own, before it is changed.

    Args:
        data: a `.npz` file of inputs; empty: they are random.
    """
    workload = Workload(metric=OUTPUTS, inputs=Inputs())
    return replace(workload, data=_located(workload, Path(), data))


def with_metric(workload: Workload, metric: str) -> Workload:
    """Score a workload in another way.

    Args:
        metric: its name, or `FILE.py:FUNCTION`; the file is executed where answers are scored.

    Raises:
        ProgramError: there is no such metric or file, or it does not fit the workload.
    """
    path, _, function = metric.rpartition(":")
    if function.endswith(".py"):
        raise ProgramError(f"the metric '{metric}' names no function", f'Write metric="{metric}:FUNCTION".')
    code = _located_file(File(path), Path.cwd(), "metric") if path.endswith(".py") else None
    changed = replace(workload, metric=function if code else metric, code=code)
    check_metric(changed, "the workload")
    if code:
        check_defines(Path(code.path), function)
    return changed


def find_workload(module: str) -> Path | None:
    """Find the workload that stands beside a module: the `.toml` file of the same name.

    Raises:
        ProgramError: there is a `.py` file instead, which is executed only where the user names it.
    """
    table, code = (Path(module).with_suffix(suffix) for suffix in (".toml", ".py"))
    if not table.is_file() and code.is_file():
        what = f"'{code}' would be executed, and was not named"
        raise ProgramError(what, f'If it is the workload, and you trust it: workload="{code}".')
    return table if table.is_file() else None


def digest(path: Path, what: str = "") -> str:
    """Name a file, or a folder of data, by its content; raises ProgramError where it cannot be read."""
    try:
        return digest_of(path)
    except OSError as error:
        named = f"cannot read {what}'{error.filename or path}': {error.strerror}"
        raise ProgramError(named, "Check the path, and its permissions.") from error


def with_own_files(workload: Workload) -> Workload:
    """Return a stored workload with the files that this user named; a path is empty where they did not.

    The paths in the store are ignored: files are found by their contents.
    """

    def own(file: File | None) -> File | None:
        return file and File(resolve_file(file.digest), file.digest)

    data = replace(workload.data, folder=resolve_file(workload.data.digest))
    weights, original, code = map(own, (workload.weights, workload.original, workload.code))
    return replace(workload, data=data, weights=weights, original=original, code=code)


def _read(path: Path) -> Workload:
    name = f"'{path}'"
    if path.suffix == ".py":
        return _of_python(path, name)
    try:
        return workload_from(tomllib.loads(read_regular(path).decode()), name)
    except OSError as error:
        raise ProgramError(f"cannot read the workload {name}: {error.strerror}", "Check the path.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        what = f"the workload {name} is not valid TOML: {error}"
        raise ProgramError(what, "See docs/reference/hlo.md.") from error


def _of_python(path: Path, name: str) -> Workload:
    if not path.is_file():
        raise ProgramError(f"there is no workload {name}", "Check the path.")
    try:
        found = runpy.run_path(str(path)).get("workload")
    except Exception as error:
        raise ProgramError(f"the workload {name} fails: {type(error).__name__}: {error}") from error
    if not isinstance(found, Workload):
        what = f"{name} gives no workload"
        raise ProgramError(what, "Assign a planish.levels.hlo.workload.Workload to 'workload'.")
    return workload_from(asdict(found), name)


def _located(workload: Workload, around: Path, given: str) -> Data:
    data = workload.data
    if given or data.folder:
        folder = Path(given).absolute() if given else (around / data.folder).resolve()
        return _of_files(data, folder, "" if given else " that the workload names")
    root = os.environ.get(VARIABLE)
    if root and (data.name or workload.inputs is None):
        own = Path(root).absolute() / data.name
        return _of_files(data, own if own.exists() else Path(root).absolute(), f" of {VARIABLE}")
    if workload.inputs is not None:
        return data
    return replace(data, stand_in=data.stand_in or ("digits" if find_spec("sklearn") else "made"))


def _of_files(data: Data, folder: Path, which: str) -> Data:
    if not folder.exists():
        raise ProgramError(f"the data '{folder}'{which} does not exist", _HINT)
    found = replace(data, folder=str(folder), stand_in="", digest=digest(folder))
    register_file(found.digest, folder)
    return found


def _located_file(file: File, around: Path, what: str) -> File:
    path = (around / file.path).resolve()
    found = File(str(path), digest(path, f"the {what} "))
    register_file(found.digest, path)
    return found
