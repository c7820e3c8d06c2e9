"""Whole modules made smaller function by function, as runs of the engine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from levels.llvm.passes.test_breaking import MUSTTAIL, PLAIN, WRONG, wrong_after
from planish.core import Candidate, Measured, PlanishError, Space, TargetError, Task
from planish.core.hashing import SCHEMA_VERSION
from planish.core.step import candidate_from_json
from planish.levels.llvm.bindings import elf
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.clang import find_compiler
from planish.levels.llvm.function_steps import FunctionAttribute, FunctionPasses, plan_of
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.modules.space import FunctionSpace, groups_of, shipped_lists, usual_pipeline
from planish.levels.llvm.passes.catalogue import vary
from planish.levels.llvm.passes.pipeline import candidate_of, parse_pipeline, print_pipeline
from planish.levels.llvm.program import IRProgram
from planish.levels.llvm.task_setup import prepared
from planish.measure.executors import ForkedExecutor
from planish.sandbox.fork_pool import ForkLimits, in_child
from planish.store import open_store
from planish.tuning.api import task_of, tune_program
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings

LEVEL = LlvmLevel()
SETTINGS = Settings(objectives=("text_bytes",), space="functions", workers=1)

SOURCE = r"""
#include <stddef.h>
typedef int (*Call)(int);
extern int puts(const char *);
extern int printf(const char *, ...);
static _Thread_local int last;
static int seen[64];

__attribute__((constructor)) static void begin(void) { last = 7; }

static int plain(int x) { last = x; return x * 3 + last; }
extern int other(int) __attribute__((alias("named")));
int named(int x) { return plain(x) ^ 5; }

__attribute__((weak)) int overridden(int x) { return x - 1; }
__attribute__((section("special"))) int placed(int x) { return x + 11; }

int machine(const char *s) {
    static const void *const to[] = {&&add, &&sub, &&end};
    int sum = 0;
    goto *to[(*s++ - '0') % 3];
add: sum += *s - '0'; goto *to[(*s++ - '0') % 3];
sub: sum -= *s - '0'; goto *to[(*s++ - '0') % 3];
end: return sum;
}

int choose(int kind, int a, int b, int *out) {
    if (a == b) { seen[a & 63]++; out[0] = a; last++; return -1; }
    switch (kind) {
    case 0: if (a > 9) { seen[a & 63] += b; out[0] = a * b; last++; return a + 4; } break;
    case 1: if (b > 9) { seen[b & 63] += b; out[1] = a * b; last++; return b + 4; } break;
    case 2: if (a < 9) { seen[b & 63] += a; out[0] = a - b; last++; return a + 9; } break;
    case 5: if (b < 9) { seen[a & 63] += a; out[1] = a - b; last++; return b + 9; } break;
    case 9: { seen[a & 63]++; out[1] = b; last++; return -1; }
    case 12: { seen[b & 63]++; out[0] = b; last++; return -1; }
    }
    last--;
    return 0;
}

int table(unsigned k) {
    switch (k) {
    case 1: return overridden(3); case 2: return overridden(9); case 3: return overridden(11);
    case 4: return placed(2); case 5: return placed(8); case 6: return placed(1);
    }
    for (unsigned i = 0; i < k; i++) seen[i & 63] += (int)(i * k);
    return seen[k & 63];
}

typedef struct { void *(*take)(size_t); void (*give)(void *); void *(*again)(void *, size_t); } Hooks;
void *malloc(size_t);
void *realloc(void *, size_t);
void free(void *);
Hooks hooks = {malloc, free, realloc};
void hook(Hooks *given) {
    if (given == NULL) { hooks.take = malloc; hooks.give = free; hooks.again = realloc; return; }
    hooks.take = malloc;
    if (given->take != NULL) hooks.take = given->take;
    hooks.give = free;
    if (given->give != NULL) hooks.give = given->give;
    hooks.again = NULL;
    if ((hooks.take == malloc) && (hooks.give == free)) hooks.again = realloc;
}

const char *day(unsigned number) {
    switch (number) {
    case 0: return "Monday"; case 1: return "Tuesday"; case 2: return "Wednesday"; case 3: return "Thursday";
    case 4: return "Friday"; case 5: return "Saturday"; case 6: return "Sunday"; default: return "none";
    }
}

