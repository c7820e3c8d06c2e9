"""What each of some pass lists costs on each of many functions: a table in one file, read by NumPy alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError
from planish.core.damaged_files import DAMAGED, why
from planish.core.replacing import replacing

FORMAT = 1
FAILED = -1
"""The cost of a list that failed on a function: refused by LLVM, invalid, not reproducible, or a crash."""
UNCOUNTED = -1
"""The lexemes of a function that nobody has counted: tables had none before November 2026."""
_ABOUT, _WORD = "about", 16  # bytes of an identity
BY_FUNCTION = "identities", "packages", "unoptimised", "baseline", "costs", "features", "lexemes"
"""The arrays with a row for each function."""
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Columns:
    """What the columns of a table mean.

    Args:
        llvm: the version that ran the lists.
        machine: that code was made for.
        objectives: what was counted.
        lists: pass lists, without the baseline.
        features: names of what describes a function.
        version: of what these names mean; files without one have the first.
    """

    llvm: str
    machine: str
    objectives: tuple[str, ...]
    lists: tuple[tuple[str, ...], ...]
    features: tuple[str, ...]
    version: int = 1


@dataclass(frozen=True)
class CostRow:
    """One function.

    Args:
        identity: the hash of its IR: 32 hexadecimal digits.
        package: where it is from.
        split: what its package is for.
        unoptimised: its cost as it is, prepared for size, by objective.
        baseline: its cost after -Oz, by objective.
        costs: after each list, by objective; None where the list failed.
        features: shape (2, features): before and after -Oz.
        lexemes: of its text as it is, and after -Oz, as `planish.learn.language.lexer` counts them.
    """

    identity: str
    package: str
    split: str
    unoptimised: Sequence[int]
    baseline: Sequence[int]
    costs: Sequence[Sequence[int] | None]
    features: NDArray[np.int64]
    lexemes: tuple[int, int] = (UNCOUNTED, UNCOUNTED)


@dataclass(frozen=True)
class CostTable:
    """Costs of lists on functions, ordered by package and identity.

    Args:
        columns: what columns mean.
        identities: (n,), of functions.
        packages: (n,), their names.
        splits: by package.
        unoptimised: (n, objectives).
        baseline: (n, objectives), after -Oz.
        costs: (n, lists, objectives); `FAILED` where a list failed.
        features: (n, 2, features), before and after -Oz.
        lexemes: (n, 2), before and after -Oz; `UNCOUNTED` where nobody has.
    """

    columns: Columns
    identities: NDArray[np.str_]
    packages: NDArray[np.str_]
    splits: Mapping[str, str]
    unoptimised: Ints
    baseline: Ints
    costs: Ints
    features: Ints
    lexemes: Ints

    def __len__(self) -> int:
        """How many functions there are."""
        return len(self.identities)

    def split(self, name: str) -> CostTable:
        """Give the functions whose packages are for this."""
        return self.take(np.array([self.splits[package] == name for package in self.packages.tolist()], bool))

    def saved(self, objective: str) -> Ints:
        """Give what each list saves over -Oz, (n, lists); 0 where it costs more or failed."""
        place = self.columns.objectives.index(objective)
        costs, baseline = self.costs[:, :, place], self.baseline[:, place, None]
        return np.where(costs == FAILED, 0, np.maximum(baseline - costs, 0)).astype(np.int32)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> CostTable:
        """Give some functions, by a mask or by their places."""
        return replace(self, **{name: getattr(self, name)[rows] for name in BY_FUNCTION})

    def with_rows(self, rows: Sequence[CostRow]) -> CostTable:
        """Give the table with more functions; they must be new."""
        if not rows:
            return self
        more = _stacked(self.columns, rows)
        joined = {name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in BY_FUNCTION}
        whole = replace(self, **joined, splits={**self.splits, **more.splits})
        # In one order, whichever came first: the same functions make the same file.
        return whole.take(np.lexsort((whole.identities, whole.packages)))


def empty_table(columns: Columns) -> CostTable:
    """Give a table without functions."""
    lists, objectives, features = len(columns.lists), len(columns.objectives), len(columns.features)
    words = np.array([], f"<U{2 * _WORD}"), np.array([], "<U1")
    shapes = (0, objectives), (0, objectives), (0, lists, objectives), (0, 2, features), (0, 2)
    return CostTable(columns, *words, {}, *(np.zeros(shape, np.int32) for shape in shapes))


def _stacked(columns: Columns, rows: Sequence[CostRow]) -> CostTable:
    failed = [FAILED] * len(columns.objectives)
    return CostTable(
        columns,
        np.array([row.identity for row in rows]),
        np.array([row.package for row in rows]),
        {row.package: row.split for row in rows},
        np.array([row.unoptimised for row in rows], np.int32),
        np.array([row.baseline for row in rows], np.int32),
        np.array([[failed if c is None else c for c in row.costs] for row in rows], np.int32),
        np.array([row.features for row in rows], np.int32),
        np.array([row.lexemes for row in rows], np.int32),
    )


def write_costs(table: CostTable, path: Path) -> None:
    """Write a table such that it is there as a whole or as it was.

    The file is an .npz of `about` (JSON as bytes: what `Columns` holds, packages and their splits) and of
    arrays whose last axis is functions: `identity` (bytes), `package` (a place among the packages), and as
    four planes of bytes of little-endian 32-bit integers, since nearly all are small: `features`, `lexemes`,
    `baseline`, `unoptimised` and `costs`, the latter two as differences to the baseline. `failed` is a mask.

    Raises:
        OSError: it cannot be written.
    """
    packages = sorted(table.splits)
    about = {"format": FORMAT, **vars(table.columns), "packages": [[p, table.splits[p]] for p in packages]}
    # A list fails for all objectives or for none, so the first tells.
    failed = table.costs[:, :, 0] == FAILED
    costs = np.where(failed[..., None], 0, table.costs - table.baseline[:, None])
    arrays = {
        _ABOUT: np.frombuffer(json.dumps(about).encode(), np.uint8),
        "identity": np.frombuffer(bytes.fromhex("".join(table.identities.tolist())), np.uint8),
        "package": np.searchsorted(packages, table.packages).astype(np.int32)
        if packages
        else np.zeros(0, int),
        "failed": np.packbits(failed.T, axis=1),
        "features": _planes(table.features),
        "lexemes": _planes(table.lexemes),
        "baseline": _planes(table.baseline),
        "unoptimised": _planes(table.unoptimised - table.baseline),
        "costs": _planes(costs),
    }
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read_costs(path: Path) -> CostTable:
    """Read a table that `write_costs` wrote.

    Raises:
        PlanishError: there is none, it is damaged, or of another format.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            about = json.loads(held[_ABOUT].tobytes())
            if "costs" not in held:
                raise ValueError("it holds no costs")
            if about["format"] != FORMAT:
                what = f"{path} has format {about['format']}, and this planish reads {FORMAT}"
                raise PlanishError(what, "Make the table anew: planish corpus costs CORPUS FILE.")
            return _table(about, held)
    except DAMAGED as error:
        hint = "Make one: planish corpus costs CORPUS FILE."
        raise PlanishError(f"cannot read a table of costs from {path}: {why(error)}", hint) from error


