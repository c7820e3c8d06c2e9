"""AutoPhase as the thesis has it (4.4.1): PPO on 56 features, episodes of 45 passes, by RLlib.

    python experiments/thesis_ch4/autophase.py train CORPUS agent.npz --minutes 20
    python experiments/thesis_ch4/autophase.py run CORPUS agent.npz OUT.jsonl --functions 1500

The thesis trains for 100,000 episodes; the budget is `--minutes`. What is learnt from are functions of
training packages, and each reward is what a pass saves, as a share of what -Oz leaves. The actions are 45 of
the catalogue's passes without LLVM's own pipelines: AutoPhase's by name, where LLVM still has them.
`baselines.py --agent OUT.jsonl` makes rows of figures 4.5 and 4.6 of it. Training needs planish[distributed].
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import rng
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Bindings, Module, PassError
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.features import autophase
from planish.levels.llvm.passes.catalogue import base_name
from planish.levels.llvm.passes.pipeline import available, print_pipeline
from planish.sandbox.fork_pool import Watchdog, forked
from planish.train.corpus.shards import Row
from planish.train.labeling.label_plan import LabelBench, LabelPlan, bench
from planish.train.labeling.tabling import draw_in_turns

LENGTH = 45
NAMES = (
    "correlated-propagation", "sroa", "lower-expect", "sccp", "globalopt", "gvn", "jump-threading",
    "simple-loop-unswitch", "loop-deletion", "reassociate", "lcssa", "memcpyopt", "function-attrs",
    "loop-idiom", "lower-switch", "constmerge", "loop-rotate", "early-cse", "indvars", "adce",
    "loop-simplify", "instcombine", "simplifycfg", "dse", "loop-unroll-full", "tailcallelim", "licm",
    "sink", "mem2reg", "ipsccp", "deadargelim", "bdce", "instsimplify", "aggressive-instcombine",
    "newgvn", "mergereturn", "flatten-cfg", "div-rem-pairs", "float2int", "dce", "loop-instsimplify",
    "loop-simplifycfg", "constraint-elimination", "vector-combine", "mldst-motion",
)  # fmt: skip
"""AutoPhase's passes by their names of today, then others, up to 45."""
Floats = NDArray[np.float32]


def actions(bindings: Bindings) -> Sequence[str]:
    """Give 45 passes; of one in several forms the first."""
    forms = {base_name(element.text): element.text for element in reversed(available(bindings))}
    found = [forms[name] for name in NAMES if name in forms]
    rest = [text for name, text in forms.items() if name not in NAMES and "default" not in text]
    return [*found, *rest][:LENGTH]


@dataclass
class Episode:
    """A function, as passes change it.

    Args:
        module: is changed; whoever made it closes it.
        passes: that an action names.
        taken: how many were run.
    """

    module: Module
    passes: Sequence[str]
    taken: int = 0

    def seen(self) -> Floats:
        """Give the 56 features, as logarithms, and what is left of the episode."""
        features = np.log1p(np.abs(autophase(self.module.text()))) / 5
        return np.append(features, 1 - self.taken / LENGTH).astype(np.float32)

    def act(self, action: int) -> int:
        """Run a pass; give the instructions after it. One that fails leaves the module as it is."""
        self.taken += 1
        trial = self.module.clone()
        try:
            trial.run(print_pipeline([self.passes[action]]))
        except PassError:
            trial.close()
        else:
            self.module.close()
            self.module = trial
        return self.module.instructions()


