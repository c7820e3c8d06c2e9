"""Text to programs, and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from golden_text import Golden
from levels.loops.random_programs import programs
from planish.core import PlanishError
from planish.levels.loops.lang.parse import parse, parse_canonical, read_shapes, read_sizes
from planish.levels.loops.lang.program import Access, Apply, Const, Index, Program


@settings(max_examples=examples(300))
@given(programs(), st.data())
def test_canonical_text_reads_back(program: Program, data: st.DataObject) -> None:
    constants = data.draw(st.sets(st.sampled_from(program.inputs))) if program.inputs else ()
    program = program.with_constants(constants)
    assert parse_canonical(program.text) == program


MEANINGS = [
    ("C[m,n] += A[m,k] * B[k,n]", "m=3,n=4,k=5"),
    ("C[m] = 1 - 2*A[m] / -3 + -B[m]", "m=3"),
    ("O[y] max= I[2 * y + r - 0]; P[x] min= O[x*3+q]; Q[] *= P[x]", "y=6,r=2,x=2,q=2"),
    ("O[y] += pad(I[y + r - 1], -0.5) * W[r]", "y=6,r=3"),
    ("O[y] = pad(I[y], 7)", "y=6"),
    ("O[y] max= pad(I[y - 1 + r], -inf)", "y=3,r=3"),
    ("O[r, a + b] = A[r,a] | B[b]", "r=2,a=3,b=4"),
    ("O[a + b + c] = A[a] | 0 | max(C[c], D[])", "a=3,b=4,c=5"),
    ("O[i] = A[0, i + i + 1]", "i=2"),
    ("D[m,n] = relu(sum(A[m,k] * B[k,n]) + b[n])", "m=3,n=4,k=5"),
    ("D[m] = max(A[m,k])", "m=3,k=5"),
    ("O[m,n] = exp(A[m,n] - max(A[m,j])) / sum(exp(A[m,k] - max(A[m,j])))", "m=2,n=3,j=3,k=3"),
    ("O[m] = sum(A[m,k]) - sum(B[m,k]) + O_1[m]", "m=2,k=3"),
    ("O[r,c] = min(A[c,r], v[r]) * 0.1 - 1e-7 / 123456789", "r=2,c=3"),
]


def test_meaning(golden: Golden) -> None:
    lines = [f"{text}\n    {parse(text, read_sizes(sizes)).text}" for text, sizes in MEANINGS]
    golden.check("loops/meanings.txt", "\n".join(lines))


@pytest.mark.parametrize("name", ["exp", "erf", "argmax", "sum", "pad"])
def test_no_tensor_has_the_name_of_a_function(name: str) -> None:
    with pytest.raises(PlanishError, match=f"'{name}' cannot be the name of a tensor"):
        parse(f"{name}[i] = A[i]", {"i": 3})


def test_layout_does_not_matter() -> None:
    spread = "\n ;C[m,n]+=A[ m,k ]*(\n B[k,n] )\n\n; D[m] =\tC[m,0]\n"
    tight = "C[m,n]+=A[m,k]*B[k,n];D[m]=C[m,0]"
    sizes = {"m": 2, "n": 3, "k": 4}
    assert parse(spread, sizes) == parse(tight, sizes)


def test_numbers_keep_their_value() -> None:
    program = parse("O[i] = 0.1 * A[i] + 1e-7 - .5 / 123456789.0 + 1e20", {"i": 1})
    assert "0.1" in program.text
    assert "123456789" in program.text
    assert parse_canonical(program.text) == program


def test_the_parts_of_a_program() -> None:
    program = parse("C[m] += 2 * A[m,k]; D[m] = C[m]", {"m": 3, "k": 4}, dtype="float64")
    a = Access("A", (Index((("m", 1),)), Index((("k", 1),))))
    assert program.statements[0].value == Apply("mul", (Const(2.0), a))
    assert program.statements[0].reduced_axes == ("k",)
    assert (program.inputs, program.outputs, program.read) == (("A",), ("D",), ("A", "C"))
    assert program.type["C"].dtype == "float64"
    assert program.flops == 3 * 4 * 2


# What is given, and what follows.
INFERRED = [
    ("C[m,n] += A[m,k] * B[k,n]", "", "A=3,5 B=5,4", "k=5,m=3,n=4"),
    ("C[m,n] += A[m,k] * B[k,n]", "n=4", "A=3,5", "k=5,m=3,n=4"),
    ("C[m,n] += A[m,k] * B[k,n]", "k=5", "C=3,4", "k=5,m=3,n=4"),
    ("O[y] += I[y+r] * W[r]", "", "I=10 W=3", "r=3,y=8"),
    ("O[y] += I[2*y+3*r] * W[r]", "", "I=11 W=3", "r=3,y=3"),
    ("O[y] += pad(I[2*y+r-3],0) * W[r]", "", "I=224 W=7", "r=7,y=112"),
    ("O[y] += pad(I[2*y+r-1],0) * W[r]", "", "I=7 W=3", "r=3,y=4"),
    ("T[a+b] = A[a] | B[b]; O[t] = T[t]", "a=3", "B=4", "a=3,b=4,t=7"),
    ("T[i] += A[i,k]; O[j] = T[j]", "", "A=3,4", "i=3,j=3,k=4"),
    ("O[i] = A[i] + A[i+1]", "i=4", "A=5", "i=4"),
]


@pytest.mark.parametrize(("text", "sizes", "shapes", "expected"), INFERRED)
def test_sizes_follow_from_shapes(text: str, sizes: str, shapes: str, expected: str) -> None:
    program = parse(text, read_sizes(sizes), read_shapes(shapes))
    assert program.size == read_sizes(expected)
    for tensor, shape in read_shapes(shapes).items():
        assert program.type[tensor].shape == shape


def test_shapes_follow_from_sizes() -> None:
    sizes = read_sizes("y=112,x=112,r=7,s=7,c=3,k=64")
    program = parse("O[k,y,x] += pad(I[c,2*y+r-3,2*x+s-3],0) * W[k,c,r,s]", sizes)
    assert program.type["I"].shape == (3, 223, 223)  # the smallest that is padded by 3 on both sides
    mixed = parse("O[i] = pad(A[i-1],0) + A[i+2]", {"i": 4})
    assert mixed.type["A"].shape == (6,)


def test_options() -> None:
    assert read_sizes("m=192, n=3;k=5") == {"m": 192, "n": 3, "k": 5}
    expected = {"I": (1, 3), "W": (4,), "s": ()}
    for text in ("I=1,3 W=4 s=", "I=1,3,W=4;s=", "I=1x3,W=4,s="):
        assert read_shapes(text) == expected
    assert read_sizes("") == read_shapes("") == {}
