"""How much texts surprise a network that continues text, by torch: what its training makes less."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from planish.learn.language.checkpoints import Tensors
from planish.learn.language.decoder import DecoderShape, hidden_rows
from planish.learn.language.samples import Sample


def surprise(shape: DecoderShape, weights: Tensors, batch: Sequence[Sample], device: str) -> torch.Tensor:
    """Give the surprise of what is learnt of some texts, in nats, all together.

    It does not depend on which texts are read together: padding comes last, where nothing looks back from.

    Args:
        shape: of the network.
        weights: of it, on the device.
        batch: texts, padded here to the longest one.
        device: "cpu", or "cuda", where it computes in bfloat16.
    """
    tokens = np.zeros((len(batch), max(len(one.tokens) for one in batch)), np.int64)
    learnt = np.zeros(tokens.shape, bool)
    for place, one in enumerate(batch):
        tokens[place, : len(one.tokens)] = one.tokens
        learnt[place, one.begin : len(one.tokens)] = True
    given, wanted = torch.from_numpy(tokens).to(device), torch.from_numpy(learnt[:, 1:]).to(device)
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        rows = hidden_rows(torch, shape, weights, given[:, :-1])
        # Only where something is learnt: scores of the whole vocabulary take the most memory by far.
        scores = rows[wanted] @ weights["tokens"].T
    # Sums over a vocabulary take more digits than bfloat16 has.
    return cross_entropy(scores.float(), given[:, 1:][wanted], reduction="sum")