int main(void) {
    int out[2] = {0, 0};
    Call call = other;
    long sum = machine("0314159202");
    for (int kind = 0; kind < 14; kind++)
        for (int a = 0; a < 20; a++)
            for (int b = 0; b < 20; b++) {
                sum = sum * 31 + choose(kind, a, b, out);
                sum += out[0] ^ (out[1] << 3) ^ call(a) ^ table((unsigned)b);
            }
    printf("%lx %d %s\n", sum, last, day((unsigned)sum & 7));
    return 0;
}
"""


@pytest.fixture(scope="module")
def module() -> str:
    bindings = open_bindings()
    if not bindings.full:
        pytest.skip("this back end cannot treat single functions")
    try:
        compiler = find_compiler(int(bindings.version.partition(".")[0]))
    except TargetError as error:
        pytest.skip(str(error))
    return compiler.to_ir("f.c", ("-Xclang", "-disable-llvm-passes"), "Oz", source=SOURCE)


def tuned(
    module: str,
    store: Path,
    trials: int,
    settings: Settings = SETTINGS,
    level: LlvmLevel = LEVEL,
    **options: Any,
) -> Result:
    program, budget = LEVEL.load(module, {}), Budget(trials=trials)
    given: dict[str, Any] = {"budget": budget, "settings": settings, "store": store, "start": ForkedExecutor}
    return tune_program(level, program, **given, **options)


@dataclass(frozen=True)
class Exported:
    """A run, and the folder that its winner was exported into."""

    result: Result
    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        """Read the manifest."""
        return json.loads((self.folder / "manifest.json").read_text())

    @property
    def bitcode(self) -> bytes:
        """Read the module."""
        return (self.folder / "optimized.bc").read_bytes()


@pytest.fixture(scope="module")
def improved(module: str, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("improved")
    result = tuned(module, folder / "store.db", 50)
    result.export(folder / "out")
    return Exported(result, folder / "out")


def text_of(code: bytes | str) -> str:
    with closing(open_bindings().parse(code)) as module:
        return module.text()


def code_of(code: bytes | str, pipeline: str = "") -> tuple[bytes, int]:
    with closing(open_bindings().parse(code)) as module:
        module.run(pipeline)
        return module.object_code(), module.text_bytes()


def test_a_module_becomes_smaller_than_oz(module: str, improved: Exported) -> None:
    comparison, manifest = improved.result.comparison, improved.manifest
    assert comparison
    assert comparison.finalists[0].lead.verdict == "better"
    totals = comparison.baseline.lead.median, comparison.finalists[0].lead.median
    assert totals == (manifest["baseline"], manifest["total"])
    assert totals[0] == code_of(module, "default<Oz>")[1]
    assert totals[1] == code_of(improved.bitcode)[1] < totals[0]
    saved = sum(gain["before"] - gain["after"] for gain in manifest["functions"])
    assert saved == totals[0] - totals[1]
    assert manifest["functions"][0]["passes"]


def heads(code: bytes | str) -> list[str]:
    """Return what the module says of the symbols that others see, without values and numbers."""
    lines = re.findall(r"^(?:define [^{]*|@[^\n]*)", text_of(code), re.MULTILINE)
    return sorted(
        re.sub(r"\(.*|[#!]\d+", "", line) for line in lines if not re.search("internal|private", line)
    )


def test_symbols_stay_what_they_are(module: str, improved: Exported) -> None:
    with closing(open_bindings().parse(module)) as optimized:
        optimized.run("default<Oz>")
        assert heads(improved.bitcode) == heads(optimized.text())
    text = text_of(improved.bitcode)
    assert "optnone" not in text
    assert 'section "special"' in text
    assert "@other = " in text


def test_the_program_answers_as_before(module: str, improved: Exported, tmp_path: Path) -> None:
    linker = shutil.which("cc") or shutil.which("clang-22")
    if linker is None:
        pytest.skip("no linker")
    said: list[str] = []
    for name, code in (("before", code_of(module)[0]), ("after", code_of(improved.bitcode)[0])):
        (tmp_path / f"{name}.o").write_bytes(code)
        subprocess.run([linker, tmp_path / f"{name}.o", "-o", tmp_path / name], check=True)
        said.append(subprocess.run([tmp_path / name], check=True, capture_output=True, text=True).stdout)
    assert said[0] == said[1]


def test_instructions_are_counted_alike(module: str, tmp_path: Path) -> None:
    settings = Settings(objectives=("instructions",), space="functions", workers=1)
    result = tuned(module, tmp_path / "store.db", 12, settings)
    result.export(tmp_path / "out")
    assert result.comparison
    exported = Exported(result, tmp_path / "out")
    with closing(open_bindings().parse(exported.bitcode)) as made:
        assert made.instructions() == exported.manifest["total"]
        assert made.instructions() == result.comparison.finalists[0].lead.median
    assert exported.manifest["total"] <= exported.manifest["baseline"]


def test_the_same_run_goes_on_where_it_ended(module: str, tmp_path: Path) -> None:
    first = tuned(module, tmp_path / "store.db", 10)
    again = tuned(module, tmp_path / "store.db", 10)
    assert (again.run.id, again.run.trials) == (first.run.id, first.run.trials)
    more = tuned(module, tmp_path / "store.db", 16)
    assert (more.run.id, more.run.trials > first.run.trials) == (first.run.id, True)
    assert more.comparison
    assert first.comparison
    assert more.comparison.finalists[0].lead.median <= first.comparison.finalists[0].lead.median


def test_the_start_and_what_was_combined_have_all_functions_as_parts(improved: Exported) -> None:
    task = improved.result.task
    start = LEVEL.space(task, "functions").start()
    with open_store(improved.folder.parent / "store.db", read_only=True) as store:
        trials = {t.candidate: t for t in store.run_trials(improved.result.run.id, LEVEL.steps)}
    outcomes = {c: t.outcome for c, t in trials.items() if isinstance(t.outcome, Measured)}
    whole = outcomes[start]
    assert {"main", "choose", "machine"} <= whole.parts.keys()
    assert sum(whole.parts.values()) == whole.values["text_bytes"]
    for candidate, outcome in outcomes.items():
        lists = plan_of(candidate).lists
        if len(lists) == 2 and not plan_of(candidate).inlining:
            saved = sum(whole.parts[name] - size for name, size in outcome.parts.items())
            assert outcome.parts.keys() <= set(lists[0][1])
            assert outcome.values["text_bytes"] == whole.values["text_bytes"] - saved


class CrashingSpace(FunctionSpace):
    def transformations(self) -> list[tuple[str, float]]:
        usual, *others = super().transformations()
        # LLVM ends the process at this loop pass in such a manager.
        return [usual, ("loop(licm)", 1.0), *others]


class CrashingLevel(LlvmLevel):
    def space(self, task: Task[IRProgram], name: str) -> Space:
        assert name == "functions"
        return CrashingSpace(prepared(task), "text_bytes")


def test_a_crash_costs_one_candidate(module: str, tmp_path: Path) -> None:
    result = tuned(module, tmp_path / "store.db", 30, level=CrashingLevel())
    assert sum(result.failures.values()) == 1
    assert result.comparison
    assert result.comparison.finalists[0].lead.verdict == "better"


def test_functions_are_tuned_by_one_objective(module: str) -> None:
    task = task_of(LEVEL, LEVEL.load(module, {}), Settings(objectives=("text_bytes", "instructions")))
    with pytest.raises(PlanishError, match="Name the one that leads"):
        LEVEL.space(task, "functions")


def made(task: Task[IRProgram], *candidates: Candidate) -> Iterator[Measured]:
    evaluator = LEVEL.evaluator(task, final=True)()
    for candidate in candidates:
        outcome = evaluator.evaluate(candidate, _NoClock())
        assert isinstance(outcome, Measured)
        yield outcome


class _NoClock:
    def __call__(self, stage: str) -> Any:
        from contextlib import nullcontext

        del stage
        return nullcontext()


def test_attributes_of_inlining_do_not_stay(improved: Exported, tmp_path: Path) -> None:
    marks = FunctionAttribute("plain", "noinline"), FunctionAttribute("table", "alwaysinline")
    candidate = Candidate((*marks, FunctionPasses(usual_pipeline(), ())))
    LEVEL.export(improved.result.task, candidate, tmp_path)
    text = (tmp_path / "optimized.ll").read_text()
    assert "@plain(" in text
    assert "call fastcc i32 @plain" in text or "call i32 @plain" in text
    assert not re.search(r"attributes #\d+ = \{[^}]*(noinline|alwaysinline)", text)


def test_a_candidate_is_measured_by_the_whole_module_at_the_end(improved: Exported) -> None:
    task = improved.result.task
    best = improved.result.comparison.finalists[0].candidate  # pyright: ignore[reportOptionalMemberAccess]
    base, found = made(task, candidate_of(["default<Oz>"]), best)
    assert base.values["text_bytes"] == improved.manifest["baseline"]
    assert found.values["text_bytes"] == improved.manifest["total"]


INLINED = """
define internal i32 @callee(i32 %x) minsize optsize {
  %y = mul i32 %x, 77
  %z = xor i32 %y, 3
  ret i32 %z
}

