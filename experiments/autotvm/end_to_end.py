"""AutoTVM's figure 11, whole networks end to end, and what each level of `planish compile` brings.

    python experiments/autotvm/end_to_end.py --seconds 600 --state build/figure-11.json
    python experiments/autotvm/end_to_end.py --seconds 600 --state build/levels.json --levels

A library of each configuration is made, and its answers are compared with ONNX Runtime's. Then all are timed
with ONNX Runtime and the peers that are installed, interleaved in fresh processes. The file has the networks
that are finished: the same command continues. The table has milliseconds of a call, and the speed as a
multiple of ONNX Runtime's, with its 95 % interval.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from planish.core import Candidate
from planish.levels.graph.source import read_model
from planish.levels.loops.backends import this_machine
from planish.measure import Plan, Variant
from planish.measure.comparison import remeasure
from planish.measure.executors import LocalExecutor
from planish.network.choices import choose_algorithms, choose_placements
from planish.network.fusion import kernels_of
from planish.network.ir import Network
from planish.network.library.assembly import build
from planish.network.library.files import write_library
from planish.network.operators.tiled_convolutions import rewrite_transposed_convolutions
from planish.network.placing import place_tensors
from planish.network.reader import read_network
from planish.network.rewrites.pipeline import rewrite, rewrite_layouts, sink_views, trim_windows
from planish.network.timing import PEERS, TIME, Runtime, make_feeds, network_spec, write_models
from planish.network.tuning import DefaultTimes, choose
from planish.network.verification import INPUT_SETS, TOLERANCE, answers_here, verify

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from network_models import NETWORKS

FIGURE = ("resnet18", "mobilenet-v1", "lstm", "dqn", "dcgan")
"""Networks of figure 11."""


@dataclass(frozen=True)
class Configuration:
    """What of `planish compile` is used.

    Args:
        layouts: images between convolutions have their channels last.
        fuses: element-wise operators join kernels, and Concat and Slice move nothing where they need not.
        winograd: convolutions may be computed by Winograd's algorithm.
        tunes: schedules and algorithms are measured.
    """

    layouts: bool = True
    fuses: bool = True
    winograd: bool = True
    tunes: bool = False


CONFIGURATIONS: Mapping[str, Configuration] = {
    "untuned, no fusion": Configuration(fuses=False),
    "untuned": Configuration(),
    "tuned, no fusion": Configuration(fuses=False, tunes=True),
    "tuned": Configuration(tunes=True),
}
LEVELS: Mapping[str, Configuration] = {
    "operators": Configuration(layouts=False, fuses=False, winograd=False),
    "+ layouts": Configuration(fuses=False, winograd=False),
    "+ fusion": Configuration(winograd=False),
    "+ algorithms": Configuration(),
    "+ schedules": Configuration(tunes=True),
}
"""Each has one level more than the one before it."""


def rewritten(network: Network, used: Configuration, defaults: DefaultTimes) -> Network:
    """Return a network with the layouts and algorithms of a configuration."""
    if not used.layouts:
        return rewrite_transposed_convolutions(trim_windows(sink_views(network)))
    network = rewrite_layouts(network)
    if not used.winograd:
        return network
    if used.tunes:
        return choose_algorithms(network, TOLERANCE, defaults, report)
    return rewrite(network, TOLERANCE, defaults.target)


def report(line: str) -> None:
    """Print a line on the progress."""
    print(f"  {line}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Row:
    """A side of a comparison.

    Args:
        side: what was timed.
        milliseconds: median of a call.
        speed: as a multiple of ONNX Runtime's.
        low: of the 95 % interval of that.
        high: likewise.
    """

    side: str
    milliseconds: float
    speed: float
    low: float
    high: float


def measured(
    name: str, configurations: Mapping[str, Configuration], options: argparse.Namespace, folder: Path
) -> list[Row]:
    """Compile a network in each configuration, and time all."""
    path = NETWORKS[name](folder / f"{name}.onnx")
    source, model = read_network(read_model(path, {}))
    target, feeds = this_machine(options.cores), make_feeds(source, INPUT_SETS)
    variants, runtimes = list[Variant](), list[str]()
    for side, used in configurations.items():
        report(f"{name}: {side}")
        begun, seconds = time.monotonic(), options.seconds if used.tunes else None
        defaults = DefaultTimes(target, seconds)
        network = rewritten(source, used, defaults)
        if used.fuses:
            network, kernels = (
                choose_placements(network, defaults, report) if used.tunes else place_tensors(network)
            )
        else:
            kernels = kernels_of(network, fuse=False)
        seconds = seconds and max(0.0, seconds - (time.monotonic() - begun))
        schedules, _ = choose(network, kernels, defaults, seconds, options.store, report, LocalExecutor)
        built, made = build(network, kernels, schedules, target), folder / f"{name} {side}"
        made.mkdir()
        write_library(built, made)
        verify(network, model, TOLERANCE, answers_here(made, built.manifest), feeds)
        runtimes = list(write_models(made, network, model, feeds[0]))
        variants.append(Variant(side, Candidate((Runtime("planish"),)), network_spec(made, model)))
    others = [
        Variant(PEERS.get(each, "ONNX Runtime"), Candidate((Runtime(each),)), variants[-1].spec)
        for each in runtimes
        if each != "planish"
    ]
    sides = [*variants, *others[1:]]
    plan = Plan(seconds=options.comparison * len(sides))
    found = remeasure(others[0], sides, TIME, LocalExecutor, plan)
    rows = list[Row]()
    for sampled in found:
        gain = sampled.ratio.gain(TIME) if sampled.ratio else None
        low, value, high = (gain.low, gain.value, gain.high) if gain else (1.0, 1.0, 1.0)
        if sampled.values:
            rows.append(Row(sampled.name, 1e3 * sampled.median, value, low, high))
        else:
            report(f"{name}: {sampled.name}: not compared: {sampled.why}")
    return rows


def print_table(networks: Mapping[str, list[dict[str, Any]]]) -> None:
    """Print milliseconds, and speeds as multiples of ONNX Runtime's with their intervals."""
    sides = list(dict.fromkeys(row["side"] for rows in networks.values() for row in rows))
    print("|  | " + " | ".join(networks) + " |\n|---|" + "---|" * len(networks))
    for side in sides:
        cells = list[str]()
        for rows in networks.values():
            row = next((Row(**each) for each in rows if each["side"] == side), None)
            cells.append(
                f"{row.milliseconds:.2f} ms, {row.speed:.2f} ({row.low:.2f} to {row.high:.2f})" if row else ""
            )
        print(f"| {side} | " + " | ".join(cells) + " |")


