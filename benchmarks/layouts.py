"""Convolutions of networks in three layouts: [c, y, x], [y, x, c] as planish has it, and blocks of channels.

Each distinct convolution of a network is tuned in each layout for some seconds, with weights packed ahead,
and the kernels are timed interleaved. The sums over a network are of one layout for all, and of the quickest
for each convolution, as if conversions between layouts were free. What that gains over [y, x, c] bounds what
a choice of layouts can bring:

    python benchmarks/layouts.py resnet50 mobilenet-v2 --seconds 4
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

from planish.levels.graph.source import read_model
from planish.levels.loops.backends import kernel_of, this_machine, tree_of
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.space.template import TemplateSpace
from planish.network.ir import Network, Node
from planish.network.operators.contractions import window_steps
from planish.network.reader import read_network
from planish.network.rewrites.pipeline import rewrite_layouts
from planish.store import Store, open_store
from planish.tuning.api import tune
from planish.tuning.settings import Budget, Settings
from side_by_side import interleaved, use_one_core

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from network_models import NETWORKS

LAYOUTS = {"[c,y,x]": "cyx", "[y,x,c]": "yxc", "[c/16,y,x,16]": "Cyxc"}
BLOCK = 16


@dataclass(frozen=True)
class Convolution:
    """A convolution of one image.

    Args:
        channels: of the image, those of the result, and of one group.
        image: rows and columns.
        out: rows and columns of the result.
        window: of it.
        strides: of the window.
        pads: zeros before the first row and column.
    """

    channels: tuple[int, int, int]
    image: tuple[int, ...]
    out: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]

    @property
    def is_depthwise(self) -> bool:
        """Return whether each channel is by itself."""
        return self.channels[2] == 1 and self.channels[0] == self.channels[1]

    def program(self, layout: str) -> Program:
        """Write it for images in a layout, whose letters are dimensions, "C" for blocks of channels."""
        inner, outer, _ = self.channels
        sizes = dict(zip("yxrs", (*self.out, *self.window), strict=True))
        extents = {"y": self.image[0], "x": self.image[1]}
        block = next(b for b in (BLOCK, 8, 4, 2, 1) if inner % b == 0 and outer % b == 0)
        parts = (inner // block, block) if "C" in layout else (0, inner)
        sizes |= {"K": outer // block, "k": block} if "C" in layout else {"k": outer}
        names = {"C": "K", "c": "k"} if self.is_depthwise else {"C": "C", "c": "c"}
        sizes |= {names["c"]: parts[1]} | ({names["C"]: parts[0]} if "C" in layout else {})
        image, shape = list[str](), list[int]()
        for letter in layout:
            if letter in "yx":
                d = "yx".index(letter)
                image.append(self._subscript(letter, "rs"[d], d))
                shape.append(extents[letter])
            elif sizes[names[letter]] > 1:
                image.append(names[letter])
                shape.append(sizes[names[letter]])
        result = [letter if letter in "yx" else {"C": "K", "c": "k"}[letter] for letter in layout]
        weights = [
            *("Kk" if "C" in layout else "k"),
            *("" if self.is_depthwise else names["C"] * ("C" in layout) + "c"),
            *"rs",
        ]
        kept = [each for each in weights if sizes[each] > 1]
        read = f"I[{','.join(image)}]"
        read = f"pad({read},0.0)" if max(self.window) > 1 else read
        text = f"O[{','.join(a for a in result if sizes[a] > 1)}] += {read}*W[{','.join(kept)}]"
        used = {axis: n for axis, n in sizes.items() if n > 1}
        made = parse(text, used, {"I": tuple(shape), "W": tuple(sizes[a] for a in kept)})
        return made.with_constants(["W"])

    def _subscript(self, axis: str, tap: str, d: int) -> str:
        text = axis if self.strides[d] == 1 else f"{self.strides[d]}*{axis}"
        text += f"+{tap}" if self.window[d] > 1 else ""
        return text + (f"-{self.pads[d]}" if self.pads[d] else "")


def convolutions(network: Network) -> Iterator[Convolution]:
    """List the convolutions of images with more than a few channels."""
    for node in network.nodes:
        if node.operator == "Conv" and (found := _read(network, node)):
            yield found


def _read(network: Network, node: Node) -> Convolution | None:
    shape, out, taps = (network.shape(name) for name in (node.inputs[0], node.output, node.inputs[1]))
    groups = node.attributes.get("group", 1)
    if len(shape) != 4 or min(out[2:]) < 2 or shape[1] < 8 or groups not in (1, shape[1]):
        return None
    strides, _, pads = window_steps(node, shape[2:], taps[2:])
    first = tuple(before for before, _ in pads)
    return Convolution((shape[1], out[1], taps[1]), shape[2:], out[2:], taps[2:], strides, first)


def kernel(program: Program, store: Store, seconds: float) -> Callable[[], object]:
    """Tune a program, if there is time, and return its kernel on arrays of its own."""
    target = this_machine(1)
    chosen = TemplateSpace(program, target).start()
    if seconds:
        budget = Budget(seconds=seconds)
        chosen = tune(program, budget=budget, settings=Settings(), store=store).exported
    outputs = {name: aligned(program.type[name]) for name in program.outputs}
    made = kernel_of(program, chosen, target, tree_of(program, chosen))
    return made.bind(make_inputs(program), outputs)


def main() -> None:
    """Tune, time and print."""
    use_one_core()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="+", choices=NETWORKS)
    parser.add_argument("--seconds", type=float, default=4, help="to tune each (default: 4); 0 for none")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "bench.db") as store:
        for name in args.networks:
            network, _ = read_network(read_model(NETWORKS[name](Path(folder) / f"{name}.onnx"), {}))
            calls = Counter(convolutions(rewrite_layouts(network)))
            print(f"{name}: {len(calls)} distinct convolutions of {calls.total()}, microseconds a call")
            sums = defaultdict[str, float](float)
            for each, count in calls.items():
                found = {
                    label: kernel(each.program(layout), store, args.seconds)
                    for label, layout in LAYOUTS.items()
                }
                # The processor's time: others may run on this machine.
                times = interleaved(found, 0.5, clock=time.thread_time)
                for label, seconds in (*times.items(), ("the quickest", min(times.values()))):
                    sums[label] += count * seconds
                shape = "x".join(map(str, (*each.channels[:2], *each.out, *each.window)))
                columns = "  ".join(f"{label} {1e6 * seconds:8.1f}" for label, seconds in times.items())
                print(f"  {count:>2} x {shape:<24} {prod(each.strides):>2} {columns}", flush=True)
            print(
                "  sums, ms: " + "  ".join(f"{label} {1e3 * sums[label]:.2f}" for label in sums), flush=True
            )


if __name__ == "__main__":
    main()
