"""Language models as policies: what they write, and how they try again."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from models.test_decoder import CODE, PASSES, chance, tokenizer
from planish.core import Candidate, Objective, PlanishError, Trial
from planish.core.trial import Failed, Measured
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.ir.features import instruction_schema
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.pipeline import passes_of
from planish.levels.llvm.passes.space import PassSpace, compile_lists
from planish.models.decoder import (
    CutTextWarning,
    DecoderShape,
    continued,
    cut,
    log_probabilities,
    prompt_of,
    remembered,
)
from planish.models.feedback import RETRY, SURE, Feedback, Kind, feedback_tokens
from planish.models.ir_text import ModelAnswer, Tasks, answer_tokens, question
from planish.models.language_policy import LanguageModelPolicy
from planish.models.named_policies import policy_of
from planish.models.policy_files import SavedPolicy, load_policy, policy_for, write_policy
from planish.search import make_searcher
from planish.search.decoding import priority_samples
from planish.train.corpus.answers import TextExample, evaluate_answers, retry_prompt

OBJECTIVES = (Objective("instructions", ""),)


def shape(context: int = 512) -> DecoderShape:
    return DecoderShape(tokenizer().size, context, width=16, depth=1, heads=2)


def made(seed: int = 0, context: int = 512) -> SavedPolicy:
    """A language model of chance."""
    about = "llvm", instruction_schema(), PASSES, 3, shape(context), chance(shape(context), seed), {}, 3
    return SavedPolicy("chance", *about, vocabulary=tokenizer().to_json())


def here(*texts: str, ir: str = CODE) -> PassSpace:
    return PassSpace([elements()[text] for text in texts or (*PASSES, "dce")], ir=ir)


def test_probabilities_are_the_networks_among_what_is_legal() -> None:
    policy, learnt = made(), tokenizer()
    answering, state = LanguageModelPolicy(policy), LanguageModelPolicy(policy).begin(here())
    written, legal = list[str](), [*PASSES, "[end of list]"]
    for step in ("gvn", "gvn", "adce", None):
        (found,) = answering.log_probabilities([state])
        assert sum(map(math.exp, found.values())) == pytest.approx(1)
        tokens = [*question(learnt, CODE), *map(learnt.token, written)]
        scores = remembered(policy.shape, policy.parameters, tokens).scores  # type: ignore[arg-type]
        names = PASSES if not written else ("[end of list]",) if len(written) == 3 else legal
        kept = np.array([scores[learnt.token(name)] for name in names], float)
        expected = dict(zip(names, kept - np.logaddexp.reduce(kept), strict=True))
        said = {"[end of list]" if each is None else str(each): value for each, value in found.items()}
        assert said == pytest.approx(expected, abs=1e-4)
        if step is not None:
            written.append(step)
            state = answering.extend(state, next(each for each in here().actions if str(each) == step))


def test_samples_are_legal_each_once_and_end() -> None:
    samples = [passes_of(one) for one in priority_samples(policy_of(made()), here())]
    assert len(samples) == len(set(samples)) == 4 + 16 + 64
    assert all({*each} <= {*PASSES} for each in samples)
    assert len([*priority_samples(policy_of(made()), here("gvn", "adce", "dce"))]) == 2 + 4 + 8


def test_it_is_kept_as_it_is_and_refused_where_it_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "policy-some.safetensors"
    write_policy(made(), path)
    assert replace(load_policy(path), parameters={}) == replace(made(), name="some", parameters={})
    assert policy_for(here(), str(path)).shape == shape()
    with pytest.raises(PlanishError, match="writes lists of steps that there are not here"):
        policy_for(here("gvn"), str(path))


@pytest.mark.parametrize(
    ("passes", "why"),
    [(PASSES[:3], "tokens, and its network"), ((*PASSES[:3], "dce"), "has other passes than its vocabulary")],
    ids=["fewer", "renamed"],
)
def test_a_vocabulary_of_another_network_is_refused(
    passes: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.safetensors"
    write_policy(replace(made(), vocabulary=replace(tokenizer(), passes=passes).to_json()), path)
    with pytest.raises(PlanishError, match=why):
        load_policy(path)


def test_a_vocabulary_is_counted_as_the_library_counts_it() -> None:
    names = [tokenizer().decode([token]) for token in range(tokenizer().size)]
    assert len(names) == tokenizer().size
    with pytest.raises(IndexError):
        tokenizer().decode([tokenizer().size])


def test_a_long_program_is_cut_at_its_end_and_that_is_said() -> None:
    long = made(context=160)
    with pytest.warns(CutTextWarning, match="the model reads the first 64"):
        tokens = prompt_of(long.shape, tokenizer(), CODE)  # type: ignore[arg-type]
    assert len(tokens) == 64
    assert tokens[:-1] == question(tokenizer(), CODE)[:63]
    assert tokens[-1] == tokenizer().token("[run]")
    whole = len(question(tokenizer(), CODE))
    assert [cut(shape(whole + 96 - short), tokenizer(), [CODE, "", CODE]) for short in (0, 1)] == [0, 2]


def test_text_goes_on_by_the_most_probable_tokens() -> None:
    policy, learnt = made(), tokenizer()
    memory = remembered(shape(), policy.parameters, prompt_of(shape(), learnt, CODE))
    tokens, _ = continued(shape(), policy.parameters, memory, frozenset(), 4)
    given = question(learnt, CODE)
    for index, token in enumerate(tokens):
        assert remembered(shape(), policy.parameters, [*given, *tokens[:index]]).scores.argmax() == token
    stopped, _ = continued(shape(), policy.parameters, memory, {tokens[1]}, 4)
    assert stopped == tokens[: tokens.index(tokens[1]) + 1]
    sure = log_probabilities(shape(), policy.parameters, tokens, memory)
    assert all(-math.log(learnt.size) < each < 0 for each in sure)


def test_fast_feedback_has_the_outcome_of_its_list() -> None:
    policy, learnt = LanguageModelPolicy(made()), tokenizer()
    state = policy.begin(here())
    state = policy.extend(state, next(one for one in here().actions if str(one) == "gvn"))
    other = policy.revise(state, 5.0)
    parameters = dict(made().parameters)
    given = [*question(learnt, CODE), learnt.token("gvn"), learnt.token("[end of list]")]
    before = remembered(shape(), parameters, given)
    # A network of chance says no counts.
    ends = {learnt.token("[code]"), learnt.token("[end]")}
    answered, _ = continued(shape(), parameters, before, ends, 96)
    told = feedback_tokens(learnt, Feedback(True, 6, None, 5, None), "fast")
    memory = remembered(shape(), parameters, [*answered[:-1], *told], before)
    sure = memory.scores[learnt.token(SURE)] > memory.scores[learnt.token(RETRY)]
    assert (other is None) == bool(sure)
    if other is not None:
        expected = remembered(shape(), parameters, [learnt.token(RETRY)], memory)
        np.testing.assert_allclose(other.memory.scores, expected.scores, rtol=1e-3, atol=1e-3)
        assert other.candidate == Candidate()


@pytest.mark.parametrize("objective", ["instructions", "text_bytes"])
@pytest.mark.parametrize("kind", ["short", "long", "fast"])
def test_its_feedback_is_the_kind_that_it_was_trained_with(kind: Kind, objective: str) -> None:
    learnt, (made_of,) = tokenizer(), compile_lists(open_bindings(), [(CODE, ("gvn",))])
    assert made_of is not None
    answer = ModelAnswer(("gvn",), 6, 5, None if kind == "fast" else "define i32 @f() {\nret i32 %9\n}\n")
    (judged,) = evaluate_answers([TextExample("1", "p", CODE, answer, 5)], [answer])
    given = [*retry_prompt(learnt, judged, kind), learnt.token(RETRY)]
    rest = answer_tokens(learnt, answer, Tasks(code=kind != "fast"))[2:]

    def says(*_: object) -> tuple[list[int], None]:
        return rest, None

    for seed in range(8):
        saved = replace(made(seed, 1024), feedback=kind, schema=instruction_schema(objective))
        policy, steps = LanguageModelPolicy(saved, says), [elements()[text] for text in (*PASSES, "dce")]
        state = policy.begin(PassSpace(steps, ir=CODE, objective=objective))
        state = policy.extend(state, next(one for one in here().actions if str(one) == "gvn"))
        # Whatever is made less, a model tells of instructions, and is told of them.
        if other := policy.revise(
            state, float(made_of.instructions) if objective == "instructions" else 999.0
        ):
            wanted = remembered(shape(1024), made(seed, 1024).parameters, given)
            assert other.memory.length == wanted.length
            np.testing.assert_allclose(other.memory.scores, wanted.scores, rtol=1e-3, atol=1e-3)
            return
    pytest.fail("all networks of chance are sure")


def test_the_kind_of_feedback_of_its_training_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    write_policy(replace(made(), feedback="long"), path)
    assert load_policy(path).feedback == "long"
    write_policy(replace(made(), feedback="loud"), path)  # type: ignore[arg-type]
    with pytest.raises(PlanishError, match="trained with unknown feedback, 'loud'"):
        load_policy(path)


def test_the_searcher_tries_again_until_the_model_is_sure(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    proposed = set[int]()
    for seed in range(6):
        write_policy(made(seed), path)
        lists = [passes_of(one) for one in searched(path, tries=4)]
        assert 1 <= len(lists) == len(set(lists)) <= 4
        assert lists[0] == passes_of(next(islice(priority_samples(policy_of(made(seed)), here()), 1)))
        assert searched(path, tries=1) == searched(path, tries=4)[:1]
        proposed.add(len(lists))
    assert len(proposed) > 1, "all networks of chance are as sure"


def searched(path: Path, tries: int) -> list[Candidate]:
    options = {"policy": str(path), "tries": tries}
    searcher, found = make_searcher("feedback", here(), OBJECTIVES, 0, options), list[Candidate]()
    while asked := searcher.ask(8):
        found += asked
        fails = len(found) == 2
        outcome = Failed("transform", "refused") if fails else Measured({"instructions": 9.0 - len(found)})
        searcher.tell([Trial(one, outcome) for one in asked])
    return found


def test_a_policy_that_takes_no_feedback_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanishError, match="no policy that fits takes feedback"):
        make_searcher("feedback", PassSpace([*elements().values()], ir=CODE), OBJECTIVES, 0)
    from models.test_writer import made as writer

    path = tmp_path / "w.safetensors"
    write_policy(writer(), path)
    with pytest.raises(PlanishError, match="takes no feedback on its list"):
        make_searcher("feedback", here(), OBJECTIVES, 0, {"policy": str(path)})
