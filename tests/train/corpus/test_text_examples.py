"""What language models learn from, and what their answers are worth: with LLVM itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.space import Compiled, compile_lists, reading_error
from planish.models.ir_text import ModelAnswer, Tasks, Tokenizer, canonical, read_answer
from planish.train.corpus.answers import (
    EvaluatedAnswer,
    TextExample,
    best_list,
    evaluate_answers,
    feedback_on,
    feedback_samples,
    read_text_examples,
    retry_prompt,
    summary,
    text_samples,
)
from planish.train.corpus.reader import SAMPLE, read_corpus

OZ = ("default<Oz>",)
CODE = """define i32 @f(i32 %0) {
%2 = alloca i32, align 4
store i32 %0, ptr %2, align 4
%3 = load i32, ptr %2, align 4
%4 = add i32 %3, 0
ret i32 %4
}
"""
SMALL = "define i32 @f(i32 returned %0) {\nret i32 %0\n}\n"


@cache
def tokenizer() -> Tokenizer:
    pytest.importorskip("tokenizers")
    return Tokenizer.learnt([CODE], [*elements()])


def example(**others: object) -> TextExample:
    return replace(TextExample("1", "p", CODE, ModelAnswer(("sroa<modify-cfg>",), 5, 1, SMALL), 1), **others)  # type: ignore[arg-type]


def test_lists_are_run_in_order_and_those_that_fail_are_none() -> None:
    jobs = [(CODE, OZ), (CODE, ()), (CODE, ("no such pass",)), ("no code", OZ), (CODE, ("sroa<modify-cfg>",))]
    found = compile_lists(open_bindings(), jobs)
    assert found[2] is None
    assert found[3] is None
    counts = [one.instructions for one in found if one]
    assert counts == [1, 5, 2]
    assert found[0] is not None
    assert canonical(found[0].code) == canonical(SMALL)


def test_code_that_models_write_is_read() -> None:
    assert not reading_error(open_bindings(), canonical(CODE))
    assert "use of undefined value" in reading_error(open_bindings(), CODE.replace("%3, 0", "%9, 0"))


def test_the_best_list_is_the_first_that_saves_most() -> None:
    import numpy as np

    lists = [("gvn",), ("dce",), ("adce",)]
    assert best_list(np.array([0.1, 0.3, 0.3]), lists) == ("dce",)
    assert best_list(np.zeros(3), lists) == OZ


def test_counts_are_of_instructions_whatever_is_made_less() -> None:
    from models.test_list_policy import LISTS, sample_table

    labels = sample_table(2)
    bytes_of = replace(
        labels, columns=replace(labels.columns, objectives=("text_bytes",)), baseline=labels.baseline * 9
    )
    (row, *_) = read_corpus(SAMPLE, "train")
    (found, *_) = read_text_examples(SAMPLE, [bytes_of], "text_bytes", LISTS, "train")
    oz, best = compile_lists(open_bindings(), [(row.ir, OZ), (row.ir, LISTS[0])])
    assert oz is not None
    assert best is not None
    assert (found.identity, found.answer.passes) == (row.identity, LISTS[0])
    assert (found.answer.before, found.answer.after, found.oz) == (
        row.instructions,
        best.instructions,
        oz.instructions,
    )


def test_samples_are_prompts_and_answers_that_fit() -> None:
    (sample,) = text_samples(tokenizer(), [example()], 512)
    assert read_answer(tokenizer(), sample.tokens[sample.begin :].tolist()) == ModelAnswer(
        ("sroa<modify-cfg>",), 5, 1, canonical(SMALL)
    )
    (without,) = text_samples(tokenizer(), [example()], 512, Tasks(False, False))
    assert len(without.tokens) - without.begin == 3  # the pass, the list's end, the end
    assert not text_samples(tokenizer(), [example()], len(sample.tokens) - 1)


def test_answers_are_judged_by_compiling() -> None:
    answers = [
        ModelAnswer(OZ, 5, 1, canonical(SMALL)),
        ModelAnswer(("sroa<modify-cfg>",), 4, 1, CODE.replace("%3, 0", "%9, 0")),
        ModelAnswer(("no such pass",), None, None, None),
    ]
    judged = evaluate_answers([example()] * 3, answers)
    assert [one.compiled.instructions if one.compiled else None for one in judged] == [1, 2, None]
    assert [one.cost for one in judged] == [1, 2, 5]
    assert [one.error for one in judged] == ["", "undefined value", ""]
    assert judged[0].exact
    assert judged[0].bleu == pytest.approx(1)
    assert not judged[1].exact
    found = summary(judged)
    assert found["improvement"] == pytest.approx(1 - 8 / 3)
    assert found["improvement with -Oz as backup"] == 0
    assert found["functions regressed"] == 2
    assert found["lists that fail"] == pytest.approx(1 / 3)
    assert found["count before right"] == pytest.approx(1 / 3)
    assert found["count after MAPE"] == pytest.approx((0 + 1 / 2) / 2)
    assert found["code compiles"] == found["exact match"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("kind", ["short", "long", "fast"])
def test_feedback_is_learnt_from_answers(kind: str) -> None:
    wrong = EvaluatedAnswer(
        example(), ModelAnswer(OZ, 5, 3, canonical(SMALL)), Compiled(1, SMALL), "", 1.0, exact=True
    )
    right = replace(wrong, answer=replace(wrong.answer, after=1))
    assert not feedback_on(wrong).sure
    assert feedback_on(right).sure
    samples = feedback_samples(tokenizer(), [wrong, right], 512, kind)  # type: ignore[arg-type]
    for one, sample, verdict in zip(
        (wrong, right), samples, ("Let me try again.", "I am sure!"), strict=True
    ):
        given, expected = sample.tokens[: sample.begin].tolist(), sample.tokens[sample.begin :].tolist()
        assert given == retry_prompt(tokenizer(), one, kind)  # type: ignore[arg-type]
        assert tokenizer().decode(expected[:1]) == verdict
        assert read_answer(tokenizer(), expected[1:]).passes == ("sroa<modify-cfg>",)
        text = tokenizer().decode(given)
        assert ("[code]" in text) == (kind != "fast")
        assert ("[bleu] 100" in text) == (kind != "fast")
        assert text.count("ret i32") == {"fast": 1, "short": 2, "long": 3}[kind]
