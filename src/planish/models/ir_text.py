"""LLVM IR as text for language models: lexemes, tokens, and prompts (thesis, figures 4.1, 4.2 and 4.20).

    [ask] IR [run] passes [end of list] [from] N [to] M [code] optimized IR [end]

The answer begins after `[run]`. Each auxiliary task, the counts and the code, can be left out (4.5.2). Fixed
sentences of the thesis are one token each here, since they carry no information.

A word, a local name or a small number is one token, and byte pairs encode the rest. The library `tokenizers`
learns the pairs. With plain byte pairs a function has twice as many tokens, most of them parts of numbers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any

from planish.core import PlanishError
from planish.core.installation import install_command

_NAME = r'(?:"[^"]*"|[-\w.$]+)'
_LEXEME = re.compile(
    rf"""
    \n
    | ,[ ]align[ ]\d+                       # most of what loads, stores and allocas end with: one lexeme
    | (?<=\n){_NAME}:(?=\n|$)               # a label
    | [@%!\#]{_NAME}                        # names
    | c?"[^"]*"                             # text; a quote in it is written \22
    | -?\d+\.\d+(?:e[-+]?\d+)? | 0x[KLMHR]?[0-9A-F]+ | -?\d+
    | [A-Za-z_][\w.]*                       # opcodes, types, attributes
    | \.\.\.
    | [^\s]
    """,
    re.VERBOSE | re.ASCII,
)
_UNSAID = ("target ", "source_filename ", ";")
_CLOSERS, _OPENERS = frozenset("]})>"), frozenset("[{(<")


def lexemes(ir: str) -> list[str]:
    r"""Split a module's text into its lexemes; "\n" is one.

    Unlike in the thesis, the target's lines are left out, too: every prompt would begin with them, and a
    module that is read is made for the host.

    Args:
        ir: as LLVM prints it, or `planish.levels.llvm.ir.functions` leaves it.
    """
    stripped = (line.strip() for line in ir.splitlines())
    lines = [line for line in stripped if line and not line.startswith(_UNSAID)]
    return _LEXEME.findall("\n".join(lines))


def spelled(parts: Iterable[str]) -> str:
    """Spell lexemes: a space between them, none beside the end of a line. LLVM reads it as the original."""
    return " ".join(parts).replace(" \n ", "\n").replace("\n ", "\n").removesuffix(" \n")


def canonical(ir: str) -> str:
    """Return a module's canonical spelling: `spelled` of its `lexemes`, a fixed point."""
    return spelled(lexemes(ir))


def count_instructions(ir: str) -> int:
    """Count the instructions of all definitions, by the text alone; a `switch` over many lines is one.

    Unlike LLVM's own count that planish uses elsewhere, calls of intrinsics that make no code count, too:
    there are none in unoptimized code.
    """
    return sum(map(_counted, _bodies(lexemes(ir))))


def _bodies(parts: Sequence[str]) -> Iterable[list[list[str]]]:
    """Yield the lines of each definition, its first and last left out; what is in brackets is one line."""
    lines, line, depth = list[list[str]](), list[str](), 0
    # The last line has no end of its own.
    for part in [*parts, "\n"]:
        depth += (part in _OPENERS) - (part in _CLOSERS)
        inside = bool(lines) or line[:1] == ["define"]
        if part != "\n":
            line.append(part)
        elif inside and line == ["}"]:
            yield lines[1:]
            lines, line = [], []
        elif inside and depth <= 1:  # the definition's own brace is open
            lines, line = [*lines, line], []
        elif not inside:
            line = []


def _counted(lines: Sequence[Sequence[str]]) -> int:
    return sum(1 for line in lines if line and not (len(line) == 1 and line[0].endswith(":")))


LOCALS, NUMBERS = 256, 64
"""So many local names, and numbers from 0 on, are one token each; others are written digit by digit."""
MARKS = (
    "[pad]", "[ask]", "[run]", "[end of list]", "[from]", "[to]", "[code]", "[end]", "[pass]", "[feedback]",
    "[valid]", "[invalid]", "[predicted]", "[generated]", "[compiled]", "[compiles]", "[error]", "[bleu]",
    "[try]", "I am sure!", "Let me try again.",
)  # fmt: skip
"""Marks around IR in prompts and answers, each one token; see `planish.models.ir_text`."""
_MORE = "##"
"""Begins tokens that continue a lexeme."""
_UNKNOWN = "[unknown]"
_NUMBER = re.compile(r"[%@!#]?-?(?:\d[\d.e+-]*|0x\w+):?", re.ASCII)


