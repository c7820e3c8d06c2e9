"""Language models of IR: lexemes, tokens, prompts, and the network."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planish.core import PlanishError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.models.decoder import DecoderShape, remembered
from planish.models.feedback import Feedback, feedback_of, feedback_tokens, verdict_token
from planish.models.ir_text import (
    ModelAnswer,
    Tasks,
    Tokenizer,
    answer_tokens,
    canonical,
    count_instructions,
    lexemes,
    question,
    read_answer,
)
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row

PASSES = ("sroa<modify-cfg>", "gvn", "adce", "default<Oz>")
CODE = """target triple = "x86_64-pc-linux-gnu"
@.str = constant [4 x i8] c"a;b\\00", align 1
define i32 @f(i32 %0, ptr %1) {
%3 = icmp eq i32 %0, -17
br i1 %3, label %4, label %6
4:
%5 = load i32, ptr %1, align 4 ; a comment
ret i32 %5
6:
switch i32 %0, label %7 [
i32 0, label %4
i32 300, label %7
]
7:
ret i32 0
}
"""
SHAPE = DecoderShape(tokens=50, context=64, width=16, depth=2, heads=2)


@cache
def tokenizer() -> Tokenizer:
    """What was learnt from the sample corpus."""
    pytest.importorskip("tokenizers")
    return Tokenizer.learnt((row.ir for row in functions()), PASSES, 1024)


@cache
def functions() -> tuple[Row, ...]:
    return tuple(read_corpus())[::12]


def chance(shape: DecoderShape, seed: int = 0) -> dict[str, np.ndarray]:
    """The parameters of a network of chance."""
    random, found = np.random.default_rng(seed), {}
    for name, size in shape.parameters().items():
        array = random.normal(size=size) / 4 + (1 if name.endswith("scale") else 0)
        found[name] = array.astype(np.float32)
    return found


def test_lexemes_are_what_they_should_be() -> None:
    assert lexemes('%3 = load i32, ptr @"a b", align 4\n4:\nret i32 -17') == [
        "%3", "=", "load", "i32", ",", "ptr", '@"a b"', ", align 4", "\n", "4:", "\n", "ret", "i32", "-17",
    ]  # fmt: skip
    assert "target" not in lexemes(CODE)


def test_the_canonical_text_is_the_same_code_to_llvm() -> None:
    bindings = open_bindings()
    for row in functions():
        text = canonical(row.ir)
        assert canonical(text) == text
        modules = [bindings.parse(each) for each in (row.ir, text)]
        assert modules[0].text() == modules[1].text()
        assert count_instructions(text) == modules[0].instructions()
        for module in modules:
            module.close()


def test_tokens_are_read_back_and_are_few() -> None:
    learnt = tokenizer()
    for row in functions():
        assert learnt.decode(learnt.encode(row.ir)) == canonical(row.ir)
    strange = '@"x\\C3 ?~##a" = constant double -1.5e+10\n%300 = add i64 %255, 123456'
    assert learnt.decode(learnt.encode(strange)) == canonical(strange)
    for part in ("%12", ", align 8", "sroa<modify-cfg>", "getelementptr", "ptr"):
        assert len(learnt.encode_parts([part])) == 1
    assert Tokenizer.read(learnt.to_json()) == learnt
    with pytest.raises(PlanishError, match="the model's vocabulary cannot be read"):
        Tokenizer.read("[]")


LEARNING = """
import sys
from planish.models.ir_text import Tokenizer
from planish.train.corpus.reader import read_corpus
print(Tokenizer.learnt([row.ir for row in read_corpus()][:: int(sys.argv[1])], ["gvn"]).digest)
"""


def test_the_same_texts_give_the_same_tokens_in_another_process() -> None:
    pytest.importorskip("tokenizers")
    learnt = [
        subprocess.run([sys.executable, "-c", LEARNING, "12"], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    (digest,) = {one.stdout for one in learnt}
    assert len(digest.strip()) == 64


@pytest.mark.parametrize("tasks", [Tasks(), Tasks(code=False), Tasks(counts=False), Tasks(False, False)])
def test_answers_are_read_back(tasks: Tasks) -> None:
    answer = ModelAnswer(("sroa<modify-cfg>", "default<Oz>"), 127, 9, canonical(CODE))
    expected = answer
    if not tasks.counts:
        expected = replace(expected, before=None, after=None)
    if not tasks.code:
        expected = replace(expected, code=None)
    assert read_answer(tokenizer(), answer_tokens(tokenizer(), answer, tasks)) == expected


def test_answers_that_are_broken_say_what_can_be_read() -> None:
    learnt = tokenizer()

    def read(*parts: str) -> ModelAnswer:
        return read_answer(learnt, learnt.encode_parts(parts))

    assert read("gvn", "gvn") == ModelAnswer(("gvn", "gvn"))
    assert read("gvn", "add", "[end of list]", "[from]", "x", "[to]", "12") == ModelAnswer(("gvn",), None, 12)
    assert read("[end]") == read() == ModelAnswer(())


def test_prompts_say_what_is_asked() -> None:
    learnt = tokenizer()
    assert learnt.decode(question(learnt, CODE)) == f"[ask] {canonical(CODE)} [run]"


def test_feedback_says_what_figure_5_4_does() -> None:
    learnt, answer = tokenizer(), ModelAnswer(("gvn",), 7, 5, CODE)
    full = feedback_of(answer, CODE, 6, canonical(CODE), error="type error", bleu=0.875)
    fast = "[feedback] [valid] [from] [predicted] 7 [compiled] 6 [to] [predicted] 5 [compiled] 6"
    short = f"{fast} [generated] 6 [error] type error [bleu] 88"
    texts = {"fast": fast, "short": short, "long": f"{short} [code] {canonical(CODE)}"}
    for kind, text in texts.items():
        assert learnt.decode(feedback_tokens(learnt, full, kind)) == f"{text} [try]"  # type: ignore[arg-type]
    failed = feedback_of(answer, CODE, None)
    assert "[invalid]" in learnt.decode(feedback_tokens(learnt, failed, "fast"))
    assert not failed.sure
    assert not full.sure
    assert Feedback(True, 6, 6, 5, 5).sure
    assert learnt.decode([verdict_token(learnt, sure=True)]) == "I am sure!"


def test_metrics_have_the_names_of_figure_5_1() -> None:
    found = Feedback(True, 10, 8, 5, 7, generated=6, bleu=0.5).metrics
    assert found["src_inst_cnt_error(G)"] == 2
    assert found["tgt_inst_cnt_error(C)"] == 2
    assert found["tgt_inst_cnt_error(G)"] == 1
    assert found["tgt_IR_BLEU(C)"] == 0.5
    assert "tgt_inst_cnt_error(C)" not in Feedback(False, 10, 8, None, 7).metrics


def test_read_token_by_token_is_as_read_whole() -> None:
    parameters, tokens = chance(SHAPE), [3, 1, 4, 1, 5, 9, 2, 6]
    whole = remembered(SHAPE, parameters, tokens)
    bit = remembered(SHAPE, parameters, tokens[:3])
    for token in tokens[3:]:
        bit = remembered(SHAPE, parameters, [token], bit)
    np.testing.assert_allclose(bit.scores, whole.scores, rtol=1e-4, atol=1e-4)
    assert bit.length == len(tokens)
    other = remembered(SHAPE, parameters, [1, 3, *tokens[2:]])
    assert not np.allclose(other.scores, whole.scores, atol=1e-2), "positions make no difference"


def test_a_layer_is_that_of_llama() -> None:
    """The first token sees itself alone: attention gives its value, and no rotation shows."""
    shape = replace(SHAPE, depth=1)
    p = chance(shape)

    def normed(row: np.ndarray) -> np.ndarray:
        return row / np.sqrt(np.mean(row**2) + 1e-5)

    row = p["tokens"][7].astype(float)
    row = row + normed(row) * p["0 attention scale"] @ p["0 value"] @ p["0 mixed"]
    inside = normed(row) * p["0 unit scale"]
    gate = inside @ p["0 gate"]
    row = row + (gate / (1 + np.exp(-gate)) * (inside @ p["0 up"])) @ p["0 down"]
    expected = normed(row) * p["scale"] @ p["tokens"].T
    np.testing.assert_allclose(remembered(shape, p, [7]).scores, expected, rtol=1e-4, atol=1e-4)


def test_rotation_tells_distances_alone() -> None:
    from planish.models.decoder import rotated, rotations

    query, key = np.random.default_rng(0).normal(size=(2, 8))
    turns = rotations(40, 8)
    dots = [
        float(rotated(np, query, [t[at + 5] for t in turns]) @ rotated(np, key, [t[at] for t in turns]))
        for at in range(35)
    ]
    np.testing.assert_allclose(dots, dots[0], atol=1e-5)
    assert math.hypot(*rotated(np, query, [t[17] for t in turns])) == pytest.approx(math.hypot(*query))


def test_torch_computes_what_numpy_does() -> None:
    torch = pytest.importorskip("torch")
    from planish.train.torch_decoder import hidden_rows, turns_of

    parameters, tokens = chance(SHAPE), np.array([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0]])
    tensors = {name: torch.from_numpy(array) for name, array in parameters.items()}
    rows = hidden_rows(SHAPE, tensors, torch.from_numpy(tokens), turns_of(SHAPE, "cpu")).numpy()
    for index, length in enumerate((5, 3)):  # what pads the second one changes nothing before it
        expected = remembered(SHAPE, parameters, tokens[index, :length].tolist()).scores
        found = rows[index, length - 1] @ parameters["tokens"].T
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
