"""What sandboxed processes send is data: it comes back as it was, or is refused."""

from __future__ import annotations

import errno
import fcntl
import os
import pickle
import struct
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from planish.core import Failed, Lost, Measured, PlanishError, TargetError
from planish.levels.llvm.bindings.protocol import IRError
from planish.sandbox import ExitStatus
from planish.sandbox.fork_pool import forked, in_child
from planish.sandbox.plain_data import MOST_BYTES, DataError, ErrorData, FrameReader, dumps, framed, loads
from planish.sandbox.protocol import EvaluationReply, EvaluatorReady, decode_reply, encode_reply
from sandbox.evaluators import Trap


class Pair(NamedTuple):
    first: int
    second: tuple[float, ...]


@dataclass(frozen=True)
class Everything:
    kind: Literal["a", "b"]
    data: bytes
    text: str
    pairs: Mapping[str, Pair]
    maybe: int | str | None
    path: Path | None
    names: frozenset[str]
    counts: Counter[str]
    rows: Sequence[list[bool]]
    derived: int = field(init=False, default=0)


TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)  # lone surrogates too
REALS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**70), 2**70))
SECONDS = st.one_of(st.floats(0, 1e300), st.integers(0, 2**70))
EVERYTHING = st.builds(
    Everything,
    st.sampled_from(["a", "b"]),
    st.binary(max_size=300),
    TEXTS,
    st.dictionaries(TEXTS, st.builds(Pair, st.integers(), st.lists(st.floats(), max_size=3).map(tuple))),
    st.one_of(st.integers(), TEXTS, st.none()),
    st.one_of(st.just(Path("/a b")), st.none()),
    st.frozensets(TEXTS, max_size=1),  # in the text of more the order may differ
    st.dictionaries(TEXTS, st.integers(), max_size=3).map(Counter),
    st.lists(st.lists(st.booleans(), max_size=2), max_size=2).map(tuple),
)


@given(EVERYTHING)
def test_a_value_comes_back_as_it_was(value: Everything) -> None:
    # By its text, in which NaN is itself, and -0.0 is not 0.0.
    assert repr(loads(dumps(value, Everything), Everything)) == repr(value)


OUTCOMES = st.one_of(
    st.builds(
        Measured,
        st.dictionaries(TEXTS, REALS, max_size=2),
        st.dictionaries(TEXTS, st.lists(REALS, max_size=3).map(tuple), max_size=2),
    ),
    st.builds(Failed, st.sampled_from(["build", "run"]), TEXTS, TEXTS),
    st.builds(Lost, st.just("run"), TEXTS),
)
REPLIES = st.one_of(
    st.builds(EvaluationReply, st.integers(0, 9), OUTCOMES, st.dictionaries(TEXTS, SECONDS, max_size=2)),
    st.builds(EvaluatorReady, st.integers(0, 9), st.lists(TEXTS, max_size=2).map(tuple)),
)


@given(st.lists(REPLIES, max_size=5), st.integers(1, 50))
def test_replies_survive_the_pipe_however_it_cuts_them(replies: list[Any], size: int) -> None:
    stream, reader = b"".join(map(encode_reply, replies)), FrameReader()
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    got = [decode_reply(body) for part in parts for body in reader.feed(part)]
    assert repr(got) == repr(replies)


MALFORMED = [
    b"",
    b"[",
    b"{}",
    b"[0]",
    b"[7,[]]",
    b"[true,[0,[],null]]",
    b"[0,[0.5,[],null]]",  # a serial number that is no integer
    b"[0,[0,[1],null]]",  # a note that is no text
    b"[1,[0,[1,['run','x']],[]]]",
    b'[1,[0,[1,["nowhere","x",""]],[],"host"]]',  # a stage that there is not
    b'[1,[0,[0,[{"time":true},{},{}]],[],"host"]]',  # a value that is no number
    b"[" * 100_000,
    b"9" * 10_000,
    "[ä]".encode(),
]


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: repr(body[:30]))
def test_what_is_not_a_reply_is_refused(body: bytes) -> None:
    with pytest.raises(DataError):
        decode_reply(body)


