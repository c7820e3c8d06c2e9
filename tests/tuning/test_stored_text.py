"""A store is data: whatever its texts say, no file that they name is opened, and nothing is executed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from levels.llvm.modules import require_linker
from planish.cli.commands import app
from planish.core import Objective
from planish.levels.llvm.level import LlvmLevel
from planish.sandbox.confinement import sandbox_status
from planted_stores import Row, opened, plant

COMMANDS = (("show", "{run}"), ("report", "{run}"), ("export", "{run}", "out"), ("validate", "{run}"))
SUM = "define i32 @main() {\n  ret i32 0\n}\n"
WRITES = """
@name = constant [{size} x i8] c"{path}\\00"
declare i32 @creat(ptr, i32)
define i32 @main() {{
  %1 = call i32 @creat(ptr @name, i32 384)
  ret i32 0
}}
"""
TELLS = """
declare i32 @getpid()
define i32 @main() {
  %1 = call i32 @getpid()
  %2 = and i32 %1, 127
  ret i32 %2
}
"""
"""Its answer differs from run to run, which is noted where it is run."""
TIME = Objective("time_s", "s")
LLVM = (("backend", "libllvm"), ("llvm", "22"))
HLO = (("backend", "xla"),)
needs_hlo = pytest.mark.skipif(find_spec("jaxlib") is None, reason="jaxlib is not installed")
needs_graph = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")


def _paths(folder: Path) -> list[tuple[str, str, str]]:
    """List levels with a text that names a file, and the file."""
    secret, module, python = folder / "secret", folder / "m.mlir", folder / "m.py"
    source, model = folder / "secret.c", folder / "net.onnx"
    for file in (secret, module, source, model, folder / "x.loops"):
        file.write_text("treasure")
    python.write_text(f"open({str(folder / 'canary')!r}, 'w').close()")
    return [
        ("loops", str(folder / "x.loops"), str(folder / "x.loops")),
        ("llvm", str(source), str(source)),
        ("hlo", str(module), str(python)),
        ("hlo", str(module), str(module)),
        ("graph", str(model), str(model)),
    ]


@pytest.mark.parametrize("which", range(5))
def test_a_stored_text_is_no_path(which: int, tmp_path: Path) -> None:
    level, text, forbidden = _paths(tmp_path)[which]
    run = plant(tmp_path / "store.db", Row(level, text, toolchain=LLVM if level == "llvm" else HLO))
    for command in COMMANDS:
        with opened() as files:
            done = _run(tmp_path, run, command)
        assert forbidden not in files
        assert not (tmp_path / "canary").exists()
        assert "treasure" not in done.output
        assert "error in planish" not in done.output


@dataclass(frozen=True)
class _Done:
    code: int = 0
    output: str = ""


def _run(folder: Path, run: str, command: tuple[str, ...], *more: str) -> _Done:
    words = [word.format(run=run) for word in command]
    done = CliRunner().invoke(app, [*words, *more, "--store", str(folder / "store.db")])
    return _Done(done.exit_code, done.output)


@needs_hlo
def test_files_that_a_stored_workload_names_stay_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with the right digest: it is the reader who says which files may be read."""
    from levels.hlo.workloads import INFERENCE, PREDICT, write_all
    from planish.levels.hlo.level import HloLevel

    module = write_all(tmp_path / "theirs", PREDICT, INFERENCE)
    program = HloLevel().load(str(module), {})
    _forget(monkeypatch, tmp_path)
    level = HloLevel()
    objectives = tuple(level.objectives[name] for name in level.default_objectives(program))
    toolchain = tuple(level.target(program, 1).toolchain.items())
    run = plant(tmp_path / "store.db", Row("hlo", program.text, objectives, toolchain, level.version))
    done = _Done()
    for command in COMMANDS:
        with opened() as files:
            done = _run(tmp_path, run, command)
        assert [file for file in files if "theirs" in file] == []
    assert done.code != 0
    assert "the data are known from the store alone" in done.output
    named = ["--file", str(tmp_path / "theirs/data")]
    told = _run(tmp_path, run, COMMANDS[3], *named)
    assert "the weights are known from the store alone" in told.output
    told = _run(tmp_path, run, COMMANDS[3], *named, "--file", str(tmp_path / "theirs/w.npz"))
    assert "built, verified" in told.output


@needs_graph
def test_a_stored_model_stays_closed_until_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from levels.graph.models import convolutions, write
    from planish.levels.graph.level import GraphLevel

    folder = tmp_path / "theirs"
    folder.mkdir()
    model = write(convolutions(), folder / "net.onnx")
    level = GraphLevel()
    program = level.load(str(model), {})
    _forget(monkeypatch, tmp_path)
    toolchain = tuple(level.target(program, 1).toolchain.items())
    row = Row("graph", program.text, (level.objectives["latency"],), toolchain, level.version)
    run = plant(tmp_path / "store.db", row)
    done = _Done()
    for command in COMMANDS:
        with opened() as files:
            done = _run(tmp_path, run, command)
        assert [file for file in files if "theirs" in file] == []
        assert "--file" in done.output or command[0] == "report"
    assert _run(tmp_path, run, COMMANDS[2], "--file", str(model)).code == 0
    assert (tmp_path / "out/net.planish.onnx").exists()
    assert _run(tmp_path, run, COMMANDS[2]).code == 0, "once named, it is known"


