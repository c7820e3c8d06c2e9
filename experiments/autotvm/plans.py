"""What figures 4 to 9 of AutoTVM compare, and on which programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from searching import Options, Setting

from planish.models.tree_gru import can_train

ALONE: Options = {"model": "none"}
DOUBLING: Options = {**ALONE, "gp_threshold": 0, "first": 8, "growth": 1.0}
"""As the paper has it: nothing but trees, after batches that double."""
GRU: Options = {**ALONE, "local": "tree-gru"}
GRU_DOUBLING: Options = {**DOUBLING, "local": "tree-gru"}
RANDOM_TRIALS = 512
AVX2 = "x86-avx2"


def settings(*names: str, cores: int = 1, backend: str = "", dtype: str = "float32") -> tuple[Setting, ...]:
    """Make settings of programs on one target."""
    return tuple(Setting(name, cores, backend, dtype) for name in names)


SOME = settings("C3", "C5", "C8", "C9")
TARGETS = settings("C7", "C8", "C9")
SOURCES = settings("C1", "C2", "C3", "C4", "C5", "C6")
CHOOSING = settings(*[f"drawn-{n}" for n in (302, 303, 305, 306, 308, 309, 317, 318, 322, 323, 329, 331)])
"""By these the constants of the search were chosen: programs that no other figure has."""
FRESH = settings(*[f"drawn-{n}" for n in range(332, 341)])
"""Recorded when the constants were chosen, so that these tell what they are worth."""
NARROW = settings("C1", "C2", "C3", "C4", "C5", "C6", backend=AVX2)

DOUBLES = settings("C2", "C4", "C6", "C8", "C11", "64x64x64", "192x192x192", "384x384x384", dtype="float64")
"""For `conditions.py`; on a busy machine, by processor time."""
NARROW_MORE = settings("C8", "C9", "C11", "64x64x64", "192x192x192", "384x384x384", backend=AVX2)
"""The same."""

DEVICE_TARGETS = settings("C8", "C11", "64x64x64", backend="opencl:portable")
DEVICE_SOURCES = settings("C3", "C5", backend="opencl:portable")
"""On an OpenCL device, which is a processor: those that are searched, and those from which a model learns."""


@dataclass(frozen=True)
class Variant:
    """A way to search.

    Args:
        searcher: by name.
        options: of the searcher.
        representation: of candidates.
        sources: whose rows a global model learns from; none: the options say which model is asked.
        rows: of the sources in all; 0: every one.
        trials: of this variant, where it has more than the others.
        seeds: of this variant, where it has fewer than the others, for it takes long.
    """

    searcher: str = "model-guided"
    options: Options = field(default_factory=lambda: ALONE)
    representation: str = "all"
    sources: tuple[Setting, ...] = ()
    rows: int = 0
    trials: int = 0
    seeds: int = 0

    @property
    def can_run(self) -> bool:
        """Whether what it needs is installed."""
        return self.options.get("local") != "tree-gru" or can_train()


@dataclass(frozen=True)
class Figure:
    """An experiment.

    Args:
        title: what is compared.
        settings: the programs.
        variants: name to how it is searched.
        trials: of a search.
    """

    title: str
    settings: Sequence[Setting]
    variants: Mapping[str, Variant]
    trials: int = 64


RANDOM = Variant("random", {}, trials=RANDOM_TRIALS)
_REPRESENTATIONS = ("configuration", "flattened", "relations", "all", "all and relations")


def _by_representation(sources: tuple[Setting, ...]) -> Mapping[str, Variant]:
    return {
        name: Variant(options=DOUBLING, representation=name, sources=sources) for name in _REPRESENTATIONS
    }


def _on_device(figure: Figure, names: Sequence[str], trials: int) -> Figure:
    """Make some variants of a figure on the OpenCL device."""
    variants = {name: figure.variants[name] for name in names}
    return Figure(f"{figure.title}, OpenCL", DEVICE_TARGETS, variants, trials)


def _transferred(sources: tuple[Setting, ...], *representations: str) -> Mapping[str, Variant]:
    return {
        f"{name}, {what}": Variant(options=DOUBLING, representation=name, sources=found)
        for name in representations
        for what, found in (("no history", ()), ("transferred", sources))
    }


_WAYS = {
    "random": RANDOM,
    "genetic": Variant("genetic", ALONE, trials=256),
    "genetic, shipped": Variant("genetic", {}),
    "trees alone, doubling": Variant(options=DOUBLING),
    "no history": Variant(),
    "shipped": Variant(options={}),
}

_PAPER: Mapping[str, Figure] = {
    "4": Figure(
        "Cost model, genetic and random search",
        (*SOME, *settings("64x64x64", "192x192x192", "384x384x384")),
        {
            "random": RANDOM,
            "genetic": Variant("genetic", ALONE, trials=256),
            "genetic, shipped": Variant("genetic", {}),
            "trees": Variant(),
            "tree-gru": Variant(options=GRU, seeds=1),
            "trees, shipped": Variant(options={}),
        },
        128,
    ),
    "4-chosen": Figure("Programs by which constants were chosen", CHOOSING, _WAYS, 128),
    "4-fresh": Figure("Programs recorded after that", FRESH, _WAYS, 128),
    "5": Figure(
        "Rank or regression",
        SOME,
        {
            "trees, rank": Variant(options=DOUBLING),
            "trees, regression": Variant(options={**DOUBLING, "objective": "regression"}),
            "tree-gru, rank": Variant(options=GRU_DOUBLING, seeds=3),
            "tree-gru, regression": Variant(options={**GRU_DOUBLING, "objective": "regression"}, seeds=3),
        },
    ),
    "6": Figure(
        "Diversity",
        SOME,
        {
            "no diversity": Variant(options={**DOUBLING, "alpha": 0.0}),
            "lambda 1": Variant(options={**DOUBLING, "top": 1.0}),
            "lambda 2": Variant(options={**DOUBLING, "top": 2.0}),
            "lambda 4": Variant(options={**DOUBLING, "top": 4.0}),
            "lambda 4, alpha 0.2": Variant(options={**DOUBLING, "top": 4.0, "alpha": 0.2}),
        },
    ),
    "7": Figure(
        "Acquisition",
        SOME,
        {
            name: Variant(options={**DOUBLING, "objective": "regression", "acquisition": name})
            for name in ("mean", "ei", "ucb")
        },
    ),
    "8": Figure(
        "Transfer from C1 to C6",
        TARGETS,
        {
            "random": RANDOM,
            "no history": Variant(),
            "60 rows": Variant(sources=SOURCES, rows=60),
            "600 rows": Variant(sources=SOURCES, rows=600),
            "all rows": Variant(sources=SOURCES),
            "shipped": Variant(options={}),
        },
        128,
    ),
    "9a": Figure("Representations, one program", TARGETS, _by_representation(())),
    "9b": Figure("Representations, C1 to C6 to C7, C8 and C9", TARGETS, _by_representation(SOURCES)),
    "9c": Figure(
        "Representations, C1 to C6 to products",
        settings("192x192x192", "256x256x256", "384x384x384"),
        {"no history": Variant(options=DOUBLING), "random": RANDOM, **_by_representation(SOURCES)},
    ),
    "9d": Figure(
        "Representations, C1 to C6 with AVX2 to C7, C8 and C9 with AVX-512",
        TARGETS,
        {"no history": Variant(options=DOUBLING), "random": RANDOM, **_by_representation(NARROW)},
    ),
    "9e": Figure(
        "Representations, C1 to C6 on one core to C7, C8 and C9 on two",
        settings("C7", "C8", "C9", cores=2),
        {"no history": Variant(options=DOUBLING), "random": RANDOM, **_by_representation(SOURCES)},
    ),
}
FIGURES: Mapping[str, Figure] = {
    **_PAPER,
    **{
        f"{name}-opencl": _on_device(_PAPER[name], names, _PAPER[name].trials)
        for name, names in (
            ("4", ("random", "genetic", "trees")),
            ("5", ("trees, rank", "trees, regression")),
            ("6", tuple(_PAPER["6"].variants)),
            ("7", tuple(_PAPER["7"].variants)),
        )
    },
    "8-opencl": Figure(
        "Transfer from C3 and C5, OpenCL",
        DEVICE_TARGETS,
        {
            "random": RANDOM,
            "no history": Variant(),
            "60 rows": Variant(sources=DEVICE_SOURCES, rows=60),
            "all rows": Variant(sources=DEVICE_SOURCES),
        },
        128,
    ),
    "9-opencl": Figure(
        "Representations, C3 and C5 to others, OpenCL",
        DEVICE_TARGETS,
        {"random": RANDOM, **_transferred(DEVICE_SOURCES, "configuration", "schedules", "all")},
    ),
    "9-opencl-processor": Figure(
        "C1 to C6 of a processor's space to OpenCL's",
        DEVICE_TARGETS,
        {"random": RANDOM, **_transferred(SOURCES, "schedules")},
    ),
}
