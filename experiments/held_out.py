"""Overlap of what shipped files have learnt from with what they are judged by: there is to be none.

    python experiments/held_out.py

A row for each shipped file and each set of programs that its figures are made on, with how many programs
each has, and how many both have. Programs are compared by the hash of their canonical text, functions of LLVM
IR by that of their IR. The exit code is 1 where a file has seen what it is judged by. The lists of the search
within modules for x86-64 (`lists.json`) have no row: on which modules they were found was not recorded. What
could replace them is in `within_modules/results.md`. The lists of other targets were chosen among these, too;
their rows have the functions that they were chosen by.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from itertools import islice
from pathlib import Path

from planish.core import content_hash
from planish.levels.hlo.program import read_program
from planish.levels.loops.lang.program import Program
from planish.levels.loops.workloads import RESNET18, convolution, matmul, thesis_split
from planish.models.model_files import load_model, model_paths
from planish.models.policy_files import load_policy, policy_paths
from planish.train.background import HELD_OUT
from planish.train.corpus.reader import read_corpus
from planish.train.cost_models import SHIPPED, random_programs
from planish.train.cost_tables import read_costs

HERE = Path(__file__).parent
for folder in ("autotvm", "looptune"):  # scripts, which import each other by name
    sys.path.insert(0, str(HERE / folder))
FIGURES, UNSEEN = import_module("plans").FIGURES, import_module("unseen").PROGRAMS
training_programs = import_module("programs").training_programs
learned = import_module("learned")

LABELS = HERE / "labels"
EXAMPLES = HERE.parent / "examples" / "hlo"
COLLECTED = 240
"""Programs that the shipped cost model has learnt from."""
MATMULS, OTHERS = (600, 300), (400, 1500)
"""Programs that shipped policies of loops have learnt from, in the two parts of `make_policy.py`."""
UNSEEN_MODULES = 30
"""Modules that `learned.py` takes by default."""
Hashes = frozenset[str]


@dataclass(frozen=True)
class TrainingSet:
    """What a shipped file has learnt from, and what it is judged by.

    Args:
        file: its name.
        learnt: hashes of the programs that it has learnt from.
        judged: name to hashes of sets of programs that it is judged by.
    """

    file: str
    learnt: Hashes
    judged: Mapping[str, Hashes]


def training_sets() -> Iterator[TrainingSet]:
    """Yield all shipped files that have learnt from programs."""
    yield from _of_loops()
    yield from _of_llvm()
    yield from _of_targets()
    yield _of_hlo()


def _hashes(programs: Iterable[Program]) -> Hashes:
    return frozenset(content_hash(program.text) for program in programs)


def _of_loops() -> Iterator[TrainingSet]:
    network = _hashes(convolution(*shape) for shape in RESNET18.values())
    thesis = _hashes(matmul(*sizes) for sizes in thesis_split()[1])
    figures = _hashes(each.program for figure in FIGURES.values() for each in figure.settings)
    judged = {"ResNet-18": network, "the thesis' matmuls for tests": thesis, "figures of AutoTVM": figures}
    (part,) = learned.parts(["loops"])
    judged["learned.py"] = _hashes(case.load() for case in part.cases())
    model = load_model(model_paths()["loops"])
    learnt = _hashes(islice(random_programs(SHIPPED), COLLECTED))
    # Those that failed, or whose trials cost all the same, it has not learnt from.
    assert model.programs <= COLLECTED
    yield TrainingSet("model-loops.npz", learnt, judged)
    # The programs of the first part are among those of the second one, but for matmuls.
    learnt = _hashes(training_programs(max(MATMULS), max(OTHERS)))
    others = {**judged, "programs of other shapes and kinds": _hashes(UNSEEN.values())}
    del others["figures of AutoTVM"]
    for name in ("loops", "loops-avx2"):
        assert load_policy(policy_paths()[name]).programs <= len(learnt)
        yield TrainingSet(f"policy-{name}.safetensors", learnt, others)


def _of_llvm() -> Iterator[TrainingSet]:
    tables = {path.name: read_costs(path) for path in sorted(LABELS.glob("*.npz")) if "gate" not in path.name}
    judged = {
        f"{name}, {split}": frozenset(table.split(split).identities.tolist())
        for name, table in tables.items()
        for split in ("validation", "test")
        if len(table.split(split))
    }
    sample = (row.identity for row in read_corpus() if row.package in HELD_OUT)
    judged["the sample's functions for searches"] = frozenset(sample)
    joined = frozenset(tables["joined-lists.npz"].split("train").identities.tolist())
    assert load_policy(policy_paths()["llvm"]).programs <= len(joined)
    yield TrainingSet("policy-llvm.safetensors", joined, judged)
    yield TrainingSet("coreset.json", joined, judged)
    sizes = frozenset(tables["functions.npz"].split("train").identities.tolist())
    yield TrainingSet("coreset-text_bytes.json", sizes, judged)


def _of_targets() -> Iterator[TrainingSet]:
    tables = (read_costs(LABELS / name) for name in ("joined-lists.npz", "functions.npz"))
    coresets = frozenset(each for table in tables for each in table.split("train").identities.tolist())
    for path in sorted(LABELS.glob("functions-*.json")):
        target = path.stem.removeprefix("functions-")
        judged = {
            name: frozenset(found) for name, found in json.loads(path.read_text(encoding="utf-8")).items()
        }
        learnt = coresets | judged.pop("learned")
        file = files("planish.levels.llvm.modules") / f"lists-{target}.json"
        stated = json.loads(file.read_text(encoding="utf-8"))["learned"]
        assert content_hash("\n".join(sorted(learnt))) == stated, f"{file} is of other functions"
        yield TrainingSet(file.name, learnt, {f"{target}, {name}": found for name, found in judged.items()})


def _of_hlo() -> TrainingSet:
    data = json.loads((files("planish.levels.hlo") / "edit_gains.json").read_text(encoding="utf-8"))
    learnt = frozenset(module["hash"] for module in data["modules"])
    examples = (content_hash(read_program(path).text) for path in sorted(EXAMPLES.glob("*.mlir")))
    (part,) = learned.parts(["hlo"])
    unseen = (content_hash(case.load().text) for case in islice(part.cases(), UNSEEN_MODULES))
    judged = {"examples": frozenset(examples), "learned.py": frozenset(unseen)}
    return TrainingSet("edit_gains.json", learnt, judged)


def main() -> None:
    """Print the table."""
    print("| file | learnt from | judged by | programs | in both |\n|---|--:|---|--:|--:|")
    overlap = 0
    for one in training_sets():
        for name, judged in one.judged.items():
            both = len(one.learnt & judged)
            overlap += both
            print(f"| {one.file} | {len(one.learnt):,} | {name} | {len(judged):,} | {both} |")
    sys.exit(overlap > 0)


if __name__ == "__main__":
    main()
