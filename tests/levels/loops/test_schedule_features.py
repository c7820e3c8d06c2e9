"""Features that are read from schedules alone: what they count, and that they tell candidates apart."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import Cache, Candidate, Machine, Step, Target
from planish.levels.loops.backends import preferred_backend
from planish.levels.loops.context import CONTEXT
from planish.levels.loops.features import SCHEMA
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.roofline import machine_peak
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import Pack, Parallel, Reorder, Split, Unroll
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

MACHINE = Machine(64, 32, (Cache(1, 1 << 15, 64), Cache(2, 1 << 20, 64)))
PRODUCT = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 64, "n": 96, "k": 50}).with_constants(["B"])
TILED = (Split("n", 32), Split("m", 4), Reorder(("m:4", "n:32", "k", "m", "n")))


def described(*candidates: Sequence[Step], of: Program = PRODUCT) -> NDArray[np.float32]:
    space = TemplateSpace(of, Target("", machine=MACHINE))
    return space.features([Candidate(tuple(steps)) for steps in candidates])


def count(row: NDArray[np.float32], name: str) -> float:
    """Undo the logarithm of a count."""
    return 2 ** float(row[SCHEMA.names.index(name)]) - 1


def test_loops_are_described_from_the_innermost_one_outward() -> None:
    row = described(TILED)[0]
    trips = [count(row, f"trips, loop {i}") for i in range(6)]
    assert trips == pytest.approx([32, 4, 50, 3, 16, 1], rel=1e-5)
    entries = [count(row, f"entries, loop {i}") for i in range(3)]
    assert entries == pytest.approx([16 * 3 * 50 * 4, 16 * 3 * 50, 16 * 3], rel=1e-5)
    # What is loaded in vectors is B: 50 x 32 of it in the loop k.
    assert count(row, "touched of the loaded, loop 2") == pytest.approx(50 * 32, rel=1e-5)
    assert count(row, "touched of the other, loop 2") == pytest.approx(50 * 4, rel=1e-5)
    assert count(row, "stride of the loaded, loop 2") == pytest.approx(96, rel=1e-5)


def test_the_register_tile_is_seen() -> None:
    row = described(TILED)[0]
    named = dict(zip(SCHEMA.names, row.tolist(), strict=True))
    assert count(row, "results in registers") == pytest.approx(4 * 32, rel=1e-5)
    assert count(row, "registers of results") == pytest.approx(4 * 2, rel=1e-5)
    assert named["loads"] == pytest.approx((2 + 4) / 8)
    assert named["idle lanes"] == 0


def test_what_a_step_decides_is_seen() -> None:
    """Each of these changes some feature: packing, packing ahead, threads, unrolling, the order."""
    others = (Pack("B", "root"), Pack("B", "root", ahead=True), Parallel("m:4"), Unroll("m"))
    order = (*TILED[:2], Reorder(("n:32", "m:4", "k", "m", "n")))
    found = described(TILED, order, *[(*TILED, step) for step in others])
    assert len({row.tobytes() for row in found}) == len(found)


def test_element_type_and_processor_are_features() -> None:
    def named(dtype: str, target: Target) -> dict[str, float]:
        program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 64, "n": 96, "k": 50}, dtype=dtype)
        row = TemplateSpace(program, target).features([Candidate()])[0]
        return {name: count(row, name) for name in CONTEXT}

    known = [4, 1, 2, 64, 32, 32, 1024, 0, 0]
    target = Target("", cores=2, machine=MACHINE)
    assert [*named("float32", target).values()] == pytest.approx(known, rel=1e-5)
    assert [*named("int32", target).values()] == pytest.approx([4, 0, *known[2:]], rel=1e-5)
    level = LoopsLevel()
    space = level.space(task_of(level, PRODUCT, Settings()), "template")
    assert isinstance(space, TemplateSpace)
    row = space.features([Candidate()])[0]
    assert count(row, "peak") == pytest.approx(machine_peak(preferred_backend()), rel=1e-5)


def test_the_peak_is_measured_once_on_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    backend = preferred_backend()
    machine_peak.cache_clear()
    measured = machine_peak(backend)
    assert measured > 0
    (file,) = tmp_path.rglob("peaks.json")
    (name,) = json.loads(file.read_text())
    for written, read in ((json.dumps({name: 12345}), 12345), ("[1", None), ('{"a": []}', None)):
        file.write_text(written)
        machine_peak.cache_clear()
        found = machine_peak(backend)
        assert found == read or (read is None and found > 0)
        assert json.loads(file.read_text())[name] == found
    machine_peak.cache_clear()


def test_schedules_of_other_spaces_have_features_too() -> None:
    """More loops than there is room for, none at all, and steps that the template never takes."""
    many = [Split("m", 1 << i) for i in range(14, 0, -1)]
    rows = [
        described(many, of=parse("B[m] = A[m]", {"m": 1 << 15})),
        described((), of=parse("B[] = A[] * A[]", {})),
        described((Split("k", 7),)),
    ]
    assert np.isfinite(np.concatenate(rows)).all()


def test_the_table_of_names_has_a_version() -> None:
    """Who changes what a column means, or their order, raises the version and this digest."""
    digest = hashlib.sha256("\n".join(SCHEMA.names).encode()).hexdigest()[:12]
    assert (SCHEMA.name, SCHEMA.version, SCHEMA.width, digest) == ("loops/schedule", 2, 283, "66a844a646ba")