def _table(about: Mapping[str, Any], held: Mapping[str, NDArray[Any]]) -> CostTable:
    lists = tuple(tuple(passes) for passes in about["lists"])
    names = tuple(about["objectives"]), lists, tuple(about["features"])
    words = held["identity"].tobytes().hex()
    identities = [words[at : at + 2 * _WORD] for at in range(0, len(words), 2 * _WORD)]
    packages = np.array([name for name, _ in about["packages"]] or [""])[held["package"]]
    baseline = _whole(held["baseline"])
    failed = np.unpackbits(held["failed"], axis=1, count=len(identities)).T.astype(bool)
    costs = _whole(held["costs"]) + baseline[:, None]
    costs[failed] = FAILED
    return CostTable(
        Columns(about["llvm"], about["machine"], *names, about.get("version", 1)),
        np.array(identities, f"<U{2 * _WORD}"),
        packages,
        dict(about["packages"]),
        _whole(held["unoptimised"]) + baseline,
        baseline,
        costs,
        _whole(held["features"]),
        _whole(held["lexemes"]) if "lexemes" in held else np.full((len(identities), 2), UNCOUNTED, np.int32),
    )


def _planes(numbers: Ints) -> NDArray[np.uint8]:
    """Give an array with functions last, as four arrays of bytes: zeros beside zeros."""
    turned = np.ascontiguousarray(np.moveaxis(numbers, 0, -1), "<i4")
    return np.ascontiguousarray(np.moveaxis(turned.view(np.uint8).reshape(*turned.shape, 4), -1, 0))


def _whole(planes: NDArray[np.uint8]) -> Ints:
    bytes_last = np.ascontiguousarray(np.moveaxis(planes, 0, -1))
    turned = bytes_last.view("<i4").reshape(bytes_last.shape[:-1])
    return np.ascontiguousarray(np.moveaxis(turned, -1, 0), np.int32)
