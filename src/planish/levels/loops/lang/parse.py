"""Parser of the text notation: `C[m,n] += A[m,k] * B[k,n]`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import NoReturn

from planish.core.errors import ProgramError, did_you_mean
from planish.levels.loops.lang.draft import (
    FOLDS,
    RESERVED,
    TESTS,
    Draft,
    Linear,
    Shapes,
    chosen,
    compared,
    gather,
    position,
)
from planish.levels.loops.lang.inference import infer
from planish.levels.loops.lang.program import COMPARISONS, FUNCTIONS, Access, Apply, Const, Expr, Program

# Syntax

_REDUCE = {"=": None, "+=": "add", "*=": "mul", "max=": "max", "min=": "min"}
_LEVELS = ({"+": "add", "-": "sub"}, {"*": "mul", "/": "div"})
_EXAMPLE = "Statements look like C[m,n] += A[m,k] * B[k,n]."
_MOST_NESTED = 40
_MOST_DIGITS = 18
_TOKEN = re.compile(
    r"(?P<space>[ \t]+)|(?P<end>[;\n])|(?P<op>\+=|\*=|max=|min=|[<>=!]=|[-+*/=|()\[\],<>])"
    r"|(?P<number>(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<bad>.)"
)
_ARGUMENTS = "x", "y"


def _named(character: str) -> str:
    """Return a character that is not one of ASCII, with its name."""
    name = unicodedata.name(character, "a control character")
    seen = character.isprintable() and not character.isspace()
    return f"'{character}', U+{ord(character):04X} {name}" if seen else f"U+{ord(character):04X} {name}"


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int


def _tokens(text: str) -> list[_Token]:
    result: list[_Token] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        kind, piece = match.lastgroup or "", match.group()
        depth += (piece in "([") - (piece in ")]")
        # Between brackets a line's end ends nothing.
        if kind == "end" and piece == "\n" and depth > 0:
            continue
        if kind != "space":
            result.append(_Token(kind, piece, match.start()))
    return [*result, _Token("end", "", len(text))]


def _axes(tokens: Sequence[_Token]) -> set[str]:
    """List the names that stand in subscripts."""
    found: set[str] = set()
    depth = 0
    for token in tokens:
        depth += (token.text == "[") - (token.text == "]")
        if depth > 0 and token.kind == "name":
            found.add(token.text)
    return found


def read_statements(text: str) -> list[Draft]:
    """Read statements; `planish.levels.loops.lang.parse.parse` describes their syntax.

    Raises:
        ProgramError: the text cannot be read; says at which column, and what was expected.
    """
    return _Parser(text).drafts()


class _Parser:
    """Recursive descent with one token of look-ahead; precedence climbing for infix operators."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.axes = _axes(self.tokens)
        self.at = 0
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def take(self, *wanted: str) -> str | None:
        """Step over the token if its text is one of these."""
        if self.token.kind in ("op", "end") and self.token.text in wanted and self.token.text:
            self.at += 1
            return self.tokens[self.at - 1].text
        return None

    def expect(self, *wanted: str) -> str:
        return self.take(*wanted) or self.fail(f"expected {' or '.join(map(repr, wanted))}")

    def fail(self, message: str, hint: str = "", at: int | None = None) -> NoReturn:
        token = self.tokens[self.at if at is None else at]
        before = self.text[: token.start]
        line, column = before.count("\n") + 1, token.start - (before.rfind("\n") + 1) + 1
        location = f"column {column}" if "\n" not in self.text.strip() else f"line {line}, column {column}"
        if token.kind == "bad" and not " " < token.text < "\x7f":
            hint = "Write a plain space, or what the character stands for in ASCII."
            found = f"at {_named(token.text)}"
        elif token.text.strip():
            rest = self.text[token.start :].splitlines()[0][:20]
            visible = [c if c.isprintable() else f"\\u{ord(c):04x}" for c in rest]
            found = f"at '{''.join(visible)}'"
        else:
            found = "at the end"
        raise ProgramError(f"{location}: {message}, {found}", hint or _EXAMPLE)

    def name(self, what: str) -> str:
        if self.token.kind != "name":
            self.fail(f"expected {what}")
        self.at += 1
        return self.tokens[self.at - 1].text

    def drafts(self) -> list[Draft]:
        result: list[Draft] = []
        while self.at < len(self.tokens) - 1:
            if not self.take(";", "\n"):
                result.append(self.statement())
                if self.token.kind != "end":
                    self.fail("expected an operator, ';' or the end")
        return result

    def statement(self) -> Draft:
        tensor = self.tensor()
        subscripts = self.linears("a target")
        reduce = _REDUCE[self.expect(*_REDUCE)]
        parts = [self.value()]
        while self.take("|"):
            parts.append(self.value())
        return Draft(tensor, subscripts, reduce, tuple(parts))

    def tensor(self) -> str:
        name = self.name("a tensor")
        if name in RESERVED:
            self.fail(
                f"'{name}' cannot be the name of a tensor", "It is the name of a function.", self.at - 1
            )
        if self.token.text != "[":
            self.fail(f"expected '[' after '{name}'", f"A tensor of one element is written {name}[].")
        return name

    def subscripts(self) -> tuple[Linear | Access, ...]:
        self.expect("[")
        if self.take("]"):
            return ()
        result = [self.subscript()]
        while self.take(","):
            result.append(self.subscript())
        self.expect("]", ",")
        return tuple(result)

    def subscript(self) -> Linear | Access:
        if self.token.kind != "name" or self.tokens[self.at + 1].text != "[":
            return self.linear()
        tensor = self.tensor()
        return Access(tensor, tuple(s.index() for s in self.linears("an index")))

    def linears(self, what: str) -> tuple[Linear, ...]:
        """Read subscripts of which none is a tensor."""
        at, found = self.at, self.subscripts()
        linears = tuple(s for s in found if isinstance(s, Linear))
        if len(linears) < len(found):
            self.fail(f"{what} is not subscripted by tensors", "Axes alone, as in O[t,d] = E[I[t],d].", at)
        return linears

    def linear(self) -> Linear:
        total = self.linear_term(-1 if self.take("-") else 1)
        while sign := self.take("+", "-"):
            total = total.plus(self.linear_term(1 if sign == "+" else -1))
        return total

    def linear_term(self, factor: int) -> Linear:
        result = Linear((), factor)
        while True:
            before, other = self.at - 1, self.linear_atom()
            if result.terms and self.token.text == "[":
                self.fail("']' is missing", "Close the bracket, as in A[m,k] * B[k,n].", before)
            if result.terms and other.terms:
                self.fail(
                    "axes are multiplied in a subscript", "Subscripts are sums: 2*y + r - 1.", self.at - 1
                )
            result = other.times(result.offset) if not result.terms else result.times(other.offset)
            if not self.take("*"):
                return result

    def linear_atom(self) -> Linear:
        if self.token.kind == "number" and self.token.text.isdigit():
            if len(self.token.text) > _MOST_DIGITS:
                self.fail("a number is too large")
            self.at += 1
            return Linear((), int(self.tokens[self.at - 1].text))
        return Linear(((self.name("an axis or an integer"), 1),))

    def value(self) -> Expr:
        left = self.expr()
        test = self.take(*TESTS)
        if not test:
            return left
        right = self.expr()
        if self.token.text in TESTS:
            self.fail("a comparison has two sides", "Write where(a < b, where(b < c, x, y), y).")
        return compared(test, left, right)

    def expr(self, level: int = 0) -> Expr:
        if level == len(_LEVELS):
            return self.unary()
        left = self.expr(level + 1)
        while sign := self.take(*_LEVELS[level]):
            left = Apply(_LEVELS[level][sign], (left, self.expr(level + 1)))
        return left

    def unary(self) -> Expr:
        if not self.take("-"):
            return self.atom()
        # The number -1, not the negative of the number 1: what is printed reads back equal.
        if self.is_number():
            return Const(-self.number())
        return Apply("neg", (self.nested(self.unary),))

    def is_number(self) -> bool:
        return self.token.kind == "number" or self.token.text == "inf"

    def number(self) -> float:
        sign = -1 if self.take("-") else 1
        if not self.is_number():
            self.fail("expected a number")
        text = self.token.text
        if isinf(float(text)) and text != "inf":
            self.fail(f"{text} is larger than every number of float64", "An infinity is written inf.")
        self.at += 1
        return sign * float(text)

    def atom(self) -> Expr:
        if self.is_number():
            return Const(self.number())
        if self.take("("):
            inner = self.nested(self.value)
            self.expect(")")
            return inner
        if self.token.kind == "name" and self.tokens[self.at + 1].text == "(":
            return self.call()
        if self.token.text in self.axes and self.tokens[self.at + 1].text != "[":
            return position(self.name("an axis"))
        tensor = self.tensor()
        return gather(tensor, [s.index() if isinstance(s, Linear) else s for s in self.subscripts()])

    def nested(self, parse: Callable[[], Expr]) -> Expr:
        self.depth += 1
        if self.depth > _MOST_NESTED:
            self.fail(f"more than {_MOST_NESTED} brackets inside each other", "Name intermediate tensors.")
        inner = parse()
        self.depth -= 1
        return inner

    def call(self) -> Expr:
        start, name = self.at, self.name("a function")
        self.expect("(")
        if name == "pad":
            return self.padded()
        known = {*FUNCTIONS, *FOLDS, "pad", "where"}.difference(COMPARISONS)
        if name not in known:
            self.fail(f"unknown function '{name}'", did_you_mean(name, known), start)
        args = [self.nested(self.value)]
        while self.take(","):
            args.append(self.nested(self.value))
        self.expect(")", ",")
        if name in FOLDS and len(args) == 1:
            return Apply(FOLDS[name], tuple(args))
        wanted = 3 if name == "where" else FUNCTIONS.get(name, 1)
        if len(args) != wanted:
            self.fail_count(name, wanted, len(args), start)
        return chosen(*args) if name == "where" else Apply(name, tuple(args))

    def fail_count(self, name: str, wanted: int, given: int, at: int) -> NoReturn:
        """Refuse a call with another number of arguments."""
        if name in FOLDS and wanted == 2:
            message = f"{name} takes 2 arguments, or 1 to reduce, not {given}"
            hint = f"Write {name}(a, {name}(b, c)) for three values; {name}(x) alone reduces over axes."
        else:
            message = f"{name} takes {wanted} argument{'s' * (wanted > 1)}, not {given}"
            hint = f"Write {name}({', '.join(_ARGUMENTS[:wanted]) if wanted != 3 else 'a < b, x, y'})."
        self.fail(message, hint, at)

    def padded(self) -> Expr:
        tensor = self.tensor()
        index = tuple(s.index() for s in self.linears("what is padded"))
        self.expect(",")
        value = self.number()
        self.expect(")")
        return Access(tensor, index, value)


