"""The space of patches, the blocks of a network, and its learning rates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from amounts import examples
from levels.hlo.modules import EXAMPLES, chain, evaluate, summing
from planish.core import Candidate, CanEvolve, CanShrink, Measured, ScheduleError, Space, Step, rng
from planish.levels.hlo import Program, program_from, read_program
from planish.levels.hlo.edits import (
    EDITS,
    EXACT,
    CopyOp,
    DeleteOp,
    DropChannels,
    Fold,
    Freeze,
    Lower,
    MoveOp,
    Narrow,
    Quantize,
    ReplaceConstant,
    ReplaceOperand,
    ScaleConstant,
    SetAttribute,
    Shrink,
    TileBatch,
    finished,
    propose,
)
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.patch import original, replay
from planish.levels.hlo.space import PatchSpace, Wants, children
from planish.levels.hlo.structure import blocks, learning_rates
from planish.search import make_searcher
from planish.testing.searchers import drive
from planish.testing.spaces import SpaceConformance


class TestPatchSpace(SpaceConformance):
    def space(self) -> Space:
        return PatchSpace(read_program(EXAMPLES / "2fcnet.mlir"))

    def known_steps(self) -> Mapping[str, type[Step]]:
        return EDITS

    def replay(self, space: Space, candidate: Candidate) -> None:
        assert isinstance(space, PatchSpace)
        replay(space.program, candidate)


COPY = CopyOp("1", "3", ((0, "2#0", ()), (1, "arg0", ())), "3", 0)
ON_COPY = ReplaceOperand(COPY.id_prefix, 1, "arg1")
SCALE = ScaleConstant("0", 0.5)
BOTH = (HloLevel.objectives["time_s"], HloLevel.objectives["error"])


def empty() -> Program:
    return program_from("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }")


def test_it_evolves_and_shrinks() -> None:
    assert isinstance(PatchSpace(chain()), CanEvolve)
    assert isinstance(PatchSpace(chain()), CanShrink)


def test_a_sample_has_three_edits() -> None:
    assert len(PatchSpace(chain(), ("CopyOp", "DeleteOp")).sample(rng(1)).steps) == 3


def test_mutation_appends_one_edit_of_the_kinds_asked_for() -> None:
    space = PatchSpace(summing(), kinds=("DeleteOp", "ScaleConstant"))
    candidate = Candidate((ScaleConstant("1", 3.0),))
    drawn = [space.mutate(candidate, rng(2, i)).steps for i in range(20)]
    assert {steps[:-1] for steps in drawn} == {candidate.steps}
    assert {type(steps[-1]).__name__ for steps in drawn} == {"DeleteOp", "ScaleConstant"}


def test_an_unknown_kind_of_edit_is_named() -> None:
    with pytest.raises(ScheduleError, match="Did you mean 'DeleteOp'"):
        PatchSpace(chain(), kinds=("DeletOp",))


def test_every_kind_of_edit_is_drawn() -> None:
    module = original(read_program(EXAMPLES / "2fcnet.mlir"))
    drawn = {type(propose(module, rng(3, i))[0]).__name__ for i in range(300)}
    absent = {
        "TileBatch",
        "Shrink",
        "Lower",
        "Fold",
        "Relayout",
        "SinkTransposes",
        "DropChannels",
        "Hoist",
        "Shorten",
        "Factor",
    }
    assert drawn == set(EDITS) - absent, (
        "a training step mixes examples, has no images, convolutions, scales and loops, and gives weights"
    )


def test_a_bypass_has_users_take_an_operand_of_what_is_deleted() -> None:
    module = original(read_program(EXAMPLES / "2fcnet.mlir"))
    for index in range(30):
        edit, _ = propose(module, rng(6, index), ("Bypass",))
        assert isinstance(edit, DeleteOp)
        ((value, resize),) = edit.values
        assert value in {module.name(operand) for operand in module.op(edit.op).operands}
        assert not resize


def test_bypasses_leave_out_whole_blocks_of_a_network() -> None:
    module = original(read_program(EXAMPLES / "mobilenet.mlir"))
    # Each adds a block's answer to what it was asked; they are 10 of 455 operations that may be bypassed.
    joints = {"215", "360", "433", "578", "651", "724", "869", "942", "1087", "1160"}
    drawn = [propose(module, rng(9, index), ("Bypass",))[0] for index in range(200)]
    assert sum(isinstance(edit, DeleteOp) and edit.op in joints for edit in drawn) >= 8


def test_what_nothing_needs_is_left_alone() -> None:
    space = PatchSpace(chain(), kinds=("DeleteOp", "ReplaceOperand"))
    cut = Candidate((ReplaceOperand("3", 0, "arg0"), ReplaceOperand("3", 1, "arg0")))
    drawn = [space.mutate(cut, rng(8, index)).steps[-1] for index in range(20)]
    assert {edit.op for edit in drawn if isinstance(edit, DeleteOp | ReplaceOperand)} == {"3"}


def test_a_module_without_operations_has_no_edits() -> None:
    with pytest.raises(ScheduleError, match="no valid edit"):
        PatchSpace(empty()).mutate(Candidate(), rng(1))


@pytest.mark.parametrize("searcher", ["nsga2", "genetic", "random"])
def test_a_search_of_a_module_without_edits_ends(searcher: str) -> None:
    objectives = tuple(HloLevel.objectives.values())
    assert list(make_searcher(searcher, PatchSpace(empty()), objectives, 1).ask(3)) == []


def test_children_share_out_the_edits_and_both_keep_the_common_ones() -> None:
    a, b = (COPY, SCALE), (ON_COPY, SCALE, ReplaceConstant("0", 3.0))
    for index in range(20):
        one, two = children(Candidate(a), Candidate(b), rng(4, index))
        assert one.steps[0] == two.steps[0] == SCALE
        assert {*one.steps[1:], *two.steps[1:]} == {COPY, ON_COPY, b[2]}
        assert len(one.steps) + len(two.steps) == 2 + 3


def test_in_children_an_edit_comes_after_those_that_it_needs() -> None:
    on_both = ReplaceOperand("3", 1, f"{COPY.id_prefix}#0")
    a, b = Candidate((COPY, ON_COPY)), Candidate((SCALE, on_both))
    drawn = [child.steps for index in range(40) for child in children(a, b, rng(7, index))]
    pairs = [(COPY, ON_COPY), (COPY, on_both)]
    together = [(steps, pair) for steps in drawn for pair in pairs if {*pair} <= {*steps}]
    assert together
    assert all(steps.index(first) < steps.index(then) for steps, (first, then) in together)


def test_an_edit_needs_what_another_made() -> None:
    space = PatchSpace(chain())
    space.module(Candidate((COPY, ON_COPY)))
    with pytest.raises(ScheduleError, match=f"no operation '{COPY.id_prefix}'"):
        space.module(Candidate((ON_COPY,)))


def test_a_parent_stands_in_where_no_child_is_valid() -> None:
    a, b = Candidate((COPY, ON_COPY)), Candidate((COPY, ON_COPY, SCALE))
    for index in range(10):
        assert set(PatchSpace(chain()).crossover(a, b, rng(5, index))) <= {a, b}


def test_edits_are_selected_where_the_patch_is_valid_without_the_others() -> None:
    space = PatchSpace(chain())
    found = [
        space.selected(Candidate((COPY, ON_COPY, SCALE)), indices) for indices in ((0, 1), (0, 2), (1, 2))
    ]
    assert found == [Candidate((COPY, ON_COPY)), Candidate((COPY, SCALE)), None]


def test_the_state_is_that_of_the_module_and_not_of_the_patch() -> None:
    space = PatchSpace(chain())
    same = [Candidate(), Candidate((MoveOp("0", "2"),)), Candidate((ReplaceConstant("0", 2.0),))]
    assert len({space.state_key(candidate) for candidate in same}) == 1
    assert space.state_key(Candidate((SCALE,))) != space.state_key(Candidate())
    assert space.state_key(Candidate((SCALE,))) == space.state_key(Candidate((ReplaceConstant("0", 1.0),)))


def test_what_is_remembered_does_not_matter() -> None:
    space, long = PatchSpace(chain()), Candidate()
    for index in range(8):
        long = space.mutate(long, rng(6, index))
    assert PatchSpace(chain()).state_key(long) == space.state_key(long)


@pytest.mark.slow
def test_what_the_structure_of_a_network_suggests_is_measured_first() -> None:
    space = PatchSpace(read_program(EXAMPLES / "mobilenet.mlir"))
    seeds = [seed.steps for seed in space.suggested]
    lower, fold, tile = exact = seeds[0]
    assert (lower, tile) == (Lower("0", "product"), TileBatch(10, loop=True))
    assert isinstance(fold, Fold)
    assert len(fold.ops) == 35, "the scales of all but the depthwise convolutions"
    narrow = seeds[1][-1]
    assert isinstance(narrow, Narrow)
    assert seeds[1] == (*exact, narrow)
    assert len(narrow.ops) == 36, "every product, and what the convolution became"
    others = [steps[-1] for steps in seeds if steps[:4] == seeds[1] and len(steps) == 5]
    assert seeds[2 : 2 + len(others)] == [(*seeds[1], edit) for edit in others]
    joints = {"215", "360", "433", "578", "651", "724", "869", "942", "1087", "1160"}
    bypasses = [edit for edit in others if isinstance(edit, DeleteOp)]
    assert joints <= {edit.op for edit in bypasses}, "a block is kept"
    assert len(bypasses) == 19, "others are several blocks, or a product that keeps its type"
    crops = [edit for edit in others if isinstance(edit, Shrink)]
    assert [edit.pixels for edit in crops] == [30, 28, 26, 24, 16]
    widths = [edit for edit in others if isinstance(edit, DropChannels)]
    assert widths[0] == DropChannels("1234", 208), "of the product with most FLOPs"
    assert len(widths) == 10
    assert [steps[4:] for steps in seeds if len(steps) == 6] == [(crops[0], block) for block in bypasses]
    tiles = [TileBatch(size, loop) for loop in (False, True) for size in (50, 20, 10, 5)]
    assert {(lower,), (fold,), *((lower, fold, size) for size in tiles)} < set(seeds)
    assert {(*exact, edit) for edit in others} < set(seeds), "and without narrow products"
    asked = make_searcher("nsga2", space, BOTH, 1, {"population": "61"}).ask(100)
    assert asked == [seed for seed in space.seeds() if seed in set(asked)], "but what gives the same module"
    assert len(asked) == 61


def test_half_of_the_mutations_are_what_the_structure_suggests_and_the_patch_lacks() -> None:
    space = PatchSpace(read_program(EXAMPLES / "2fcnet.mlir"))
    suggested = {seed.steps[0] for seed in space.seeds()}
    drawn = [space.mutate(space.start(), rng(13, index)).steps[-1] for index in range(60)]
    assert 20 <= sum(edit in suggested for edit in drawn) <= 45
    child = space.seeds()[0]
    later = [space.mutate(child, rng(13, index)) for index in range(30)]
    assert all(len(set(one.steps)) == len(one.steps) for one in later), "an edit twice"


@pytest.mark.parametrize(("kinds", "count"), [(("CopyOp", "DeleteOp"), 0), (("TileBatch",), 8), (EXACT, 11)])
def test_the_papers_space_begins_with_nothing(kinds: tuple[str, ...], count: int) -> None:
    seeds = PatchSpace(read_program(EXAMPLES / "mobilenet.mlir"), kinds).seeds()
    assert len(seeds) == count
    assert all(type(edit).__name__ in kinds for seed in seeds for edit in seed.steps)


def test_a_step_of_training_begins_with_larger_learning_rates_and_its_blocks() -> None:
    seeds = PatchSpace(read_program(EXAMPLES / "2fcnet.mlir")).suggested
    rates = ("68", "72", "76", "80")
    steps = [Candidate(tuple(ScaleConstant(uid, factor) for uid in rates)) for factor in (3.0, 10.0, 30.0)]
    assert seeds[:3] == steps
    assert {type(edit) for seed in seeds[3:] for edit in seed.steps} == {DeleteOp, Freeze, Narrow, Quantize}


@pytest.mark.parametrize("wants", ["other", "less"])
def test_what_changes_nothing_is_drawn_again(wants: Wants) -> None:
    """A mutation of the paper's may move an operation, or copy one without users."""
    program = read_program(EXAMPLES / "2fcnet.mlir")
    space, plain = PatchSpace(program, (), wants), PatchSpace(program)
    drawn = [space.mutate(space.start(), rng(11, index)) for index in range(60)]
    assert space.state_key(space.start()) not in {space.state_key(child) for child in drawn}
    others = [plain.mutate(plain.start(), rng(11, index)) for index in range(60)]
    assert plain.state_key(plain.start()) in {plain.state_key(child) for child in others}


