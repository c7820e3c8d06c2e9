"""What single passes are learnt from: prompts and answers (thesis, 4.5.3 and figure 4.20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planish.core import rng
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.passes.space import compile_lists
from planish.models.ir_text import Tokenizer, lexemes
from planish.train.corpus.shards import Row
from planish.train.samples import Sample

LONGEST_START = 4
"""Passes that partly optimize a function at most, before the one that is learnt (4.5.3)."""


def translation(tokenizer: Tokenizer, ir: str, name: str) -> list[int]:
    """Give the tokens of a prompt that asks for what one pass makes of IR (figure 4.20)."""
    return tokenizer.encode_parts(["[pass]", name, *lexemes(ir), "[code]"])


def translated(tokenizer: Tokenizer, ir: str) -> list[int]:
    """Give the tokens of the answer to `translation`."""
    return tokenizer.encode_parts([*lexemes(ir), "[end]"])


def single_pass_examples(
    rows: Sequence[Row], passes: Sequence[str], each: int, seed: int
) -> Mapping[str, list[tuple[str, str]]]:
    """Make what single passes are learnt from (4.5.3): for each, code before and after it.

    Half of the functions are partly optimized before, by up to `LONGEST_START` passes drawn by chance.

    Args:
        rows: functions, drawn from by chance.
        passes: that are learnt.
        each: functions for each pass at most; those that it breaks are left out.
        seed: of chance.
    """
    bindings, found = open_bindings(), dict[str, list[tuple[str, str]]]()
    for number, name in enumerate(passes):
        random = rng(seed, number)
        drawn = [rows[place] for place in random.integers(len(rows), size=each).tolist()]
        starts = [
            tuple(random.choice(passes, int(random.integers(1, LONGEST_START, endpoint=True))).tolist())
            if random.random() < 1 / 2
            else ()
            for _ in drawn
        ]
        jobs = [(row.ir, start) for row, start in zip(drawn, starts, strict=True)]
        before = compile_lists(bindings, jobs)
        kept = [one.code for one in before if one is not None]
        after = compile_lists(bindings, [(code, (name,)) for code in kept])
        pairs = [(code, one.code) for code, one in zip(kept, after, strict=True) if one is not None]
        found[name] = list(dict.fromkeys(pairs))
    return found


def translation_samples(
    tokenizer: Tokenizer, examples: Mapping[str, Sequence[tuple[str, str]]], context: int
) -> list[Sample]:
    """Write single passes as prompts and answers (figure 4.20); those that are too long are left out."""
    found = list[Sample]()
    for name, pairs in examples.items():
        for before, after in pairs:
            asked = translation(tokenizer, before, name)
            whole = [*asked, *translated(tokenizer, after)]
            if len(whole) <= context:
                found.append(Sample(np.array(whole, np.int32), len(asked)))
    return found
