"""Networks that write lists of passes, their training, and the grammar of legal lists."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.test_list_policy import CODE, LISTS, MORE, dataset, space
from planish.core import PlanishError
from planish.levels.llvm.ir.features import SIZES, instruction_schema, observe_module
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.pipeline import passes_of
from planish.levels.llvm.passes.space import PassSpace
from planish.models.named_policies import WritingPolicy, policy_of
from planish.models.policy_files import SavedPolicy, load_policy, policy_for, write_policy
from planish.models.writer import ListGrammar, WriterShape, encode_observed, token_scores
from planish.search.decoding import priority_samples
from planish.search.policies import greedy_rollout
from planish.train.continuations import evaluate_lists, list_log_probabilities

STEPS = ("sroa<modify-cfg>", "gvn", "adce", "default<Oz>")


SHAPE = WriterShape(
    sizes=tuple(SIZES.values()), rows=448, tokens=len(STEPS), longest=3, once=(3,), width=16, depth=2, heads=2
)


def made(seed: int = 0) -> SavedPolicy:
    """A network of chance."""
    random = np.random.default_rng(seed)
    sizes = SHAPE.parameters().items()
    arrays = {name: (random.normal(size=size) / 3).astype(np.float32) for name, size in sizes}
    return SavedPolicy("chance", "llvm", instruction_schema(), STEPS, 3, SHAPE, arrays, {}, 3)


def here(*texts: str) -> PassSpace:
    return space(*(texts or (*STEPS, "dce")))


def test_the_grammar_has_the_lists_that_it_should_and_no_others() -> None:
    grammar = ListGrammar(3, 3, once=(0, 2))

    def lists(state: int, so_far: tuple[int, ...]) -> set[tuple[int, ...]]:
        found = {so_far} if grammar.legal(state)[grammar.end] else set[tuple[int, ...]]()
        for token in np.flatnonzero(grammar.legal(state)[:-1]).tolist():
            found |= lists(grammar.after(state, token), (*so_far, token))
        return found

    every = [(a, *rest) for a in range(3) for rest in [(), *((b,) for b in range(3))]]
    every += [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]
    assert lists(0, ()) == {each for each in every if each.count(0) < 2 and each.count(2) < 2}


def test_written_token_by_token_is_as_probable_as_all_at_once() -> None:
    policy, writing = made(), WritingPolicy(made(), free=True)
    state = writing.begin(here())
    read = encode_observed(SHAPE, policy.parameters, here().observe(here().start())[None])
    tokens = np.array([[3, 0, 2]])
    scores = token_scores(np, SHAPE, policy.parameters, read, tokens)[0]
    for index, token in enumerate([*tokens[0], None]):
        (found,) = writing.log_probabilities([state])
        steps = [str(step) for step in found if step is not None]
        assert sum(map(math.exp, found.values())) == pytest.approx(1)
        if index in (1, 2):  # where all is legal
            assert steps == list(STEPS)
            sure = scores[index] - np.logaddexp.reduce(scores[index])
            np.testing.assert_allclose(list(found.values()), sure, atol=1e-4)
        if token is not None:
            state = writing.extend(state, next(one for one in here().actions if str(one) == STEPS[token]))


def test_branches_together_are_as_each_by_itself() -> None:
    """Of different lengths and programs, and asked for without what comes before."""
    writing, other = WritingPolicy(made()), WritingPolicy(made())
    spaces = [here(), PassSpace([elements()[text] for text in STEPS], ir=MORE)]
    steps = list(here().actions)[:3]
    ways = [[], [steps[0]], [steps[0], steps[1]], [steps[0], steps[2]], [steps[1]]]

    def states(policy: WritingPolicy) -> list[object]:
        found = list[object]()
        for where in spaces:
            for way in ways:
                state = policy.begin(where)
                for step in way:
                    state = policy.extend(state, step)
                found.append(state)
        return found

    together = writing.log_probabilities(states(writing))  # type: ignore[arg-type]
    alone = [other.log_probabilities([state])[0] for state in states(other)]  # type: ignore[list-item]
    for one, same in zip(together, alone, strict=True):
        assert one == pytest.approx(same, abs=1e-4)
    assert together[0] != pytest.approx(together[len(ways)], abs=1e-4), "programs make no difference"


def test_torch_computes_what_numpy_does() -> None:
    torch = pytest.importorskip("torch")
    from planish.models.networks import PackedRows, pack_rows
    from planish.models.writer import encode_programs

    policy, seen = made(), np.stack([observe_module(CODE, CODE), observe_module(MORE, CODE)])
    given, tokens = (
        PackedRows(*map(torch.from_numpy, pack_rows(SHAPE, seen))),
        np.array([[0, 1, 2], [3, 3, 1]]),
    )
    tensors = {name: torch.from_numpy(array) for name, array in policy.parameters.items()}
    read = encode_programs(torch, SHAPE, tensors, given)
    found = token_scores(torch, SHAPE, tensors, read, torch.from_numpy(tokens)).numpy()
    expected = token_scores(
        np, SHAPE, policy.parameters, encode_observed(SHAPE, policy.parameters, seen), tokens
    )
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_samples_are_legal_each_once_and_end() -> None:
    samples = [passes_of(one) for one in priority_samples(policy_of(made()), here())]
    assert len(samples) == len(set(samples)) == 3 + 3 * 3 + 27 + 1 + 2 * 3 + 3 * 9
    assert all(1 <= len(each) <= 3 and each.count("default<Oz>") < 2 for each in samples)
    assert passes_of(next(greedy_rollout(policy_of(made()), here()))) == samples[0]


def test_steps_that_the_space_lacks_are_not_written() -> None:
    samples = [passes_of(one) for one in priority_samples(policy_of(made()), here("gvn", "adce"))]
    assert len(samples) == 2 + 4 + 8
    assert {step for each in samples for step in each} == {"gvn", "adce"}


def test_it_is_kept_as_it_is_and_refused_where_it_does_not_fit(tmp_path: Path) -> None:
    policy, path = made(), tmp_path / "policy-some.safetensors"
    write_policy(policy, path)
    held = load_policy(path)
    assert replace(held, parameters={}) == replace(policy, name="some", parameters={})
    assert policy_for(here(), str(path)).shape == SHAPE
    with pytest.raises(PlanishError, match="writes lists of steps that there are not here: adce"):
        policy_for(here("gvn"), str(path))


def test_its_lists_are_judged_by_labels() -> None:
    policy, known = made(), dataset()
    found = list_log_probabilities(policy, known)
    assert known.lists == LISTS
    writing = WritingPolicy(policy, free=True)
    for index, code in enumerate((CODE, MORE)):
        # What was observed of these is the code itself, as if the baseline left it as it is.
        where = PassSpace([elements()[text] for text in STEPS], ir=code)
        sure = [_of(writing, where, passes) for passes in LISTS]
        np.testing.assert_allclose(found[index] - found[index, 0], np.array(sure) - sure[0], atol=1e-3)
    first = found[1].argsort()[::-1][:3]
    saved = 0.1 if 1 in first else 0.0
    assert evaluate_lists(policy, known)["saved at 3"] == pytest.approx(saved / 2)


def _of(policy: WritingPolicy, where: PassSpace, passes: tuple[str, ...]) -> float:
    state, found = policy.begin(where), 0.0
    for text in passes:
        (steps,) = policy.log_probabilities([state])
        step = next(one for one in where.actions if str(one) == text)
        found, state = found + steps[step], policy.extend(state, step)
    return found + policy.log_probabilities([state])[0][None]


TRAINING = """
import json, sys, time
from pathlib import Path
from models.test_list_policy import dataset
from models.test_writer import config
from planish.train.list_writer import ListVocabulary, train_writer
def told(progress):
    print(json.dumps([progress.step, progress.loss, progress.held]), flush=True)
    time.sleep(float(sys.argv[2]))
