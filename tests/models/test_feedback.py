"""How good code is that a model wrote."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import PlanishError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.models.feedback import bleu, error_class, same_code

HEAD = "define i32 @f(i32 %0, ptr %1) {\n"
WORDS = st.lists(st.sampled_from(["add", "i32", "%1", "%2", ",", "ret"]), min_size=1, max_size=12)


def test_bleu_is_what_it_is_by_hand() -> None:
    """Of a b c d against a b d c: all of 4 words, 1 of 3 pairs, none of 2 triples."""
    assert bleu("a b c d", "a b d c") == 0
    # a b c d e against a b c d x: 4/5, 3/4, 2/3, 1/2, and no penalty.
    assert bleu("a b c d e", "a b c d x") == pytest.approx((4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4))
    # All that is written is right, but half of it: exp(1 - 8/4).
    assert bleu("a b c d", "a b c d e f g h") == pytest.approx(math.exp(-1))
    # What is repeated counts as often as it is wanted: 1 of 4 words.
    assert bleu("a a a a", "a") == pytest.approx(1 / 4)


@given(WORDS, WORDS)
def test_bleu_is_one_for_the_same_alone(a: list[str], b: list[str]) -> None:
    one, other = " ".join(a), " ".join(b)
    assert bleu(one, one) == pytest.approx(1)
    assert 0 <= bleu(one, other) <= 1
    assert same_code(one, other) == (a == b)
    if a != b and len(a) == len(b) and len(a) >= 4:
        assert bleu(one, other) < 1


def test_spaces_make_no_difference() -> None:
    assert same_code("%3 = add i32 %0, 1\n", "  %3 = add i32 %0 ,1")
    assert bleu("", "") == 1
    assert bleu("", "ret void") == 0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%3 = add i32 %0, %9\nret i32 %3\n}", "undefined value"),
        ("br label %7\n}", "undefined value"),
        ("%3 = call i32 @g(i32 %0)\nret i32 %3\n}", "undefined function"),
        (
            "%3 = icmp eq i32 %0, 0\nbr i1 %0, label %4, label %5\n4:\nret i32 1\n5:\nret i32 2\n}",
            "type error",
        ),
        ('store [3 x i8] c"ab", ptr %1\nret i32 0\n}', "type error"),
        ("ret i64 0\n}", "type error"),
        ("%3 = fadd float 0.1, 0.2\nret i32 0\n}", "invalid value for constant"),
        ("%3 = getelementptr {i32,i32}, ptr %1, i32 0, i32 5\nret i32 0\n}", "index error"),
        ("%3 = extractvalue {i32,i32} undef, 5\nret i32 0\n}", "index error"),
        ("%3 = load i32, ptr %1\n%3 = load i32, ptr %1\nret i32 %3\n}", "invalid redefinition"),
        ("%3 = add i32 %0 1\nret i32 %3\n}", "syntax error"),
        ("ret i32 0\n", "syntax error"),
        (
            "%3 = add i32 %5, 1\n%4 = add i32 1, 1\n%5 = add i32 1, 2\nret i32 %5\n}",
            "instruction forward referenced",
        ),
        ("%3 = phi i32 [0, %2]\nret i32 0\n}", "other"),
    ],
)
def test_what_llvm_says_has_the_class_of_figure_4_11(body: str, expected: str) -> None:
    with pytest.raises(PlanishError) as error:
        open_bindings().parse(HEAD + body + "\n")
    assert error_class(error.value.message) == expected
