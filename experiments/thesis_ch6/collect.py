"""Samples a policy in many ways on functions that it has not learnt from, and runs what it writes.

    python experiments/thesis_ch6/collect.py CORPUS OUT.jsonl [--policy FILE] [--functions 4000] [--minutes 9]

Each function is a line of OUT; those that it has are passed over, so the same command goes on. `tables.py`
makes figures 6.1 and 6.3 and table 6.1 of it. Costs are instructions; where a list fails, those of the
function as it is. The budget is `--functions`, drawn round-robin from all packages, and `--minutes`. With a
function's features goes what the gate's lists cost: `tables.py` runs nothing to tell what it would choose.

With `--costs TABLE`, by `planish corpus costs`, only the functions of that table are sampled, and what their
lists cost is looked up in it, which takes a tenth of the time. There are no random lists then and no
autotuner, whose lists no table has.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ways import BUDGETS, Passes, Samples, random_lists, sampled

from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.features import CutWarning, autophase
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.levels.llvm.passes.space import PassSpace, pass_space
from planish.models.networks import ReaderShape, predict_lists
from planish.models.policy_files import SavedPolicy, load_policy, policy_paths
from planish.sandbox.fork_pool import Watchdog, forked
from planish.train.corpus.shards import Row
from planish.train.cost_tables import FAILED, CostTable, read_costs
from planish.train.labeling.function_search import FunctionCosts, candidates_of, search
from planish.train.labeling.label_plan import LabelBench, LabelPlan, bench
from planish.train.labeling.tabling import draw_in_turns
from planish.train.samples import GAIN

sys.path.insert(0, str(Path(__file__).parents[1]))

from gate_model import Gate, kept_gate


@dataclass(frozen=True)
class Sampling:
    """Samples a policy on a function, and runs the lists, within a child.

    Args:
        bench: runs lists.
        saved: the policy.
        uniform: the space of random lists.
        gate: has the lists that the policy selects from.
        table: costs that are looked up; None to run the lists.
    """

    bench: LabelBench
    saved: SavedPolicy
    uniform: PassSpace
    gate: Gate
    table: CostTable | None = None

    def __call__(self, row: Row, watchdog: Watchdog) -> str | None:
        return self._run(row, watchdog) if self.table is None else self._looked_up(row, self.table)

    def _looked_up(self, row: Row, table: CostTable) -> str:
        index, objective = table.identities.tolist().index(row.identity), self.bench.plan.objective
        column = table.columns.objectives.index(objective)
        found = zip(table.columns.lists, table.costs[index, :, column].tolist(), strict=True)
        costs = {passes: None if cost == FAILED else int(cost) for passes, cost in found}
        unoptimized, baseline = (int(each[index, column]) for each in (table.unoptimized, table.baseline))
        space, code = self._space(row)
        ways = {
            name: _outcome(costs, unoptimized, lists)
            for name, lists in self._ways(row, space)
            if name != "Random"
        }
        listed = [unoptimized if (cost := costs[each]) is None else cost for each in self.gate.lists]
        return _line(row, (baseline, unoptimized), ways, listed, self._gains(space), code)

    def _space(self, row: Row) -> tuple[PassSpace, str]:
        """Make the policy's space, and what -Oz makes of the function."""
        code = small(self.bench.bindings, row.ir, self.bench.baseline)
        return pass_space("passes", self.bench.space.elements, ir=row.ir, small=lambda: code), code

    def _run(self, row: Row, watchdog: Watchdog) -> str | None:
        with self.bench.costing(row, watchdog) as costs:
            baseline = costs.cost(self.bench.baseline) if costs else None
            if costs is None or baseline is None:
                return None
            space, code = self._space(row)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CutWarning)
                ways = {name: _tried(costs, found) for name, found in self._ways(row, space)}
                gains = self._gains(space)
            listed = self._list_costs(costs)
        with self.bench.costing(row, watchdog) as searched:
            assert searched is not None
            searched.cost(self.bench.baseline)
            ways["Autotuner"] = self._autotuned(searched, row)
        return _line(row, (baseline, costs.unoptimized or 0), ways, listed, gains, code)

    def _list_costs(self, costs: FunctionCosts) -> list[int]:
        """Give what the gate's lists cost, in its order."""
        lists, unoptimized = self.gate.lists, costs.unoptimized or 0
        costs.run(candidates_of(lists))
        return [unoptimized if (cost := costs.ranking.costs[each]) is None else cost for each in lists]

    def _gains(self, space: PassSpace) -> list[float]:
        """Give the share of -Oz's cost that the policy expects each of the gate's lists to save."""
        saved = self.saved
        assert isinstance(saved.shape, ReaderShape)
        said = predict_lists(saved.shape, saved.parameters, space.observe(space.start())[None])[0, 0] * GAIN
        by_list = dict(zip(saved.actions, said.tolist(), strict=True))
        return [round(by_list[",".join(each)], 6) for each in self.gate.lists]

    def _ways(self, row: Row, space: PassSpace) -> Iterator[tuple[str, Samples]]:
        seed = self.bench.seed_of(row)
        for name, lists in (
            ("Random", random_lists(self.uniform, seed)),
            ("Static coreset", [*load_coreset(self.bench.plan.objective)]),
        ):
            yield name, {n: lists[:n] for n in BUDGETS}
        yield from sampled(self.saved, space, seed)

    def _autotuned(self, costs: FunctionCosts, row: Row) -> Mapping[str, Any]:
        """Search as for the labels, which count no evaluation of what was made before."""
        plan = self.bench.plan
        seed = self.bench.seed_of(row)
        search(costs, self.bench.space, self.bench.objective, plan.budget, seed, give_up=plan.gives_up)
        best = costs.ranking.best()
        assert best is not None
        return {"best": best[0], "evaluations": costs.ranking.evaluations}


