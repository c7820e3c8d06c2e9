"""Tables of the cost of each pass list on each of many functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError, unknown
from planish.core.files import DAMAGED, replacing, why

FORMAT = 1
FAILED = -1
"""The cost of a list that failed on a function: refused by LLVM, invalid, not reproducible, or a crash."""
UNCOUNTED = -1
"""The lexemes of a function where they were not counted: tables had none before November 2026."""
_ABOUT, _WORD = "about", 16  # bytes of an identity
BY_FUNCTION = "identities", "packages", "unoptimized", "baseline", "costs", "features", "lexemes"
"""The arrays with a row for each function."""
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Columns:
    """Meaning of a table's columns.

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
        unoptimized: its cost as it is, prepared for size, by objective.
        baseline: its cost after -Oz, by objective.
        costs: after each list, by objective; None where the list failed.
        features: shape (2, features): before and after -Oz.
        lexemes: of its text as it is, and after -Oz, as `planish.models.ir_text` counts them.
    """

    identity: str
    package: str
    split: str
    unoptimized: Sequence[int]
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
        unoptimized: (n, objectives).
        baseline: (n, objectives), after -Oz.
        costs: (n, lists, objectives); `FAILED` where a list failed.
        features: (n, 2, features), before and after -Oz.
        lexemes: (n, 2), before and after -Oz; `UNCOUNTED` where they were not counted.
    """

    columns: Columns
    identities: NDArray[np.str_]
    packages: NDArray[np.str_]
    splits: Mapping[str, str]
    unoptimized: Ints
    baseline: Ints
    costs: Ints
    features: Ints
    lexemes: Ints

    def __len__(self) -> int:
        """Return how many functions there are."""
        return len(self.identities)

    def split(self, name: str) -> CostTable:
        """Return the functions whose packages are for this."""
        return self.take(np.array([self.splits[package] == name for package in self.packages.tolist()], bool))

    def saved(self, objective: str) -> Ints:
        """Return the savings of each list over -Oz, (n, lists); 0 where it costs more or failed."""
        index = self.columns.objectives.index(objective)
        costs, baseline = self.costs[:, :, index], self.baseline[:, index, None]
        return np.where(costs == FAILED, 0, np.maximum(baseline - costs, 0)).astype(np.int32)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> CostTable:
        """Return some functions, by a mask or by their indices."""
        return replace(self, **{name: getattr(self, name)[rows] for name in BY_FUNCTION})

    def with_rows(self, rows: Sequence[CostRow]) -> CostTable:
        """Return the table with more functions; they must be new."""
        if not rows:
            return self
        more = _stacked(self.columns, rows)
        joined = {name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in BY_FUNCTION}
        whole = replace(self, **joined, splits={**self.splits, **more.splits})
        # In one order, independent of which came first: the same functions make the same file.
        return whole.take(np.lexsort((whole.identities, whole.packages)))


def empty_table(columns: Columns) -> CostTable:
    """Return a table without functions."""
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
        np.array([row.unoptimized for row in rows], np.int32),
        np.array([row.baseline for row in rows], np.int32),
        np.array([[failed if c is None else c for c in row.costs] for row in rows], np.int32),
        np.array([row.features for row in rows], np.int32),
        np.array([row.lexemes for row in rows], np.int32),
    )


def write_costs(table: CostTable, path: Path) -> None:
    """Write a table such that it is there as a whole or as it was.

    The file is an .npz of `about` (JSON as bytes: what `Columns` holds, packages and their splits) and of
    arrays whose last axis is functions: `identity` (bytes), `package` (an index of the packages), and as
    four planes of bytes of little-endian 32-bit integers, since nearly all are small: `features`, `lexemes`,
    `baseline`, `unoptimized` and `costs`, the latter two as differences to the baseline. `failed` is a mask.

    Raises:
        OSError: it cannot be written.
    """
    packages = sorted(table.splits)
    about = {"format": FORMAT, **vars(table.columns), "packages": [[p, table.splits[p]] for p in packages]}
    # A list fails for all objectives or for none, so the first decides.
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
        "unoptimized": _planes(table.unoptimized - table.baseline),
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
        _whole(held["unoptimized"]) + baseline,
        baseline,
        costs,
        _whole(held["features"]),
        _whole(held["lexemes"]) if "lexemes" in held else np.full((len(identities), 2), UNCOUNTED, np.int32),
    )


def _planes(numbers: Ints) -> NDArray[np.uint8]:
    """Return an array with functions last, as four arrays of bytes: zeros beside zeros."""
    turned = np.ascontiguousarray(np.moveaxis(numbers, 0, -1), "<i4")
    return np.ascontiguousarray(np.moveaxis(turned.view(np.uint8).reshape(*turned.shape, 4), -1, 0))


def _whole(planes: NDArray[np.uint8]) -> Ints:
    bytes_last = np.ascontiguousarray(np.moveaxis(planes, 0, -1))
    turned = bytes_last.view("<i4").reshape(bytes_last.shape[:-1])
    return np.ascontiguousarray(np.moveaxis(turned, -1, 0), np.int32)


COUNTED = ("llvm", "machine")
"""Columns that have to be the same wherever costs of two tables are compared."""
DESCRIBED = ("features", "version")
"""Columns that have to be the same where functions are described alike."""
EVERYTHING = tuple(Columns.__dataclass_fields__)
_WORDS = {"llvm": "LLVM", "version": "version of features"}
_LONG = ("lists", "features")


