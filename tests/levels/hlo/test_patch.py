"""Features and replay of patches: the same bytes in another process, valid, and accepted by compilers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from math import log2
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator

from amounts import examples
from levels.hlo.modules import CHAIN, EXAMPLES, SUM, chain, image_network, summing
from planish.core import Candidate, ScheduleError, Step, candidate_from_json, rng
from planish.core.step import step_from_json
from planish.levels.hlo import Program, program_from, read_program
from planish.levels.hlo.edits import (
    EDITS,
    CopyOp,
    DeleteOp,
    Edit,
    EditableModule,
    ReplaceOperand,
    ScaleConstant,
    TileBatch,
)
from planish.levels.hlo.edits.propose import PROPOSALS
from planish.levels.hlo.flops import flops_of
from planish.levels.hlo.ir.mlir import uid_of, walk
from planish.levels.hlo.ir.normal import entry_text, load
from planish.levels.hlo.patch import original, replay
from planish.levels.hlo.space import PatchSpace

NETWORK = program_from("""
func.func public @main(%x: tensor<4x8x8x3xf32>, %k: tensor<3x3x3x5xf32>, %w: tensor<5x6xf32>)
    -> tensor<4x8x8x6xf32> {
  %a = stablehlo.exponential %x : tensor<4x8x8x3xf32>
  %b = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<4x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<4x8x8x5xf32>
  %c = stablehlo.negate %b : tensor<4x8x8x5xf32>
  %d = stablehlo.dot_general %c, %w, contracting_dims = [3] x [0]
    : (tensor<4x8x8x5xf32>, tensor<5x6xf32>) -> tensor<4x8x8x6xf32>
  return %d : tensor<4x8x8x6xf32>
}
""")
"""Operations: 0 exponential, 1 convolution, 2 negate, 3 product, 4 return."""
CONVOLUTION, PRODUCT = 2 * 4 * 8 * 8 * 5 * 27, 2 * 4 * 8 * 8 * 6 * 5


def named(program: Program, *edits: Edit) -> dict[str, float]:
    space = PatchSpace(program)
    (row,) = space.features([Candidate(edits)])
    return dict(zip(space.schema.names, row.tolist(), strict=True))


def test_what_operations_take_is_counted_by_their_shapes() -> None:
    module = original(NETWORK)
    found = [flops_of(module, uid) for uid in "01234"]
    assert found == [4 * 8 * 8 * 3, CONVOLUTION, 4 * 8 * 8 * 5, PRODUCT, 0]
    assert flops_of(original(summing()), "4") == 4 * 3 + 1  # a reduction: what goes in, and its start


def test_the_unchanged_module_has_all_left() -> None:
    row = named(NETWORK)
    assert (row["edits"], row["remaining share of FLOPs"], row["remaining share of bytes"]) == (0, 1, 1)
    total = pytest.approx(log2(1 + CONVOLUTION + PRODUCT + 768 + 1280))
    assert row["remaining FLOPs"] == row["FLOPs"] == total
    assert row["layers"] == log2(1 + 3)
    assert row["remaining of kind convolution"] == 1


def test_features_are_the_kinds_of_edits_and_what_they_touch() -> None:
    row = named(NETWORK, DeleteOp("2", (("1#0", ()),)))
    assert (row["edits"], row["times DeleteOp"], row["times CopyOp"]) == (1, 1, 0)
    assert (row["touched of kind elementwise"], row["touched in layer 1"], row["layers touched"]) == (1, 1, 1)
    assert row["remaining share of FLOPs"] < 1


def test_what_an_edit_made_is_of_the_layer_where_it_was_put() -> None:
    copy = CopyOp("0", "3")
    row = named(NETWORK, copy, ReplaceOperand(copy.id_prefix, 0, "arg0"))
    assert row["touched in layer 0"] == 1  # what was copied
    assert row["touched in layer 2"] == 2  # where it was put, and the change of it
    assert row["remaining share of FLOPs"] == 1  # the copy has no user


def test_tiles_are_features() -> None:
    assert named(chain(), TileBatch(1))["tile"] == 0
    assert named(NETWORK, TileBatch(2))["tile"] == 1


def test_an_illegal_patch_is_an_error() -> None:
    with pytest.raises(ScheduleError):
        named(chain(), ScaleConstant("99", 2.0))


REPLAY = """
import json, sys
from pathlib import Path
from planish.core import candidate_from_json
from planish.levels.hlo import read_program
from planish.levels.hlo.edits import EDITS
from planish.levels.hlo.patch import original, replay
program = read_program(Path(sys.argv[1]))
for line in sys.stdin:
    print(json.dumps(replay(program, candidate_from_json(json.loads(line), EDITS)).text()))
"""

COMPILE = """
import json, sys
from jaxlib import xla_client
client = xla_client.make_cpu_client()
devices = xla_client.DeviceList(tuple(client.local_devices()))
for line in sys.stdin:
    client.compile_and_load(json.loads(line).encode(), devices, xla_client.CompileOptions())
    print("compiled")
