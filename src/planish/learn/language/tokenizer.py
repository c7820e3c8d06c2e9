"""Tokens of IR: one for a word, a local name or a small number, and byte pairs for what is rare.

The library `tokenizers` learns the pairs. What is around them is by rule: plain byte pairs give a function
twice as many tokens, most of them pieces of numbers.
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
from planish.learn.language.lexer import lexemes, spelled

LOCALS, NUMBERS = 256, 64
"""So many local names, and numbers from 0 on, are one token each; others are written digit by digit."""
MARKS = (
    "[pad]", "[ask]", "[run]", "[end of list]", "[from]", "[to]", "[code]", "[end]", "[pass]", "[feedback]",
    "[valid]", "[invalid]", "[predicted]", "[generated]", "[compiled]", "[compiles]", "[error]", "[bleu]",
    "[try]", "I am sure!", "Let me try again.",
)  # fmt: skip
"""What stands around IR in prompts and answers, each one token; see `planish.learn.language.prompts`."""
_MORE = "##"
"""Begins tokens that go on with a lexeme."""
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
        """Learn byte pairs from what is no word by rule.

        Args:
            texts: IR.
            passes: that lists are made of, each one token.
            size: tokens, all in all; with fewer than the rules need, there are no pairs but characters.

        Raises:
            PlanishError: the library is missing.
        """
        library = _library()
        seen = Counter(part for text in texts for part in lexemes(text) if not _NUMBER.fullmatch(part))
        # Sorted, so that the same texts in another order give the same tokens.
        rest = [part for part, count in sorted(seen.items()) for _ in range(count)]
        model = library.Tokenizer(library.models.BPE(unk_token=_UNKNOWN, continuing_subword_prefix=_MORE))
        every = "".join(map(chr, range(32, 127)))
        # Every character, as a first piece and as a later one. They are named, as special ones are, since
        # their numbers decide between pairs that are as frequent. The library numbers others in an order that
        # varies from process to process, and a killed training would not know its vocabulary again.
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
        """How many tokens there are; told without the library."""
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
        """Give the number of a mark, or of a pass."""
        return self._numbers[word]

    def encode(self, ir: str) -> list[int]:
        """Give the tokens of IR."""
        return self.encode_parts(lexemes(ir))

    def encode_parts(self, parts: Iterable[str]) -> list[int]:
        """Give the tokens of lexemes, marks and passes."""
        return [token for part in parts for token in self._pieces(part)]

    def decode(self, tokens: Iterable[int]) -> str:
        """Spell what tokens say, marks included; a piece that goes on with nothing begins a lexeme."""
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
        raise PlanishError(what, "pip install planish[train].") from error
