"""Application of rewriting passes to ONNX models, with a cache of what they make that processes share."""

from __future__ import annotations

import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import PlanishError, content_hash
from planish.core.disk_cache import DiskCache
from planish.levels.graph.feeds import Feed, make_feeds
from planish.levels.graph.model_protos import identity
from planish.levels.graph.parallel_branches import PASSES, join
from planish.levels.graph.passes import find_pass
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.source import load_checked
from planish.sandbox.scratch import shared_cache

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto
    from onnxscript import ir
    from onnxscript.rewriter import RewriteRuleSet


class RewriteError(PlanishError):
    """A pass failed, or what it made is no model with the same inputs and outputs."""

    exit_code = 3


def rewrite(model: ModelProto, names: Iterable[str]) -> ModelProto:
    """Apply passes in their order; the model that is given stays as it is.

    Raises:
        RewriteError: a pass fails.
    """
    for name in names:
        model = apply_pass(model, name)
    return model


def apply_pass(model: ModelProto, name: str, feeds: Sequence[Feed] = ()) -> ModelProto:
    """Apply one pass; return a new model. `feeds` are inputs for the passes of `NEEDS_INPUTS`.

    Raises:
        RewriteError: it fails, or changes the names of inputs or outputs.
    """
    kind, own = find_pass(name).kind, name.partition(".")[2]
    try:
        # Each library is imported when it is first needed.
        match kind:
            case "onnxoptimizer":
                made = _by_onnxoptimizer(model, own)
            case "onnxscript":
                made = _by_onnxscript(model, own)
            case "planish":
                made = join(model, PASSES[own])
            case _:
                made = _by_intent(model, own, feeds)
    except Exception as error:
        raise RewriteError(f"{name} fails: {type(error).__name__}: {error}".splitlines()[0]) from error
    # By other names the user's own calls would fail.
    if _interface(made) != _interface(model):
        raise RewriteError(f"{name} changes the model's inputs or outputs")
    return made


def _interface(model: ModelProto) -> tuple[list[str], list[str]]:
    # Old models list weights among their inputs; passes may drop them there.
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = sorted(value.name for value in model.graph.input if value.name not in weights)
    return inputs, [value.name for value in model.graph.output]


def _by_onnxoptimizer(model: ModelProto, name: str) -> ModelProto:
    """Call the compiled function: the one around it tries again by files, which it leaves behind."""
    from onnx import ModelProto

    compiled = import_module("onnxoptimizer.onnx_opt_cpp2py_export")
    return ModelProto.FromString(compiled.optimize(model.SerializeToString(), [name]))


NEEDS_INPUTS = frozenset({"intent.int8_static"})
"""The passes that look at what a model computes."""
_MOST = 32
"""Batches of inputs that are looked at."""
_AROUND = ("Add", "Relu", "Clip", "MaxPool", "GlobalAveragePool", "Concat")
"""Operators that stay in 8 bits between convolutions."""
_NARROW = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def _by_intent(model: ModelProto, name: str, feeds: Sequence[Feed]) -> ModelProto:
    """Apply a pass that changes results; `feeds` are inputs of the model, for those of `NEEDS_INPUTS`."""
    from onnx import ModelProto

    if name == "int8":
        return _through_files(model, _dynamic)
    if name == "int8_static":
        if not feeds:
            raise ValueError("there are no inputs to find ranges by")
        return _through_files(model, partial(_static, feeds=feeds))
    from onnxruntime.transformers.float16 import convert_float_to_float16

    copy = ModelProto()
    copy.CopyFrom(model)
    types = {node.op_type for node in model.graph.node}
    wide = sorted(types.difference(_NARROW)) if name == "mixed" else None
    made = convert_float_to_float16(copy, keep_io_types=True, op_block_list=wide)
    # One of each cast that was made for several uses of a value: they have one name.
    firsts: dict[tuple[str, ...], NodeProto] = {}
    for node in made.graph.node:
        firsts.setdefault(tuple(node.output), node)
    del made.graph.node[:]
    made.graph.node.extend(firsts.values())
    return made


