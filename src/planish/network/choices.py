"""Choice of a network's algorithms by measurement: of convolutions, of strips, and of copies.

Each alternative is measured in the network, with default schedules, and equal layers have the same one. Where
no time is left, or it is expected to gain more in the search for schedules, choices follow from the estimates
by which networks are compiled without tuning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from planish.network.fusion import Kernels, NetworkKernel, kernels_of
from planish.network.ir import Network
from planish.network.operators.winograd import POINTS, convolution_of, list_allowed_tiles, rewrite_winograd
from planish.network.placing import place_tensors, placement_groups, tensors_of
from planish.network.rewrites.pipeline import (
    estimate_tiles,
    rewrite_algorithms,
    rewrite_by_estimates,
)
from planish.network.rewrites.strips import chain_tensor, find_chains, list_rows
from planish.network.tuning import DefaultTimes

ALGORITHMS, STRIPS, PLACEMENTS = "algorithms", "strips", "placements"
"""Names of choices, each of which has expected gains of its own."""
NOT_MEASURED = "no time is left to measure them, or tuning is expected to gain more with it"


def choose_algorithms(
    network: Network, tolerance: float, times: DefaultTimes, on_progress: Callable[[str], None]
) -> Network:
    """Choose the algorithm of each convolution, and strips, by measurement; equal layers have the same.

    Args:
        network: with its layouts.
        tolerance: largest difference of an output, as a share of its largest number.
        times: measures kernels.
        on_progress: is called with lines on the progress.
    """
    allowed = list_allowed_tiles(network, tolerance)
    layers = {
        node.output: (network.shape(node.inputs[1]), network.shape(node.output))
        for node in network.nodes
        if node.output in allowed
    }
    shared = {layer: set(POINTS) for layer in layers.values()}
    for name, layer in layers.items():
        shared[layer] &= set(allowed[name])
    costs: dict[object, dict[int, float]] = {layer: {} for layer in shared}
    # 0 stands for the direct algorithm.
    for tile in (0, *POINTS) if allowed else ():
        chosen = {name: tile for name, layer in layers.items() if tile in shared[layer]}
        if tile and not chosen:
            continue
        affected = {layer for layer in shared if tile in shared[layer]}
        before = _least(costs, affected)
        if not times.gains.is_worth(ALGORITHMS, before if tile else None):
            on_progress(f"algorithms of convolutions are estimated: {NOT_MEASURED}")
            return _choose_strips(
                network, estimate_tiles(network, tolerance, times.target), times, on_progress
            )
        variant = rewrite_winograd(network, chosen if tile else {})
        kernels = kernels_of(variant)
        for kernel, seconds in zip(kernels, times.measure(variant, kernels), strict=True):
            name = convolution_of(kernel.nodes[0].output)
            if name in layers and (name in chosen or not tile):
                cost = costs[layers[name]]
                cost[tile] = cost.get(tile, 0.0) + seconds
        times.gains.note_gain(ALGORITHMS, before, _least(costs, affected))
    best = {layer: min(cost, key=lambda tile: cost[tile]) for layer, cost in costs.items()}
    count = sum(best[layer] > 0 for layer in layers.values())
    on_progress(f"{count} of {len(layers)} convolutions of 3x3 are quicker by Winograd's algorithm")
    return _choose_strips(
        network, {name: best[layer] for name, layer in layers.items() if best[layer]}, times, on_progress
    )


def _least(costs: Mapping[object, Mapping[Any, float]], affected: Iterable[object]) -> float:
    """Return the seconds of some layers, each with the best of the alternatives that were measured."""
    return sum(min(costs[layer].values(), default=0.0) for layer in affected)


def _choose_strips(
    network: Network, tiles: Mapping[str, int], times: DefaultTimes, on_progress: Callable[[str], None]
) -> Network:
    """Choose the strips of each chain of kernels by measurement; equal chains have the same."""
    listed = {chain: list_rows(network, chain, tiles, times.target) for chain in find_chains(network, tiles)}
    chains = [chain for chain, rows in listed.items() if rows]
    owners = {node.output: chain for chain in chains for node in chain.nodes}
    options = [[None, *listed[chain]] for chain in chains]
    costs: dict[object, dict[int | None, float]] = {chain.kind(network): {} for chain in chains}
    for index in range(max(map(len, options), default=0)):
        rows = {c.output: each[index] for c, each in zip(chains, options, strict=True) if index < len(each)}
        affected = {chain.kind(network) for chain in chains if chain.output in rows}
        before = _least(costs, affected)
        if not times.gains.is_worth(STRIPS, before if index else None):
            on_progress(f"strips of rows are estimated: {NOT_MEASURED}")
            return rewrite_by_estimates(network, tiles, times.target)
        variant = rewrite_algorithms(network, tiles, chains, rows)
        kernels = kernels_of(variant)
        for kernel, seconds in zip(kernels, times.measure(variant, kernels), strict=True):
            chain = owners.get(chain_tensor(convolution_of(kernel.output)))
            if chain is not None and chain.output in rows:
                cost, key = costs[chain.kind(network)], rows[chain.output]
                cost[key] = cost.get(key, 0.0) + seconds
        times.gains.note_gain(STRIPS, before, _least(costs, affected))
    best = {kind: min(cost, key=lambda rows: cost[rows]) for kind, cost in costs.items()}
    chosen = {chain.output: best[chain.kind(network)] for chain in chains}
    count = sum(rows is not None for rows in chosen.values())
    on_progress(f"{count} of {len(chains)} chains of kernels are quicker by strips of rows")
    return rewrite_algorithms(network, tiles, chains, chosen)


def choose_placements(
    network: Network, times: DefaultTimes, on_progress: Callable[[str], None], *, fuse: bool = True
) -> tuple[Network, Kernels]:
    """Choose by measurement where Concat and Slice copy nothing: kernels are slower on rows that lie apart.

    Args:
        network: with its layouts and algorithms.
        times: measures kernels.
        on_progress: is called with lines on the progress.
        fuse: as of `place_tensors`.

    Returns:
        The network, and its kernels.
    """
    placed, kernels = place_tensors(network, fuse=fuse)
    groups = placement_groups(placed, kernels)
    if not groups or not times.gains.is_worth(PLACEMENTS):
        return placed, kernels
    within = times.measure(placed, kernels)
    touching = sum(
        seconds
        for kernel, seconds in zip(kernels, within, strict=True)
        if any(not _memories(placed, kernel).isdisjoint(group) for group in groups)
    )
    if not times.gains.is_worth(PLACEMENTS, touching):
        return placed, kernels
    variant, made = place_tensors(network, fuse=fuse, apart=placed.placements)
    slower = slower_groups(placed, groups, (kernels, within), (made, times.measure(variant, made)))
    count = len(groups) - len(slower)
    on_progress(f"{count} of {len(groups)} groups of Concat and Slice are faster without copies")
    bases = set[str]().union(*slower)
    apart = {name for name, place in placed.placements.items() if place.base in bases}
    return place_tensors(network, fuse=fuse, apart=apart) if apart else (placed, kernels)


def _memories(placed: Network, kernel: NetworkKernel) -> set[str]:
    """Return the tensors in whose memory a kernel works."""
    return {placed.memory(tensor)[0] for tensor in tensors_of(kernel)}


def slower_groups(
    placed: Network,
    groups: Sequence[set[str]],
    within: tuple[Kernels, Sequence[float]],
    copied: tuple[Kernels, Sequence[float]],
) -> list[set[str]]:
    """Return the groups whose kernels take longer on rows that lie apart than with copies.

    Args:
        placed: network of all placements.
        groups: of `placement_groups`.
        within: kernels of that network, and the seconds of each.
        copied: the same of a network without placements.
    """
    costs = [[0.0, 0.0] for _ in groups]
    for index, (kernels, times) in enumerate((within, copied)):
        for kernel, seconds in zip(kernels, times, strict=True):
            touched = _memories(placed, kernel)
            for group, cost in zip(groups, costs, strict=True):
                if not touched.isdisjoint(group):
                    cost[index] += seconds
                    break
    return [group for group, (here, there) in zip(groups, costs, strict=True) if here > there]
