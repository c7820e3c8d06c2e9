"""Attribute groups: which of their attributes a program cannot do without."""

from __future__ import annotations

import re

from planish.llvm.functions.ir_syntax import QUOTED

# Without these an optimisation may change what the program does, or code cannot be made for it.
_BINDING = frozenset(
    (
        "builtin",
        "convergent",
        "naked",
        "nobuiltin",
        "noduplicate",
        "null_pointer_is_valid",
        "presplitcoroutine",
        "returns_twice",
        "strictfp",
    )
)
_BINDING_TEXT = re.compile(r'"no-builtins?(?:-\w+)?"')
# What every x86-64 processor has; functions that use more (vector intrinsics) name it, and need it.
_COMMON = frozenset(("+cmov", "+cx8", "+fxsr", "+mmx", "+sse", "+sse2", "+x87"))
_FEATURES = re.compile(r'"target-features"="([^"]*)"')
_ATTRIBUTE = re.compile(rf"{QUOTED}(?:={QUOTED})?|[\w()]+", re.ASCII)


def binding(group: str, defines: bool) -> str:
    """Give the attributes of a group that must stay when the group goes.

    Args:
        group: the statement `attributes #N = { ... }`.
        defines: whether it stands at a definition, where the processor's features and the functions that
            are no builtins matter too.

    Returns:
        Each with a space before it, to stand where the group's number stood.
    """
    _, _, listed = group.partition("{")
    kept = [found for found in _ATTRIBUTE.findall(listed) if found in _BINDING or (defines and _binds(found))]
    return "".join(f" {attribute}" for attribute in kept)


def _binds(attribute: str) -> bool:
    features = _FEATURES.fullmatch(attribute)
    if features:
        return bool(set(features[1].split(",")) - _COMMON)
    return bool(_BINDING_TEXT.match(attribute))