def _through_files(model: ModelProto, quantize: Callable[[Path, Path], None]) -> ModelProto:
    """Run a quantizer that reads one file and writes another."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        plain = onnx.ModelProto()
        plain.CopyFrom(model)
        del plain.graph.value_info[:]  # exporters leave shapes there that the quantizer takes for wrong
        onnx.save(plain, before)
        quantize(before, after)
        return onnx.load(after)


def _dynamic(before: Path, after: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(before, after, weight_type=QuantType.QInt8)


def _static(before: Path, after: Path, feeds: Sequence[Feed]) -> None:
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(feeds[:_MOST])

        def get_next(self) -> Any:
            return next(self.rest, None)

    operators = {node.op_type for node in onnx.load(before, load_external_data=False).graph.node}
    quantize_static(
        before,
        after,
        Reader(),
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=["Conv", "MatMul", "Gemm", *(_AROUND if "Conv" in operators else ())],
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )


Change = Callable[["ir.Model"], object]
"""Changes a model; its result says whether it did: by a count, or by its attribute `modified`."""
_opened: list[tuple[ModelProto, ir.Model]] = []
"""The model that a rule was tried on last and in vain; to open one takes longer than to try a rule."""


def _by_onnxscript(model: ModelProto, name: str) -> ModelProto:
    """Apply a pass; return the given model itself where the pass reports that it changed nothing."""
    from onnxscript import ir

    special = _special().get(name)
    last = _opened.pop() if special is None and _opened else (None, None)
    changed = last[1] if last[0] is model and last[1] else ir.serde.deserialize_model(model)
    result = (special or _rule(name))(changed)
    if result == 0 if isinstance(result, int) else getattr(result, "modified", None) is False:
        if special is None:
            _opened.append((model, changed))
        return model
    return ir.serde.serialize_model(changed)


def _rule(name: str) -> Change:
    """Find a rewrite rule, or set of rules, by its name."""
    from onnxscript.rewriter import RewriteRuleSet
    from onnxscript.rewriter.rules import common

    found: Any = getattr(common, f"{name}_rule", None) or getattr(common, f"{name}_rules")
    # The library exports this one as what makes it.
    rules = found() if name == "fuse_hardswish" else found
    return _tidied(rules if isinstance(rules, RewriteRuleSet) else RewriteRuleSet([rules]))


def _tidied(rules: RewriteRuleSet) -> Change:
    """Apply rules, then remove the nodes that are not used any more; the change returns their count."""
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    def change(model: ir.Model) -> int:
        count = rules.apply_to_model(model)
        if count:
            RemoveUnusedNodesPass()(model)
        return count

    return change


@cache
def _special() -> Mapping[str, Change]:
    """Return all that is no rewrite rule."""
    import onnx_ir.passes.common as common
    from onnxscript import optimizer
    from onnxscript.rewriter import ort_fusions
    from onnxscript.rewriter.ort_fusions import (
        _core,
        bias_gelu,
        erfgelu,
        fused_matmul_rule_sets,
        gelu,
        rms_normalization,
        shape_optimization,
        skip_normalization,
        softmax,
    )

    return {
        "fold_constants": optimizer.fold_constants_ir,
        "inline": common.InlinePass(),
        "optimize": optimizer.optimize_ir,
        "eliminate_common_subexpressions": common.CommonSubexpressionEliminationPass(),
        "eliminate_identity": common.IdentityEliminationPass(),
        "deduplicate_initializers": common.DeduplicateInitializersPass(),
        "lift_constants": common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        "lift_subgraph_initializers": common.LiftSubgraphInitializersToMainGraphPass(),
        "remove_unused_nodes": common.RemoveUnusedNodesPass(),
        "remove_unused_functions": common.RemoveUnusedFunctionsPass(),
        "optimize_for_ort": ort_fusions.optimize_for_ort,
        "fuse_transformers": _core.fuse_xformers,
        "fuse_erf_gelu": erfgelu.fuse_erfgelu,
        "fuse_gelu": gelu.fuse_gelu,
        "fuse_bias_gelu": bias_gelu.fuse_bias_gelu,
        "fuse_rms_normalization": rms_normalization.fuse_rms_normalization,
        "fuse_skip_layer_normalization": skip_normalization.fuse_skip_layer_normalization,
        "fuse_skip_rms_normalization": skip_normalization.fuse_skip_rms_normalization,
        "fuse_softmax": _tidied(softmax.rules),
        "fuse_matmul": _tidied(fused_matmul_rule_sets.fused_matmul_rule_sets()),
        "optimize_shapes": _tidied(shape_optimization.rules),
    }


CAPACITY = 1 << 30
"""Bytes of models that are kept in memory; those that were used longest ago go."""
_SEARCH_CAPACITY, _WHOLE_CAPACITY = 2 << 30, 4 << 30
"""Bytes of models on disk, as the search may fill them, and all: finalists of some 300 MB have the rest."""
_KEY = re.compile(rb"[0-9a-f]{32}")

Rewrites = tuple[str, ...]


# Programs are searched one after the other: of several, the oldest cache goes with its folder.
@lru_cache(maxsize=2)
def model_cache_of(_program: GraphProgram) -> DiskCache:
    """Return the cache of a program's rewritten models, which all processes of a search share."""
    return shared_cache(_SEARCH_CAPACITY, evicts=False)


