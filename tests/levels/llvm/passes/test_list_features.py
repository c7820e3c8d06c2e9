"""Features of pass lists."""

from planish.levels.llvm.ir.autophase import FEATURES
from planish.levels.llvm.passes import PassSpace, candidate_of, elements
from planish.levels.llvm.passes.catalogue import PassElement

IR = """define i32 @f(i32 %a) {
  %b = add i32 %a, 1
  ret i32 %b
}
"""
LIST = ("adce", "gvn", "adce", "default<Oz>")


def named(*lists: tuple[str, ...], ir: str = IR) -> list[dict[str, float]]:
    space = PassSpace(tuple(elements().values()), ir=ir)
    found = space.features([candidate_of(texts) for texts in lists])
    return [dict(zip(space.schema.names, row.tolist(), strict=True)) for row in found]


def test_features_of_a_list_are_what_it_has_where() -> None:
    (row,) = named(LIST)
    assert (row["passes"], row["pipelines"], row["different"]) == (4, 1, 3)
    assert (row["times adce"], row["first adce"], row["after last adce"]) == (2, 1, 2)
    assert (row["times gvn"], row["first gvn"], row["after last gvn"]) == (1, 2, 3)
    assert (row["times dce"], row["first dce"], row["after last dce"]) == (0, 0, 0)


def test_order_counts() -> None:
    one, other = named(("adce", "gvn"), ("gvn", "adce"))
    assert one != other


def test_features_of_the_module_are_in_each_row() -> None:
    one, other = named((), LIST)
    of_module = [name for name in one if name.startswith("AutoPhase")]
    assert len(of_module) == len(FEATURES) == 56
    assert all(one[name] == other[name] for name in of_module)
    assert one["AutoPhase 2: TotalInsts"] > 0
    (nothing,) = named((), ir="")
    assert not any(nothing.values())


def test_a_focused_space_tells_the_same() -> None:
    space = PassSpace(tuple(elements().values()), ir=IR)
    focused = space.focused([candidate_of(LIST)])
    assert (space.features([candidate_of(LIST)]) == focused.features([candidate_of(LIST)])).all()


def test_a_pass_that_is_in_no_catalogue_only_counts() -> None:
    own = PassElement("my-pass", "function", 2, "mine")
    space = PassSpace([own])
    (row,) = space.features([candidate_of(["my-pass", "my-pass"])])
    assert row[0] == 2
    assert row.sum() == 3  # and one of different passes
