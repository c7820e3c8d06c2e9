"""Edit `Freeze`: parameters stay as they came, and what computed their updates goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import Rewrite
from planish.levels.hlo.edits.editable import EditableModule
from planish.levels.hlo.ir.mlir import ELEMENTWISE


@dataclass(frozen=True)
class Freeze(Rewrite):
    """Freeze parameters in a training step: it returns them unchanged and computes no gradients for them.

    Which argument a result is an update of is found by structure: the one of its type that is nearest to it,
    by element-wise operations alone. So moments of an optimizer and running means may be frozen, too.

    ::

        return w - rate * g, b - rate * d   -- Freeze((0,)) -->   return w, b - rate * d

    Args:
        results: positions of results of the function, from 0.
    """

    results: tuple[int, ...]

    def apply(self, module: EditableModule) -> None:
        if not self.results:
            raise ScheduleError("no result is named", "Name results that update parameters.")
        known, end = self.match(module), module.blocks[""][-1]
        for position in self.results:
            if position not in known:
                what = f"result {position} does not update an argument"
                raise ScheduleError(what, f"Known: {sorted(known) or 'none'}.")
            module.set_operand(end, position, module.value(known[position][0]))

    @classmethod
    def match(cls, module: EditableModule) -> dict[int, list[str]]:
        """Find which results are made of arguments of their own type, element by element.

        Returns:
            Positions of results that are floats, to the arguments by name: the nearest, which the result
            updates, then the others, such as the moments by which a parameter is updated.
        """
        end = module.op(module.blocks[""][-1])
        found: dict[int, list[str]] = {}
        for position, value in enumerate(end.operands):
            layers = list(_arguments(module, module.name(value), position))
            if layers and len(layers[0]) == 1:
                found[position] = [name for layer in layers for name in layer]
        return found

    @classmethod
    def enumerate(cls, module: EditableModule) -> list[Self]:
        """List edits that freeze a parameter each, together with the moments by which it is updated."""
        known = cls.match(module)
        by_argument = {names[0]: position for position, names in known.items()}
        groups = [
            frozenset(by_argument[name] for name in names if name in by_argument) for names in known.values()
        ]
        # What is within a greater one, as a moment alone is, goes with that.
        whole = [group for group in groups if not any(group < other for other in groups)]
        return [cls(tuple(sorted(group))) for group in dict.fromkeys(whole)]


def _arguments(module: EditableModule, name: str, position: int) -> Iterator[list[str]]:
    """List the arguments that a result is made of, element by element, in layers of the same distance.

    None where it is an argument itself, or whole numbers.
    """
    type_ = module.infos[module.blocks[""][-1]].operands[position]
    if name.startswith("arg") or type_ is None or "f" not in type_.element:
        return
    layer, seen = [name], {name}
    while layer:
        # Arguments are made by none.
        owners = [each.partition("#")[0] for each in layer]
        made = [uid for uid in owners if uid in module.infos and module.infos[uid].name in ELEMENTWISE]
        values = [
            value
            for uid in made
            for value in module.op(uid).operands
            if value.type == module.value(name).type
        ]
        layer = [each for each in dict.fromkeys(map(module.name, values)) if each not in seen]
        seen.update(layer)
        arguments = [each for each in layer if each.startswith("arg")]
        if arguments:
            yield arguments
