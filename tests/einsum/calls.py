"""Random calls of einsum: right ones, odd ones, and wrong ones; a seed gives the same call again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from einsum.operands import DTYPES, FLOATS, ODD, PLAIN

LETTERS = "abcdefgHIJ"


@dataclass(frozen=True)
class Call:
    """The arguments of a call."""

    args: tuple[Any, ...]
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        shown = [
            a if isinstance(a, (str, bytes, list)) else f"{type(a).__name__}{_kind(a)}" for a in self.args
        ]
        return f"einsum({', '.join(map(str, shown))}, {dict(self.arguments)})"


def _kind(value: Any) -> str:
    return f" {value.dtype.str}{value.shape} strides {value.strides}" if isinstance(value, np.ndarray) else ""


def call(seed: int) -> Call:
    """Make a call. About half of them are what kernels compute."""
    rng = np.random.default_rng(seed)
    easy = rng.random() < 0.5
    sizes = {c: int(rng.choice([1, 2, 3, 4, 5, 8, 17])) for c in LETTERS}
    if not easy and rng.random() < 0.1:
        sizes[str(rng.choice(list(LETTERS)))] = 0
    terms = [_term(rng, easy) for _ in range(int(rng.choice([1, 2, 2, 2, 3, 4 if easy else 3])))]
    output = _output(rng, terms, easy)
    operands = _operands(rng, terms, sizes, easy)
    if not easy and rng.random() < 0.15:
        return Call(_interleaved(rng, terms, output, operands), {})
    subscripts: Any = ",".join(terms) + ("" if output is None else f"->{output}")
    arguments: dict[str, Any] = {}
    if not easy:
        subscripts = _disturbed(rng, subscripts)
        arguments = _arguments(rng, (subscripts, *operands), operands)
    return Call((subscripts, *operands), arguments)


def _term(rng: Generator, easy: bool) -> str:
    letters = LETTERS[:6] if easy else LETTERS
    term = "".join(rng.choice(list(letters), int(rng.integers(1 if easy else 0, 4)), replace=not easy))
    if not easy and rng.random() < 0.2:
        position = int(rng.integers(len(term) + 1))
        term = f"{term[:position]}...{term[position:]}"
    return term


def _output(rng: Generator, terms: Sequence[str], easy: bool) -> str | None:
    if rng.random() < 0.2:
        return None
    letters = sorted(set("".join(terms)) - {"."})
    chosen = [str(c) for c in rng.permutation(letters)][: int(rng.integers(len(letters) + 1))]
    if not easy and any("." in term for term in terms) and rng.random() < 0.8:
        chosen.insert(int(rng.integers(len(chosen) + 1)), "...")
    if not easy and rng.random() < 0.05:
        chosen += chosen[:1] or ["z"]
    return "".join(chosen)


def _operands(rng: Generator, terms: Sequence[str], sizes: Mapping[str, int], easy: bool) -> list[Any]:
    dtype = str(rng.choice(FLOATS))
    found: list[Any] = []
    for term in terms:
        kind = dtype if easy or rng.random() < 0.6 else str(rng.choice(FLOATS + DTYPES))
        makers = PLAIN if easy or rng.random() < 0.4 else ODD
        make = makers[int(rng.integers(len(makers)))]
        found.append(make(rng, _shape(rng, term, sizes, easy), kind))
    if not easy and rng.random() < 0.05:
        found = found[:-1] if rng.random() < 0.5 else [*found, 2.5]
    return found


def _shape(rng: Generator, term: str, sizes: Mapping[str, int], easy: bool) -> tuple[int, ...]:
    before, dots, after = term.partition("...")
    extents = [sizes[c] for c in before]
    if dots:
        extents += [2, 3][: int(rng.integers(3))]
    extents += [sizes[c] for c in after]
    if not easy and extents and rng.random() < 0.05:
        extents[int(rng.integers(len(extents)))] = int(rng.choice([1, 6]))
    return tuple(extents)


def _interleaved(
    rng: Generator, terms: Sequence[str], output: str | None, operands: Sequence[Any]
) -> tuple[Any, ...]:
    args: list[Any] = []
    for operand, term in zip(operands, terms, strict=False):
        args += [operand, _numbers(term)]
    if output is not None and rng.random() < 0.9:
        args.append(_numbers(output))
    return tuple(args)


def _numbers(term: str) -> list[Any]:
    letters = LETTERS + "z"
    return [Ellipsis if part == "..." else letters.index(part) for part in re.findall(r"\.\.\.|.", term)]


def _disturbed(rng: Generator, subscripts: str) -> Any:
    point = rng.random()
    position = int(rng.integers(len(subscripts) + 1))
    if point < 0.2:
        return f"{subscripts[:position]} {subscripts[position:]}"
    if point < 0.25:
        return subscripts.encode()
    if point < 0.35:
        return subscripts[:position] + str(rng.choice(list("-,.1é>?"))) + subscripts[position:]
    return np.str_(subscripts) if point < 0.4 else subscripts


def _arguments(rng: Generator, args: Sequence[Any], operands: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if rng.random() < 0.15:
        found["optimize"] = [True, False, "greedy", "optimal", "wrong", ["einsum_path", (0, 1)], 3][
            int(rng.integers(7))
        ]
    if rng.random() < 0.1:
        found["dtype"] = str(rng.choice(["float32", "float64", "int64", "complex128", "nonsense"]))
    if rng.random() < 0.1:
        found["order"] = str(rng.choice(list("CFAKX")))
    if rng.random() < 0.1:
        found["casting"] = str(rng.choice(["no", "equiv", "safe", "same_kind", "unsafe", "never"]))
    if rng.random() < 0.02:
        found["surprise"] = 1
    if rng.random() < 0.15:
        found["out"] = _out(rng, args, operands)
    return found


def _out(rng: Generator, args: Sequence[Any], operands: Sequence[Any]) -> Any:
    """Make an `out`: mostly one that fits; else None, overlapping, read-only, or wrong."""
    try:
        like: Any = np.asarray(np.einsum(*args))
    except Exception:  # noqa: BLE001 (whatever NumPy raises: the call is wrong, and any `out` will do)
        like = np.zeros((2, 3))
    made: list[Any] = [
        np.zeros(like.shape, like.dtype),
        np.zeros(like.shape, like.dtype, order="F"),
        np.zeros((*like.shape, 2), like.dtype)[..., 0],
        np.zeros(like.shape, "float16"),
        np.zeros((*like.shape, 2), like.dtype),
        operands[0] if operands else None,
        like.tolist(),
        None,
        np.zeros(like.shape, like.dtype),
    ]
    if isinstance(made[-1], np.ndarray):
        made[-1].flags.writeable = False
    return made[int(rng.integers(len(made)))]
