"""Rewriting of a network before its kernels are made: views, layouts, and algorithms of convolutions."""

from __future__ import annotations

from planish.network.layouts import with_channels_last
from planish.network.model import Network
from planish.network.transposed import with_tap_sums
from planish.network.trimming import with_read_taps
from planish.network.views import with_views_behind
from planish.network.winograd import expected_tiles, with_winograd


def arranged(network: Network) -> Network:
    """Return a network with its layouts, whose convolutions are direct."""
    return with_tap_sums(with_channels_last(with_read_taps(with_views_behind(network))))


def rewritten(network: Network, tolerance: float) -> Network:
    """Return a network that computes the same, in fewer or quicker kernels.

    Args:
        network: as it was read.
        tolerance: largest difference of an output, as a share of its largest number.
    """
    network = arranged(network)
    return with_winograd(network, expected_tiles(network, tolerance))
