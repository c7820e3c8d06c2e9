"""Where a step of training has its learning rate."""

import pytest

from planish.levels.hlo import program_from
from planish.levels.hlo.patch import original
from planish.levels.hlo.space import learning_rates


@pytest.mark.parametrize(
    ("update", "constants"),
    [
        ("%a = stablehlo.multiply %g, %c\n%y = stablehlo.subtract %p, %a", ["0"]),
        ("%a = stablehlo.multiply %c, %g\n%b = stablehlo.divide %a, %g\n%y = stablehlo.add %p, %b", ["0"]),
        ("%a = stablehlo.multiply %c, %g\n%b = stablehlo.negate %a\n%y = stablehlo.add %b, %p", ["0"]),
        ("%a = stablehlo.multiply %c, %p\n%b = stablehlo.multiply %c, %g\n%y = stablehlo.add %a, %b", []),
        ("%y = stablehlo.add %p, %c", []),
        ("%y = stablehlo.multiply %p, %c", []),
    ],
    ids=["descent", "Adam", "ascent of its negative", "a moment", "a count", "no update"],
)
def test_learning_rates_are_what_updates_are_multiplied_by(update: str, constants: list[str]) -> None:
    lines = "\n".join(f"{line} : tensor<f32>" for line in update.splitlines())
    body = f"%c = stablehlo.constant dense<0.1> : tensor<f32>\n{lines}\nreturn %y : tensor<f32>"
    begin = "func.func @main(%p: tensor<f32>, %g: tensor<f32>) -> tensor<f32> {"
    assert learning_rates(original(program_from(f"{begin}\n{body}\n}}"))) == constants
