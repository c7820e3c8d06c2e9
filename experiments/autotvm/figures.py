"""Figures 4 to 9 of AutoTVM on this machine's processor: searches beside each other, and what became of them.

    python experiments/autotvm/figures.py 5 --budget 120 --seeds 0 1 2
    python experiments/autotvm/figures.py 5 --table

Searches go to build/autotvm-figures.jsonl, each once: a later call goes on. Variants of one program and seed
follow each other, so that what disturbs the machine disturbs all of them, and who is first differs. After
`--budget` seconds no further program is begun; histories, of figures 8 and 9, do not count. Where PyTorch is
missing, what needs it is left out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from histories import history, transferred
from searching import Line, Machine, Options, append, machine, read
from tables import show

from planish.learn.cost import can_train

CONVOLUTIONS = ("C2", "C6", "C9", "C12")
PRODUCT = "384x384x384"
SOURCES = ("C1", "C2", "C3", "C4", "C5", "C6")
ALONE: Options = {"model": "none"}
GRU: Options = {"local": "tree-gru", "model": "none"}


@dataclass(frozen=True)
class Variant:
    """A way to search.

    Args:
        searcher: by name.
        options: of the searcher.
        representation: of candidates.
        source: figure 8's and 9's: whether a global model of other programs' trials is asked.
        trials: of this variant, where it has more than the others.
    """

    searcher: str = "model-guided"
    options: Options = field(default_factory=lambda: ALONE)
    representation: str = "all"
    source: bool = False
    trials: int = 0

    @property
    def can_run(self) -> bool:
        """Whether what it needs is installed."""
        return self.options.get("local") != "tree-gru" or can_train()


@dataclass(frozen=True)
class Figure:
    """An experiment.

    Args:
        programs: name to the cores that it has.
        variants: name to how it is searched.
        trials: of a search.
    """

    programs: Mapping[str, int]
    variants: Mapping[str, Variant]
    trials: int = 96


def _one_core(*names: str) -> Mapping[str, int]:
    return dict.fromkeys(names, 1)


FIGURES: Mapping[str, Figure] = {
    "4": Figure(
        _one_core(*CONVOLUTIONS, PRODUCT),
        {
            "random": Variant("random", {}, trials=192),
            "genetic": Variant("genetic", {}, trials=192),
            "trees": Variant(),
            "tree-gru": Variant(options=GRU),
            "trees, shipped": Variant(options={}),
        },
    ),
    "5": Figure(
        _one_core(*CONVOLUTIONS),
        {
            "trees, rank": Variant(),
            "trees, regression": Variant(options={**ALONE, "objective": "regression"}),
            "tree-gru, rank": Variant(options=GRU),
            "tree-gru, regression": Variant(options={**GRU, "objective": "regression"}),
        },
    ),
    "6": Figure(
        _one_core(*CONVOLUTIONS),
        {
            "no diversity": Variant(options={**ALONE, "alpha": 0.0}),
            "lambda 2": Variant(options={**ALONE, "top": 2.0}),
            "lambda 4": Variant(options={**ALONE, "top": 4.0}),
            "lambda 4, alpha 0.2": Variant(options={**ALONE, "top": 4.0, "alpha": 0.2}),
        },
    ),
    "7": Figure(
        _one_core(*CONVOLUTIONS),
        {
            name: Variant(options={**ALONE, "objective": "regression", "acquisition": name})
            for name in ("mean", "ei", "ucb")
        },
    ),
    "8": Figure(
        _one_core("C7", "C8", "C9"),
        {
            "random": Variant("random", {}, trials=512),
            "no history": Variant(),
            "C1 to C6": Variant(source=True),
        },
    ),
    "9": Figure(
        {"C7": 1, "1024x1024x1024": 1, "C8": 2},
        {
            f"{name}, {'C1 to C6' if source else 'no history'}": Variant(representation=name, source=source)
            for source in (False, True)
            for name in ("configuration", "flattened", "all")
        },
        trials=64,
    ),
}


def run(figure: str, path: Path, seeds: Sequence[int], budget: float) -> None:
    """Make the searches that the file lacks."""
    plan = FIGURES[figure]
    done = {(line.program, line.variant, line.seed) for line in read(path) if line.figure == figure}
    variants = {name: variant for name, variant in plan.variants.items() if variant.can_run}
    with _models(variants.values(), path.with_suffix(".histories.jsonl")) as models:
        end = time.monotonic() + budget
        for seed in seeds:
            for number, (program, cores) in enumerate(plan.programs.items()):
                missing = [name for name in variants if (program, name, seed) not in done]
                if not missing or time.monotonic() > end:
                    continue
                turn = (number + seed) % len(missing)
                with machine(program, cores) as here:
                    for name in [*missing[turn:], *missing[:turn]]:
                        line = _search(here, figure, name, seed, models)
                        append(path, line)
                        print(figure, program, name, seed, f"{line.curve[-1][1] * 1e6:.1f} us", flush=True)


def _search(here: Machine, figure: str, name: str, seed: int, models: Mapping[str, Path]) -> Line:
    variant = FIGURES[figure].variants[name]
    options = dict(variant.options)
    if variant.source:
        options["model"] = str(models[variant.representation])
    trials = variant.trials or FIGURES[figure].trials
    curve, _ = here.search(variant.searcher, options, seed, trials, variant.representation)
    return Line(figure, here.name, name, seed, curve)


@contextmanager
def _models(variants: Iterable[Variant], histories: Path) -> Generator[Mapping[str, Path]]:
    """Learn global models of the sources' trials, for each representation that a variant wants."""
    wanted = dict.fromkeys(each.representation for each in variants if each.source)
    with tempfile.TemporaryDirectory() as folder:
        if not wanted:
            yield {}
            return
        known = history(SOURCES, histories)
        yield {name: transferred(known, name, Path(folder) / f"{name}.npz") for name in wanted}


def main() -> None:
    """Read the command line."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("figure", choices=list(FIGURES))
    given.add_argument("--file", type=Path, default=Path("build/autotvm-figures.jsonl"))
    given.add_argument("--budget", type=float, default=600.0, help="seconds")
    given.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    given.add_argument("--table", action="store_true", help="search nothing, and print what the file has")
    asked = given.parse_args()
    asked.file.parent.mkdir(parents=True, exist_ok=True)
    if not asked.table:
        run(asked.figure, asked.file, asked.seeds, asked.budget)
    lines = [line for line in read(asked.file) if line.figure == asked.figure]
    show(lines, list(FIGURES[asked.figure].variants))


if __name__ == "__main__":
    main()
