"""Whole networks: `planish compile` beside ONNX Runtime with all optimizations, on the same cores.

Each model is compiled with the default schedules, and with `--seconds N` tuned besides. A library and ONNX
Runtime are timed interleaved in fresh processes; the table has medians, the ratio, and its 95 % interval.
`--profile` prints each layer's time, GFLOPS and share of the measured peak, and the nodes of ONNX Runtime's
own profile:

    python benchmarks/networks.py resnet18 mobilenet-v2 --profile
    python benchmarks/networks.py --seconds 600 --state build/networks.json

With `--precision int8`, ONNX Runtime's time on the model that it quantizes dynamically is printed too.
With `--state`, rows and tuned kernels are kept, and the same command continues an interrupted table.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from planish.core import PlanishError
from planish.levels.graph.source import read_model
from planish.levels.loops.backends import preferred_backend
from planish.levels.loops.roofline import measured_peak
from planish.network.compiler import Compilation, compile_model
from planish.network.reader import read_network
from planish.network.report import PeerNode, join_strips, profile_onnxruntime
from planish.network.timing import TIME, make_feeds
from side_by_side import geomean, interleaved, use_one_core

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from held_out_networks import HELD_OUT
from network_models import NETWORKS

ALL = {**NETWORKS, **HELD_OUT}
SHOWN = 30
"""Lines of a profile, the most expensive first."""


def profile(path: Path, shape: str, cores: int) -> list[PeerNode]:
    """Return the nodes of a file's model as ONNX Runtime times them."""
    network, model = read_network(read_model(path, {"shape": shape} if shape else {}))
    return profile_onnxruntime(model, make_feeds(network, 1)[0], cores)


def print_profiles(found: Compilation, nodes: Sequence[PeerNode]) -> None:
    """Print the layers of a library, and the nodes of ONNX Runtime's profile."""
    peak = measured_peak(preferred_backend())
    whole = sum(layer.seconds for layer in found.layers)
    print(f"  layers, {1e3 * whole:.2f} ms in all; peak of one core {peak:.0f} GFLOPS")
    layers = sorted(join_strips(found.layers).items(), key=lambda pair: -pair[1].seconds)
    for (index, *more), layer in layers[:SHOWN]:
        shape = "x".join(map(str, layer.shape)) + (f" x{1 + len(more)}" if more else "")
        print(
            f"  {index:>4} {layer.operators[:40]:<40} {shape:<20} {1e3 * layer.seconds:>8.3f} ms"
            f" {layer.seconds / whole:>6.1%} {layer.gflops:>7.1f} GFLOPS {layer.gflops / peak:>5.0%} of peak"
        )
    total = sum(node.seconds for node in nodes)
    print(f"  nodes of ONNX Runtime, {1e3 * total:.2f} ms in all")
    for node in sorted(nodes, key=lambda node: -node.seconds)[:SHOWN]:
        print(
            f"       {node.operator[:20]:<20} {node.name[:36]:<36} {1e3 * node.seconds:>8.3f} ms"
            f" {node.seconds / total:>6.1%}"
        )


def row(name: str, found: Compilation, seconds: float) -> tuple[str, float | None]:
    """Describe a comparison in a line; return it with the median ratio of ONNX Runtime's time to ours."""
    base, ours, *_ = found.comparison
    if ours.ratio is None:
        return f"{name:<24} undecided: {ours.why}", None
    gain = ours.ratio.gain(TIME)
    return (
        f"{name:<24} {1e3 * base.median:>9.2f} {1e3 * ours.median:>9.2f} {gain.value:>7.2f}"
        f"  {gain.low:.2f} .. {gain.high:.2f} {found.difference:>9.1e} {seconds:>8.1f}"
    ), gain.value


