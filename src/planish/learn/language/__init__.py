"""Networks that read programs as instructions and say which lists of steps to try."""

from planish.learn.language.lessons import GAIN, Lessons
from planish.learn.language.network import ReaderShape, expected, packed

__all__ = ["GAIN", "Lessons", "ReaderShape", "expected", "packed"]
