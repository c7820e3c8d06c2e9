"""The catalogue of graph passes."""

import pytest

from planish.core import ProgramError
from planish.levels.graph.passes import exclusions, find_pass, passes, passes_of_kind


def test_there_are_many_passes_and_each_is_described() -> None:
    assert len(passes()) >= 90
    for each in passes().values():
        assert each.what
        assert not each.what.endswith(".")
        assert each.is_rewriting == (each.kind not in ("rule", "transformer"))


def test_nothing_is_both_in_and_out() -> None:
    assert not passes().keys() & exclusions().keys()


def test_onnxoptimizer_has_these_passes_and_no_others() -> None:
    import onnxoptimizer

    known = {each.name for each in passes_of_kind("onnxoptimizer")} | set(exclusions())
    assert {f"onnxoptimizer.{name}" for name in onnxoptimizer.get_available_passes()} == {
        name for name in known if name.startswith("onnxoptimizer.")
    }


def test_a_pass_matters_where_its_operators_are() -> None:
    fold = find_pass("onnxoptimizer.fuse_bn_into_conv")
    assert fold.may_matter(frozenset({"Conv", "BatchNormalization"}))
    assert not fold.may_matter(frozenset({"Conv"}))
    assert find_pass("onnxscript.optimize").may_matter(frozenset())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NchwTransformer", r"unknown pass 'NchwTransformer'\. Did you mean 'NchwcTransformer'\?"),
        ("onnxoptimizer.split_init", r"is kept out\. Reason: it cuts the model in two"),
        ("MemcpyTransformer", r"is kept out\. Reason: the runtime runs it always"),
    ],
)
def test_unknown_passes_are_reported(name: str, said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        find_pass(name)
