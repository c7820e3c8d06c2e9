"""The ways of taking lists from a policy that chapter 6 of the thesis compares, and more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from planish.core import rng
from planish.levels.llvm.passes.pipeline import passes_of
from planish.levels.llvm.passes.space import PassSpace
from planish.models.named_policies import WritingPolicy, policy_of
from planish.models.policy_files import SavedPolicy
from planish.models.writer import WriterShape
from planish.search.decoding import Decoding, Node, PrefixTree, decode

BUDGETS = (1, 3, 5, 10, 30, 100)
"""Samples, as in table 6.1."""
Passes = tuple[str, ...]
Samples = Mapping[int, Sequence[Passes]]
"""By budget; a small one's are the beginning of a larger one's where the method goes on."""
TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
PRIORITY = {
    "Priority Sampling (PS)": Decoding("priority"),
    "PS (max_branch 3)": Decoding("priority", branches=3),
    "PS (max_branch 5)": Decoding("priority", branches=5),
    "PS geometric (PSG)": Decoding("priority", by="mean"),
    "PSG (max_branch 3)": Decoding("priority", branches=3, by="mean"),
    "PSG (max_branch 5)": Decoding("priority", branches=5, by="mean"),
    "PS by the product (ours)": Decoding("priority", by="whole"),
}
FREE = "PS (no regex)"
WAYS: Mapping[str, Decoding] = {
    "Greedy": Decoding("greedy"),
    **{f"Nucleus, Temp{t:g}": Decoding("nucleus", temperature=t) for t in TEMPERATURES},
    "Temperature 1": Decoding("temperature"),
    "Top-5": Decoding("top-k"),
    "Beam": Decoding("beam"),
    "Diverse beam": Decoding("diverse-beam"),
    "Arithmetic": Decoding("arithmetic"),
    "Stochastic beam": Decoding("stochastic-beam"),
    "Unique randomizer": Decoding("unique"),
    **PRIORITY,
}
WHOLE = ("beam", "diverse-beam", "arithmetic")
"""Methods whose first few samples are not what they give if asked for a few."""


def sampled(saved: SavedPolicy, space: PassSpace, seed: int) -> Iterator[tuple[str, Samples]]:
    """Take lists for a function in all ways; they share what the policy has said."""
    tree, known = PrefixTree(policy_of(saved), space), dict[Node, Passes]()
    for name, way in WAYS.items():
        most = _lists(tree, replace(way, seed=seed), known)
        few = {
            n: _lists(tree, replace(way, seed=seed, samples=n), known) if way.method in WHOLE else most[:n]
            for n in BUDGETS[:-1]
        }
        yield name, {**few, BUDGETS[-1]: most}
    if isinstance(saved.shape, WriterShape):
        found = _free(saved, space)
        yield FREE, {n: found[:n] for n in BUDGETS}


def _lists(tree: PrefixTree, way: Decoding, known: dict[Node, Passes]) -> list[Passes]:
    """Take lists in one way; a node of the tree is read once, whichever way comes to it."""
    found = [*decode(tree, way)]
    for node in found:
        if node not in known:
            known[node] = passes_of(node.candidate)
    return [known[node] for node in found]


def _free(saved: SavedPolicy, space: PassSpace) -> list[Passes]:
    """Let the network write what it likes, and repair it: illegal passes go, and -Oz stands for nothing."""
    assert isinstance(saved.shape, WriterShape)
    number = {text: place for place, text in enumerate(saved.actions)}
    written = _lists(PrefixTree(WritingPolicy(saved, free=True), space), Decoding("priority"), {})
    kept = [saved.shape.grammar.repaired([number[text] for text in each]) for each in written]
    return [tuple(saved.actions[token] for token in tokens) or ("default<Oz>",) for tokens in kept]


def random_lists(space: PassSpace, seed: int) -> Sequence[Passes]:
    """Draw lists with even chances, as the thesis's random sampling does."""
    return [passes_of(space.sample(rng(seed, place))) for place in range(BUDGETS[-1])]
