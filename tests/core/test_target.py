"""The target: what identifies it, and what is known of its processor."""

from dataclasses import replace
from pathlib import Path

from planish.core import Cache, Machine, Target, caches

SMALL = Machine(32, 16, (Cache(1, 32 << 10), Cache(2, 1 << 20, 128)))


def test_what_is_known_of_the_processor_does_not_identify_a_target() -> None:
    target = Target("anvil", frozenset({"hammer"}), 2, {"smith": "1"})
    described = replace(target, machine=SMALL)
    assert described == target
    assert described.text == target.text


def test_a_machine_tells_its_lanes_and_caches() -> None:
    assert (SMALL.lanes(4), SMALL.lanes(8), SMALL.lanes(64)) == (8, 4, 1)
    assert SMALL.cache(2) == Cache(2, 1 << 20, 128)
    assert SMALL.cache(3) is None


def test_caches_are_those_of_data_that_the_system_tells(tmp_path: Path) -> None:
    listed = [
        ("1", "Data", "48K"),
        ("1", "Instruction", "32K"),
        ("2", "Unified", "2048K"),
        ("3", "Unified", "?"),
    ]
    for number, (level, kind, size) in enumerate(listed):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        words = {"level": level, "type": kind, "size": size, "coherency_line_size": "64"}
        for name, word in words.items():
            (folder / name).write_text(word + "\n")
    assert caches(tmp_path) == (Cache(1, 48 << 10), Cache(2, 2 << 20))
    assert caches(tmp_path / "nothing") == ()
