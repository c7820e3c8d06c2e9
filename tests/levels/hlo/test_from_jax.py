"""Programs of JAX functions, and the examples that are made of them.

JAX runs in processes of its own: it starts threads, and this process may fork later.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from levels.hlo.modules import EXAMPLES
from planish.core import TargetError
from planish.levels.hlo import from_jax, read_program
from planish.levels.hlo.workload.arguments import signature

# Where the checks run, what is missing is a failure.
needs_jax = pytest.mark.skipif(
    find_spec("jax") is None and os.environ.get("CI") != "true", reason="JAX is not installed"
)


def run(code: str) -> list[str]:
    folder = f"import sys; sys.path.insert(0, {str(EXAMPLES)!r})\n"
    ran = subprocess.run([sys.executable, "-c", folder + code], check=True, text=True, stdout=subprocess.PIPE)
    return ran.stdout.splitlines()


def test_without_jax_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(TargetError, match="pip install"):
        from_jax(abs, 1.0)


@needs_jax
def test_a_function_of_trees_becomes_a_main_of_their_leaves() -> None:
    code = """
import jax, jax.numpy as jnp
from planish.levels.hlo import from_jax
from planish.levels.hlo.workload.arguments import signature
@jax.jit
def inner(x):
    return jnp.clip(x, 0.0, 1.0)
def f(p, x, unused):
    with jax.named_scope("first"):
        return {"y": inner(x @ p["w"] + p["b"])}, x.sum()
program = from_jax(f, {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}, jax.ShapeDtypeStruct((4, 3), jnp.float32), 1)
found = signature(program)
print(found.names, *found.results)
print("first" in program.text, "call" in program.text)
"""
    assert run(code) == [
        "('b', 'w', 'x', 'unused') tensor<4x2xf32> tensor<f32>",
        "True False",
    ]


@needs_jax
def test_text_bytecode_and_function_name_nested_parameters_alike(tmp_path: Path) -> None:
    code = f"""
import pathlib, jax, jax.numpy as jnp
from jax import export
from planish.levels.hlo import from_jax, read_program
from planish.levels.hlo.workload.arguments import signature
def f(p, xs):
    return p["fc"]["w"] @ p["fc"]["b"] * p["s"][1] + xs[0].sum()
one = jnp.ones(())
args = {{"fc": {{"w": jnp.ones((3, 3)), "b": jnp.ones(3)}}, "s": [one, one]}}, (jnp.ones(2),)
jitted = jax.jit(f, keep_unused=True)
text, code = pathlib.Path({str(tmp_path / "f.mlir")!r}), pathlib.Path({str(tmp_path / "f.mlirbc")!r})
text.write_text(jitted.lower(*args).as_text(dialect="stablehlo", debug_info=True))
code.write_bytes(export.export(jitted)(*args).mlir_module_serialized)
for program in (from_jax(f, *args), read_program(text), read_program(code)):
    print(*signature(program).names)
"""
    assert run(code) == ["fc.b fc.w s.0 s.1 xs.0"] * 3


@needs_jax
def test_how_a_function_is_spread_over_devices_is_left_out() -> None:
    code = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from planish.levels.hlo import from_jax
spread = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec("x"))
def plain(x):
    return x @ x
def f(x):
    return jax.lax.with_sharding_constraint(plain(x), spread)
x = jnp.ones((4, 4))
lowered = jax.jit(f, in_shardings=spread).lower(x).as_text(dialect="stablehlo")
print("sdy" in lowered, "sdy" in from_jax(jax.jit(f, in_shardings=spread), x).text)
"""
    assert run(code) == ["True False"]


@pytest.mark.slow
@needs_jax
def test_the_training_step_is_gradient_descent() -> None:
    """The gradients that make_2fcnet.py writes out are those that JAX derives."""
    code = """
import jax, jax.numpy as jnp, make_2fcnet as example, numpy as np
draw = np.random.default_rng(0)
shapes = {"fc1.weight": (784, 16), "fc1.bias": (16,), "fc2.weight": (16, 10), "fc2.bias": (10,)}
p = {name: draw.normal(0, 0.1, shape).astype("f") for name, shape in shapes.items()}
images, labels = draw.normal(size=(32, 784)).astype("f"), draw.integers(0, 10, 32, "i")
def loss(p):
    logits = example.predict(p, images)
    return -jax.nn.log_softmax(logits)[jnp.arange(32), labels].mean()
wanted, gradients = jax.jit(jax.value_and_grad(loss))(p)
new, found = jax.jit(example.step)(p, images, labels)
print(np.allclose(found, wanted, atol=1e-6))
print(all(np.allclose(new[n], p[n] - 0.01 * gradients[n], atol=1e-6) for n in p))
"""
    assert run(code) == ["True", "True"]


@pytest.mark.slow
@needs_jax
def test_both_forms_of_mobilenet_compute_the_same() -> None:
    code = """
import jax, make_mobilenet as example, numpy as np
draw = np.random.default_rng(0)
w = {n: draw.normal("scale" in n, 0.3, s).astype("f") for n, s in example.shapes(0.25).items()}
images = draw.normal(size=(2, 8, 8, 3)).astype("f")
one, other = (jax.jit(example.mobilenet, static_argnums=(0, 1))(form, 0.25, w, images)
              for form in (example.convolution, example.convolution_for_cpus))
print(one.shape, np.allclose(one, other, rtol=1e-3, atol=1e-3), abs(one).max() > 0.1)
"""
    assert run(code) == ["(2, 10) True True"]


def test_the_forms_of_mobilenet_take_the_same_arguments() -> None:
    plain, original = (
        signature(read_program(EXAMPLES / f"{name}.mlir")) for name in ("mobilenet", "mobilenet_original")
    )
    assert plain == original
    assert str(plain.arguments[plain.names.index("images")]) == "tensor<100x32x32x3xf32>"
    assert [str(type_) for type_ in plain.results] == ["tensor<100x10xf32>"]
