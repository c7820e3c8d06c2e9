"""A figure as a small SVG: the share of the best by trials; medians over seeds, means over programs."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from pathlib import Path

import numpy as np
from plans import Figure
from tables import Curves, at

COLORS = ("#888888", "#c9751b", "#2b6cb0", "#2f855a", "#b83280", "#6b46c1", "#111111")
WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 52, 150, 30, 40
LEAST = 0.5
"""Share at the bottom."""


def draw(curves: Curves, plan: Figure, path: Path) -> None:
    """Write the picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [*_frame(plan.title, plan.trials)]
    for number, (name, found) in enumerate(curves.items()):
        color = COLORS[number % len(COLORS)]
        counts = [*range(1, plan.trials + 1)]
        means = [_mean([at(searches, count) for searches in found.values()]) for count in counts]
        points = " ".join(
            f"{_x(count, plan.trials):.1f},{_y(mean):.1f}" for count, mean in zip(counts, means, strict=True)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.8"/>')
        row = TOP + 14 * number + 8
        parts.append(_text(WIDTH - RIGHT + 8, row, name, color))
    body = "\n".join(parts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n',
        encoding="utf-8",
    )


def _frame(title: str, trials: int) -> Sequence[str]:
    parts = [_text(LEFT, 18, title, "black")]
    for tenth in range(round(LEAST * 10), 11):
        y = _y(tenth / 10)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        parts.append(_text(LEFT - 36, y + 4, f"{tenth * 10} %", "black"))
    powers = [2**power for power in range(int(log2(trials)) + 1)]
    parts += [_text(_x(each, trials) - 6, HEIGHT - BOTTOM + 16, str(each), "black") for each in powers]
    parts.append(_text(LEFT + 120, HEIGHT - 8, "trials (share of the best there is)", "black"))
    return parts


def _text(x: float, y: float, text: str, color: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}">{text}</text>'


def _mean(shares: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> float:
    return float(np.exp(np.mean([np.log(max(float(np.median(each)), 1e-3)) for each in shares])))


def _x(count: float, trials: int) -> float:
    return LEFT + log2(count) / log2(trials) * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return TOP + (1 - max(share, LEAST)) / (1 - LEAST) * (HEIGHT - TOP - BOTTOM)
