"""What is said of programs that are none; the texts are in tests/golden, for a person to read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from golden_text import Golden
from levels.loops.test_parse import MEANINGS
from planish.core.errors import ProgramError
from planish.core.registry import level_of
from planish.levels.loops.lang.notation import Axis, Tensor, axes, program
from planish.levels.loops.lang.parse import parse, parse_canonical, read_shapes, read_sizes
from planish.levels.loops.lang.program import ARITHMETIC, QINT32, QUADS, QUINT8, Program
from planish.levels.loops.level import LoopsLevel

GEMM = "C[m,n] += A[m,k] * B[k,n]"

TEXTS = [
    "",
    "C[m,n",
    "C[m,n] += A[m,k] *",
    "C[m,n] += A[m,k] & B[k,n]",
    "C[m,n] += A[m,k] B[k,n]",
    "C[m,n] + A[m,k]",
    "C[m]\n  = relu(A[m]\n  + B[m] C[m])",
    "C[m]  = A[m]; D[m] = ? B[m]",
    "C[m] = rulu(A[m])",
    "C[m] = relu(A[m], B[m])",
    "C[m] = pad(2, 0)",
    "C[m] = pad(A[m], B[m])",
    "C = A[m]",
    "C[m] = alpha * A[m]",
    "relu[m] = A[m]",
    "C[m] = A[m*m]",
    "C[m] = A[2.5*m]",
    "C[m] = A[4 - m]",
    "C[m] = A[m + 99999999999999999999]",
    "C[0] = A[m]",
    "C[0*m + k] = A[m,k]",
    "C[2*m + k] = A[m] | B[k]",
    "C[m - 1] = A[m]",
    "C[m,m] = A[m]",
    "C[m] = A[m,k]",
    "C[m] += A[m]",
    "C[m] = sum(A[m])",
    "C[m] = A[m] + A[m,m]",
    "C[m] = C[m] + A[m]",
    "D[m] = C[m]; C[m] = A[m]",
    "C[m] = A[m]; C[m] = B[m]",
    "C[m] = A[m] | B[m]",
    "C[m + k] = A[k] | B[m]",
    "C[m + k, i + j] = A[m,i] | B[k,j]",
    "C[m] =\u00a0A[m]",
    "C[m] = A[m]\u2028D[m] = A[m]",
    "C[m] = A[m] \u00d7 B[m]",
    "C[m] = A[m] \x07",
    "C[m] = A[m] * \u200bB[m]",
    "C[m] = A[m] * 1e999",
    "C[m] += pad(A[m + k], -1e999)",
    "C[m] = max(A[m], B[m], D[m])",
    "C[m] = max()",
    "C[m] = abs(A[m], 2)",
    "C[m] = where(A[m], 2)",
    "C[m] = " + "(" * 50 + "A[m]" + ")" * 50,
    "C[m] = " + " + ".join(["A[m]"] * 300),
]

Shapes = dict[str, tuple[int, ...]]
SIZED: list[tuple[str, dict[str, int], Shapes]] = [
    ("C[m] = A[m] * 1e39", {"m": 4}, {}),
    ("C[m] += pad(A[m + k], -1e39)", {"m": 4, "k": 2}, {"A": (4,)}),
    ("C[m] max= A[m]", {"m": 4}, {}),
    ("C[m] = max(A[m])", {"m": 4}, {}),
    ("C[m] = 2 * sum(A[m] * B[])", {"m": 4}, {}),
    (GEMM, {"m": 4, "n": 5}, {}),
    (GEMM, {"m": 4, "n": 5, "k": 6, "q": 7}, {}),
    (GEMM, {"m": 4, "n": 5, "k": 0}, {}),
    (GEMM, {"m": 4, "n": -5, "k": 6}, {}),
    (GEMM, {}, {"A": (4, 6), "B": (7, 5)}),
    (GEMM, {}, {"A": (4, 6, 1), "B": (6, 5)}),
    (GEMM, {}, {"A": (4, 6), "E": (6, 5)}),
    (GEMM, {}, {"A": (4, 0), "B": (0, 5)}),
    (GEMM, {"k": 3}, {"A": (4, 6), "B": (6, 5)}),
    (GEMM, {"k": 8}, {"A": (4, 6), "B": (6, 5)}),
    (GEMM, {"m": 10**8, "n": 10**8, "k": 1}, {}),
    ("O[y] += I[y + r - 1] * W[r]", {"y": 5, "r": 3}, {}),
    ("O[y] += I[y + r] * W[r]", {"y": 5}, {"I": (6,), "W": (3,)}),
    ("O[y] += I[y + r] * W[r]", {}, {"I": (6,), "W": (9,)}),
    ("O[y] = pad(I[y - 3], 0)", {"y": 4}, {}),
    ("O[a] = A[a]; O[b + 2] = B[b]", {"a": 3, "b": 4}, {}),
    ("O[2*a] = A[a]; O[2*b + 1] = B[b]", {"a": 3, "b": 3}, {}),
    ("O[a + b] = A[a] * B[b]", {"a": 3, "b": 4}, {}),
    ("O[2*a] = A[a]", {"a": 3}, {"O": (4,)}),
    ("O[a] = A[a]; O[b + 5] = B[b]", {"a": 3, "b": 4}, {}),
    ("O[a] = A[a]", {"a": 3}, {"O": (4,)}),
    ("O[a] = A[a]", {"a": 3}, {"O": (2,)}),
    ("O[a, b] = A[a]; P[a, b] = O[a, b + 1]", {"a": 3, "b": 4}, {}),
]


def said(text: str, sizes: dict[str, int], shapes: Shapes, dtype: str | dict[str, str] = "float32") -> str:
    with pytest.raises(ProgramError) as caught:
        parse(text, sizes, shapes, dtype)
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    return str(caught.value)


def visible(character: str) -> str:
    """Return a character, escaped where it cannot be seen."""
    seen = character == "\n" or character.isprintable()
    return character if seen else f"\\u{ord(character):04x}"


def test_of_texts(golden: Golden) -> None:
    shown = [
        "".join(c if c == "\n" or c.isprintable() else f"\\u{ord(c):04x}" for c in t[:60]) for t in TEXTS
    ]
    errors = [said(text, {"m": 4} if "m" in text else {}, {}) for text in TEXTS]
    lines = [f"{text}\n    {error}" for text, error in zip(shown, errors, strict=True)]
    golden.check("loops/errors-of-texts.txt", "\n".join(lines))


def test_of_sizes_and_shapes(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 22}
    monkeypatch.setattr(os, "sysconf", memory.__getitem__)
    lines = [
        f"{text}  {' '.join(f'{a}={n}' for a, n in sizes.items())}"
        f"  {' '.join(f'{t}={list(s)}' for t, s in shapes.items())}\n    {said(text, sizes, shapes)}"
        for text, sizes, shapes in SIZED
    ]
    golden.check("loops/errors-of-sizes.txt", "\n".join(lines))


TABLE: Shapes = {"E": (5,)}
MISUSE: list[tuple[str, Shapes, dict[str, str], str]] = [
    # gathers
    ("O[t,d] = E[I[t],d]", {}, {}, 'the shape of E, which I[t] subscripts, is not known. Give shape="E=..."'),
    ("O[I[t]] = X[t]", {}, {}, "column 2: a target is not subscripted by tensors"),
    ("O[t] = E[I[J[t]]]", {}, {}, "column 11: an index is not subscripted by tensors"),
    ("O[t] = pad(E[I[t]], 0)", {}, {}, "column 13: what is padded is not subscripted by tensors"),
    ("O[t] = E[I[t],I[t]]", {}, {}, "E is subscripted by 2 tensors, I and I. One subscript may be a tensor."),
    ("E[t] = X[t]; O[t] = E[I[t]]", {}, {}, "E[I[t]] subscripts E by a tensor, but the program writes E."),
    ("O[t] = E[2*I[t]]", {}, {}, "column 13: expected ']' or ','"),
    # indices of integers
    ("O[t] = E[I[t]] + I[t]", TABLE, {"I": "int64"}, "I subscripts a tensor and is read as a number too"),
    ("I[t] = J[t]; O[t] = E[I[t]]", TABLE, {"I": "int32"}, "I subscripts a tensor and is written too"),
    ("O[t] = E[I[t]]", TABLE, {"E": "int64"}, "element type 'int64' of E is not supported. Inputs that"),
    ("O[t] = E[I[t]]", TABLE, {"": "int64"}, "element type 'int64' is not supported. Inputs that"),
    # comparisons
    ("O[i] = A[i] < B[i] < 3", {}, {}, "column 20: a comparison has two sides, at '< 3'."),
    ("O[i] = where(A[i], 2)", {}, {}, "column 8: where takes 3 arguments, not 2, at 'where(A[i], 2)'."),
    ("O[i] = A[i] = B[i]", {}, {}, "column 13: expected an operator, ';' or the end, at '= B[i]'."),
    ("O[i] = wher(A[i], 1, 2)", {}, {}, "column 8: unknown function 'wher', at 'wher(A[i], 1, 2)'."),
    ("O[i] = A[i] => B[i]", {}, {}, "column 13: expected an operator, ';' or the end, at '=> B[i]'."),
    # positions
    ("O[i] = argmax(X[i])", {}, {}, "argmax for O[i] looks along 0 axes. It looks along one:"),
    ("O[] = argmin(X[i,t])", {}, {}, "argmin for O[] looks along 2 axes: 'i', 't'. It looks along one:"),
    ("O[i] = X[i] * alpha", {}, {}, "column 20: expected '[' after 'alpha', at the end."),
    ("O[i] = argmax(X[i,t], 1)", {}, {}, "column 8: argmax takes 1 argument, not 2"),
]


@pytest.mark.parametrize(("text", "shapes", "dtype", "message"), MISUSE)
def test_of_misuse(text: str, shapes: Shapes, dtype: dict[str, str], message: str) -> None:
    sizes = {axis: 3 for axis in "it" if f"[{axis}" in text or f",{axis}" in text}
    assert said(text, sizes, shapes, dtype).startswith(message)


@pytest.mark.parametrize("dtype", ["float8", "int64", "Float32", "bf16"])
def test_of_types(dtype: str) -> None:
    assert f"element type '{dtype}' is not supported. " in said(GEMM, {"m": 1, "n": 1, "k": 1}, {}, dtype)


@pytest.mark.parametrize(
    "text",
    [
        "C[m] = A[m]",
        "C[m] = A[m] | m=4",
        "C[m] = A[m] | m=4 | A:float32[4] C:float64[4]",
        "C[m] = A[m] | m=4 | A:float32[5] C:float32[4]",
        "C[m] = A[m] | m=4 | A:float32[4 C:float32[4]",
        "C[m] = A[m] | m=4 | ",
        "C[m] = A[m] | m=4 | A:float32[4] C:float32[4] | constant B",
    ],
)
def test_of_canonical_texts(text: str) -> None:
    with pytest.raises(ProgramError):
        parse_canonical(text)


@pytest.mark.parametrize("dtype", [*sorted({*ARITHMETIC} - {*QUADS, QUINT8, QINT32}), "A=uint8x4,B=int8x4"])
def test_a_canonical_text_tells_all_itself_and_what_would_change_it_is_refused(
    tmp_path: Path, dtype: str
) -> None:
    level = LoopsLevel()
    program = level.load(GEMM, {"size": "m=2,n=3,k=4", "dtype": dtype, "constant": "B"})
    (file := tmp_path / "it.loops").write_text(program.text)
    for source in (program.text, str(file)):
        assert level.load(source, {}).text == program.text
        assert level.load(source, {"backend": "llvm", "size": ""}).backend == "llvm"
        for name, value in (("size", "m=9"), ("shape", "A=9,4"), ("dtype", "float32"), ("constant", "A")):
            with pytest.raises(ProgramError, match=f"has its own sizes, .* and {name}= would") as error:
                level.load(source, {name: value})
            assert "\n" not in str(error.value).strip()


def test_of_options() -> None:
    with pytest.raises(ProgramError, match=r"'m' is not a size\. Write size="):
        read_sizes("m")
    with pytest.raises(ProgramError, match=r"'n=1\.5' is not a size"):
        read_sizes("m=1,n=1.5")
    with pytest.raises(ProgramError, match=r"'I=1y3' is not a shape\. Write shape="):
        read_shapes("I=1y3")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "m=4,m=5"}, "axis 'm' has two sizes, 4 and 5"),
        ({"size": "m=4 k=2;m=4"}, "axis 'm' has two sizes, 4 and 4"),
        ({"shape": "A=4x6,A=4x7"}, "tensor 'A' has two shapes"),
        ({"dtype": "A=float16,A=float32"}, "tensor 'A' has two element types"),
        ({"dtype": "float16,float32"}, "the rest has two element types"),
    ],
)
def test_of_options_that_say_two_things(options: dict[str, str], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        LoopsLevel().load(GEMM, {"size": "m=2,n=3,k=4", **options})


def test_of_numbers_that_are_none() -> None:
    m = Axis("m", 4)
    for number, message in (
        (float("nan"), "is NaN"),
        (1e39, r"1e\+39 is larger than every number of float32"),
    ):
        A, C = Tensor("A"), Tensor("C")
        C[m] = A[m] * number
        with pytest.raises(ProgramError, match=message):
            program(C)
    parse("C[m] = A[m] * 1e39", {"m": 4}, dtype="float64")


def test_of_python() -> None:
    m, n = axes("m n")
    A, B = Tensor("A"), Tensor("B", "float64")
    C = Tensor("C", "float32")
    C[m] = A[m] + B[m]
    with pytest.raises(ProgramError, match="the tensors have types float32, float64"):
        program(C, sizes={"m": 3})
    D = Tensor("D")
    D[m, n] = A[m] + Tensor("A")[n]
    with pytest.raises(ProgramError, match="two tensors have the name 'A'"):
        program(D, sizes={"m": 3, "n": 3})
    E = Tensor("E")
    E[m, Axis("n", 3)] = A[m] + Tensor("F")[Axis("n", 4)]
    with pytest.raises(ProgramError, match="axis 'n' has two sizes, 3 and 4"):
        program(E, sizes={"m": 3})
    G = Tensor("G g")
    G[m] = A[m]
    with pytest.raises(ProgramError, match="'G g' cannot be the name of a tensor"):
        program(G, sizes={"m": 3})
    with pytest.raises(ProgramError, match="has no statement"):
        program(A)


_PIECES = [*"[](),|;\n+-*/= ²", "+=", "max=", "1e", "pad", "A"]


def _parsed(text: str, sizes: str) -> Program | ProgramError:
    try:
        return parse(text, read_sizes(sizes))
    except ProgramError as error:
        return error


@settings(max_examples=examples(300))
@given(st.sampled_from(MEANINGS), st.data())
def test_any_slip_is_a_program_or_a_line(meaning: tuple[str, str], data: st.DataObject) -> None:
    text, sizes = meaning
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.integers(0, 3))
        text = text[:at] + data.draw(st.sampled_from(["", *_PIECES])) + text[at + gone :]
    result = _parsed(text, sizes)
    if isinstance(result, ProgramError):
        assert "\n" not in str(result)
        assert result.hint
    else:
        assert parse_canonical(result.text) == result


def test_a_bracket_that_is_not_closed_is_named() -> None:
    with pytest.raises(ProgramError, match=r"^column 17: '\]' is missing, at '\* B\[k,n\]'. Close"):
        parse("C[m,n] += A[m,k * B[k,n]", {"m": 4, "n": 4, "k": 4})


def test_the_notation_of_einsum_is_recognized() -> None:
    with pytest.raises(ProgramError, match=r"is in the notation of einsum. Write .* or call planish.einsum"):
        level_of("mk,kn->mn")


def test_a_text_loads_no_other_level() -> None:
    script = """
import sys
from planish.core.registry import level_of
assert level_of("C[m] = A[m]").name == "loops"
print(*(level for level in ("graph", "hlo", "llvm") if f"planish.levels.{level}" in sys.modules))
"""
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stdout == "\n"


def test_a_file_is_no_text_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net[n=8].onnx").touch()
    assert level_of("net[n=8].onnx").name == "graph"
