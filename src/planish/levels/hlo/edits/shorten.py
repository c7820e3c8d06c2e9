"""Edit `Shorten`: loops that count, as far as a module says how many steps they take, take fewer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import Rewrite, where_legal
from planish.levels.hlo.edits.editable import EditableModule, OpBuilder
from planish.levels.hlo.edits.operations import splat_value
from planish.levels.hlo.ir.mlir import Value, tensor_type, type_of

SHARES = (7 / 8, 3 / 4, 1 / 2)
"""Of the steps that are taken, the mildest first."""
ENDS = ("first", "last")


@dataclass(frozen=True)
class Shorten(Rewrite):
    """Reduce the number of steps of a counting loop.

    ::

        for i in 0..10: h = f(h, x[i])   -- Shorten("7", 8) -->   for i in 2..10: h = f(h, x[i])

    Args:
        op: a loop whose number of steps is constant.
        steps: how many it takes; 1 or more.
        without: which steps are left out: the "first", or the "last". Of a network that reads a sequence the
            last may matter most; what a loop writes step by step stays as it was before the loop.
    """

    op: str
    steps: int
    without: str = "first"

    def apply(self, module: EditableModule) -> None:
        module.require_target(self.op)
        found = counter(module, self.op)
        if self.without not in ENDS:
            raise ScheduleError(f"unknown steps to leave out, '{self.without}'", f"Known: {', '.join(ENDS)}.")
        if not 0 < self.steps < found.steps:
            what = f"a loop of {found.steps} steps cannot take {self.steps} of them"
            raise ScheduleError(what, f"Take 1 to {found.steps - 1}.")
        if self.without == "first":
            later = found.first + (found.steps - self.steps) * found.step
            old = module.op(self.op).operands[found.position]
            module.set_operand(
                self.op, found.position, _constant(module, self.op, self.id_prefix, old, later)
            )
        else:
            old = module.op(found.test).operands[1]
            end = _constant(module, found.test, self.id_prefix, old, found.end(self.steps))
            module.set_operand(found.test, 1, end)

    @classmethod
    def match(cls, module: EditableModule) -> dict[str, int]:
        """Find the loops that the results need and that count, with how many steps they take."""
        return where_legal(module.targets(LOOP), lambda uid: counter(module, uid).steps)

    @classmethod
    def enumerate(cls, module: EditableModule) -> list[Self]:
        """List shares of the steps of each loop, the mildest first, without the first steps or the last."""
        found = list[Self]()
        for uid, steps in cls.match(module).items():
            kept = dict.fromkeys(int(steps * share) for share in SHARES)
            found += [cls(uid, keep, end) for keep in kept if 0 < keep < steps for end in ENDS]
        return found


def _constant(module: EditableModule, before: str, id_prefix: str, like: Value, number: int) -> Value:
    type_ = type_of(like)
    return OpBuilder(module, before, id_prefix)(
        "constant", type_, [], {"value": f"dense<{number}> : {type_}"}
    )


LOOP = "stablehlo.while"
_STEPPING = {"stablehlo.add": 1, "stablehlo.subtract": -1}
_INCLUSIVE = {"LE": 1, "GE": 1, "LT": 0, "GT": 0, "NE": 0}


@dataclass(frozen=True)
class Counter:
    """The counter of a loop.

    Args:
        position: of the counter among what the loop carries.
        test: the comparison of the counter with the end, by id.
        first: the counter before the first step.
        step: what is added to it.
        steps: how many steps there are.
        inclusive: 1 where the step that begins at the end itself is taken, else 0.
    """

    position: int
    test: str
    first: int
    step: int
    steps: int
    inclusive: int

    def end(self, steps: int) -> int:
        """Return the end of a range that makes this number of steps."""
        return self.first + (steps - self.inclusive) * self.step


def counter(module: EditableModule, loop: str) -> Counter:
    """Read what a loop counts by, as `while i < 10: ...; i = i + 1`."""
    if module.info(loop).name != LOOP:
        raise ScheduleError(f"operation '{loop}' ({module.infos[loop].name}) is not a loop")
    test = _maker(module, module.blocks[f"{loop}^0"][-1], 0)
    if module.infos[test].name != "stablehlo.compare":
        raise _uncounted(loop)
    left, right = module.op(test).operands
    name = module.name(left)
    if not name.startswith(f"{loop}^0#"):
        raise _uncounted(loop)
    position = int(name.rpartition("#")[2])
    direction = str(module.op(test).attributes["comparison_direction"]).rpartition(" ")[2].rstrip(">")
    first = _number(module, loop, module.op(loop).operands[position])
    step, end = _step(module, loop, position), _number(module, loop, right)
    steps, rest = divmod(end - first, step)
    upward = {"LT": step > 0, "LE": step > 0, "GT": step < 0, "GE": step < 0, "NE": not rest}
    if not upward.get(direction):
        raise _uncounted(loop)
    # A step may begin before the end and lead beyond it; where it may begin there, there is one more.
    inclusive = _INCLUSIVE[direction]
    return Counter(position, test, first, step, steps + (1 if inclusive or rest else 0), inclusive)


def _uncounted(loop: str) -> ScheduleError:
    return ScheduleError(f"how many steps loop '{loop}' takes is not constant", "Leave it as it is.")


def _maker(module: EditableModule, user: str, index: int) -> str:
    """Return the operation that made an operand, by id; raises ScheduleError where an argument is taken."""
    owner = module.name(module.op(user).operands[index]).partition("#")[0]
    if owner not in module.infos:
        raise ScheduleError(f"operand {index} of '{user}' is made by no operation")
    return owner


def _step(module: EditableModule, loop: str, position: int) -> int:
    """Read what is added to the counter in each step."""
    made = _maker(module, module.blocks[f"{loop}^1"][-1], position)
    sign = _STEPPING.get(module.infos[made].name, 0)
    operands = list(module.op(made).operands) if sign else []
    others = [value for value in operands if module.name(value) != f"{loop}^1#{position}"]
    swapped = sign < 0 and others[:1] == operands[:1]
    found = sign * _number(module, loop, others[0]) if len(others) == 1 and not swapped else 0
    if not found:
        raise _uncounted(loop)
    return found


def _number(module: EditableModule, loop: str, value: Value) -> int:
    """Read a whole number that is a constant, or one that the loop carries unchanged."""
    owner, _, index = module.name(value).rpartition("#")
    if "^" in owner:
        body = f"{loop}^1"
        back = module.op(module.blocks[body][-1]).operands
        if not owner.startswith(f"{loop}^") or module.name(back[int(index)]) != f"{body}#{index}":
            raise _uncounted(loop)
        return _number(module, loop, module.op(loop).operands[int(index)])
    type_ = tensor_type(value.type)
    if owner not in module.infos or type_ is None or "i" not in type_.element:
        raise _uncounted(loop)
    made = module.op(owner)
    found = splat_value(made) if made.name == "stablehlo.constant" else None
    if found is None:
        raise _uncounted(loop)
    return int(found)
