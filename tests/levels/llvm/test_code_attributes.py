"""Attributes of functions by which less code is made of them."""

from __future__ import annotations

import re
from contextlib import closing

import pytest

from planish.core import PlanishError
from planish.levels.llvm.bindings.elf import function_bytes, function_loads, loaded_bytes, loaded_sections
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.modules.function_costs import (
    SAVE_RESTORE,
    FunctionCosts,
    best_attributes,
    with_attributes,
)
from planish.levels.llvm.modules.transform import single, whole_bindings

CALL = "  call void @take(i32 1, i32 2, i32 3, i32 4)\n"
HEAD = 'target triple = "x86_64-pc-linux-gnu"\ndeclare void @take(i32, i32, i32, i32)\n'
NOP = 'call void asm sideeffect "nop", ""()'


def function(name: str, body: str, attributes: str = "minsize optsize uwtable") -> str:
    return f"define void @{name}(ptr %p) {attributes} {{\n{body}  ret void\n}}\n"


MODULE = (
    HEAD
    + function("constants", CALL * 6)
    + function("assembly", f"  {NOP}\n" + CALL * 6)
    + function("plain", "  store i32 1, ptr %p\n")
    + function("larger", CALL * 6, "optsize uwtable")
)


@pytest.fixture(autouse=True)
def _whole() -> None:
    try:
        whole_bindings()
    except PlanishError as error:
        pytest.skip(str(error))


def code_of(code: str | bytes) -> bytes:
    with closing(open_bindings().parse(code)) as module:
        return module.object_code()


def bitcode(text: str) -> bytes:
    with closing(open_bindings().parse(text)) as module:
        return module.bitcode()


@pytest.mark.parametrize(
    "triple", ["x86_64-pc-linux-gnu", "aarch64-linux-gnu", "riscv32-none-elf", "i386-pc-linux-gnu"]
)
def test_each_function_loads_its_code_and_its_part_of_the_unwind_table(triple: str) -> None:
    text = MODULE.replace("x86_64-pc-linux-gnu", triple)
    text = re.sub(r"  call void asm .*\n", "", text) + function("bare", CALL, "minsize optsize nounwind")
    try:
        code = code_of(text)
    except PlanishError as error:
        pytest.skip(str(error))
    loads = function_loads(code)
    assert {name: size for name, (size, _) in loads.items()} == function_bytes(code)
    assert loads["bare"][1] == 0
    assert min(more for name, (_, more) in loads.items() if name != "bare") > 8
    shared = loaded_sections(code)[".eh_frame"] - sum(more for _, more in loads.values())
    assert 0 < shared < 40  # what all entries have in common, and padding


def test_attributes_are_changed_where_that_saves_most() -> None:
    """Constants by `push` and `pop` are less code, and more of the unwind table."""
    code = bitcode(MODULE)
    assert best_attributes(code, "text_bytes") == ()
    found = best_attributes(code, "loaded_bytes")
    assert {name for _, names in found for name in names} == {"constants"}
    loads = [function_loads(code_of(each)) for each in (code, with_attributes(code, found))]
    assert sum(loads[1]["constants"]) < sum(loads[0]["constants"])
    assert {**loads[1], "constants": ()} == {**loads[0], "constants": ()}


def test_a_search_for_flash_measures_functions_with_their_best_attributes() -> None:
    code = bitcode(MODULE)
    best = with_attributes(code, best_attributes(code, "loaded_bytes"))
    loads = function_loads(code_of(best))
    with closing(single(whole_bindings().parse(code))) as module:
        sizes, rest = FunctionCosts("loaded_bytes").measure(module)
    assert sizes == {name: sum(load) for name, load in loads.items()}
    assert sum(sizes.values()) + rest == loaded_bytes(code_of(best))


def test_changes_of_attributes_set_and_remove() -> None:
    changes = (("-minsize", ("constants", "elsewhere")), ("frame-pointer=all", ("plain",)))
    with closing(single(whole_bindings().parse(with_attributes(bitcode(MODULE), changes)))) as module:
        definitions = module.definitions()
        assert definitions.having("minsize") == {"assembly", "plain"}
        assert module.text().count('"frame-pointer"="all"') == 1


def test_functions_for_riscv_save_registers_by_the_library_where_that_is_allowed() -> None:
    called = "".join(f"  %v{i} = call i32 @make()\n" for i in range(9))
    stored = "".join(f"  store i32 %v{i}, ptr %p\n" for i in range(9))
    text = (
        'target triple = "riscv32-none-elf"\ndeclare i32 @make()\n'
        + function("many", called + stored, 'minsize optsize nounwind "target-features"="+relax"')
        + function("none", "  store i32 1, ptr %p\n", "minsize optsize nounwind")
    )
    try:
        code = bitcode(text)
        assert not best_attributes(code, "text_bytes")
    except PlanishError as error:
        pytest.skip(str(error))
    found = best_attributes(code, "text_bytes", with_runtime=True)
    assert found == ((SAVE_RESTORE, ("many",)),)
    changed = with_attributes(code, found)
    with closing(single(whole_bindings().parse(changed))) as module:
        assert '"target-features"="+relax,+save-restore"' in module.text()
    assert function_bytes(code_of(changed))["many"] < function_bytes(code_of(code))["many"]


def test_code_that_the_outliner_shares_counts_for_each_function() -> None:
    """Where clang runs the machine outliner, equal code is moved into a function that belongs to none."""
    text = MODULE.replace("x86_64-pc-linux-gnu", "aarch64-linux-gnu")
    text = re.sub(r"  call void asm .*\n", "", text)
    with closing(single(whole_bindings().parse(text))) as module:
        try:
            outlined = function_bytes(module.object_code())
        except PlanishError as error:
            pytest.skip(str(error))
        sizes, _ = FunctionCosts("text_bytes").measure(module)
    if not any(name.startswith("OUTLINED_FUNCTION") for name in outlined):
        pytest.skip("this LLVM outlines nothing here")
    assert sizes["constants"] > outlined["constants"]
    assert not any(name.startswith("OUTLINED_FUNCTION") for name in sizes)
