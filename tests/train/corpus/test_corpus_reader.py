"""Files that are no corpus."""

import gzip
from pathlib import Path

import pytest

from planish.core import PlanishError
from planish.train.corpus.reader import SAMPLE, read_corpus


@pytest.mark.parametrize(
    "content",
    [
        b"define i32 @f()",
        gzip.compress(b"no JSON\n"),
        gzip.compress(b'{"identity": 1}\n'),
        gzip.compress(b"\xff\n"),
        SAMPLE.read_bytes()[:10_000],
        SAMPLE.read_bytes()[:1000] + bytes(1000),
    ],
    ids=["not compressed", "no JSON", "no row", "no UTF-8", "cut", "damaged"],
)
def test_a_file_that_is_no_corpus_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "functions.jsonl.gz"
    file.write_bytes(content)

    with pytest.raises(PlanishError, match=r"functions\.jsonl\.gz is not a corpus: "):
        list(read_corpus(file))