def beside_dynamic(path: Path, made: Compilation) -> str:
    """Describe a library's time beside ONNX Runtime's on the model as it quantizes it dynamically."""
    import onnxruntime as ort
    from onnxruntime.quantization import QuantType, quantize_dynamic

    network, _ = read_network(read_model(path, {}))
    feed, options = make_feeds(network, 1)[0], ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    # Its products of images take weights without a sign alone.
    quantize_dynamic(path, narrow := path.with_suffix(".int8.onnx"), weight_type=QuantType.QUInt8)
    session = ort.InferenceSession(str(narrow), options, providers=["CPUExecutionProvider"])
    names, net = [port.name for port in session.get_outputs()], made.network
    calls = {"ours": partial(net, **feed), "theirs": partial(session.run, names, dict(feed))}
    times = interleaved(calls, 5.0, clock=time.thread_time)
    return (
        f"  ONNX Runtime in dynamic int8: {1e3 * times['theirs']:.2f} ms of the thread, ours "
        f"{1e3 * times['ours']:.2f}: {times['theirs'] / times['ours']:.2f} times"
    )


def measured(
    name: str, seconds: float | None, args: argparse.Namespace, folder: Path
) -> tuple[str, float | None]:
    """Compile a network and compare it; print its profile where that is asked for."""
    path = ALL[name](folder / f"{name}.onnx") if name in ALL else Path(name)
    shape = "" if name in ALL else args.shape
    store = args.state.with_suffix(".db") if args.state else folder / "bench.db"
    began = time.perf_counter()
    try:
        made = compile_model(
            path, output=None, shape=shape, cores=args.cores, seconds=seconds, store=store,
            precision=args.precision,
        )  # fmt: skip
    except PlanishError as error:
        return f"{path.stem:<24} refused: {error}", None
    found = row(f"{path.stem}{' tuned' if seconds else ''}", made, time.perf_counter() - began)
    if args.precision == "int8" and args.cores == 1 and not shape:
        found = f"{found[0]}\n{beside_dynamic(path, made)}", found[1]
    if args.profile:
        print_profiles(made, profile(path, shape, args.cores))
    return found


def main() -> None:
    """Compile, time and print."""
    use_one_core()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", help=f"files, or some of {', '.join(ALL)}; all without")
    parser.add_argument("--seconds", type=float, default=0, help="tune each network for so long, too")
    parser.add_argument("--shape", default="", help="of open inputs of files")
    parser.add_argument("--cores", type=int, default=1, help="threads of both (default: 1)")
    parser.add_argument("--precision", default="float32", help="bf16, of some weights, or int8")
    parser.add_argument("--profile", action="store_true", help="print layers, and ONNX Runtime's nodes")
    parser.add_argument("--state", type=Path, help="file of results, to continue; kernels are beside it")
    args = parser.parse_args()
    settings = [args.seconds, args.cores, args.shape, args.precision]
    known = json.loads(args.state.read_text()) if args.state and args.state.exists() else {}
    if known.setdefault("settings", settings) != settings:
        parser.error(
            f"{args.state} has results of other seconds, cores, shape or precision: {known['settings']}"
        )
    print(f"{'':<24} {'ORT, ms':>9} {'ours, ms':>9} {'ratio':>7}  {'95 %':<12} {'error':>9} {'made, s':>8}")
    ratios: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks or ALL:
            for kind in ("default", "tuned")[: 1 + bool(args.seconds)]:
                seconds = args.seconds if kind == "tuned" else None
                if f"{name} {kind}" not in known:
                    known[f"{name} {kind}"] = measured(name, seconds, args, Path(folder))
                    save(args.state, known)
                line, ratio = known[f"{name} {kind}"]
                print(line, flush=True)
                ratios[kind] += [] if ratio is None else [ratio]
    for kind, values in ratios.items():
        if values:
            print(
                f"{kind}: {geomean(values):.2f} times ONNX Runtime's speed (geometric mean of {len(values)})"
            )


def save(path: Path | None, known: Mapping[str, Any]) -> None:
    """Write the results so far, where they are kept."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(known, indent=1))
        temporary.replace(path)


if __name__ == "__main__":
    main()