def final_cache_of(program: GraphProgram) -> DiskCache:
    """Return the same cache, with room that is left for the models that are compared at the end."""
    return replace(model_cache_of(program), capacity=_WHOLE_CAPACITY)


@dataclass(frozen=True)
class RewrittenModel:
    """A file of a model, and the model's identity: equal keys mean equal models."""

    file: Path
    key: str


class Rewriter:
    """Applies rewriting passes to one model; lists that begin alike share their beginnings.

    A pass that changes nothing, but names and the order of nodes, leaves the model as it is.

    Args:
        cache: of models and their identities, which other processes may share.
        folder: where files are written that the cache has no room for; it is not removed.
        capacity: bytes of models that are kept in memory.
        apply: applies one pass, as `apply_pass` does.

    Attributes:
        original: the model as it came.

    Raises:
        ProgramError: the file was moved or changed.
    """

    def __init__(
        self,
        program: GraphProgram,
        cache: DiskCache,
        folder: Path,
        capacity: int = CAPACITY,
        apply: Callable[..., ModelProto] = apply_pass,
    ) -> None:
        self.original, self._apply = load_checked(program), apply
        self._program, self._cache, self._folder = program, cache, folder
        self._capacity, self._count = capacity, 0
        self._keys: dict[Rewrites, str] = {(): identity(self.original)}
        self._broken: dict[Rewrites, RewriteError] = {}
        self._models: OrderedDict[str, ModelProto] = OrderedDict()

    def model_key(self, rewrites: Sequence[str]) -> str:
        """Return the identity of the model after these passes; raises RewriteError where one fails."""
        wanted = tuple(rewrites)
        if wanted not in self._keys:
            key_file = f"{content_hash(' '.join(wanted))}.key"
            known = self._cache.get(key_file) or b""
            if _KEY.fullmatch(known):
                self._keys[wanted] = known.decode()
            else:
                self.model(wanted)
                self._cache.put(key_file, self._keys[wanted].encode())
        return self._keys[wanted]

    def rewritten(self, rewrites: Sequence[str]) -> RewrittenModel:
        """Return the file of the model after these passes; raises RewriteError where one fails.

        Where the cache has no room for it, it is there until the next call.
        """
        key = self.model_key(rewrites)
        # The user's own file: no copy of a large model is written.
        if key == self._keys[()]:
            return RewrittenModel(self._program.file, key)
        name = f"{key}.onnx"
        file = self._cache.find(name)
        if file is None:
            content = self.model(rewrites).SerializeToString()
            file = self._cache.put(name, content)
            if file is None:
                file = self._folder / "rewritten.onnx"
                file.write_bytes(content)
        return RewrittenModel(file, key)

    def model(self, rewrites: Sequence[str]) -> ModelProto:
        """Return the model after these passes, not to be changed; raises RewriteError where one fails."""
        wanted = tuple(rewrites)
        known = self._keys.get(wanted)
        if known == self._keys[()]:
            return self.original
        if known in self._models:
            self._models.move_to_end(known)
            return self._models[known]
        if wanted in self._broken:
            raise self._broken[wanted]
        before = self.model(wanted[:-1])
        try:
            after = self._apply(before, wanted[-1], *([self._feeds] if wanted[-1] in NEEDS_INPUTS else []))
        except RewriteError as error:
            # Kept, too: lists that begin with a failing one need not try it again.
            self._broken[wanted] = error
            raise
        # To hash large weights takes a while: not for a pass that returned the model that it was given.
        old = self.model_key(wanted[:-1])
        new = self._keys[wanted] = old if after is before else identity(after)
        # The same but for names: the model before is kept, so that what follows is shared.
        if new == old:
            return before
        models = self._models
        models[new] = after
        # The newest stays, however large it is.
        while len(models) > 1 and sum(each.ByteSize() for each in models.values()) > self._capacity:
            models.popitem(last=False)
        return after

    def new_file(self) -> Path:
        """Name a file that is not there yet."""
        self._count += 1
        return self._folder / f"{self._count}.onnx"

    @cached_property
    def _feeds(self) -> Sequence[Feed]:
        return make_feeds(self._program, self.original)