def test_where_less_is_wanted_what_is_rearranged_frees_something() -> None:
    space = PatchSpace(read_program(EXAMPLES / "2fcnet.mlir"), (), "less")
    before = space.module(space.start()).live()
    for index in range(60):
        child = space.mutate(space.start(), rng(12, index))
        number = isinstance(child.steps[0], ScaleConstant | ReplaceConstant | SetAttribute | Narrow)
        assert number or before - space.module(child).live()


def test_each_child_brings_about_one_new_edit_also_late_in_a_run() -> None:
    space = PatchSpace(read_program(EXAMPLES / "2fcnet.mlir"))
    costs = {"time_s": 1.0, "error": 1.0}

    def outcome(candidate: Candidate) -> Measured:
        draws = rng(13, int(candidate.hash[:8], 16)).random(2)
        return Measured(dict(zip(costs, draws.tolist(), strict=True)))

    shares: list[float] = []
    for seed in (2, 3, 4)[: examples(3)]:
        seen, new = set[Step](), list[int]()
        for trial in drive(make_searcher("nsga2", space, BOTH, seed), outcome, 120):
            new.append(len({*trial.candidate.steps} - seen))
            seen.update(trial.candidate.steps)
        shares.append(sum(new[48:]) / len(new[48:]))
    # Less than one: some of the edits are what the structure suggests, and these are soon all known.
    assert 0.5 <= sum(shares) / len(shares) <= 1.5


