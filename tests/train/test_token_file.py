"""Files of tokens: what is written is read, damage is one line, and training needs no LLVM."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planish.core import FeatureSchema, PlanishError
from planish.models.ir_text import Tokenizer
from planish.models.policy_files import load_policy
from planish.train.samples import Sample
from planish.train.token_file import TokenFile, read_tokens, write_tokens

PASSES = ("gvn", "default<Oz>")
TRAINING = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("llvmlite", "tokenizers") or name.startswith("planish.levels.llvm"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocked())
from planish.cli.script import main
main()
"""


def made(seed: int = 0, count: int = 40) -> TokenFile:
    """Texts of chance, of one vocabulary."""
    pytest.importorskip("tokenizers")
    tokenizer, random = Tokenizer.learnt(["ret void"], PASSES, 700), np.random.default_rng(seed)
    texts = [
        Sample(
            random.integers(0, tokenizer.size, length).astype(np.int32), int(length // 2), bool(length % 2)
        )
        for length in random.integers(4, 60, count)
    ]
    schema = FeatureSchema("llvm/instructions/instructions", 2, ("a", "b"))
    return TokenFile(tokenizer, 64, schema, 3, "fast", texts[8:], texts[:8])


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written, path = made(), tmp_path / "a.tokens"
    write_tokens(written, path)
    found = read_tokens(path)
    assert replace(found, samples=(), held=()) == replace(written, samples=(), held=())
    for mine, theirs in ((found.samples, written.samples), (found.held, written.held)):
        assert [(one.begin, one.improvable) for one in mine] == [
            (one.begin, one.improvable) for one in theirs
        ]
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one.tokens, other.tokens)


def test_damage_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tokens"
    write_tokens(made(), path)
    whole = path.read_bytes()
    for damaged in (whole[:-40], b"PK nothing", whole[:200] + b"x" + whole[201:], b""):
        path.write_bytes(damaged)
        with pytest.raises(PlanishError, match=r"cannot read tokens from .*a\.tokens: \w"):
            read_tokens(path)
    with pytest.raises(PlanishError, match="No such file"):
        read_tokens(tmp_path / "b.tokens")


def test_a_training_needs_the_file_alone(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file, out = tmp_path / "a.tokens", tmp_path / "text.safetensors"
    write_tokens(made(), file)
    words = ["policy", "train", "--level", "llvm", "--network", "decoder", "--tokens", str(file)]
    words += ["--epochs", "2", "--width", "16", "--depth", "1", "--batch", "500", "-o", str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", TRAINING, *words, "--device", "cpu", "--rate", "0.01"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "32 texts are used for training, 8 decide which network is kept" in ended.stderr
    found = load_policy(out)
    assert (found.actions, found.steps, found.feedback) == (PASSES, 3, "fast")
    assert found.schema == made().schema
    assert found.vocabulary == made().tokenizer.to_json()
