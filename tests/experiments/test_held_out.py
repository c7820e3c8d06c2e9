"""Held-out programs stay held out: no shipped file has learnt from what it is judged by."""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="the level hlo is not installed")

UNKNOWN = {"lists.json"}
"""On which modules these lists were found was not recorded."""
CHECK = Path(__file__).parents[2] / "experiments" / "held_out.py"


def test_no_shipped_file_has_learnt_from_what_it_is_judged_by() -> None:
    done = subprocess.run([sys.executable, str(CHECK)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]
    assert all(int(both) == 0 for *_, both in rows)
    assert all(int(learnt.replace(",", "")) > 0 for _, learnt, *_ in rows)
    assert all(int(judged.replace(",", "")) > 0 for _, _, _, judged, _ in rows)
    shipped = Path(str(files("planish.models")))
    learn = {path.name for pattern in ("*.npz", "*.safetensors") for path in shipped.glob(pattern)}
    passes = {path.name for path in Path(str(files("planish.levels.llvm.passes"))).glob("coreset*.json")}
    lists = {path.name for path in Path(str(files("planish.levels.llvm.modules"))).glob("lists*.json")}
    assert lists >= UNKNOWN
    assert learn | passes | lists - UNKNOWN | {"edit_gains.json"} == {name for name, *_ in rows}
