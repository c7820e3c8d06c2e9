"""Comparing costs by ratio, so that a search runs alike in seconds and in nanoseconds."""


def quality(cost: float, reference: float) -> float:
    """Tell how good a cost is beside a reference: 1 when equal, less when worse, 0 at worst.

    For times it is reference / cost, and for a quantity to be raised, value / reference value:
    in both cases AutoTVM's fitness up to a factor. It is 0 for costs without a ratio (of different
    signs, or zero as the reference), where the first is the worse.

    Args:
        cost: as `Objective.cost` gives it, finite.
        reference: the same, of what it is compared with.
    """
    # Costs of objectives to be raised are negative, hence the magnitudes.
    scale = max(abs(cost), abs(reference))
    return max(0.0, 1.0 - (cost - reference) / scale) if scale else 1.0
