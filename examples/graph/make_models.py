"""Write ONNX models with random weights, for examples, tests and experiments.

    python examples/graph/make_models.py resnet50 mobilenetv2 --folder models
    python examples/graph/make_models.py all --small --exporter all --folder models

What is in the folder already is not made again. It needs torch and onnx, and for dynamo onnxscript.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from models.catalogue import ALL, HELD_OUT, NETWORKS
from models.export import EXPORTERS, Exporter, Wish, write

GROUPS = {"all": tuple(ALL), "classes": tuple(NETWORKS), "held-out": tuple(HELD_OUT)}


def main() -> None:
    """Write the models, and print their files."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("names", nargs="+", metavar="NAME", help=f"{', '.join(ALL)}; or {', '.join(GROUPS)}")
    given.add_argument("--folder", type=Path, required=True)
    given.add_argument("--exporter", choices=[*EXPORTERS, "all"], default="torchscript")
    given.add_argument("--small", action="store_true", help="narrow and shallow, in milliseconds")
    given.add_argument("--batch", type=int, default=1)
    given.add_argument("--layers", type=int, default=0, help="of a transformer")
    given.add_argument("--opset", type=int, default=0, help="else the exporter's own")
    given.add_argument("--seed", type=int, default=0)
    asked = given.parse_args()
    unknown = [name for name in asked.names if name not in ALL and name not in GROUPS]
    if unknown:
        given.error(f"unknown: {', '.join(unknown)}")
    failed = [wish.file for wish in wishes(asked) if not made(wish, asked.folder)]
    sys.exit(f"not made: {', '.join(failed)}" if failed else 0)


def wishes(asked: argparse.Namespace) -> Iterator[Wish]:
    """List what is asked for."""
    exporters: tuple[Exporter, ...] = EXPORTERS if asked.exporter == "all" else (asked.exporter,)
    for name in dict.fromkeys(n for word in asked.names for n in GROUPS.get(word, (word,))):
        for exporter in exporters:
            yield Wish(name, exporter, asked.small, asked.batch, asked.layers, asked.opset, asked.seed)


def made(wish: Wish, folder: Path) -> bool:
    """Write one model, and tell where, or why not: an exporter may not know an operation."""
    try:
        path = write(wish, folder)
    except Exception as error:  # noqa: BLE001  exporters raise whatever they like
        print(f"{wish.file}: {type(error).__name__}: {' '.join(str(error).split())[:200]}", file=sys.stderr)
        return False
    print(f"{path}  {path.stat().st_size / 1e6:.2f} MB")
    return True


if __name__ == "__main__":
    main()