def small(bindings: Bindings, ir: str, oz: Sequence[str]) -> str:
    """Give what -Oz makes of a function."""
    module = bindings.parse(for_size(ir))
    try:
        module.run(print_pipeline(oz))
        return module.text()
    finally:
        module.close()


def _line(
    row: Row,
    before: tuple[int, int],
    ways: Mapping[str, Any],
    costs: Sequence[int],
    gains: Sequence[float],
    code: str,
) -> str:
    """Return what is known of a function, `before` with -Oz and without, as JSON."""
    about = {"identity": row.identity, "package": row.package, "split": row.split, "file": row.file}
    measured = {"baseline": before[0], "unoptimized": before[1], "ways": ways}
    features = [autophase(each).tolist() for each in (row.ir, code)]
    return json.dumps({**about, **measured, "costs": costs, "gains": gains, "features": features})


def _tried(costs: FunctionCosts, found: Samples) -> Mapping[str, Any]:
    """Run all lists of a way."""
    costs.run(candidates_of([*dict.fromkeys(each for lists in found.values() for each in lists)]))
    return _outcome(costs.ranking.costs, costs.unoptimized or 0, found)


def _outcome(costs: Mapping[Passes, int | None], unoptimized: int, found: Samples) -> Mapping[str, Any]:
    known = {each: costs[each] for lists in found.values() for each in lists}
    full = {each: unoptimized if cost is None else cost for each, cost in known.items()}
    return {
        "best": [min((full[each] for each in found[n]), default=unoptimized) for n in BUDGETS],
        "unique": [len({*found[n]}) for n in BUDGETS],
        "failed": sum(cost is None for cost in known.values()),
    }


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("out", type=Path)
    given.add_argument("--policy", type=Path, default=policy_paths().get("llvm"))
    given.add_argument("--split", nargs="+", default=["validation", "test"])
    given.add_argument("--functions", type=int, default=4000)
    given.add_argument("--minutes", type=float, default=30.0, help="after which no function is begun")
    given.add_argument("--jobs", type=int, default=0)
    given.add_argument("--costs", type=Path, help="a table of costs that are looked up")
    asked = given.parse_args()
    known = {json.loads(line)["identity"] for line in _whole_lines(asked.out)}
    rows, _ = draw_in_turns(asked.corpus, asked.split, asked.functions, known)
    made = bench(LabelPlan(jobs=asked.jobs))
    uniform = pass_space("uniform", made.space.elements)
    table = read_costs(asked.costs) if asked.costs else None
    if table is not None:
        rows = [row for row in rows if row.identity in {*table.identities.tolist()}]
    work = Sampling(made, load_policy(asked.policy), uniform, kept_gate(made.plan.objective), table)
    end = time.monotonic() + 60 * asked.minutes
    with asked.out.open("a") as out:
        for done in forked(_until(rows, end), work, str, made.plan.processes, at_once=made.at_once(500)):
            if done.answer is not None:
                out.write(done.answer + "\n")
                out.flush()


def _until(rows: Sequence[Row], end: float) -> Iterator[Row]:
    for row in rows:
        if time.monotonic() > end:
            return
        yield row


def _whole_lines(path: Path) -> list[bytes]:
    """Read a file's lines; one that was being written when its process was killed is cut off."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    if lines and not lines[-1].endswith(b"\n"):
        os.truncate(path, sum(map(len, lines[:-1])))
        return lines[:-1]
    return lines


if __name__ == "__main__":
    main()
