"""`planish policy`, and the searchers that follow one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from cli.conftest import Planish
from models.test_language_policy import PASSES, made, tokenizer
from planish.cli.language_training import show_steps
from planish.core.registry import level_named, load_program
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.models.policy_files import load_policy, policies_folder, policy_paths, write_policy
from planish.store import open_store
from planish.train.corpus.reader import SAMPLE, read_corpus
from planish.train.cost_tables import UNCOUNTED, Columns, CostTable, write_costs
from planish.tuning.api import task_of
from planish.tuning.progress import ProgressDisplay
from planish.tuning.settings import Settings

if TYPE_CHECKING:
    from planish.train.optimization import TrainingProgress

CODE = Path(__file__).parents[2] / "benchmarks" / "llvm_functions" / "utf8.ll"
PROGRAM = ("C[m,n] += A[m,k] * B[k,n]", "--size", "m=32,n=48,k=16", "--space", "steps")


def test_shipped_policies_are_listed(planish: Planish) -> None:
    policies = json.loads(planish("policy", "--format", "json").out)["policies"]
    found = {each["name"]: each for each in policies if each["level"] == "loops"}
    assert found["loops"]["vector_bytes"] == 64
    for policy in found.values():
        assert policy["observes"] == "loops/cursor 3"
        assert policy["programs"] >= 500
    listed = planish("policy").out
    assert "loops/cursor" in listed
    assert "512 bits" in listed


def test_a_policy_measures_where_it_ends_and_nothing_else(planish: Planish, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    followed = ("--searcher", "policy", "--seconds", "600")
    said = planish("tune", *PROGRAM, *followed, "--store", store, "--format", "json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["trials"] == 1
    assert found["run"]["seconds"]["model"] > 0, "what the policy took is told apart"


def test_priority_sampling_measures_so_many_candidates(planish: Planish, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    sampled = ("--searcher", "priority", "--set", "samples=4", "--seconds", "600")
    said = planish("tune", *PROGRAM, *sampled, "--store", store, "--format", "json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["trials"] == 4


def test_a_policy_is_exported_and_removed(planish: Planish, tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    assert planish("policy", "export", "loops", file).code == 0
    assert load_policy(file).programs == load_policy(policy_paths()["loops"]).programs
    own = policies_folder() / "mine.safetensors"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_bytes(file.read_bytes())
    assert planish("policy", "remove", "mine").code == 0
    assert not own.exists()


def test_training_reads_a_store(planish: Planish, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    store, file = tmp_path / "store.db", tmp_path / "mine.safetensors"
    searched = ("--searcher", "beam-bfs", "--trials", "120", "--store", store)
    assert planish("tune", *PROGRAM, *searched).code == 0
    said = planish("policy", "train", "--level", "loops", "--store", store, "-o", file, "--epochs", "2")
    assert said.code == 0, said.err
    assert load_policy(file).programs == 1
    judged = {
        name: json.loads(planish("policy", "evaluate", name, "--store", store, "--format", "json").out)
        for name in (file, "loops")
    }
    for found in judged.values():
        assert found["programs"] == 1
        assert 0 <= found["metrics"]["regret"] <= 0.25
        assert 0 <= found["metrics"]["best"] <= 1
    used = ("--searcher", "policy", "--set", f"policy={file}", "--store", store)
    assert planish("tune", *PROGRAM, *used).code == 0


def test_a_policy_trained_without_a_file_takes_no_shipped_ones_place(
    planish: Planish, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    store, own = tmp_path / "store.db", policies_folder() / "own-loops.safetensors"
    searched = ("--searcher", "beam-bfs", "--trials", "120", "--store", store)
    assert planish("tune", *PROGRAM, *searched).code == 0
    shipped = policy_paths()["loops"]
    said = planish("policy", "train", "--level", "loops", "--store", store, "--epochs", "1")
    assert said.code == 0, said.err
    try:
        assert policy_paths()["loops"] == shipped
        assert policy_paths()["own-loops"] == own
        assert "searches use it only if no shipped policy fits; --set policy=own-loops uses it" in said.err
    finally:
        assert planish("policy", "remove", "own-loops").code == 0


def test_a_policy_is_compared_on_held_back_programs(
    monkeypatch: pytest.MonkeyPatch, planish: Planish, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("planish.models.provenance.FEWEST_PROGRAMS", 1)
    monkeypatch.setattr("planish.train.samples.hash_number", _hold_back_32)
    store = tmp_path / "store.db"
    for size in ("m=32,n=48,k=16", "m=24,n=48,k=16"):
        program = (PROGRAM[0], "--size", size, "--space", "steps")
        searched = ("--searcher", "beam-bfs", "--trials", "60", "--store", store)
        assert planish("tune", *program, *searched).code == 0
    train = ("policy", "train", "--level", "loops", "--store", store, "--epochs", "1")
    evaluate = "planish.train.continuations.evaluate_steps"
    try:
        with monkeypatch.context() as patch:
            patch.setattr(evaluate, _regrets([0.1, 0.2]))
            better = planish(*train).err
        # There is a shipped policy for each width of vectors.
        shares = r"share of the best speed 0\.900, and 0\.800 of (\S+)"
        found = re.search(f"on 1 held-back program: {shares}: searches use it from now on", better)
        assert found is not None, better
        shipped = found[1]
        before = (policies_folder() / "own-loops.safetensors").read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(evaluate, _regrets([0.2, 0.1]))
            worse = planish(*train).err
        assert "it is not better, so searches do not use it; --set policy=own-loops-worse uses it" in worse
        assert (policies_folder() / "own-loops.safetensors").read_bytes() == before
        names = {each["name"]: each["held_out"] for each in _listed(planish)}
        assert names[shipped] is None
        assert names["own-loops"]["rival"] == shipped
        assert names["own-loops-worse"]["rival"] == "own-loops"
    finally:
        for name in ("own-loops", "own-loops-worse"):
            assert planish("policy", "remove", name).code == 0


def _hold_back_32(text: str) -> int:
    return 0 if "m=32" in text else 1


def _listed(planish: Planish) -> list[dict[str, Any]]:
    return json.loads(planish("policy", "--format", "json").out)["policies"]


def _regrets(values: list[float]) -> Callable[..., dict[str, float]]:
    """Return an evaluation that finds these, one after the other."""
    left = iter(values)
    return lambda *_: {"regret": next(left)}


def test_the_shipped_policy_over_pass_lists_is_found_and_followed(planish: Planish, tmp_path: Path) -> None:
    assert "llvm/instructions" in planish("policy").out
    said = planish("tune", CODE, "--searcher", "priority", "--set", "samples=2", *_told(tmp_path))
    assert said.code == 0, said.err
    assert json.loads(said.out)["trials"] == 2
    bytes_ = planish("tune", CODE, "--objective", "text_bytes", "--searcher", "policy", *_told(tmp_path))
    assert "no policy is for the actions of llvm/text_bytes" in bytes_.err


def _told(folder: Path) -> tuple[str | Path, ...]:
    return ("--store", folder / "store.db", "--format", "json", "--finalists", "1", "--seconds", "600")


def labeled(path: Path) -> None:
    """Label some functions of the sample corpus: one of the lists saves a tenth of each, alternately."""
    lists = tuple(load_coreset("instructions"))
    rows = list(read_corpus(SAMPLE, "train"))[:12]
    columns = Columns(open_bindings().version, "x86_64", ("instructions",), lists, ())
    costs = np.full((len(rows), len(lists), 1), 20, np.int32)
    costs[np.arange(len(rows)), np.arange(len(rows)) % 10] = 18
    table = CostTable(
        columns,
        np.array([row.identity for row in rows]),
        np.array([row.package for row in rows]),
        {row.package: "train" for row in rows},
        np.full((len(rows), 1), 30, np.int32),
        np.full((len(rows), 1), 20, np.int32),
        costs,
        np.zeros((len(rows), 2, 0), np.int32),
        np.full((len(rows), 2), UNCOUNTED, np.int32),
    )
    write_costs(table, path)


def test_a_policy_over_pass_lists_is_trained_and_followed(planish: Planish, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    labels, file, store = tmp_path / "costs.npz", tmp_path / "lists.safetensors", tmp_path / "store.db"
    labeled(labels)
    given = ("--level", "llvm", "--corpus", SAMPLE, "--labels", labels, "-o", file, "--epochs", "2")
    said = planish("policy", "train", *given)
    assert said.code == 0, said.err
    assert "minutes left" in said.err
    assert load_policy(file).programs == 12
    known = ("--corpus", SAMPLE, "--labels", labels, "--split", "train", "--format", "json")
    judged = json.loads(planish("policy", "evaluate", file, *known).out)
    assert judged["programs"] == 12
    saved = [judged["metrics"][f"saved at {n}"] for n in (1, 3, 5, 10)]
    assert saved == sorted(saved)
    assert saved[-1] <= 0.1 + 1e-6  # what the best of all lists saves
    used = ("--set", f"policy={file}", "--store", store, "--format", "json", "--finalists", "1")
    for searcher, trials in (("policy", 1), ("priority", 3)):
        sampled = () if searcher == "policy" else ("--set", "samples=3")
        found = planish("tune", CODE, "--searcher", searcher, *sampled, *used)
        assert found.code == 0, found.err
        assert json.loads(found.out)["trials"] == trials


def test_a_language_model_is_trained_given_feedback_and_followed(planish: Planish, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tokenizers")
    labels, file, store = tmp_path / "costs.npz", tmp_path / "text.safetensors", tmp_path / "store.db"
    labeled(labels)
    tokens, fed = tmp_path / "a.tokens", tmp_path / "fed.tokens"
    write = ("corpus", "tokens", SAMPLE)
    given = ("--labels", labels, "--tasks", "counts", "--format", "json")
    texts = json.loads(planish(*write, tokens, *given).out)
    assert (texts["functions"], texts["bytes"]) == (12, tokens.stat().st_size)
    train = ("policy", "train", "--level", "llvm", "--network", "decoder", "--epochs", "1")
    said = planish(*train, "--tokens", tokens, "--width", "16", "--depth", "1", "-o", file)
    assert said.code == 0, said.err
    assert f"{texts['texts']} texts are used for training" in said.err
    more = tmp_path / "more.safetensors"
    told = json.loads(planish(*write, fed, *given, "--feedback", "fast", "--first", file).out)
    assert texts["texts"] < told["texts"] <= 2 * texts["texts"]
    told = planish(*train, "--tokens", fed, "--first", file, "-o", more)
    assert told.code == 0, told.err
    assert load_policy(more).programs > load_policy(file).programs
    assert (load_policy(file).feedback, load_policy(more).feedback) == ("", "fast")
    known = ("--corpus", SAMPLE, "--labels", labels, "--split", "train", "--format", "json")
    evaluated = planish("policy", "evaluate", more, *known)
    judged = json.loads(evaluated.out)
    assert judged["programs"] == 12
    assert "longer than what" not in evaluated.err
    short = replace(load_policy(more), shape=replace(load_policy(more).shape, context=256))
    write_policy(short, tmp_path / "short.safetensors")
    told = planish("policy", "evaluate", tmp_path / "short.safetensors", *known).err
    assert "of 12 functions are longer than what the model reads, their first 160 tokens" in told
    assert judged["metrics"]["improvement of the labels"] > 0
    used = ("--store", store, "--format", "json", "--finalists", "1", "--trials", "3")
    found = planish("tune", CODE, "--searcher", "feedback", "--set", f"policy={more}", *used)
    assert found.code == 0, found.err
    assert 1 <= json.loads(found.out)["trials"] <= 3
    assert "Name it: --first" in planish(*write, fed, *given, "--feedback", "fast").err
    assert "Then give --tokens FILE" in planish(*train, "-o", more).err
    both = planish(*train, "--tokens", fed, "--minutes", "1", "-o", more).error
    assert both == "training for --minutes does not read --epochs. Leave it out."


def test_a_language_model_of_other_passes_is_neither_judged_nor_trained_on(
    planish: Planish, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tokenizers")
    labels, few, others = (tmp_path / name for name in ("costs.npz", "few.safetensors", "others.safetensors"))
    labeled(labels)
    renamed = tuple(f"old-{name}" for name in PASSES)
    vocabulary = replace(tokenizer(), passes=renamed).to_json()
    write_policy(made(), few)
    write_policy(replace(made(), actions=renamed, vocabulary=vocabulary), others)
    known = ("--corpus", SAMPLE, "--labels", labels)
    tokens = ("corpus", "tokens", SAMPLE, tmp_path / "x", "--labels", labels)
    judged = planish("policy", "evaluate", others, *known, "--split", "train").error
    trained = planish(*tokens, "--first", others).error
    assert judged == trained
    assert judged.startswith("the policy others writes lists of steps that there are not here: old-adce, ")
    assert planish(*tokens, "--first", few).error.startswith(
        "the policy few has no tokens for passes of the labels: "
    )


def test_pass_lists_are_learnt_from_a_corpus_and_labels(planish: Planish, tmp_path: Path) -> None:
    file = tmp_path / "lists.safetensors"
    error = planish("policy", "train", "--level", "llvm", "-o", file).error
    assert "a policy over pass lists learns from a corpus and labels" in error
    assert list(tmp_path.iterdir()) == []
    error = planish("policy", "train", "--level", "llvm", "-o", tmp_path).error
    assert error == f"cannot write {tmp_path}: it is a folder. Name another path, or free space there."


UNREAD: dict[tuple[str, ...], str] = {
    (
        "llvm",
        "--algorithm",
        "dqn",
        "--store",
        "a.db",
    ): "training of the network 'reader' does not read --store, --algorithm.",
    (
        "llvm",
        "--network",
        "writer",
        "--minutes",
        "2",
    ): "training of the network 'writer' does not read --minutes.",
    ("loops", "--corpus", "corpus"): "training by imitation does not read --corpus.",
    ("loops", "--rate", "0.1", "--width", "64"): "training by imitation does not read --width, --rate.",
    ("loops", "--algorithm", "ppo", "--epochs", "3"): "training by ppo does not read --epochs.",
}


@pytest.mark.parametrize("words", UNREAD, ids=" ".join)
def test_options_that_nothing_would_read_are_refused(planish: Planish, words: tuple[str, ...]) -> None:
    assert planish("policy", "train", "--level", *words).error == f"{UNREAD[words]} Leave it out."


def test_errors_are_one_line(planish: Planish, tmp_path: Path) -> None:
    assert "evaluated by a corpus and labels" in planish("policy", "evaluate", "llvm").error
    assert planish("policy", "evaluate", "loops", "--store", tmp_path / "none.db").code == 4
    assert "not one of your own" in planish("policy", "remove", "loops").error
    assert "unknown policy 'lops'" in planish("policy", "export", "lops", tmp_path / "x").error
    (tmp_path / "cut.safetensors").write_bytes(policy_paths()["loops"].read_bytes()[:5000])
    used = ("--searcher", "policy", "--set", f"policy={tmp_path / 'cut.safetensors'}")
    assert "cannot read a policy" in planish("tune", *PROGRAM, *used, "--store", tmp_path / "s.db").error
    wrong = ("--searcher", "policy", "--space", "template", "--store", tmp_path / "s.db")
    said = planish("tune", *PROGRAM[:3], *wrong).error
    assert "needs what TemplateSpace does not offer" in said
    assert "Name a space that does: --space steps. Searchers that fit: " in said


def test_a_program_of_too_many_loops_for_a_policy_is_reported(planish: Planish, tmp_path: Path) -> None:
    axes, store = "abcdefghijk", tmp_path / "s.db"
    deep = f"y[] += A[{','.join(axes)}]"
    program = (deep, "--size", ",".join(f"{axis}=2" for axis in axes), "--store", store)
    what = "the program has 11 loops, and the space of a cursor has 10 at most"
    for searcher in ("policy", "priority"):
        assert what in planish("tune", *program, "--space", "steps", "--searcher", searcher).error
    task = task_of(level_named("loops"), load_program(deep, "loops", {"size": program[2]})[1], Settings())
    with open_store(store) as opened:
        opened.finish_run(opened.begin_run(task, searcher="random", space="template", seed=0))
    assert what in planish("policy", "evaluate", "loops", "--store", store).error


def test_a_training_writes_a_line_at_each_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    def line(progress: TrainingProgress) -> str:
        return f"step {progress.step}: {progress.held}"

    with ProgressDisplay(every=math.inf) as display:
        show = show_steps(display, "steps", line)
        for step, held in [(5, None), (6, 0.5), (7, None)]:
            progress = SimpleNamespace(step=step, steps=10, held=held)
            show(cast("TrainingProgress", progress))  # its module imports torch
    assert capsys.readouterr().err == "step 6: 0.5\n"