def main() -> None:
    """Measure the networks that the file lacks, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("networks", nargs="*", default=FIGURE, help=f"default: {' '.join(FIGURE)}")
    parser.add_argument("--seconds", type=float, default=600, help="of tuning, as of `planish compile`")
    parser.add_argument("--comparison", type=float, default=20, help="seconds of timing for each side")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument(
        "--levels", action="store_true", help="what each level brings, in place of the figure"
    )
    parser.add_argument("--state", type=Path, required=True, help="file of results; kernels are beside it")
    options = parser.parse_args()
    options.store = options.state.with_suffix(".db")
    known: dict[str, Any] = json.loads(options.state.read_text()) if options.state.exists() else {}
    settings = [options.seconds, options.cores, options.levels]
    if known.setdefault("settings", settings) != settings:
        parser.error(
            f"{options.state} has results of other settings (seconds, cores, levels): {known['settings']}"
        )
    networks: dict[str, Any] = known.setdefault("networks", {})
    for name in options.networks:
        if name not in networks:
            with tempfile.TemporaryDirectory() as folder:
                rows = measured(name, LEVELS if options.levels else CONFIGURATIONS, options, Path(folder))
            networks[name] = [asdict(row) for row in rows]
            options.state.parent.mkdir(parents=True, exist_ok=True)
            temporary = options.state.with_suffix(".new")
            temporary.write_text(json.dumps(known, indent=1))
            temporary.replace(options.state)
    print_table({name: networks[name] for name in options.networks})


if __name__ == "__main__":
    main()