HEAD = "func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %v: tensor<4x4xf32>) -> tensor<8x4xf32> {"
PRODUCT = "contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>"

RESIDUAL = f"""module {{ {HEAD}
  %0 = stablehlo.dot_general %x, %w, {PRODUCT}
  %1 = stablehlo.tanh %0 : tensor<8x4xf32>
  %2 = stablehlo.add %x, %1 : tensor<8x4xf32>
  %3 = stablehlo.dot_general %2, %v, {PRODUCT}
  %4 = stablehlo.add %2, %3 : tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}} }}"""
"""Two residual blocks: x + tanh(x w), and y + y v."""


def found(text: str) -> list[tuple[str, str]]:
    return [(block.entry, block.exit) for block in blocks(original(Program(text)))]


def test_residual_blocks_are_found_alone_and_together() -> None:
    """Operations are numbered in order from 0; a product of 8x4 by 4x4 takes 256 operations."""
    names = found(RESIDUAL)
    assert names[0] == ("arg0", "4"), "both together compute most"
    assert ("arg0", "2") in names
    assert ("2#0", "4") in names


def test_a_product_alone_is_a_block_where_nothing_joins() -> None:
    text = RESIDUAL.replace("stablehlo.add %x, %1", "stablehlo.add %1, %1")
    assert ("arg0", "0") in found(text)


