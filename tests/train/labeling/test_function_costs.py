"""Costs of pass lists on one function."""

import pytest

from levels.llvm.faulty import Methods, faulty
from planish.core import PlanishError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import IRError, PassError
from planish.sandbox.fork_pool import Watchdog
from planish.train.labeling.function_search import FunctionCosts, FunctionExecutor, Ranking

IR = """define i32 @f(i32 %x) {
  %p = alloca i32
  store i32 %x, ptr %p
  %y = load i32, ptr %p
  ret i32 %y
}
"""


class _Open(Watchdog):
    """Lets everything in, and kills no process."""

    def __init__(self) -> None:
        pass

    def enter(self, _: str) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        return True


def _costs(objective: str, methods: Methods | None = None) -> FunctionCosts:
    ranking = Ranking(("default<Oz>",))
    executor = FunctionExecutor(
        faulty(open_bindings(), {} if methods is None else methods),
        IR,
        [objective],
        lambda passes, values: ranking.matters(passes, int(values[objective])),
        _Open(),
    )
    return FunctionCosts(executor, ranking, objective)


def test_the_shortest_of_the_best_lists_wins_unless_oz_is_as_good() -> None:
    costs = _costs("instructions")
    costs.cost(("sroa<modify-cfg>", "gvn"))
    costs.cost(("sroa<modify-cfg>",))

    assert costs.unoptimized == 4
    assert costs.ranking.best() == (1, ("sroa<modify-cfg>",))
    assert costs.ranking.other() == 1
    costs.cost(costs.ranking.baseline)
    assert costs.ranking.best() == (1, ("default<Oz>",))


@pytest.mark.parametrize("error", [PassError("refused"), IRError("no code is made of it")])
def test_a_list_that_llvm_refuses_or_makes_no_code_of_has_no_cost(error: Exception) -> None:
    methods = Methods()
    costs = _costs("text_bytes", methods)
    before = costs.cost(("sroa<modify-cfg>",))

    def fail(*_: object) -> None:
        raise error

    methods["run" if isinstance(error, PassError) else "text_bytes"] = fail

    assert before is not None
    assert costs.cost(("gvn",)) is None
    assert costs.cost(("sroa<modify-cfg>",)) == before


def test_a_list_whose_code_may_vary_is_run_again_where_it_matters() -> None:
    methods = Methods()
    costs = _costs("instructions", methods)
    costs.cost(costs.ranking.baseline)
    printed: list[object] = []

    def text(module: object) -> str:
        printed.append(module)
        return str(len(printed))

    methods["text"] = text

    assert costs.cost(("mem2reg", "gvn-sink")) is None
    assert len(printed) == 2
    assert costs.ranking.other() is None
    assert costs.cost(("mem2reg",)) == 1
    assert costs.cost(("sroa<modify-cfg>", "gvn-sink")) == 1  # no better than what is known
    assert len(printed) == 2
    assert costs.ranking.best() == (1, ("default<Oz>",))


def test_what_no_list_is_to_blame_for_ends_the_labeling() -> None:
    """A shard that is written without a label is never done again."""
    methods = Methods()
    costs = _costs("instructions", methods)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    methods["run"] = fail
    with pytest.raises(PlanishError, match="No space left on device"):
        costs.cost(("gvn",))
