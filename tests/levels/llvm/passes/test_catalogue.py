"""The catalogue of passes, what they cost, and modules that one of them breaks."""

from __future__ import annotations

import pytest

from planish.core import ProgramError
from planish.levels.llvm.passes.catalogue import (
    base_name,
    elements,
    exclusions,
    find_element,
    load_coreset,
    pass_cost,
    vary,
)
from planish.levels.llvm.passes.pipeline import available

ALL = tuple(elements().values())


def test_every_element_is_described() -> None:
    assert len(ALL) >= 99
    for element in ALL:
        assert element.nesting in ("module", "cgscc", "function", "loop", "loop-mssa")
        assert element.tier in (1, 2)
        assert element.what.endswith(".")


def test_no_text_names_two_elements() -> None:
    texts = [text for element in ALL for text in (element.text, *element.aliases)]
    assert len(set(texts)) == len(texts)


def test_nothing_is_both_in_and_out() -> None:
    spellings = {text for element in ALL for text in (element.text, *element.aliases)}
    assert not spellings & set(exclusions())
    assert {base_name(text) for text in spellings} & set(exclusions()) == {"instcombine"}


def test_what_may_give_other_code_from_run_to_run_is_known() -> None:
    assert [element.text for element in ALL if element.varies] == ["gvn-sink"]
    assert vary(["mem2reg", "gvn-sink"])
    assert not vary(["mem2reg", "gvn-hoist"])


def test_an_element_knows_its_name_and_parameters() -> None:
    element = find_element("simple-loop-unswitch<nontrivial;trivial>")
    assert (element.name, element.parameters) == ("simple-loop-unswitch", ("nontrivial", "trivial"))
    assert find_element("adce").parameters == ()
    assert find_element("default<Oz>").is_pipeline


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("sroa", "sroa<modify-cfg>"),
        ("licm", "licm<allowspeculation>"),
        ("gvn<>", "gvn"),
        ("instcombine<max-iterations=1;no-verify-fixpoint>", "instcombine<no-verify-fixpoint>"),
    ],
)
def test_other_spellings_are_read(text: str, canonical: str) -> None:
    assert find_element(text).text == canonical


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sora", r"unknown pass 'sora'\. Did you mean 'sroa'\?"),
        ("attributor", r"'attributor' is kept out\. Reason: miscompiles"),
        ("globaldce<vfe-linkage-unit-visibility>", "is kept out"),
        ("instcombine", "is kept out.*write instcombine<no-verify-fixpoint>"),
        (
            "instcombine<verify-fixpoint>",
            "Known: instcombine<no-verify-fixpoint>, instcombine<no-v",
        ),
        ("sroa<fast>", r"not known as.*Known: sroa<modify-cfg>, sroa<preserve-cfg>\."),
        ("", "unknown pass ''"),
    ],
)
def test_what_is_not_in_the_catalogue_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        find_element(text)


def test_what_a_back_end_cannot_run_is_not_available() -> None:
    class Reduced:
        asked: list[str]

        def __init__(self) -> None:
            self.asked = []

        def runs(self, pipeline: str) -> bool:
            self.asked.append(pipeline)
            return "loop" not in pipeline

    reduced = Reduced()
    found = available(reduced)
    assert len(reduced.asked) == len(ALL)
    assert "function(loop-mssa(licm<allowspeculation>))" in reduced.asked
    assert [e.text for e in found] == [e.text for e in ALL if "loop" not in e.text + e.nesting]


@pytest.mark.parametrize("objective", ["instructions", "text_bytes"])
def test_the_coreset_is_of_the_catalogue(objective: str) -> None:
    lists = load_coreset(objective)
    assert len(set(lists)) == len(lists) >= 10
    assert {text for passes in lists for text in passes} <= set(elements())


def test_an_objective_without_a_coreset_has_that_of_instructions() -> None:
    assert load_coreset("time_s") == load_coreset("instructions") != load_coreset("text_bytes")


def test_a_pipeline_of_llvms_takes_as_long_as_many_passes() -> None:
    assert pass_cost([]) == 0.0
    assert pass_cost(["gvn-sink", "instcombine<no-verify-fixpoint>"]) == 2.0
    assert pass_cost(["default<Oz>", "gvn-sink"]) == 41.0
