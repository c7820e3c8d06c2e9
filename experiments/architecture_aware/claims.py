"""Each claim of the paper, and what was measured here: confirmed, refuted, or neither."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planish.core import Ratio
from planish.measure.intervals import ratio

Measured = Mapping[str, Any]
EQUAL = 0.98
"""Throughput counts as equal where it may be no more than 2 % less."""


@dataclass(frozen=True)
class Claim:
    """One claim.

    Args:
        kind: the class of networks.
        says: what the paper says.
        least: the change that it claims, as a share: 0.24 more, or -0.15 less.
        quantity: of what: "throughput" or "compile time".
    """

    kind: str
    says: str
    least: float
    quantity: str


CLAIMS = (
    Claim("resnet", "throughput +24 % (TensorFlow) to +32 % (PyTorch)", 0.24, "throughput"),
    Claim("mobilenet", "throughput +5 % on average", 0.05, "throughput"),
    Claim("ssd", "throughput +5 % on average", 0.05, "throughput"),
    Claim("resnet", "compile time -15 %, throughput not less", -0.15, "compile time"),
    Claim("mobilenet", "compile time -45 %, throughput not less", -0.45, "compile time"),
    Claim("ssd", "compile time -54 %, throughput not less", -0.54, "compile time"),
    Claim("bert", "compile time -92 %, throughput not less", -0.92, "compile time"),
)


def relative(model: Measured, name: str, key: str, under: str = "latency", base: str = "BL") -> Ratio | None:
    """Give a configuration's times over the baseline's, with their interval; None where it failed.

    Args:
        model: what was measured of a model.
        name: of the configuration.
        key: "latency", "creation" or "offline".
        under: of the baseline, what it is compared with.
        base: which configuration is the baseline.
    """
    one, other = model["configurations"][name], model["configurations"][base]
    return None if "failed" in one or "failed" in other else ratio(one[key], other[under])


def best_list(model: Measured, names: Sequence[str] = ("AS-0", "AS-1")) -> str | None:
    """Name the fastest of some configurations; None where all failed."""
    known = {name: found for name in names if (found := relative(model, name, "latency")) is not None}
    return min(known, key=lambda name: known[name].value, default=None)


def middle(rounds: Sequence[Sequence[float]]) -> float:
    """Give the median over all processes and rounds."""
    return statistics.median(value for each in rounds for value in each)


def verdicts(models: Sequence[Measured]) -> Iterator[list[str]]:
    """Give rows: class, the paper's claim, the model, what was measured, the verdict."""
    for claim in CLAIMS:
        for model in models:
            # The first class of a mixture, so that a detector on a ResNet is no ResNet.
            if model["classes"][:1] == [claim.kind]:
                judge = _throughput if claim.quantity == "throughput" else _compiling
                yield [claim.kind, claim.says, model["model"], *judge(claim, model)]


def _throughput(claim: Claim, model: Measured) -> list[str]:
    name = best_list(model)
    found = relative(model, name, "latency") if name else None
    if found is None:
        return ["no list gives right answers", "refuted"]
    gain, low, high = 1 / found.value - 1, 1 / found.high - 1, 1 / found.low - 1
    said = f"{name}: {gain:+.1%} ({low:+.1%} to {high:+.1%})"
    if low >= claim.least:
        return [said, "confirmed"]
    return [said, "refuted" if high < claim.least else "within the noise"]


def _compiling(claim: Claim, model: Measured) -> list[str]:
    """Judge compile time by the session's creation, online and from a file that was optimized offline."""
    name = best_list(model)
    speed = relative(model, name, "latency") if name else None
    if name is None or speed is None:
        return ["no list gives right answers", "refuted"]
    kinds: list[tuple[str, Callable[[str], Ratio | None]]] = [
        ("at each start", lambda n: relative(model, n, "creation", "creation")),
        ("optimized offline", lambda n: relative(model, n, "offline", "creation")),
    ]
    said: list[str] = []
    held: list[str] = []
    open_: list[str] = []
    for kind, measured in kinds:
        found = measured(name)
        if found is not None:
            said.append(f"{found.value - 1:+.0%} {kind}")
            held += [kind] if found.high - 1 <= claim.least else []
            open_ += [kind] if found.low - 1 <= claim.least < found.high - 1 else []
    verdict = f"confirmed ({', '.join(held)})" if held else "within the noise" if open_ else "refuted"
    if 1 / speed.low < EQUAL:
        verdict = "refuted: throughput is less"
    return [f"{name}: {', '.join(said)}; throughput {1 / speed.value - 1:+.1%}", verdict]
