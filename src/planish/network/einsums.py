"""Einsum of ONNX, as a draft of a kernel: a product of tensors, summed over the letters that are left out."""

from __future__ import annotations

import string

from planish.network.drafts import Axis, Draft
from planish.network.model import Network, Node


def letters_of(node: Node, ranks: list[int]) -> tuple[list[str], str]:
    """Return the letters of the operands and of the result; an ellipsis has letters of its own.

    Args:
        node: with the attribute `equation`.
        ranks: of the operands.
    """
    left, arrow, right = node.attributes["equation"].replace(" ", "").partition("->")
    terms = left.split(",")
    free = [each for each in string.ascii_letters if each not in left + right]
    most = max(
        (rank - len(term) + 3 for term, rank in zip(terms, ranks, strict=True) if "." in term), default=0
    )
    named = [
        term.replace("...", "".join(free[most - (rank - len(term) + 3) : most]))
        for term, rank in zip(terms, ranks, strict=True)
    ]
    if not arrow:
        every = "".join(terms).replace(".", "")
        right = "..." * ("..." in left) + "".join(
            sorted(each for each in set(every) if every.count(each) == 1)
        )
    return named, right.replace("...", "".join(free[:most]))


def einsum(network: Network, node: Node) -> Draft:
    """Draft Einsum."""
    draft, shapes = Draft(network), [network.shape(name) for name in node.inputs]
    terms, result = letters_of(node, [len(shape) for shape in shapes])
    extents: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(set(term)) < len(term):
            raise node.refuse("a letter that an operand has twice is not covered")
        for letter, extent in zip(term, shape, strict=True):
            extents[letter] = max(extent, extents.get(letter, 1))
    # An axis is no name of a tensor: those begin with other letters.
    axes = {letter: draft.axis(f"e{letter}", extent) for letter, extent in extents.items()}
    factors = [
        draft.access(
            name,
            [
                (draft.linear({axes[letter]: 1}) if extent > 1 else "0", extent)
                for letter, extent in zip(term, shape, strict=True)
            ],
        )
        for name, term, shape in zip(node.inputs, terms, shapes, strict=True)
    ]
    found = draft.write("T", [axes[letter] for letter in result], "+=", "*".join(factors))
    kept = tuple(
        Axis(axes[letter], extents[letter], (d,)) for d, letter in enumerate(result) if extents[letter] > 1
    )
    return draft.finish(network.shape(node.output), kept, found)