def environment(texts: Sequence[str], seed: int) -> Any:
    """Make RLlib's environment of functions."""
    import gymnasium

    bindings = open_bindings()
    passes, random = actions(bindings), rng(seed)

    class Functions(gymnasium.Env[Floats, np.int64]):
        """A function is drawn for each episode."""

        action_space = gymnasium.spaces.Discrete(len(passes))
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (57 + len(passes),), np.float32)
        episode: Episode | None = None
        cost = unit = 1

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Floats, dict[str, Any]]:
            super().reset(seed=seed, options=options)
            if self.episode:
                self.episode.module.close()
            module = bindings.parse(for_size(texts[int(random.integers(len(texts)))]))
            small = module.clone()
            small.run(print_pipeline(["default<Oz>"]))
            self.unit, self.cost = max(small.instructions(), 1), module.instructions()
            small.close()
            self.episode = Episode(module, passes)
            return self.read(), {}

        def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
            assert self.episode
            before, self.cost = self.cost, self.episode.act(int(action))
            over = self.episode.taken == LENGTH
            return self.read(), (before - self.cost) / self.unit, over, False, {}

        def read(self) -> Floats:
            """Give the features; behind them, as planish's networks have it, that each pass is legal."""
            assert self.episode
            return np.concatenate([self.episode.seen(), np.ones(len(passes), np.float32)])

    return Functions()


def train(asked: argparse.Namespace) -> None:
    from planish.train.reinforcement import USUAL, built, parameters

    rows, _ = draw_in_turns(asked.corpus, ["train"], asked.functions, set())
    texts = [row.ir for row in rows]
    algorithm = built("ppo", lambda: environment(texts, asked.seed), 0, asked.seed)
    end, steps = time.monotonic() + 60 * asked.minutes, 0
    while time.monotonic() < end:
        found = algorithm.train()["env_runners"]
        steps = int(found["num_env_steps_sampled_lifetime"])
        print(f"{steps // LENGTH:,} episodes, return {found['episode_return_mean']:.3f}", flush=True)
        np.savez(asked.agent, steps=steps, **parameters(algorithm, USUAL.depth))
    algorithm.stop()


@dataclass(frozen=True)
class Acting:
    """Lets an agent run its 45 passes on a function, within a child."""

    bench: LabelBench
    weights: Mapping[str, Floats]

    def __call__(self, row: Row, watchdog: Watchdog) -> str | None:
        with self.bench.costing(row, watchdog) as costs:
            baseline = costs.cost(self.bench.baseline) if costs else None
        if baseline is None:
            return None
        bindings = self.bench.bindings
        episode, cost = Episode(bindings.parse(for_size(row.ir)), actions(bindings)), 0
        watchdog.enter("AutoPhase")
        while episode.taken < LENGTH:
            cost = episode.act(int(self._scores(episode.seen()).argmax()))
        episode.module.close()
        ways = {"AutoPhase": {"best": cost, "evaluations": LENGTH}}
        known = {"identity": row.identity, "package": row.package, "baseline": baseline, "ways": ways}
        return json.dumps(known)

    def _scores(self, hidden: Floats) -> Floats:
        last = sum(name.isdigit() for name in self.weights) - 1
        for layer in range(last):
            hidden = np.maximum(hidden @ self.weights[f"{layer}"] + self.weights[f"{layer} bias"], 0)
        return hidden @ self.weights[f"{last}"] + self.weights[f"{last} bias"]


def run(asked: argparse.Namespace) -> None:
    made = bench(LabelPlan())
    rows, _ = draw_in_turns(asked.corpus, ["validation", "test"], asked.functions, set())
    with np.load(asked.agent) as held:
        work = Acting(made, {name: held[name] for name in held.files if name != "steps"})
    with asked.out.open("w") as out:
        for done in forked(rows, work, str, made.plan.processes, at_once=made.at_once(LENGTH)):
            if done.answer is not None:
                out.write(done.answer + "\n")


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = given.add_subparsers(required=True)
    learning, acting = ways.add_parser("train"), ways.add_parser("run")
    for each, way in ((learning, train), (acting, run)):
        each.set_defaults(way=way)
        each.add_argument("corpus", type=Path)
        each.add_argument("agent", type=Path)
        each.add_argument("--functions", type=int, default=1500, help="drawn round-robin from all packages")
    learning.add_argument("--minutes", type=float, default=20.0)
    learning.add_argument("--seed", type=int, default=0)
    acting.add_argument("out", type=Path)
    asked = given.parse_args()
    asked.way(asked)


if __name__ == "__main__":
    main()
