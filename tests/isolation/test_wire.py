"""Messages survive the pipe, however it cuts them."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.isolation.wire import Decoder, encode, receive, send

MESSAGES = st.lists(st.one_of(st.binary(max_size=300), st.tuples(st.integers(), st.text())), max_size=8)


@given(MESSAGES, st.integers(1, 50))
def test_the_decoder_gives_what_was_encoded(messages: list[object], size: int) -> None:
    stream = b"".join(map(encode, messages))
    decoder = Decoder()
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert [message for part in parts for message in decoder.feed(part)] == messages


def test_the_decoder_waits_for_the_end_of_a_message() -> None:
    decoder = Decoder()
    assert list(decoder.feed(encode("long")[:-1])) == []


def test_a_message_goes_over_a_pipe_and_then_the_pipe_ends() -> None:
    read, write = os.pipe()
    send(write, encode({"a": 1}))
    os.close(write)
    assert receive(read) == {"a": 1}
    with pytest.raises(EOFError):
        receive(read)
    os.close(read)
