"""Results and progress in a real Jupyter kernel, where nbclient and ipykernel are installed."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient", reason="needs nbclient and ipykernel: pip install nbclient ipykernel")
pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel: pip install nbclient ipykernel")

CELLS = (
    "import planish",
    "result = planish.tune('C[m] += A[m,k]', size={'m': 8, 'k': 8}, trials=3, store='planish.db')\nresult",
    "planish.plot.history(result)",
    "planish.tune('C[m] += A[m,k]', size={'m': 8}, trials=3, store='planish.db')",
)


@pytest.mark.filterwarnings("ignore")
def test_a_notebook_shows_results_figures_and_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tmp_path / "kernels" / "here"
    spec.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "here"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    notebook: Any = import_module("nbformat").v4
    made = notebook.new_notebook(cells=[notebook.new_code_cell(cell) for cell in CELLS])
    client: Any = import_module("nbclient").NotebookClient
    run = {"metadata": {"path": str(tmp_path)}}
    client(made, timeout=240, kernel_name="here", allow_errors=True, resources=run).execute()

    _, tuned, drawn, wrong = (cell.outputs for cell in made.cells)
    progress, shown = (output.data for output in tuned)
    assert progress["text/plain"].startswith("run ")
    assert " 3 trials" in progress["text/plain"].splitlines()[-1]
    assert set(progress) == {"text/plain"}, "no widget, and nothing empty"
    assert shown["text/plain"].startswith("Run ")
    assert "<strong>" in shown["text/html"]
    assert "<svg " in shown["text/html"]
    assert "<script" not in shown["text/html"]
    assert "application/vnd.plotly.v1+json" in drawn[-1].data
    assert (wrong[-1].ename, wrong[-1].evalue) == (
        "ProgramError",
        "axis 'k' of A has no size. Add size=\"k=...\", or a shape= that has it.",
    )
