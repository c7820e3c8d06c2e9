"""Where nothing is better: every level gives the unchanged program, and says so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Planish, Said
from planish.core import Verdict
from planish.measure import PairedSamples, Variant
from planish.measure.comparison import remeasure_all
from planish.store import open_store
from planish.tuning import remeasure
from planish.tuning.result import read_result

SHORT = ("--trials", 4, "--workers", 1)
MATMUL = ("C[m,n] += A[m,k] * B[k,n]", "--size", "m=8,n=8,k=8")
MINIMAL = "define i32 @f(i32 %x) {\n  ret i32 %x\n}\n"


def slower(sampled: PairedSamples, verdict: Verdict) -> PairedSamples:
    """Make a variant three times as bad as it is, with this verdict."""
    values = tuple(tuple(3 * value + 1 for value in row) for row in sampled.values)
    return replace(sampled, values=values, verdict=verdict)


@pytest.fixture(autouse=True)
def nothing_is_better(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the comparison at the end find every candidate slower than the baseline, or undecided."""
    verdict: Verdict = getattr(request, "param", "worse")

    def found(
        baseline: Variant, variants: Sequence[Variant], *others: Any
    ) -> list[Mapping[str, PairedSamples]]:
        base, *rest = remeasure_all(baseline, variants, *others)
        return [base, *({name: slower(sampled, verdict) for name, sampled in each.items()} for each in rest)]

    monkeypatch.setattr(remeasure, "remeasure_all", found)


def tuned(planish: Planish, *words: object) -> tuple[Said, str]:
    """Tune; gives what was said and the run."""
    said = planish("tune", *words)
    assert said.code == 0, said.err
    return said, json.loads(planish("show", "--format", "json").out)["runs"][0]["id"]


def test_of_a_tensor_program_the_winner_is_numpy_and_the_best_kernel_is_exported(
    planish: Planish, place: Path, tmp_path: Path
) -> None:
    said, run = tuned(planish, *MATMUL, *SHORT, "--export", tmp_path / "out")
    assert "No gain: no candidate is better than the baseline (numpy)." in said.out
    assert "#1 = baseline" in said.out
    assert "computed by numpy" in planish("show", run).out
    assert "No candidate is better than the baseline (numpy), which cannot be exported" in said.err
    assert "so the best kernel of the search was written." in said.err
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".s", ".h", ".json"}
    with open_store(place, read_only=True) as store:
        result = read_result(store, run)
    assert [str(step) for step in result.candidate.steps] == ["Library(name='numpy')"]
    assert (result.gain, result.exported) == (1.0, result.finalists[1].candidate)
    assert planish("export", run, tmp_path / "again").code == 0
    assert planish("export", run, tmp_path / "arm", "--target", "aarch64").code == 0
    assert "fmla\tv" in next((tmp_path / "arm").glob("*.s")).read_text()


@pytest.mark.parametrize("nothing_is_better", ["undecided"], indirect=True)
def test_the_message_on_an_exported_kernel_claims_no_more_than_the_verdict(
    planish: Planish, tmp_path: Path
) -> None:
    said, _ = tuned(planish, *MATMUL, *SHORT, "--export", tmp_path / "out")
    assert "Undecided:" in said.out
    assert "The comparison is undecided, and the baseline (numpy) cannot be exported, so" in said.err


def test_of_a_module_of_ir_it_is_the_one_that_clang_would_make(planish: Planish, tmp_path: Path) -> None:
    (tmp_path / "f.ll").write_text(MINIMAL)
    said, run = tuned(planish, tmp_path / "f.ll", *SHORT, "--export", tmp_path / "out")
    assert "No gain: no candidate is better than the baseline (default<Oz>)." in said.out
    assert (tmp_path / "out" / "pipeline.txt").read_text() == "default<Oz>\n"
    assert planish("validate", run).code == 0


@pytest.mark.slow
def test_of_a_model_it_is_the_model_as_it_came(
    planish: Planish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    import onnx

    from levels.graph.models import convolutions, write

    monkeypatch.chdir(tmp_path)
    model = write(convolutions(), tmp_path / "net.onnx")
    said, run = tuned(planish, model, *SHORT)
    assert "No gain: no candidate is better than the baseline (unchanged)." in said.out
    assert "No file was written: the result is the unchanged program." in said.out
    assert not list(tmp_path.glob("*.planish.*"))
    assert planish("export", run, tmp_path / "out").code == 0
    monkeypatch.chdir(tmp_path / "out")
    before, after = (onnx.load(name).graph for name in (model, "net.planish.onnx"))
    assert [node.op_type for node in after.node] == [node.op_type for node in before.node]
    facts = json.loads((tmp_path / "out" / "net.planish.json").read_text())
    assert (facts["passes"], facts["left_out"], facts["offline"]) == ([], [], False)


@pytest.mark.slow
def test_of_a_network_it_is_the_network(planish: Planish, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    from levels.hlo.workloads import STEP, TRAINING, write_all

    module = write_all(tmp_path / "net", STEP, TRAINING)
    words = ("--objective", "time,error", "--searcher", "random", *SHORT, "--trials", 6)
    said, run = tuned(planish, module, *words, "--export", tmp_path / "out")
    assert "the result is the baseline" in said.out
    assert (tmp_path / "out" / "patch.json").read_text() == "[]\n"
    assert (tmp_path / "out" / "changes.diff").read_text() == "(no difference)\n"
    shown = json.loads(planish("show", run, "--format", "json").out)
    assert (shown["finalists"][0]["steps"], shown["verdict"]["kind"]) == ([], "same")