@dataclass(frozen=True)
class Tokenizer:
    """Text to tokens and back.

    Args:
        passes: that lists are made of, each one token.
        pairs: the model of byte pairs, as `tokenizers` writes it; its tokens come after the words.
    """

    passes: tuple[str, ...]
    pairs: str

    @classmethod
    def learnt(cls, texts: Iterable[str], passes: Sequence[str], size: int = 2048) -> Tokenizer:
        """Learn byte pairs from what is not a word by rule.

        Args:
            texts: IR.
            passes: that lists are made of, each one token.
            size: tokens, all in all; with fewer than the rules need, there are no pairs but characters.

        Raises:
            PlanishError: the library is missing.
        """
        library = _library()
        seen = Counter(part for text in texts for part in lexemes(text) if not _NUMBER.fullmatch(part))
        # Sorted, so that the tokens do not depend on the order of the texts.
        rest = [part for part, count in sorted(seen.items()) for _ in range(count)]
        model = library.Tokenizer(library.models.BPE(unk_token=_UNKNOWN, continuing_subword_prefix=_MORE))
        every = "".join(map(chr, range(32, 127)))
        # Every character, as a first piece and as a later one. They are named, as special ones are, since
        # their numbers decide between pairs that are as frequent. The library numbers others in an order that
        # varies from process to process, and a training that is resumed would have another vocabulary.
        pieces = [*every, *(_MORE + character for character in every)]
        trainer = library.trainers.BpeTrainer(
            vocab_size=max(size - len(_words(passes)), 1), special_tokens=[_UNKNOWN, *pieces],
            show_progress=False, continuing_subword_prefix=_MORE,
        )  # fmt: skip
        model.train_from_iterator(rest, trainer)
        # What is special is found within words, too, which pieces are not to be.
        return cls(tuple(passes), json.dumps({**json.loads(model.to_str()), "added_tokens": []}))

    @property
    def size(self) -> int:
        """Return how many tokens there are, without the library."""
        return len(self.words) + len(json.loads(self.pairs)["model"]["vocab"])

    @property
    def digest(self) -> str:
        """Names the vocabulary."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """Write it as one text; `Tokenizer.read` reads it back."""
        return json.dumps({"passes": self.passes, "pairs": self.pairs})

    @classmethod
    def read(cls, text: str) -> Tokenizer:
        """Read what `to_json` wrote.

        Raises:
            PlanishError: it is something else.
        """
        try:
            held = json.loads(text)
            return cls(tuple(held["passes"]), str(held["pairs"]))
        except (ValueError, KeyError, TypeError) as error:
            raise PlanishError("the model's vocabulary cannot be read", "Train it again.") from error

    def token(self, word: str) -> int:
        """Return the number of a mark, or of a pass."""
        return self._numbers[word]

    def encode(self, ir: str) -> list[int]:
        """Return the tokens of IR."""
        return self.encode_parts(lexemes(ir))

    def encode_parts(self, parts: Iterable[str]) -> list[int]:
        """Return the tokens of lexemes, marks and passes."""
        return [token for part in parts for token in self._pieces(part)]

    def decode(self, tokens: Iterable[int]) -> str:
        """Spell tokens, marks included; a piece that continues nothing begins a lexeme."""
        parts = list[str]()
        for token in tokens:
            text = self._texts[token]
            if token >= len(self.words) and text.startswith(_MORE) and parts:
                parts[-1] += text.removeprefix(_MORE)
            else:
                parts.append(text.removeprefix(_MORE) if token >= len(self.words) else text)
        return spelled(parts)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Marks, passes and lexemes that are one token each, in the order of their numbers."""
        return _words(self.passes)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def _model(self) -> Any:
        return _library().Tokenizer.from_str(self.pairs)

    @cached_property
    def _texts(self) -> list[str]:
        found = {number: text for text, number in self._model.get_vocab().items()}
        return [*self.words, *(found[number] for number in range(len(found)))]

    @cached_property
    def _pieces(self) -> Any:
        # For each tokenizer one: a cache of the method would keep all of them alive.
        return lru_cache(maxsize=1 << 16)(self._split)

    def _split(self, part: str) -> list[int]:
        if part in self._numbers:
            return [self._numbers[part]]
        found: list[str]
        if _NUMBER.fullmatch(part):
            found = [part[0], *(_MORE + each for each in part[1:])]
        else:
            found = self._model.encode(part).tokens
        pairs, unknown = self._pairs, self._pairs[_UNKNOWN]
        return [len(self.words) + pairs.get(piece, unknown) for piece in found]

    @cached_property
    def _pairs(self) -> dict[str, int]:
        return self._model.get_vocab()