def test_a_value_that_some_way_avoids_is_no_entry() -> None:
    """The input reaches the sum directly, so nothing inside the first block dominates it."""
    assert all(entry not in {"0#0", "1#0"} or exit_ in {"0", "1"} for entry, exit_ in found(RESIDUAL))


def test_other_types_are_no_blocks() -> None:
    text = """module { func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x3xf32>) -> tensor<8x3xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
      %1 = stablehlo.tanh %0 : tensor<8x3xf32>
      return %1 : tensor<8x3xf32>
    } }"""
    assert found(text) == []


def test_a_function_without_arguments_has_no_blocks() -> None:
    text = """module { func.func @main() -> tensor<2xf32> {
      %0 = stablehlo.constant dense<1.0> : tensor<2xf32>
      return %0 : tensor<2xf32>
    } }"""
    assert found(text) == []


def test_what_is_left_computes_the_other_block_alone() -> None:
    """Without the first block the module is x + x v, in NumPy's words."""
    space = PatchSpace(Program(RESIDUAL))
    block = next(block for block in blocks(original(space.program)) if block.exit == "2")
    sizes = [(8, 4), (4, 4), (4, 4)]
    x, w, v = (rng(0, index).normal(size=size).astype(np.float32) for index, size in enumerate(sizes))
    (result,) = evaluate(finished(replay(space.program, Candidate((block.bypass,)))), x, w, v)
    np.testing.assert_allclose(result, x + x @ v, rtol=1e-5)


@pytest.mark.parametrize(
    ("update", "constants"),
    [
        ("%a = stablehlo.multiply %g, %c\n%y = stablehlo.subtract %p, %a", ["0"]),
        ("%a = stablehlo.multiply %c, %g\n%b = stablehlo.divide %a, %g\n%y = stablehlo.add %p, %b", ["0"]),
        ("%a = stablehlo.multiply %c, %g\n%b = stablehlo.negate %a\n%y = stablehlo.add %b, %p", ["0"]),
        ("%a = stablehlo.multiply %c, %p\n%b = stablehlo.multiply %c, %g\n%y = stablehlo.add %a, %b", []),
        ("%y = stablehlo.add %p, %c", []),
        ("%y = stablehlo.multiply %p, %c", []),
    ],
    ids=["descent", "Adam", "ascent of its negative", "a moment", "a count", "no update"],
)
def test_learning_rates_are_what_updates_are_multiplied_by(update: str, constants: list[str]) -> None:
    lines = "\n".join(f"{line} : tensor<f32>" for line in update.splitlines())
    body = f"%c = stablehlo.constant dense<0.1> : tensor<f32>\n{lines}\nreturn %y : tensor<f32>"
    begin = "func.func @main(%p: tensor<f32>, %g: tensor<f32>) -> tensor<f32> {"
    assert learning_rates(original(program_from(f"{begin}\n{body}\n}}"))) == constants
