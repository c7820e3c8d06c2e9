"""Modules are read from text and bytecode into one normal form; what cannot be evolved is refused."""

import io
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from levels.hlo.modules import CHAIN, EXAMPLES, SUM, chain, evaluate
from planish.core import ProgramError
from planish.levels.hlo import program_from, read_program
from planish.levels.hlo.ir.mlir import context, functions, ir, stablehlo, walk
from planish.levels.hlo.ir.normal import argument_names, canonical_hash, chosen_function, entry_text, load
from planish.levels.hlo.ir.parsing import MAGIC
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.program import with_function
from planish.levels.hlo.workload.arguments import signature

CALLING = """
module @m {
  func.func public @main(%a: tensor<2xf32> {jax.buffer_donor = true} loc("weight")) -> tensor<2xf32> {
    %0 = call @twice(%a) : (tensor<2xf32>) -> tensor<2xf32> loc("layer"("file.py":3:5))
    %1 = call @twice(%0) : (tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
  func.func private @twice(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = call @plus(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func private @plus(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %a, %b : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""

WRONG = {
    "text": ("func.func @main( {", "line 1, column"),
    "nothing": ("", "no function 'main'"),
    "words": ("hello", "line 1, column 1: custom op 'hello' is unknown"),
    "types": (CHAIN.replace("%c : tensor<2x3", "%c : tensor<2x4"), "line 7, column 10: use of value"),
    "dialect": (CHAIN.replace("stablehlo.add", "foo.add"), "line 4, column 8: Dialect `foo' not found"),
    "generic dialect": (
        'func.func @main(%a: f32) -> f32 {\n %0 = "foo.bar"(%a) : (f32) -> f32\n return %0 : f32\n}',
        "line 2, column 16: operation being parsed with an unregistered dialect. Known dialects: builtin",
    ),
    "arith": (
        "func.func @main(%a: f32) -> f32 {\n %0 = arith.addf %a, %a : f32\n return %0 : f32\n}",
        "line 2, column 7: 'arith.addf' is of the dialect 'arith'",
    ),
    "dynamic": (
        "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }",
        "tensor<?xf32> has a dynamic shape",
    ),
    "bounded": (
        """func.func @main(%a: tensor<2xf32>) -> tensor<?xf32> {
         %0 = stablehlo.custom_call @f(%a) : (tensor<2xf32>) -> tensor<?xf32>
         return %0 : tensor<?xf32> }""",
        "line 2, column 15: tensor<?xf32> has a dynamic shape",
    ),
    "other name": (CHAIN.replace("@main", "@mian"), "Did you mean 'mian'?"),
    "declaration": ("func.func private @main(%a: tensor<f32>) -> tensor<f32>", "has no body"),
    "recursion": (
        CALLING.replace("call @plus(%a, %a)", "call @loop(%a, %a)")
        .replace("%0 = stablehlo.add %a, %b : ", "%0 = call @twice(%a) : (tensor<2xf32>) -> ")
        .replace("private @plus", "private @loop"),
        "calls itself",
    ),
    "bytes": (b"\xff\xfe\x00", "neither text nor MLIR bytecode"),
    "bytecode": (b"ML\xefR\x0d garbage", "cannot be read as bytecode"),
}


@pytest.mark.parametrize(("source", "says"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_evolved_is_refused_in_one_line(source: str | bytes, says: str) -> None:
    with pytest.raises(ProgramError) as error:
        program_from(source)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"cannot read '.*none\.mlir': No such file"):
        read_program(tmp_path / "none.mlir")


@pytest.mark.parametrize("source", [CHAIN, SUM, CALLING])
def test_the_normal_form_is_its_own_normal_form(source: str) -> None:
    program = program_from(source)
    assert program_from(program.text) == program


def test_bytecode_and_portable_artifacts_are_the_text() -> None:
    # Both writers take the module apart, so each has its own.
    plain, module = io.BytesIO(), ir.Module.parse(CHAIN, context())
    module.operation.write_bytecode(plain)
    portable = stablehlo.serialize_portable_artifact(ir.Module.parse(CHAIN, context()), "1.0.0")
    hashes = {canonical_hash(load(source)) for source in (CHAIN, plain.getvalue(), portable)}
    assert len(hashes) == 1


@pytest.mark.parametrize("how", ["cut short", "turned over"])
def test_broken_bytecode_is_refused(how: str) -> None:
    plain = io.BytesIO()
    ir.Module.parse(SUM, context()).operation.write_bytecode(plain)
    head, tail = plain.getvalue()[:60], plain.getvalue()[60:]
    with pytest.raises(ProgramError, match="cannot be read as bytecode"):
        program_from(head if how == "cut short" else head + bytes(255 - byte for byte in tail))


def test_a_reader_of_bytecode_that_crashes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(ProgramError, match="it is broken"):
        program_from(MAGIC + b"any")


def test_calls_are_inlined_and_foreign_attributes_dropped() -> None:
    root = load(CALLING)
    assert [name for name, _ in functions(root)] == ["main"]
    assert [op.name for op in walk(root)[2:]] == ["stablehlo.add", "stablehlo.add", "func.return"]
    assert "jax" not in str(root)
    (result,) = evaluate(root, np.array([1, 2], np.float32))
    assert result.tolist() == [4, 8]


def test_names_of_layers_and_arguments_stay_and_places_in_files_do_not() -> None:
    text = program_from(CALLING).text
    assert 'loc("weight")' in text
    assert "layer" in text
    assert "file.py" not in text


def test_the_function_to_evolve_is_kept_in_the_text() -> None:
    source = CALLING.replace("private @twice", "public @twice")
    program = program_from(source, function="twice")
    assert chosen_function(load(program.text)) == "twice"
    assert program != program_from(source)
    assert program_from(program.text) == program
    assert chosen_function(load(program.text, "main")) == "main"


def test_a_private_function_can_be_evolved() -> None:
    assert "@plus" in program_from(CALLING, function="plus").text


def test_one_function_becomes_the_main_of_its_own_module() -> None:
    both = with_function(chain(), "other", program_from(CALLING))
    assert [name for name, _ in functions(load(both.text))] == ["main", "other"]
    alone = load(entry_text(load(both.text), "other"))
    assert canonical_hash(alone) == canonical_hash(load(CALLING.replace(" @m ", " ")))
    with pytest.raises(ProgramError, match="already"):
        with_function(both, "other", chain())
    with pytest.raises(ProgramError, match="Did you mean 'other'"):
        entry_text(load(both.text), "othr")


def test_the_signature_of_an_example() -> None:
    program = read_program(EXAMPLES / "2fcnet.mlir")
    found = signature(program)
    assert found.names == ("fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight", "images", "labels")
    assert [str(type_) for type_ in found.arguments[4:]] == ["tensor<32x784xf32>", "tensor<32xi32>"]
    assert found.results[:4] == found.arguments[:4]
    assert [str(type_) for type_ in signature(program, "predict").results] == ["tensor<1000x10xf32>"]
    with pytest.raises(ProgramError, match="Did you mean 'predict'"):
        signature(program, "predit")


def test_importing_the_level_imports_neither_jax_nor_jaxlib() -> None:
    code = "import sys, planish, planish.levels.hlo; print([m for m in sys.modules if m.startswith('jax')])"
    out = subprocess.run([sys.executable, "-c", code], check=True, text=True, stdout=subprocess.PIPE).stdout
    assert out.strip() == "[]"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "%a = stablehlo.add %x, %y",
            "%dead = stablehlo.negate %x : tensor<2x3xf32>\n%a = stablehlo.add %x, %y",
        ),
        ("%a", "%other"),
        ("multiply %a, %two", 'multiply %a, %two {planish.uid = "7"}'),
    ],
)
def test_the_hash_is_that_of_what_is_computed(old: str, new: str) -> None:
    assert canonical_hash(load(CHAIN.replace(old, new))) == canonical_hash(load(CHAIN))


def test_the_hash_knows_neither_order_nor_repetition() -> None:
    lines = CHAIN.splitlines()
    moved = "\n".join([*lines[:2], lines[3], lines[2], *lines[4:]])
    again = "  %d = stablehlo.add %x, %y : tensor<2x3xf32>\n  %e = stablehlo.add %d, %a : tensor<2x3xf32>"
    twice = "\n".join([*lines[:4], again, *lines[4:]]).replace("multiply %a, %two", "multiply %d, %two")
    assert moved != CHAIN
    assert {canonical_hash(load(text)) for text in (CHAIN, moved, twice)} == {canonical_hash(load(CHAIN))}


@pytest.mark.parametrize(
    ("old", "new"), [("2.0", "2.5"), ("add %x, %y", "add %x, %x"), ("subtract", "divide")]
)
def test_the_hash_changes_with_what_is_computed(old: str, new: str) -> None:
    assert canonical_hash(load(CHAIN.replace(old, new))) != canonical_hash(load(CHAIN))


NAMES: dict[tuple[str, ...], list[str]] = {
    ("x", "", "two words"): ["x", "", "two words"],
    ("p['w']", "p['b']", "x"): ["w", "b", "x"],
    ("p['fc1.weight']",): ["fc1.weight"],
    ("p['w']", "m['w']", "m['b']"): ["p.w", "m.w", "b"],
    ("state.params['Dense']['kernel']", "state.step"): ["params.Dense.kernel", "step"],
    ("xs[0]", "xs[1]['a']", "p['0']"): ["xs.0", "xs.1.a", "0"],
    ('p["it\'s"]', "p[<flat index 0>]"): ["it's", "p[<flat index 0>]"],
}


@pytest.mark.parametrize("paths", NAMES)
def test_paths_into_trees_become_names(paths: tuple[str, ...]) -> None:
    assert argument_names(paths) == NAMES[paths]
    assert argument_names(NAMES[paths]) == NAMES[paths], "names are names"


def test_weights_are_found_by_the_names_of_arguments(tmp_path: Path) -> None:
    names = ["block01.depthwise.kernel", "last.kernel", "classifier.bias", "classifier.weight", "images"]
    assert argument_names(names) == names
    for name in ("mobilenet.mlir", "mobilenet.toml", "mobilenet_original.mlir"):
        shutil.copy(EXAMPLES / name, tmp_path)
    found = signature(read_program(EXAMPLES / "mobilenet.mlir"))
    assert set(names) < set(found.names)
    shapes = dict(zip(found.names, found.arguments, strict=True))
    arrays = {name: np.zeros(shapes[name].shape, np.float32) for name in shapes if name != "images"}
    save_file(arrays, tmp_path / "mobilenet.safetensors")
    program = HloLevel().load(str(tmp_path / "mobilenet.mlir"), {})
    assert program.workload.weights is not None


SHARDED = """
module @m {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<4xf32>
    %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
"""


def test_sharding_is_left_out_and_answers_stay() -> None:
    program = program_from(SHARDED)
    assert "sdy" not in program.text
    (found,) = evaluate(load(program.text), np.arange(4, dtype=np.float32))
    assert found.tolist() == [0, 2, 4, 6]


def test_a_computation_of_each_device_is_refused() -> None:
    wrong = SHARDED.replace(
        "%2 = sdy.reshard %1 <@mesh, [{}]> : tensor<4xf32>",
        """%2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
           manual_axes={"x"} (%b: tensor<2xf32>) { sdy.return %b : tensor<2xf32>
           } : (tensor<4xf32>) -> tensor<4xf32>""",
    )
    with pytest.raises(ProgramError, match=r"'sdy\.manual_computation' is of the dialect 'sdy'"):
        program_from(wrong)


def test_random_numbers_without_a_state_are_refused() -> None:
    module = """
func.func @main(%a: tensor<f32>, %b: tensor<f32>, %s: tensor<1xi64>) -> tensor<4xf32> {
  %r = "stablehlo.rng"(%a, %b, %s) {rng_distribution = #stablehlo<rng_distribution UNIFORM>}
    : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""
    with pytest.raises(ProgramError, match=r"'stablehlo.rng' makes the answers random.* or use 'stablehlo"):
        program_from(module)