def _words(passes: Sequence[str]) -> tuple[str, ...]:
    names = [f"%{n}" for n in range(LOCALS)] + [f"{n}:" for n in range(LOCALS)]
    aligned = [f", align {1 << n}" for n in range(6)]
    numbers = [*map(str, range(NUMBERS)), "-1", *(str(1 << n) for n in range(6, 17))]
    return (*MARKS, *passes, "\n", *names, *numbers, *aligned)


def _library() -> Any:
    try:
        return import_module("tokenizers")
    except ImportError as error:
        what = "language models of IR need the library tokenizers"
        raise PlanishError(what, f"{install_command('train')}.") from error


_ANSWER = re.compile(
    r"(?P<passes>.*?)\[end of list\](?: ?\[from\](?P<before>[^\[]*))?(?: ?\[to\](?P<after>[^\[]*))?"
    r"(?:\s*\[code\]\s*(?P<code>.*?))?\s*(?:\[end\].*)?",
    re.DOTALL,
)


@dataclass(frozen=True)
class ModelAnswer:
    """Answer of a language model: a pass list and its predicted effect.

    Args:
        passes: the list.
        before: instructions of the program as it is; None where that was not asked for, or is not a number.
        after: instructions of what the list makes of it.
        code: what the list makes of it; None where that was not asked for.
    """

    passes: tuple[str, ...]
    before: int | None = None
    after: int | None = None
    code: str | None = None


@dataclass(frozen=True)
class Tasks:
    """Questions that are asked beside the list.

    Args:
        counts: instructions before and after.
        code: the optimized IR.
    """

    counts: bool = True
    code: bool = True


ALL = Tasks()


def question(tokenizer: Tokenizer, ir: str) -> list[int]:
    """Return the tokens of a prompt (figure 4.2)."""
    return tokenizer.encode_parts(["[ask]", *lexemes(ir), "[run]"])


def answer_tokens(tokenizer: Tokenizer, answer: ModelAnswer, tasks: Tasks = ALL) -> list[int]:
    """Return the tokens of an answer (figure 4.1).

    Args:
        tokenizer: of the model.
        answer: what it lacks of what the tasks ask for is left blank.
        tasks: what is asked beside the list.
    """
    parts = [*answer.passes, "[end of list]"]
    if tasks.counts:
        parts += ["[from]", *digits(answer.before), "[to]", *digits(answer.after)]
    if tasks.code:
        parts += ["[code]", *lexemes(answer.code or "")]
    return tokenizer.encode_parts([*parts, "[end]"])


def read_answer(tokenizer: Tokenizer, tokens: Sequence[int]) -> ModelAnswer:
    """Read what a model has answered; what is malformed is None, and passes that are none are left out."""
    found = _ANSWER.fullmatch(tokenizer.decode(tokens))
    end, numbers = (
        tokenizer.token("[end of list]"),
        {tokenizer.token(name): name for name in tokenizer.passes},
    )
    # Of an answer that was cut off the passes count all the same.
    listed = tokens[: tokens.index(end)] if end in tokens else tokens
    passes = tuple(numbers[token] for token in listed if token in numbers)
    if found is None:
        return ModelAnswer(passes)
    return ModelAnswer(passes, _number(found["before"]), _number(found["after"]), found["code"])


def digits(number: int | None) -> list[str]:
    """Write a number as lexemes: none where it is not known."""
    return [] if number is None else [str(number)]


def _number(text: str | None) -> int | None:
    stripped = (text or "").replace(" ", "").strip()
    return int(stripped) if stripped.isascii() and stripped.isdigit() else None
