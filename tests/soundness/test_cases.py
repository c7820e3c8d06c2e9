"""The lists that are tried."""

from planish.levels.llvm.hot.versions import BEGIN, LAST, first_lists
from planish.levels.llvm.passes import elements, load_coreset, print_pipeline
from soundness.cases import coreset_lists, hot_lists, in_contexts, random_lists

ALL = tuple(elements().values())


def test_each_context_adds_the_pass_to_what_stands_without_it() -> None:
    cases = list(in_contexts(elements()["gvn"], "default<Oz>"))
    assert [case.passes for case in cases] == [
        ("gvn",),
        ("sroa<modify-cfg>", "gvn"),
        ("sroa<modify-cfg>", "gvn", "gvn"),
        ("gvn", "default<Oz>"),
        ("default<Oz>", "gvn"),
    ]
    for case in cases:
        assert case.without == tuple(text for text in case.passes if text != "gvn")


def test_random_lists_have_2_to_20_passes_and_come_again() -> None:
    lists = [case.passes for case in random_lists(ALL, 300, 7, 1)]
    assert {len(passes) for passes in lists} == set(range(2, 21))
    assert len({text for passes in lists for text in passes}) == len(ALL)
    assert lists == [case.passes for case in random_lists(ALL, 300, 7, 1)]
    assert lists != [case.passes for case in random_lists(ALL, 300, 7, 2)]
    assert all(map(print_pipeline, lists))


def test_the_coresets_are_tried_without_what_the_back_end_lacks() -> None:
    tried = [case.passes for case in coreset_lists(ALL)]
    assert tried[: len(load_coreset())] == list(load_coreset())
    assert set(tried) == {*load_coreset(), *load_coreset("text_bytes")}
    assert len(tried) == len(set(tried))
    few = [element for element in ALL if element.text != "default<Oz>"]
    assert all("default<Oz>" not in case.passes for case in coreset_lists(few))
    assert any(True for _ in coreset_lists(few))


def test_lists_of_hot_functions_stand_where_minus_o3_has_its_own() -> None:
    cases = list(hot_lists(20, 0, 0))
    assert [case.passes for case in cases[:3]] == list(first_lists())[:3]
    assert len({case.passes for case in cases}) == len(cases) > 25
    whole, short = cases[0].pipeline(cases[0].passes), cases[0].pipeline(("gvn",))
    assert "loop-versioning" in "".join(whole for case in cases[:12] for whole in case.passes)
    assert short == f"{BEGIN},function<eager-inv>(gvn),{LAST}"
    assert whole.startswith(BEGIN)
    assert [case.passes for case in hot_lists(20, 0, 0)] == [case.passes for case in cases]
