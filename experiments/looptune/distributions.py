"""Distributions of speed-ups by way (thesis, figure 3.9), from the rows that `matmuls.py --save` has kept.

    python experiments/looptune/distributions.py ROWS [-o figure.html]

Speed-ups are over the unscheduled program, as in the thesis.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

SHARES = (0, 25, 50, 75, 100)


def speedups(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    """Give each way's speed-ups, one for each case."""
    ways = [way for way in rows[0] if way not in ("walk_s", "unscheduled")]
    return {way: [row[way] / row["unscheduled"] for row in rows] for way in ways}


def main() -> None:
    """Print quartiles, and draw them where asked."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("rows", type=Path)
    given.add_argument("-o", "--output", type=Path)
    asked = given.parse_args()
    found = speedups([json.loads(line) for line in asked.rows.read_text().splitlines()])
    print("| way | least | 25 % | median | 75 % | most |\n|---|--:|--:|--:|--:|--:|")
    for way, values in found.items():
        print(f"| {way} | {' | '.join(f'{value:.1f}' for value in np.percentile(values, SHARES))} |")
    if asked.output:
        import plotly.graph_objects as go

        figure = go.Figure([go.Violin(y=values, name=way, box_visible=True) for way, values in found.items()])
        figure.update_layout(yaxis_title="speed-up over the unscheduled program", yaxis_type="log")
        asked.output.write_text(figure.to_html(include_plotlyjs=True), encoding="utf-8")


if __name__ == "__main__":
    main()