@pytest.fixture(autouse=True)
def brief(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure as shortly as can be: what is asked here is what is opened and run."""
    monkeypatch.chdir(tmp_path)


def _forget(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Be another user, who never named a file."""
    monkeypatch.setattr("planish.core.files._named", {})
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "reader"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "reader"))


def test_stored_code_is_not_run_unasked(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    require_linker()
    level = LlvmLevel()
    program = level.load(WRITES.format(size=len(str(canary)) + 1, path=canary), {})
    toolchain = tuple(level.target(program, 1).toolchain.items())
    run = plant(tmp_path / "store.db", Row("llvm", program.text, (TIME,), toolchain, level.version))
    done = [_run(tmp_path, run, command) for command in COMMANDS][-1]
    assert done.code != 0
    assert "--run" in done.output
    assert not canary.exists()
    assert "built, verified" in _run(tmp_path, run, COMMANDS[3], "--run").output
    assert canary.exists() == ("no Landlock" in sandbox_status()), "it is run, and confined"


def test_code_is_run_where_it_is_timed_or_the_user_asks(tmp_path: Path) -> None:
    require_linker()
    (tmp_path / "f.ll").write_text(TELLS)
    few = ["--trials", "2", "--workers", "1", "--finalists", "1"]
    done = _run(tmp_path, "", ("tune", str(tmp_path / "f.ll"), *few))
    assert done.code == 0
    assert "it is not run" in done.output
    assert "two runs" not in done.output.partition("verified\n")[0]
    asked = _run(tmp_path, "", ("tune", str(tmp_path / "f.ll"), "--run", *few))
    assert "two runs of the unoptimized program differ" in asked.output


@pytest.mark.parametrize(
    "assembly",
    [
        ".incbin \\22{secret}\\22",
        ".include \\22{secret}\\22",
        ".macro read a b\\0A.\\5Ca\\5Cb \\22{secret}\\22\\0A.endm\\0Aread inc bin",
        ".irp x,bin\\0A.inc\\5Cx \\22{secret}\\22\\0A.endr",
    ],
)
def test_stored_assembly_reads_no_file(assembly: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden treasure")
    ir = f'module asm "{assembly.format(secret=secret)}"\n{SUM}'
    row = Row("llvm", f"; @main\n{ir}", (Objective("instructions", exact=True),), LLVM)
    run = plant(tmp_path / "store.db", row)
    done = _run(tmp_path, run, COMMANDS[2])
    files = [file.read_bytes() for file in tmp_path.glob("out/*")]
    assert not any(b"hidden treasure" in content for content in files)
    assert done.code != 0
    assert "assembl" in done.output


def test_a_stored_text_does_not_steer_the_terminal(tmp_path: Path) -> None:
    text = "\x1b]0;title\x07C[m] = A[m] | m=4 | C:float32[4] A:float32[4] \x1b]0;t\x07"
    run = plant(tmp_path / "store.db", Row("loops", text))
    for command in (("show",), COMMANDS[0]):
        assert not {"\x1b", "\x07"} & set(_run(tmp_path, run, command).output)


@needs_hlo
def test_python_beside_a_module_is_not_run(tmp_path: Path) -> None:
    from levels.hlo.workloads import INFERENCE, PREDICT, write_all

    module = write_all(tmp_path / "net", PREDICT, INFERENCE)
    module.with_suffix(".toml").unlink()
    canary = tmp_path / "canary"
    module.with_suffix(".py").write_text(f"open({str(canary)!r}, 'w').close()\n")
    done = _run(tmp_path, "", ("tune", str(module)))
    assert not canary.exists()
    assert done.code == 3
    assert f"--workload {module.with_suffix('.py')}" in done.output
    _run(tmp_path, "", ("tune", str(module), "--workload", str(module.with_suffix(".py"))))
    assert canary.exists(), "named, it is run"


MALFORMED: list[tuple[str, Callable[[], str]]] = [
    ("hlo", lambda: "// x\n// planish scores it by {\nmodule {}"),
    ("hlo", lambda: "// x\n// planish scores it by " + "[" * 100_000 + "\nmodule {}"),
    ("graph", lambda: "# x\n# planish runs the model {}\n"),
    ("graph", lambda: "# x\n# planish runs the model " + "[" * 100_000 + "\n"),
    ("graph", lambda: "# x\n# planish runs the model " + json.dumps({"path": 1, "digest": [2]})),
    ("llvm", lambda: "; x\n; planish runs it with {\n" + SUM),
    ("llvm", lambda: '; x\n; planish runs it with {"args": 1, "stdin": 2, "harness": 3}\n' + SUM),
    ("loops", lambda: "C[m] = A[m] | m=1 | C:float32[1"),
]


@pytest.mark.parametrize("which", range(len(MALFORMED)))
def test_a_malformed_program_is_one_error(which: int, tmp_path: Path) -> None:
    level, text = MALFORMED[which][0], MALFORMED[which][1]()
    run = plant(tmp_path / "store.db", Row(level, text, toolchain=LLVM if level == "llvm" else HLO))
    done = _run(tmp_path, run, COMMANDS[2])
    assert done.code not in (0, 1), done.output
    assert "error in planish" not in done.output