define internal i32 @unused_afterwards(i32 %x) minsize optsize {
  %y = call i32 @callee(i32 %x)
  ret i32 %y
}

define weak i32 @weak(i32 %x) minsize optsize {
  ret i32 1
}

define i32 @one(i32 %x) minsize optsize {
  %y = call i32 @unused_afterwards(i32 %x)
  %z = call i32 @weak(i32 %y)
  ret i32 %z
}

define i32 @two(i32 %x) minsize optsize {
  %y = call i32 @callee(i32 %x)
  ret i32 %y
}
"""


def test_inlining_is_changed_where_functions_are_called() -> None:
    space = FunctionSpace(INLINED, "text_bytes")
    changes = space.changes({}, {"one": 20, "two": 10, "weak": 10})
    assert set(changes) == {("callee", "noinline"), ("unused_afterwards", "noinline"), ("weak", "noinline")}
    assert ("callee", "default") in space.changes({"callee": "noinline"}, {"one": 20, "two": 10})
    # What is inlined away is a part of its callers, and another list of it changes those.
    assert space.changed_by("callee", ["one", "two"]) == {"callee", "two", "unused_afterwards", "one"}
    assert space.changed_by("callee", ["one", "two", "unused_afterwards"]) == {
        *("callee", "two", "unused_afterwards")
    }
    assert space.below(["one"]) == {"unused_afterwards", "weak", "callee"}


def test_functions_are_grouped_by_size() -> None:
    costs = {"tiny": 5.0, **{f"f{number}": 400.0 for number in range(60)}, "large": 20_000.0}
    groups = groups_of(costs, "text_bytes")
    assert groups[0].parts == ("large",)
    assert [len(group.parts) for group in groups] == [1, 30, 30]
    assert groups[0].worth > groups[1].worth
    assert "tiny" not in {name for group in groups for name in group.parts}


def test_the_coreset_takes_turns_with_the_lists_for_modules_and_each_list_makes_one_code() -> None:
    listed = FunctionSpace(PLAIN, "text_bytes").transformations()
    texts = [text for text, _ in listed]
    shipped = [print_pipeline(passes) for passes, _ in shipped_lists().first]
    assert [texts[0], *texts[2:7:2]] == shipped[:4]
    assert len(texts) == len(set(texts))
    assert set(shipped) < set(texts)
    assert not any(vary(parse_pipeline(text)) or "default<" in text for text in texts)
    assert [saves for _, saves in listed[1:]] == sorted((saves for _, saves in listed[1:]), reverse=True)


@pytest.mark.parametrize("target", ["thumbv6m-none-unknown-eabi", "riscv32-unknown-unknown-elf"])
def test_targets_have_lists_of_their_own_after_the_usual_one(target: str) -> None:
    usual, *others = FunctionSpace(PLAIN, "text_bytes").transformations()
    for_target = FunctionSpace(f'target triple = "{target}"\n{PLAIN}', "text_bytes").transformations()
    assert for_target[0] == usual
    assert for_target[1:9] != others[:8]
    texts = [text for text, _ in for_target]
    assert len(texts) == len(set(texts))
    assert not any(vary(parse_pipeline(text)) or "default<" in text for text in texts)
    assert [saves for _, saves in for_target[1:]] == sorted(
        (saves for _, saves in for_target[1:]), reverse=True
    )


def test_no_list_of_a_whole_module_is_lost_by_one_function() -> None:
    for ir, holds in ((MUSTTAIL, False), (PLAIN, True)):
        space = FunctionSpace(ir, "text_bytes")
        pipelines = [text for text, _ in space.transformations()]
        pipelines += [space.draw(Random(number)) for number in range(40)]
        listed = [parse_pipeline(text) for text in pipelines]
        assert any("mergereturn" in passes for passes in listed) == holds
        assert in_child(partial(wrong_after, ir, listed), WRONG, ForkLimits(seconds=60.0)) == []


def test_drawn_lists_follow_from_the_seed() -> None:
    space = FunctionSpace(PLAIN, "text_bytes")
    drawn = [space.draw(Random(number)) for number in range(9)]
    assert drawn == [space.draw(Random(number)) for number in range(9)]
    assert len(set(drawn)) > 1


def test_what_is_exported_is_what_was_measured_where_all_functions_have_lists(
    improved: Exported, tmp_path: Path
) -> None:
    task = improved.result.task
    (start,) = made(task, LEVEL.space(task, "functions").start())
    names = tuple(task.program.definitions)
    candidate = Candidate((FunctionPasses("function(sroa)", names), FunctionPasses(usual_pipeline(), ())))
    (found,) = made(task, candidate)
    assert found.values["text_bytes"] != start.values["text_bytes"]
    LEVEL.export(task, candidate, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["schema_version"] == SCHEMA_VERSION
    assert manifest["total"] == found.values["text_bytes"]
    assert code_of((tmp_path / "optimized.bc").read_bytes())[1] == manifest["total"]


def code_section(file: Path) -> bytes:
    data = file.read_bytes()
    (text,) = (section for section in elf.sections(data) if section.name == ".text")
    return data[text.offset : text.offset + text.size]


@pytest.fixture
def copied(improved: Exported, tmp_path: Path) -> Path:
    return Path(shutil.copytree(improved.folder, tmp_path / "out"))


def test_opt_alone_makes_it_again(copied: Path) -> None:
    major = open_bindings().version.partition(".")[0]
    opt, llc = shutil.which(f"opt-{major}"), shutil.which(f"llc-{major}")
    if opt is None or llc is None:
        pytest.skip("no opt")
    expected = code_section(copied / "optimized.o")
    (copied / "optimized.o").unlink()
    tools = {"OPT": opt, "LLC": llc, "PATH": "/usr/bin:/bin"}
    done = subprocess.run([copied / "repeat.sh"], check=True, env=tools, capture_output=True)
    assert done.stderr == b""
    # Names of values in the text may be other ones, and llc lists constructors in another section.
    assert code_section(copied / "optimized.o") == expected


def test_another_llvm_than_its_own_is_reported(copied: Path) -> None:
    other = {"OPT": "true", "LLC": "true", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([copied / "repeat.sh"], check=True, env=other, capture_output=True, text=True)
    major = open_bindings().version.partition(".")[0]
    assert done.stderr.startswith(f"true is none of LLVM {major}; where it fails, name one: OPT=opt-{major}")


def test_the_functions_that_changed_are_shown(improved: Exported) -> None:
    shown = improved.result.describe()
    assert [*shown] == ["functions", "size", "verified", "repeat"]
    gains = {gain["name"]: gain for gain in improved.manifest["functions"]}
    rows = [line.split() for line in shown["functions"].splitlines()[1:] if not line.startswith("In ")]
    assert {row[0] for row in rows} == gains.keys()
    assert all(int(row[1]) - int(row[2]) == int(row[3]) for row in rows)
    assert f"{improved.manifest['total']}" in shown["size"]
    assert "repeat.sh" in shown["repeat"]


def test_candidates_of_steps_on_functions_are_read_back() -> None:
    steps = (FunctionAttribute("f", "noinline"), FunctionPasses("function(gvn)", ("f", "g")))
    candidate = Candidate(steps)
    data = [step.to_json() for step in steps]
    assert candidate_from_json(data, LlvmLevel().steps) == candidate
    assert str(candidate) == "noinline f; function(gvn) on f, g"
