"""File of tokens: all that the training of a language model needs, without the corpus and without LLVM."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from planish.core import FeatureSchema, PlanishError
from planish.core.files import DAMAGED, replacing, why
from planish.models.feedback import Kind
from planish.models.ir_text import Tokenizer
from planish.train.samples import Sample

FORMAT = 1
MAGIC = b"planish tokens\n"
_HINT = "Make one: planish corpus tokens CORPUS FILE."


@dataclass(frozen=True)
class TokenFile:
    """Texts of a language model, and what its policy states.

    Args:
        tokenizer: of the texts.
        context: tokens of the longest text.
        schema: of the policy's level and objective.
        steps: passes of the longest list.
        feedback: the kind that some texts have; "" for none.
        samples: texts of the training set.
        held: texts of the validation set.
    """

    tokenizer: Tokenizer
    context: int
    schema: FeatureSchema
    steps: int
    feedback: Kind | Literal[""]
    samples: Sequence[Sample]
    held: Sequence[Sample]


def write_tokens(file: TokenFile, path: Path) -> None:
    """Write a file of tokens, which is compressed by LZMA: about 2.4 bits a token.

    After a line of JSON come, as little-endian 16-bit integers, for each text of the training and then of the
    validation set, its length and where its answer begins; whether it is improvable; and all tokens.

    Raises:
        PlanishError: the vocabulary or the context has more than 65,536 tokens.
        OSError: it cannot be written.
    """
    if max(file.tokenizer.size, file.context) > np.iinfo(np.uint16).max:
        raise PlanishError("a file of tokens has at most 65,535 different ones, and texts as long")
    both = [*file.samples, *file.held]
    about = {
        "format": FORMAT,
        "tokenizer": file.tokenizer.to_json(),
        "context": file.context,
        "schema": asdict(file.schema),
        "steps": file.steps,
        "feedback": file.feedback,
        "texts": [len(file.samples), len(file.held)],
    }
    numbers = [
        np.array([len(one.tokens) for one in both], "<u2"),
        np.array([one.begin for one in both], "<u2"),
        np.array([one.improvable for one in both], "<u2"),
        *(one.tokens.astype("<u2") for one in both),
    ]
    # The vocabulary has line ends of its own, which JSON escapes.
    content = json.dumps(about).encode() + b"\n" + np.concatenate(numbers).tobytes()
    with replacing(path) as part:
        part.write_bytes(MAGIC + lzma.compress(content, filters=_FILTERS, format=lzma.FORMAT_XZ))


_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 1, "pb": 1, "dict_size": 1 << 26}]
"""Numbers have two bytes, and functions of one package are alike over many megabytes."""


def read_tokens(path: Path) -> TokenFile:
    """Read a file that `write_tokens` wrote.

    Raises:
        PlanishError: there is none, it is damaged, or of another format.
    """
    try:
        content = path.read_bytes()
        if not content.startswith(MAGIC):
            raise ValueError("it is not a file of tokens")
        head, _, rest = lzma.decompress(content[len(MAGIC) :]).partition(b"\n")
        return _read(json.loads(head), np.frombuffer(rest, "<u2"))
    except (*DAMAGED, lzma.LZMAError) as error:
        raise PlanishError(f"cannot read tokens from {path}: {why(error)}", _HINT) from error


def _read(about: dict[str, Any], numbers: NDArray[np.uint16]) -> TokenFile:
    if about["format"] != FORMAT:
        raise ValueError(f"it has format {about['format']}, and this planish reads {FORMAT}")
    learnt, held = about["texts"]
    lengths, begins, improvable = numbers[: 3 * (learnt + held)].reshape(3, -1)
    ends = np.cumsum(lengths, dtype=np.int64)
    tokens = numbers[3 * (learnt + held) :]
    if ends[-1:].sum() != len(tokens):
        raise ValueError("it is cut off")
    texts = [
        Sample(tokens[end - length : end], int(begin), bool(flag))
        for end, length, begin, flag in zip(ends, lengths, begins, improvable, strict=True)
    ]
    schema = about["schema"]
    return TokenFile(
        Tokenizer.read(about["tokenizer"]),
        about["context"],
        FeatureSchema(schema["name"], schema["version"], tuple(schema["names"])),
        about["steps"],
        about["feedback"],
        texts[:learnt],
        texts[learnt:],
    )