def require_alike(
    one: tuple[str, Columns],
    other: tuple[str, Columns],
    kinds: Iterable[str],
    hint: str = "Leave one of them out.",
) -> None:
    """Raise PlanishError where the columns of two tables differ.

    Args:
        one: its name for the message, and its columns.
        other: likewise.
        kinds: fields of `Columns` that have to be the same.
        hint: how to fix it.
    """
    for kind in kinds:
        mine, its = getattr(one[1], kind), getattr(other[1], kind)
        if mine != its:
            values = "" if kind in _LONG else f": {_formatted(mine)} and {_formatted(its)}"
            raise PlanishError(f"{one[0]} and {other[0]} differ in {_WORDS.get(kind, kind)}{values}", hint)


def require_same_baseline(identity: str, one: Sequence[int], other: Sequence[int]) -> None:
    """Raise PlanishError where a function's cost after -Oz is not the same in two tables."""
    if list(one) != list(other):
        costs = f"{_formatted(one)} after -Oz in one table, and {_formatted(other)} in another"
        what = f"function {identity} costs {costs}"
        raise PlanishError(what, "They are of different tools: leave one of them out, or make it anew.")


def _formatted(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


UNKNOWN = -2
"""The cost of a list that a table lacks, until another table supplies it."""
Passes = tuple[str, ...]


def read_joined(
    files: Sequence[Path], objective: str, lists: Sequence[Passes] | None = None, *, described: bool = False
) -> CostTable:
    """Read tables, and join them as `join_tables` does.

    Raises:
        PlanishError: a file cannot be read; or they do not fit together, and which.
    """
    tables = {str(file): read_costs(file) for file in files}
    return join_tables(tables, objective, lists, described=described)


def join_tables(
    tables: Mapping[str, CostTable],
    objective: str,
    lists: Sequence[Passes] | None = None,
    *,
    described: bool = False,
) -> CostTable:
    """Put functions of several tables into one.

    Of a function that several tables have, the first one's row is taken; but where one of them has it in a
    package that is held back, that one's is. The other tables supply the lists that the row lacks.

    Args:
        tables: by names for messages, as of their files.
        objective: what is counted; others are left out.
        lists: that are wanted, whichever table has them: functions of which the cost of one is not known are
            left out. None for those that all tables have, in alphabetical order.
        described: all have to describe functions by the same features.

    Returns:
        The whole; without features, where not all describe functions alike.

    Raises:
        PlanishError: a table lacks the objective; they are of two LLVMs or machines, or describe functions
            by other features; a package is for training here and held back there; there is no list that
            all have, or no function with all lists that are wanted; a function costs otherwise after -Oz in
            a table that supplies what another one lacks.
    """
    (one, first), *_ = tables.items()
    for name, table in tables.items():
        if objective not in table.columns.objectives:
            raise unknown(f"{name} lacks the objective", objective, table.columns.objectives)
        kinds = (*COUNTED, *(DESCRIBED if described else ()))
        require_alike((name, table.columns), (one, first.columns), kinds)
    splits = _splits(tables)
    every = [table.columns for table in tables.values()]
    chosen = _common(tables) if lists is None else lists
    alike = len({(columns.features, columns.version) for columns in every}) == 1
    parts = [_narrowed(table, objective, chosen, described=alike) for table in tables.values()]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in BY_FUNCTION}
    whole = _once(replace(parts[0], **arrays, splits=splits))
    if len(whole) or lists is None:
        return whole
    what = f"no function has the costs of all {len(chosen)} wanted lists in {' and '.join(tables)}"
    raise PlanishError(what, "Run them: planish corpus costs --widen TABLE.")


def _common(tables: Mapping[str, CostTable]) -> Sequence[Passes]:
    first, *others = (table.columns.lists for table in tables.values())
    lists = sorted(set(first).intersection(*others))
    if not lists:
        raise PlanishError(f"{' and '.join(tables)} have no list in common", "Leave some of them out.")
    return lists


def _splits(tables: Mapping[str, CostTable]) -> dict[str, str]:
    splits = dict[str, str]()
    for name, table in tables.items():
        for package, split in table.splits.items():
            if splits.setdefault(package, split) != split:
                what = f"{name} has package {package} for {split}, and another has it for {splits[package]}"
                raise PlanishError(what, "Leave one of them out.")
    return splits


def _once(table: CostTable) -> CostTable:
    """Return each function once, and those alone whose costs are all known."""
    learnt = np.array([table.splits[package] == "train" for package in table.packages.tolist()], bool)
    order = np.argsort(learnt, kind="stable")
    _, first, inverse = np.unique(table.identities[order], return_index=True, return_inverse=True)
    costs = table.costs.copy()
    for row, kept in zip(order.tolist(), order[first[inverse]].tolist(), strict=True):
        lacking = (costs[kept] == UNKNOWN) & (table.costs[row] != UNKNOWN)
        if lacking.any():
            one, other = table.baseline[kept].tolist(), table.baseline[row].tolist()
            require_same_baseline(str(table.identities[kept]), one, other)
            costs[kept] = np.where(lacking, table.costs[row], costs[kept])
    whole = replace(table, costs=costs).take(np.sort(order[first]))
    return whole.take((whole.costs != UNKNOWN).all(axis=(1, 2)))


def _narrowed(table: CostTable, objective: str, lists: Sequence[Passes], *, described: bool) -> CostTable:
    columns, index = table.columns, table.columns.objectives.index(objective)
    own = {passes: number for number, passes in enumerate(columns.lists)}
    unknown_cost = np.full_like(table.costs[:, 0], UNKNOWN)
    known = [table.costs[:, own[passes]] if passes in own else unknown_cost for passes in lists]
    arrays = {"unoptimized": table.unoptimized, "baseline": table.baseline, "costs": np.stack(known, axis=1)}
    one = {name: array[..., index : index + 1] for name, array in arrays.items()}
    kept = len(columns.features) if described else 0
    columns = replace(columns, objectives=(objective,), lists=tuple(lists), features=columns.features[:kept])
    return replace(table, columns=columns, features=table.features[..., :kept], **one)
