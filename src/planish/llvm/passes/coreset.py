"""The coreset: few pass lists of which one is good for most functions."""

import json
from functools import cache
from importlib.resources import files


@cache
def load_coreset(objective: str = "instructions") -> tuple[tuple[str, ...], ...]:
    """Give the shipped coreset: lists by greedy cover over training functions, the most useful first.

    Args:
        objective: what is to be made less. A file `coreset-OBJECTIVE.json` of this package is read where
            there is one; else the lists that were chosen by instructions.

    Returns:
        Lists of passes, as the catalogue writes them.
    """
    folder = files("planish.llvm.passes")
    own = folder / f"coreset-{objective}.json"
    file = own if own.is_file() else folder / "coreset.json"
    return tuple(tuple(passes) for passes in json.loads(file.read_text(encoding="utf-8"))["lists"])