"""

LONGEST = 12


def grown(space: PatchSpace, length: int, seed: int) -> Candidate:
    candidate = space.start()
    for index in range(length):
        candidate = space.mutate(candidate, rng(seed, index))
    return candidate


def elsewhere(code: str, lines: list[str], *arguments: str) -> list[str]:
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(
        command,
        input="\n".join(lines),
        text=True,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return ran.stdout.splitlines()


def check_index(module: EditableModule) -> None:
    """The index of a module is that of a fresh one."""
    fresh = EditableModule(module.root, module.function)
    for name in ("infos", "blocks", "arguments"):
        assert getattr(fresh, name) == getattr(module, name)


@pytest.mark.parametrize(("name", "count"), [("2fcnet", 12), ("mobilenet", 4)])
def test_patches_replay_to_the_same_bytes_in_another_process(name: str, count: int) -> None:
    path = EXAMPLES / f"{name}.mlir"
    program = read_program(path)
    space = PatchSpace(program)
    made = [grown(space, 1 + seed % LONGEST, seed) for seed in range(count)]
    here = [space.module(candidate).text() for candidate in made]
    there = elsewhere(REPLAY, [candidate.text for candidate in made], str(path))
    assert [json.loads(line) for line in there] == here


@settings(max_examples=examples(25))
@given(st.integers(1, LONGEST), st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("name", ["2fcnet", "small", "pictures"])
def test_patches_are_valid_and_come_back_from_json(name: str, length: int, seed: int) -> None:
    program = example(name)
    space = PatchSpace(program)
    candidate = grown(space, length, seed)
    module = replay(program, candidate)
    assert module.root.verify()
    assert module.text() == space.module(candidate).text()
    check_index(module)
    ids = [uid_of(op) for op in walk(module.root) if "planish.uid" in op.attributes]
    assert len(set(ids)) == len(ids)
    assert candidate_from_json(json.loads(candidate.text), EDITS) == candidate


@settings(max_examples=examples(25))
@given(st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("name", ["2fcnet", "small", "pictures"])
def test_edits_in_any_order_are_valid_or_refused(name: str, seed: int) -> None:
    """What crossover makes may be illegal; it never crashes, and what is valid is as its index says."""
    program = example(name)
    space = PatchSpace(program)
    steps = (*grown(space, 4, seed).steps, *grown(space, 4, seed + 1).steps)
    order = rng(seed).permutation(len(steps))
    check_replay(program, [steps[int(i)] for i in order])


@settings(max_examples=examples(40))
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.5]))
@pytest.mark.parametrize("name", ["2fcnet", "small", "chain", "pictures"])
def test_edits_of_any_arguments_are_valid_or_refused(name: str, seed: int, share: float) -> None:
    """Edits are drawn of each kind, and a share of what they name and count is drawn from the module anew."""
    program, draw = example(name), rng(seed)
    module = original(program)
    edits = list[Step]()
    for _ in range(4):
        with suppress(ScheduleError):  # the module has nothing for the kind
            edits.append(PROPOSALS[picked(list(PROPOSALS), draw)](module, draw))
    changed = [
        step_from_json([name, other(options, module, draw, share)], EDITS)
        for name, options in json.loads(Candidate(tuple(edits)).text)
    ]
    check_replay(program, changed)


def check_replay(program: Program, steps: Sequence[Step]) -> None:
    try:
        module = replay(program, Candidate(tuple(steps)))
    except ScheduleError:
        return
    assert module.root.verify()
    check_index(module)


def other(value: Any, module: EditableModule, draw: Generator, share: float) -> Any:
    """Replace some operations, values, numbers and texts in the options of an edit by others."""
    if isinstance(value, dict):
        return {key: other(each, module, draw, share) for key, each in value.items()}
    if isinstance(value, list):
        return [other(each, module, draw, share) for each in value]
    return value if draw.random() > share else picked(alternatives(value, module, draw), draw)


def alternatives(value: Any, module: EditableModule, draw: Generator) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value - 1, value + 1, 0, -1, int(draw.integers(100)), 2**40]
    if isinstance(value, float):
        return [-value, 0.0, value * 1e30, 1e300]
    operations = list(module.infos)
    values = [f"{uid}#0" for uid in operations] + [f"arg{i}" for i in range(len(module.body.arguments))]
    texts = ["", "f16", "i1", "1 : i64", "array<i64: 0>", value[::-1]]
    return operations if value in operations else values if value in values else texts


def picked(items: Sequence[Any], draw: Generator) -> Any:
    return items[int(draw.integers(len(items)))]


def test_what_patches_give_is_read_back_and_compiles_under_xla() -> None:
    space = PatchSpace(example("2fcnet"))
    texts = [entry_text(space.module(grown(space, 2 + 4 * seed, seed)).root, "main") for seed in range(3)]
    assert all(load(text).verify() and "planish" not in text for text in texts)
    assert elsewhere(COMPILE, [json.dumps(text) for text in texts]) == ["compiled"] * len(texts)


def example(name: str) -> Program:
    texts = {"small": SUM, "chain": CHAIN, "pictures": image_network(8)}
    return program_from(texts[name]) if name in texts else read_program(EXAMPLES / f"{name}.mlir")
