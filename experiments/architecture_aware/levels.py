"""Do two optimization levels make the same of a model, and do levels hold passes that change nothing? (§3.2)

    python experiments/architecture_aware/levels.py --folder models
    python experiments/architecture_aware/levels.py --folder models --small

The paper says that TVM's levels 2 and 3 gave the same IR for ResNet50, and that a level may hold passes that
do not change the IR. Here the levels are ONNX Runtime's: none, basic, extended and all. Two models are the
same if they have the same nodes, wired alike, over equal weights.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from planish.levels.graph.installed import SETTINGS
from planish.levels.graph.model_protos import identity
from planish.levels.graph.pass_probe import PassProbe
from planish.levels.graph.passes import passes_of_kind
from planish.levels.graph.sessions import SessionSettings, open_session
from planish.levels.graph.source import read_model

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "graph"))

from models.export import Wish, write

MODELS = tuple(
    f"{name}:{exporter}"
    for name in ("resnet50", "mobilenetv2", "ssd-resnet50", "bert-4x256")
    for exporter in ("torchscript", "dynamo-raw")
)
LEVELS = SETTINGS["optimization"][::-1]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--folder", type=Path, required=True, help="of models; what is missing is made")
    given.add_argument("--models", nargs="+", default=MODELS, metavar="NAME:EXPORTER")
    given.add_argument("--small", action="store_true")
    asked = given.parse_args()
    print(f"| model | {' | '.join(LEVELS)} | the same | change nothing at the level all |")
    print(f"|{'---|' * (len(LEVELS) + 3)}")
    for word in asked.models:
        name, _, exporter = word.partition(":")
        path = write(Wish(name, exporter or "torchscript", small=asked.small), asked.folder)
        made = {level: _made(path, level) for level in LEVELS}
        nodes = (str(count) for _, count in made.values())
        print(f"| {path.stem} | {' | '.join(nodes)} | {_same(made)} | {_idle(path)} |", flush=True)


def _made(path: Path, level: str) -> tuple[str, int]:
    """Name what a level makes of a model, and count its nodes."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "kept.onnx"
        open_session(path, SessionSettings(optimization=level), keep=kept)
        model = onnx.load(kept)
    return identity(model), len(model.graph.node)


def _same(made: Mapping[str, tuple[str, int]]) -> str:
    """List the neighboring levels that make the same."""
    equal = [f"{one} = {other}" for one, other in pairwise(LEVELS) if made[one][0] == made[other][0]]
    return ", ".join(equal) or "no two"


def _idle(path: Path) -> str:
    """Tell how many of the transformers change nothing."""
    with closing(PassProbe(read_model(path, {}), SessionSettings())) as probe:
        fired = probe.effective(())
    known: Sequence[str] = [each.name for each in passes_of_kind("transformer")]
    return f"{sum(not fired.get(name, False) for name in known)} of {len(known)} transformers"


if __name__ == "__main__":
    main()
