"""Costs of pass lists on one function."""

import pytest

from planish.corpus.labelling.examiner import Examiner
from planish.isolation import Watchdog
from planish.llvm.backend import IRError, PassError, open_backend

IR = """define i32 @f(i32 %x) {
  %p = alloca i32
  store i32 %x, ptr %p
  %y = load i32, ptr %p
  ret i32 %y
}
"""


class _Open(Watchdog):
    """Lets everything in, and kills nobody."""

    def __init__(self) -> None:
        pass

    def enter(self, _: str) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        return True


def _examiner(objective: str) -> Examiner:
    return Examiner(open_backend(), IR, objective, ("default<Oz>",), _Open())


def test_the_shortest_of_the_best_lists_wins_unless_oz_is_as_good() -> None:
    examiner = _examiner("instructions")
    examiner.cost(("sroa<modify-cfg>", "gvn"))
    examiner.cost(("sroa<modify-cfg>",))

    assert examiner.unoptimised == 4
    assert examiner.best() == (1, ("sroa<modify-cfg>",))
    assert examiner.other() == 1
    examiner.cost(examiner.baseline)
    assert examiner.best() == (1, ("default<Oz>",))


@pytest.mark.parametrize("error", [PassError("refused"), IRError("no code is made of it")])
def test_a_list_that_llvm_refuses_or_makes_no_code_of_has_no_cost(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    examiner = _examiner("text_bytes")
    before = examiner.cost(("sroa<modify-cfg>",))
    kind = type(open_backend().parse(IR))
    method = "run" if isinstance(error, PassError) else "text_bytes"

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(kind, method, fail)

    assert before is not None
    assert examiner.cost(("gvn",)) is None
    assert examiner.cost(("sroa<modify-cfg>",)) == before


def test_a_list_whose_code_may_vary_is_run_again_where_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = _examiner("instructions")
    examiner.cost(examiner.baseline)
    printed: list[object] = []

    def text(module: object) -> str:
        printed.append(module)
        return str(len(printed))

    monkeypatch.setattr(type(open_backend().parse(IR)), "text", text)

    assert examiner.cost(("mem2reg", "gvn-sink")) is None
    assert len(printed) == 2
    assert examiner.other() is None
    assert examiner.cost(("mem2reg",)) == 1
    assert examiner.cost(("sroa<modify-cfg>", "gvn-sink")) == 1  # no better than what is known
    assert len(printed) == 2
    assert examiner.best() == (1, ("default<Oz>",))