# Programs


def parse(
    text: str,
    sizes: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
    dtype: str | Mapping[str, str] = "float32",
) -> Program:
    """Read a program.

    Statements are separated by `;` or line ends. Each is `target = value`, or a reduction with `+=`,
    `*=`, `max=` or `min=` over the axes that the target does not have. Subscripts are sums of axes
    with coefficients (`2*y + r - 1`); `pad(I[y - 1], 0)` reads 0 outside of I; `sum(x)`, `prod(x)`,
    `max(x)` and `min(x)` reduce inside a value; `O[r, a + b] = A[r,a] | B[r,b]` concatenates.

    Args:
        text: the statements.
        sizes: axis to extent; those that shapes determine may be left out.
        shapes: tensor to shape, as far as needed.
        dtype: the element type of inputs and outputs, or tensor to type, or both as in "float16,C=float32".

    Raises:
        ProgramError: the text cannot be read, or makes no program; says where.
    """
    return infer(read_statements(text), sizes or {}, shapes, dtype)


def is_canonical(text: str) -> bool:
    """Return whether a text names types, as only `Program.text` does: it has all that there is to know."""
    return re.search(r" \| \w+:\w+\[", text) is not None


def parse_canonical(text: str) -> Program:
    """Read `Program.text` back: `parse_canonical(p.text) == p`.

    Raises:
        ProgramError: the text is not a program's.
    """
    text, _, constants = text.partition(" | constant ")
    body, *rest = text.split(" | ")
    if len(rest) != 2 or not rest[1].strip():
        raise ProgramError("no sizes and types after the statements", "Expected: statements | sizes | types.")
    shapes: dict[str, tuple[int, ...]] = {}
    types: dict[str, str] = {}
    for item in rest[1].split():
        match = re.fullmatch(r"(\w+):(\w+)\[((?:\d{1,18}(?:,\d{1,18})*)?)\]", item)
        if not match:
            raise ProgramError(f"'{item}' is not a type", "Write name:float32[64,64].")
        if match[1] in types:
            raise ProgramError(f"tensor '{match[1]}' has two types", "Give each tensor one type.")
        shapes[match[1]] = tuple(map(int, filter(None, match[3].split(","))))
        types[match[1]] = match[2]
    program = parse(body, read_sizes(rest[0]), shapes, types)
    return program.with_constants(filter(None, constants.split(",")))