def test_a_pickle_is_not_executed(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        decode_reply(pickle.dumps(Trap(tmp_path / "made")))
    assert not (tmp_path / "made").exists()


def test_a_message_that_is_too_large_is_refused_before_it_has_come() -> None:
    with pytest.raises(DataError, match="exceeds the limit"):
        list(FrameReader().feed(struct.pack("<Q", MOST_BYTES + 1)))
    with pytest.raises(DataError, match="exceeds the limit"):
        framed(bytes(MOST_BYTES + 1))


def test_a_value_of_another_type_is_not_sent() -> None:
    for value, kind in [("1", int), (True, float), (1, str), (object(), int | str), ([1], tuple[int, ...])]:
        with pytest.raises(DataError):
            dumps(value, kind)
    with pytest.raises(DataError, match="cannot be sent"):
        dumps(object(), object)


def test_any_is_what_json_holds() -> None:
    for value in (None, 1, "a", [1, ["b", None]], {"c": [True, 0.5]}):
        assert loads(dumps(value, Any), Any) == value
    assert loads(dumps((("slice", 1, [2]),), tuple[tuple[Any, ...], ...]), tuple[tuple[Any, ...], ...]) == (
        ("slice", 1, [2]),
    )
    for value, kind in [(object(), Any), ({1, 2}, Any), ([1], tuple[Any, ...]), ((1,), Mapping[str, Any])]:
        with pytest.raises(DataError):
            dumps(value, kind)


def test_arrays_and_numbers_of_numpy_are_data() -> None:
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    assert np.array_equal(loads(dumps(array, NDArray[np.int64]), NDArray[np.int64]), array)
    assert loads(dumps(np.float32(0.5), float), float) == 0.5
    assert loads(dumps(np.int64(5), int), int) == 5
    with pytest.raises(DataError):
        loads(b'[[1],"AAA="]', NDArray[np.int64])  # fewer bytes than a number has


@pytest.mark.parametrize(
    "error",
    [
        IRError("no module", "Write one."),
        TargetError("no compiler"),
        OSError(errno.ENOSPC, "full", "/file"),
        MemoryError(),
        ZeroDivisionError("by zero"),
    ],
    ids=repr,
)
def test_an_error_comes_back_of_its_class(error: Exception) -> None:
    again = loads(dumps(ErrorData.of(error), ErrorData), ErrorData).error()
    assert type(again) is type(error)
    assert (again.args, str(again)) == (error.args, str(error))


def test_no_other_class_is_called_for_an_error(tmp_path: Path) -> None:
    for kind in ("os.mkdir", "builtins.exec", "builtins.SystemExit", "planish.core.errors.Missing"):
        made = ErrorData(kind, (str(tmp_path / "made"),), "").error()
        assert type(made) is RuntimeError
    assert not (tmp_path / "made").exists()
    assert issubclass(IRError, PlanishError)


def write_pipes() -> dict[str, int]:
    """List the pipes that this process can write to, by name."""
    found: dict[str, int] = {}
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            name = str(each.readlink())
            if name.startswith("pipe:") and fcntl.fcntl(int(each.name), fcntl.F_GETFL) & os.O_WRONLY:
                found[name] = int(each.name)
    return found


def reply_pipe(before: Collection[str]) -> int:
    """Find the pipe by which a child answers: it was not there before."""
    (pipe,) = (number for name, number in write_pipes().items() if name not in before)
    return pipe


def test_a_child_that_sends_what_is_no_answer_is_ended_and_its_item_given_up(tmp_path: Path) -> None:
    before = write_pipes()

    def work(item: int, _: Any) -> int:
        if item == 1:
            os.write(reply_pipe(before), framed(pickle.dumps(Trap(tmp_path / "made"))))
        return item

    done = {one.item: one for one in forked(range(3), work, int, 1)}

    assert {item: one.answer for item, one in done.items()} == {0: 0, 1: None, 2: 2}
    assert (end := done[1].given_up) is not None
    assert end.cause.startswith("sent what is not an answer")
    assert not (tmp_path / "made").exists()


def test_a_child_that_stops_in_the_middle_of_a_message_is_not_waited_for() -> None:
    before = write_pipes()

    def work() -> float:
        os.write(reply_pipe(before), struct.pack("<Q", 100) + b"[")
        os._exit(3)

    end = in_child(work, float)
    assert isinstance(end, ExitStatus)
    assert end.cause == "exited with code 3"
