"""Writing a network as ONNX, by any of PyTorch's exporters."""

from __future__ import annotations

import io
import logging
import tempfile
import warnings
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import onnx
import torch
from models.catalogue import ALL
from torch import Tensor, nn

Exporter = Literal["torchscript", "dynamo", "dynamo-raw"]
"""`dynamo-raw` leaves out the exporter's own optimization."""
EXPORTERS: tuple[Exporter, ...] = get_args(Exporter)


@dataclass(frozen=True)
class Wish:
    """What is to be written.

    Args:
        name: of the network.
        exporter: which writes it.
        small: whether it is the small one.
        batch: examples at once.
        layers: of a transformer; 0 for its own number.
        opset: version of ONNX's operators; 0 for the exporter's own. Before 17 a layer normalization, and
            before 20 GELU, is written in its parts.
        seed: all weights come from it.
    """

    name: str
    exporter: Exporter = "torchscript"
    small: bool = False
    batch: int = 1
    layers: int = 0
    opset: int = 0
    seed: int = 0

    @property
    def file(self) -> str:
        """The file's name, which tells all that is not as usual."""
        words = [self.name, "small" if self.small else "", self.exporter]
        numbers = (("b", self.batch), ("l", self.layers), ("o", self.opset))
        words += [f"{what}{count}" for what, count in numbers if count > 1]
        return "-".join(filter(None, [*words, f"s{self.seed}" if self.seed else ""])) + ".onnx"


def write(wish: Wish, folder: Path) -> Path:
    """Write a model, unless it is there.

    Args:
        wish: which.
        folder: where; made where it is missing.

    Returns:
        The file.

    Raises:
        ValueError: the network has no layers to choose.
    """
    path = folder / wish.file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        onnx.save(exported(wish), unfinished)
        unfinished.rename(path)
    return path


def exported(wish: Wish) -> onnx.ModelProto:
    """Make a model with random weights."""
    torch.manual_seed(wish.seed)
    network = ALL[wish.name]
    if wish.layers and (network.layered is None or wish.small):
        raise ValueError(f"{wish.name} has no layers to choose")
    if wish.layers and network.layered is not None:
        made = network.layered(wish.layers)
    else:
        made = network.small() if wish.small else network.usual()
    _settle(made.eval())
    examples = network.examples(wish.batch, small=wish.small)
    return export_network(made, examples, wish.exporter, list(network.inputs), wish.opset)


def export_network(
    network: nn.Module, examples: tuple[Tensor, ...], exporter: Exporter, names: list[str], opset: int = 0
) -> onnx.ModelProto:
    """Export a network.

    Args:
        network: ready for inference.
        examples: inputs of the shapes that the model will take.
        exporter: which does it.
        names: of the inputs.
        opset: version of ONNX's operators; 0 for the exporter's own.
    """
    version = opset or None
    with _quiet(), torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        if exporter == "torchscript":
            torch.onnx.export(network, examples, file, input_names=names, opset_version=version, dynamo=False)
        else:
            program = torch.onnx.export(
                network,
                examples,
                input_names=names,
                opset_version=version,
                dynamo=True,
                optimize=exporter == "dynamo",
                external_data=False,
                verbose=False,
            )
            assert program is not None
            program.save(file)
        return _without_remarks(onnx.load(file))


def _settle(network: nn.Module) -> None:
    """Give batch normalizations the statistics of a trained network, so that folding them matters."""
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d) and layer.running_mean is not None:
            assert layer.running_var is not None
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
            nn.init.uniform_(layer.weight, 0.8, 1.2)
            nn.init.normal_(layer.bias, 0, 0.1)


@contextmanager
def _quiet() -> Generator[None]:
    """Keep exporters from telling how far they are, and that one of them is old."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def _without_remarks(model: onnx.ModelProto) -> onnx.ModelProto:
    """Leave out where in PyTorch's sources each node came from."""
    holders = [model, model.graph, *model.graph.node, *model.functions]
    holders += [node for function in model.functions for node in function.node]
    for holder in [*holders, *model.graph.value_info, *model.graph.input, *model.graph.output]:
        holder.ClearField("doc_string")
        holder.ClearField("metadata_props")
    return model
