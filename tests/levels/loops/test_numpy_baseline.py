"""NumPy's way of computing programs against the reference."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from levels.loops.random_programs import programs
from planish.levels.loops.lang.parse import parse, read_sizes
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.reference.reference import reference


def wrong(program: Program, seed: int = 0) -> str | None:
    """Run the baseline twice, on changed inputs, and compare the second answer."""
    inputs = make_inputs(program, seed)
    outputs = {name: aligned(program.type[name]) for name in program.outputs}
    call = numpy_callable(program, {**inputs, **outputs})
    call()
    for name, array in make_inputs(program, seed + 1).items():
        if name not in program.constants:
            inputs[name][...] = array
    for array in outputs.values():
        array.fill(np.nan)
    call()
    return check(program, outputs, reference(program, inputs))


@settings(max_examples=examples(250))
@given(programs(), st.integers(0, 9), st.data())
def test_random_programs(program: Program, seed: int, data: st.DataObject) -> None:
    constants = data.draw(st.sets(st.sampled_from(program.inputs))) if program.inputs else ()
    assert wrong(program.with_constants(constants), seed) is None


GEMMS = [
    f"{c} += {first} * {second}"
    for c in ("C[m,n]", "C[n,m]")
    for a in ("A[m,k]", "A[k,m]")
    for b in ("B[k,n]", "B[n,k]")
    for first, second in ((a, b), (b, a))
]


@pytest.mark.parametrize("text", [*GEMMS, "C[m] += A[m,k] * B[k]", "C[m] += A[k,m] * B[k]"])
def test_matrices_are_multiplied_in_place(text: str) -> None:
    sizes = {"m": 17, "n": 24, "k": 31}
    program = parse(text, {axis: sizes[axis] for axis in ("mnk" if "n" in text else "mk")})
    inputs = make_inputs(program)
    call: Any = numpy_callable(program, {**inputs, "C": aligned(program.type["C"])})
    assert call.func is np.matmul
    assert wrong(program) is None


PROGRAMS = {
    "batched": ("C[b,m,n] += A[b,m,k] * B[b,k,n]", "b=3,m=4,n=5,k=6"),
    "batch last": ("C[m,n,b] += A[b,k,m] * B[n,k,b]", "b=3,m=4,n=5,k=6"),
    "broadcast batch": ("C[b,m,n] += A[b,m,k] * B[k,n]", "b=3,m=4,n=5,k=6"),
    "dot": ("S[] += A[k] * B[k]", "k=100"),
    "outer": ("C[m,n] += A[m,k] * B[n,k]", "m=9,n=9,k=1"),
    "trace": ("S[] += A[i,i]", "i=9"),
    "three factors": ("C[m,n] += 2 * A[m,k] * B[k,l] * D[l,n]", "m=5,n=6,k=7,l=8"),
    "factors without axes": (
        "C[m,n] += A[m,k] * B[k,n] * (1 / sqrt(4)) * sqrt(16) * S[] * (S[] - 3)",
        "m=5,n=6,k=7",
    ),
    "scaled": ("C[m,n] += A[m,k] * B[k,n] * (3 / sqrt(144))", "m=5,n=6,k=7"),
    "factors with own axes": ("C[m,z] += A[m,k,i] * B[k,j]", "m=4,z=2,k=5,i=3,j=6"),
    "interleaved": ("C[a,b,c,d] += A[a,k,c] * B[b,k,d]", "a=2,b=3,c=4,d=5,k=6"),
    "convolution": (
        "O[n,k,y,x] += pad(I[n,c,2*y+r-1,2*x+s-1],0) * W[k,c,r,s]",
        "n=2,k=3,c=4,y=5,x=6,r=3,s=3",
    ),
    "channels last": ("O[y,x,k] += I[y+r,x+s,c] * W[r,s,c,k]", "k=3,c=4,y=5,x=6,r=3,s=3"),
    "pointwise": ("O[k,y,x] += I[c,y,x] * W[k,c]", "k=3,c=4,y=5,x=6"),
    "dilated": ("O[k,y,x] += I[c,y+2*r,x+3*s] * W[k,c,r,s]", "k=3,c=4,y=5,x=6,r=3,s=3"),
    "grouped": ("O[g,k,y,x] += I[g,c,y+r,x+s] * W[g,k,c,r,s]", "g=2,k=3,c=4,y=5,x=6,r=3,s=3"),
    "depthwise": ("O[c,y,x] += pad(I[c,y+r-1,x+s-1],0) * W[c,r,s]", "c=4,y=5,x=6,r=3,s=3"),
    "depthwise, channels last": ("O[y,x,c] += I[y+r,x+s,c] * W[r,s,c]", "c=4,y=5,x=6,r=3,s=3"),
    "transposed weights": ("O[k,y,x] += abs(I[c,y+r,x+s]) * W[s,r,c,k]", "k=3,c=4,y=5,x=6,r=3,s=3"),
    "pooling": ("O[c,y,x] max= pad(I[c,2*y+r-1,2*x+s-1],-inf)", "c=4,y=5,x=6,r=3,s=3"),
    "average": ("T[c,y,x] += I[c,2*y+r,2*x+s]; O[c,y,x] = T[c,y,x] / 4", "c=4,y=5,x=6,r=2,s=2"),
    "global pooling": ("O[c] += I[c,y,x]", "c=4,y=15,x=16"),
    "column sums": ("O[n] += A[m,n]", "m=40,n=5"),
    "product": ("O[m] *= A[m,k]", "m=40,k=5"),
    "distance": ("D[m,n] += abs(A[m,k] - B[n,k])", "m=4,n=5,k=6"),
    "transposition": ("O[j,k,i] = A[i,j,k]", "i=4,j=5,k=6"),
    "concatenation": ("O[r,a+b] = A[r,a] | relu(B[r,b])", "r=4,a=5,b=6"),
    "joined products": ("O[a+b,n] += A[a,k] * B[k,n] | D[b,n]", "a=5,b=6,n=7,k=8"),
    "broadcast": ("O[r,c] = I[r]", "r=4,c=5"),
    "fill": ("O[r,c] = 3", "r=4,c=5"),
    "perceptron": ("D[m,n] = relu(sum(A[m,k] * B[k,n]) + b[n])", "m=4,n=5,k=6"),
    "softmax": ("O[m,n] = exp(A[m,n] - max(A[m,j])) / sum(exp(A[m,k] - max(A[m,j])))", "m=4,n=5,j=5,k=5"),
    "layer norm": (
        """M[i] += X[i,j] / 8
        V[i] += (X[i,k] - M[i]) * (X[i,k] - M[i])
        Y[i,l] = g[l] * (X[i,l] - M[i]) / sqrt(V[i] / 8 + 0.001) + b[l]""",
        "i=5,j=8,k=8,l=8",
    ),
    "gates": ("Z[i] = sigmoid(A[i]) * tanh(B[i]) - min(A[i], log(B[i] + 2))", "i=40"),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_every_kind(name: str, dtype: str) -> None:
    text, sizes = PROGRAMS[name]
    program = parse(text, read_sizes(sizes), dtype=dtype)
    assert wrong(program) is None
    assert wrong(program.with_constants(program.inputs[-1:])) is None


def test_large_terms_are_reduced_in_slices() -> None:
    program = parse("D[m,n] max= abs(A[m,k] - B[n,k])", {"m": 60, "n": 70, "k": 3000})
    inputs = make_inputs(program)
    tracemalloc.start()
    call = numpy_callable(program, {**inputs, "D": aligned(program.type["D"])})
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 70 * 3000 * 4 / 2
    assert wrong(program) is None


def test_packing_of_constants_is_not_repeated() -> None:
    program = parse("O[k,y,x] += I[c,y+r,x+s] * W[s,c,k,r]", read_sizes("k=3,c=4,y=5,x=6,r=3,s=3"))
    arrays = {**make_inputs(program), "O": aligned(program.type["O"])}
    call: Any = numpy_callable(program, arrays)
    packed: Any = numpy_callable(program.with_constants(["W"]), arrays)
    assert len(packed.args[0]) == len(call.args[0]) - 1