def read_sizes(text: str) -> dict[str, int]:
    """Read `m=192,n=192`; raises ProgramError."""
    result: dict[str, int] = {}
    for item in filter(None, re.split(r"[,;\s]+", text)):
        match = re.fullmatch(r"([A-Za-z_]\w*)=(-?\d{1,18})", item)
        if not match:
            raise ProgramError(f"'{item}' is not a size", 'Write size="m=192,n=192".')
        if match[1] in result:
            raise ProgramError(
                f"axis '{match[1]}' has two sizes, {result[match[1]]} and {match[2]}",
                "Give each axis one size.",
            )
        result[match[1]] = int(match[2])
    return result


def read_shapes(text: str) -> dict[str, tuple[int, ...]]:
    """Read `I=1x3x224x224,W=64x3x7x7`, or with commas for the crosses; raises ProgramError."""
    result: dict[str, tuple[int, ...]] = {}
    for item in filter(None, re.split(r"[;\s]+|,(?=[A-Za-z_])", text)):
        match = re.fullmatch(r"([A-Za-z_]\w*)=((?:-?\d{1,18}(?:[,x]-?\d{1,18})*)?)", item)
        if not match:
            raise ProgramError(f"'{item}' is not a shape", 'Write shape="I=1x3x224x224".')
        if match[1] in result:
            raise ProgramError(
                f"tensor '{match[1]}' has two shapes, in '{text}'", "Give each tensor one shape."
            )
        result[match[1]] = tuple(map(int, filter(None, re.split("[,x]", match[2]))))
    return result