train_writer(*config(Path(sys.argv[1])), told)
"""


def config(checkpoint: Path) -> tuple[object, ...]:
    """All that a tiny training takes."""
    from planish.train.list_writer import ListVocabulary, WriterConfig

    known = dataset()
    texts = ListVocabulary.of(LISTS, ("default<Oz>",))
    shape = replace(SHAPE, tokens=len(texts.steps), longest=2, once=(), width=16, depth=1)
    return known, texts, shape, WriterConfig(8, 0, checkpoint, every=3), known.groups == "p3"


def trained(checkpoint: Path, wait: float = 0.0, lines: int = 0) -> dict[int, list[float]]:
    """Train in a process of its own; after so many lines it is killed. Give what it told of each step."""
    folders = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    command = [sys.executable, "-c", TRAINING, str(checkpoint), str(wait)]
    found: dict[int, list[float]] = {}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": folders}
    ) as process:
        assert process.stdout
        for line in process.stdout:
            step, *told = json.loads(line)
            found[step] = told
            if len(found) == lines:
                process.send_signal(signal.SIGKILL)
    assert process.returncode == (-signal.SIGKILL if lines else 0)
    return found


def test_a_training_that_is_killed_goes_on_to_the_same_losses(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from planish.train.list_writer import train_writer
    from planish.train.optimization import TrainingProgress

    whole: dict[int, list[float]] = {}

    def show(progress: TrainingProgress) -> None:
        whole[progress.step] = [progress.loss, progress.held]  # type: ignore[list-item]

    train_writer(*config(tmp_path / "a.checkpoint"), show)  # type: ignore[arg-type]
    begun = trained(tmp_path / "b.checkpoint", wait=0.05, lines=5)
    rest = trained(tmp_path / "b.checkpoint")
    assert sorted(whole) == list(range(1, 17))
    assert set(begun) <= {1, 2, 3, 4, 5, 6, 7}, "the kill came late"
    assert min(rest) == max(step for step in begun if step % 3 == 0) + 1
    assert begun | rest == whole


def test_training_learns_which_list_saves_where(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from planish.train.list_writer import ListVocabulary, WriterConfig, train_writer

    known, texts, shape, _, held = config(tmp_path / "c.checkpoint")
    assert isinstance(texts, ListVocabulary)
    long = WriterConfig(40, 0, tmp_path / "c.checkpoint")
    arrays, metrics = train_writer(known, texts, shape, long, held)  # type: ignore[arg-type]
    assert metrics["bits held back"] < 1
    saved = SavedPolicy("p", "llvm", instruction_schema(), texts.steps, 2, shape, arrays, {}, 3)  # type: ignore[arg-type]
    for code, wanted in ((CODE, ("default<Oz>",)), (MORE, LISTS[1])):
        where = PassSpace([elements()[text] for text in STEPS], ir=code)
        first = next(islice(priority_samples(WritingPolicy(saved), where), 1))
        assert passes_of(first) == wanted


def test_without_auxiliary_tasks_lists_alone_are_learnt(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from planish.train.list_writer import WriterConfig, train_writer

    known, texts, shape, _, held = config(tmp_path / "c.checkpoint")
    for auxiliary in (0.0, 0.3):
        taken = WriterConfig(1, 0, tmp_path / f"{auxiliary}.checkpoint", auxiliary=auxiliary)
        arrays, _ = train_writer(known, texts, shape, taken, held)  # type: ignore[arg-type]
        # Biases begin with 0, and stay there where nothing is learnt.
        assert arrays["costs bias"].any() == (auxiliary > 0)
        assert arrays["next bias"].any()


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from planish.train.list_writer import WriterConfig, train_writer

    path = tmp_path / "c.checkpoint"
    first = config(path)
    train_writer(*first[:3], WriterConfig(1, 0, path), first[4])  # type: ignore[arg-type]
    with pytest.raises(PlanishError, match="is of another training"):
        train_writer(*first[:3], WriterConfig(2, 0, path), first[4])  # type: ignore[arg-type]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(PlanishError, match="cannot read a checkpoint"):
        train_writer(*first[:3], WriterConfig(1, 0, path), first[4])  # type: ignore[arg-type]


GRAMMAR = ListGrammar(tokens=5, longest=4, once=(1, 3))


ACCEPTED = st.lists(st.integers(0, 4), max_size=7)


def is_legal(tokens: Sequence[int]) -> bool:
    return 1 <= len(tokens) <= 4 and all(tokens.count(each) <= 1 for each in GRAMMAR.once)


def accepted(tokens: Sequence[int]) -> bool:
    state = 0
    for token in tokens:
        if not GRAMMAR.legal(state)[token]:
            return False
        state = GRAMMAR.after(state, token)
    return bool(GRAMMAR.legal(state)[GRAMMAR.end])


@given(ACCEPTED)
def test_it_accepts_what_is_legal(tokens: Sequence[int]) -> None:
    assert accepted(tokens) == is_legal(tokens)


@given(ACCEPTED)
def test_a_repaired_list_is_legal_and_a_legal_one_stays(tokens: Sequence[int]) -> None:
    found = GRAMMAR.repaired(tokens)
    assert is_legal(found) or not tokens
    if is_legal(tokens):
        assert found == tuple(tokens)


def test_what_may_not_stand_there_is_left_out() -> None:
    assert GRAMMAR.repaired([1, 0, 1, 3, 3, 2, 2]) == (1, 0, 3, 2)
    assert GRAMMAR.repaired([]) == ()
