"""`planish policy`, and the searchers that follow one."""

import json
from pathlib import Path

import pytest

from cli.conftest import Planish
from planish.learn.policy import load_policy, places, policies_folder

PROGRAM = ("C[m,n] += A[m,k] * B[k,n]", "--size", "m=32,n=48,k=16", "--space", "steps")


def test_the_shipped_policy_is_listed(planish: Planish) -> None:
    (policy,) = json.loads(planish("policy", "--format", "json").out)["policies"]
    assert (policy["name"], policy["level"], policy["observes"]) == ("loops", "loops", "loops/cursor 1")
    assert policy["programs"] >= 500
    assert "loops/cursor" in planish("policy").out


def test_a_policy_measures_where_it_ends_and_nothing_else(planish: Planish, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    said = planish("tune", *PROGRAM, "--searcher", "policy", "--store", store, "--format", "json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["trials"] == 1


def test_priority_sampling_measures_so_many_candidates(planish: Planish, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    sampled = ("--searcher", "priority", "--set", "samples=4", "--store", store, "--format", "json")
    said = planish("tune", *PROGRAM, *sampled)
    assert said.code == 0, said.err
    assert json.loads(said.out)["trials"] == 4


def test_a_policy_is_exported_and_removed(planish: Planish, tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    assert planish("policy", "export", "loops", file).code == 0
    assert load_policy(file).programs == load_policy(places()["loops"]).programs
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
    used = ("--searcher", "policy", "--set", f"policy={file}", "--store", store)
    assert planish("tune", *PROGRAM, *used).code == 0


def test_errors_are_one_line(planish: Planish, tmp_path: Path) -> None:
    assert "none of your own" in planish("policy", "remove", "loops").error
    assert "unknown policy 'lops'" in planish("policy", "export", "lops", tmp_path / "x").error
    (tmp_path / "cut.safetensors").write_bytes(places()["loops"].read_bytes()[:5000])
    used = ("--searcher", "policy", "--set", f"policy={tmp_path / 'cut.safetensors'}")
    assert "cannot read a policy" in planish("tune", *PROGRAM, *used, "--store", tmp_path / "s.db").error
    wrong = ("--searcher", "policy", "--space", "template", "--store", tmp_path / "s.db")
    assert "needs what TemplateSpace does not offer" in planish("tune", *PROGRAM[:3], *wrong).error
