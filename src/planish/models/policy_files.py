"""Files of policies, and the folders that hold them."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from planish.core import CanObserve, FeatureSchema, PlanishError, Space
from planish.core.files import replacing
from planish.models.decoder import DecoderShape
from planish.models.feedback import KINDS, Kind
from planish.models.ir_text import Tokenizer
from planish.models.networks import ReaderShape, Shape
from planish.models.provenance import HeldOut, Stated, Value, own_name, read_held_out, read_stated, unmet
from planish.models.writer import WriterShape

FORMAT = 1
HINT = "Train one: planish policy train --level LEVEL."
SUFFIX = ".safetensors"
AnyShape = Shape | ReaderShape | WriterShape | DecoderShape
_SHAPES: Mapping[str, Callable[..., AnyShape]] = {
    "reader": ReaderShape,
    "writer": WriterShape,
    "decoder": DecoderShape,
}
_Space = TypeVar("_Space", bound=CanObserve)


@dataclass(frozen=True)
class SavedPolicy:
    """Network of a policy with its level, observations and actions.

    Args:
        name: of its file.
        level: whose candidates it makes.
        schema: of what it observes.
        actions: texts of the actions, in order; the end has no text, and comes last. Of a network that reads
            instructions, lists of actions, each with commas between them.
        steps: how many it takes at most.
        shape: of the network.
        parameters: of the network, by name.
        metrics: what was found of it when it was trained: name to value.
        programs: how many it learnt from.
        version: planish's, that trained it.
        vocabulary: of a language model, as `planish.models.ir_text.Tokenizer.to_json` writes it.
        feedback: what kind of it a language model was trained with; "" for none, or where that was not kept.
        vector_bytes: of the processor that it learnt on; 0 where what it learnt does not depend on one.
        held_out: its comparison with the policy that was in use when it was trained; None where there was
            none, or no program was held back.
        conditions: of the programs that it learnt from: what the level's spaces have as `conditions`.
    """

    name: str
    level: str
    schema: FeatureSchema
    actions: tuple[str, ...]
    steps: int
    shape: AnyShape
    parameters: Mapping[str, NDArray[np.float32]]
    metrics: Mapping[str, float]
    programs: int
    version: str = field(default_factory=partial(version, "planish"))
    vocabulary: str = ""
    feedback: Kind | Literal[""] = ""
    vector_bytes: int = 0
    held_out: HeldOut | None = None
    conditions: Stated = field(default_factory=dict[str, Sequence[Value]])

    def fits(self, space: CanObserve) -> bool:
        """Return whether it fits a space: its observations and actions are the same."""
        return not self.unfit(space)

    def writable(self, there: Collection[str]) -> list[int]:
        """Return the indices of the lists that can be written with the steps that there are."""
        return [index for index, text in enumerate(self.actions) if {*text.split(",")} <= {*there}]

    def require_fit(self, space: Space, needed: type[_Space], otherwise: str = "observes programs") -> _Space:
        """Return a space that it fits.

        Args:
            space: where it is to walk.
            needed: what the space must offer.
            otherwise: why it cannot walk a space that does not.

        Raises:
            PlanishError: it cannot.
        """
        if isinstance(space, needed) and not (otherwise := self.unfit(space)):
            return space
        raise PlanishError(f"the policy {self.name} {otherwise}", "planish policy lists others.")

    def unfit(self, space: CanObserve) -> str:
        """Return why it does not fit a space; "" where it does."""
        ours, theirs, there = self.schema, space.observed, tuple(map(str, space.actions))
        if ours.name == theirs.name and ours != theirs:
            return f"was trained on version {ours.version} of {ours.name}, and this planish observes another"
        lists = not isinstance(self.shape, Shape)
        # Lists are left out one by one where a space lacks their steps; with half of them gone it is another
        # task.
        if ours.name == theirs.name and lists and 2 * len(self.writable(there)) < len(self.actions):
            missing = sorted({step for text in self.actions for step in text.split(",")} - {*there})
            return f"writes lists of steps that there are not here: {', '.join(missing[:3])}"
        # A network that scores actions has an output for each: they must be the same, in the same order.
        whole = ours == theirs and (lists or self.actions == there)
        return "" if whole else f"is for the actions of {ours.name}"


def write_policy(policy: SavedPolicy, path: Path) -> None:
    """Write a policy; half as large, for probabilities need no more than float16.

    Raises:
        OSError: it cannot be written.
    """
    from safetensors.numpy import save

    about: dict[str, Any] = {
        "format": FORMAT,
        "level": policy.level,
        "schema": asdict(policy.schema),
        "actions": policy.actions,
        "steps": policy.steps,
        "shape": asdict(policy.shape),
        "metrics": dict(policy.metrics),
        "programs": policy.programs,
        "version": policy.version,
        "vocabulary": policy.vocabulary,
        "feedback": policy.feedback,
        "vector_bytes": policy.vector_bytes,
        "conditions": policy.conditions,
        "held_out": None if policy.held_out is None else asdict(policy.held_out),
    }
    arrays = {name: np.ascontiguousarray(a, np.float16) for name, a in policy.parameters.items()}
    with replacing(path) as part:
        part.write_bytes(save(arrays, {"planish": json.dumps(about)}))


def load_policy(path: Path) -> SavedPolicy:
    """Read a policy that `write_policy` wrote, once for each state of its file; its arrays are read-only.

    Raises:
        PlanishError: there is none, it is cut off, it is of another format, or its arrays have other shapes.
    """
    from safetensors import SafetensorError

    if path.is_dir():  # the system would speak of a device that is not there
        raise PlanishError(f"cannot read a policy from {path}: it is a folder", "Name a file in it.")
    try:
        # A search of each function of a module asks for the same files again.
        state = path.stat()
        return _loaded(path.absolute(), state.st_mtime_ns, state.st_size, state.st_ino)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise PlanishError(f"cannot read a policy from {path}: {error}", HINT) from error


@lru_cache(maxsize=16)
def _loaded(path: Path, changed_ns: int, size: int, inode: int) -> SavedPolicy:  # noqa: ARG001
    """Read a policy, once for each state of its file; its arrays cannot be written."""
    from safetensors import safe_open

    with safe_open(path, "numpy") as held:
        about = json.loads((held.metadata() or {})["planish"])
        arrays = {name: held.get_tensor(name).astype(np.float32) for name in held.keys()}  # noqa: SIM118
    for array in arrays.values():
        array.flags.writeable = False
    return _read(path, about, arrays)


def _read(path: Path, about: dict[str, Any], arrays: Mapping[str, NDArray[np.float32]]) -> SavedPolicy:
    if (found := about.pop("format")) != FORMAT:
        raise PlanishError(f"{path} has format {found}, and this planish reads {FORMAT}", HINT)
    schema, raw = about.pop("schema"), about.pop("shape")
    # JSON has no tuples.
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}
    shape = _SHAPES.get(raw["kind"], Shape)(**fields)
    # Before it is asked: NumPy would broadcast some wrong shapes without a word.
    if {name: array.shape for name, array in arrays.items()} != shape.parameters():
        raise PlanishError(f"{path} has other arrays than its network", HINT)
    if about.get("feedback", "") not in ("", *KINDS):
        raise PlanishError(f"{path} was trained with unknown feedback, '{about['feedback']}'", HINT)
    conditions = read_stated(about.pop("conditions", {}))
    if conditions is None:
        raise PlanishError(f"{path} has conditions that are not a dictionary of lists", HINT)
    found = SavedPolicy(
        name=path.stem.removeprefix("policy-"),
        schema=FeatureSchema(schema["name"], schema["version"], tuple(schema["names"])),
        actions=tuple(about.pop("actions")),
        shape=shape,
        parameters=arrays,
        held_out=read_held_out(about.pop("held_out", None)),
        conditions=conditions,
        **about,
    )
    if isinstance(shape, DecoderShape):
        _require_vocabulary(found, shape)
    return found


def _require_vocabulary(policy: SavedPolicy, shape: DecoderShape) -> None:
    """Raise PlanishError where a network's tokens are not those that it was trained with."""
    tokenizer = Tokenizer.read(policy.vocabulary)
    if tokenizer.size != shape.tokens:
        what = f"the policy {policy.name} has {tokenizer.size:,} tokens, and its network {shape.tokens:,}"
        raise PlanishError(what, HINT)
    if tokenizer.passes != policy.actions:
        raise PlanishError(f"the policy {policy.name} has other passes than its vocabulary", HINT)


_log = logging.getLogger("planish")


def policies_folder() -> Path:
    """Return where the user's own policies are."""
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "policies"


def _shipped() -> dict[str, Path]:
    folder = Path(str(files("planish.models")))
    return {path.stem.removeprefix("policy-"): path for path in sorted(folder.glob(f"policy-*{SUFFIX}"))}


def policy_paths() -> Mapping[str, Path]:
    """Return the policies that there are, by name; one of the user's never takes a shipped one's name."""
    shipped = _shipped()
    # Renamed ones first: a file that has the name itself wins.
    own = sorted(policies_folder().glob(f"*{SUFFIX}"), key=lambda path: (path.stem not in shipped, path))
    return {own_name(path.stem, shipped): path for path in own} | shipped


def policy_for(
    space: CanObserve, name: str, paths: Callable[[], Mapping[str, Path]] = policy_paths
) -> SavedPolicy:
    """Find a policy.

    Args:
        space: where it is to walk.
        name: of a policy, a file, or "auto": of those that fit and learnt under its conditions, one of the
            user's that learnt on vectors of this width and was better than the one in use on enough held-back
            programs; else the shipped one; else any other. Of several, the one with vectors of the most
            similar width, of equals that of most programs. With vectors of another width the best loops are
            others: on AVX2 a policy of AVX-512 chose a third of the speed.
        paths: lists the files of policies by name.

    Raises:
        PlanishError: there is none, or it is for another space.
    """
    if name == "auto":
        asked, ours = space.conditions, vector_bytes_of(space)
        found = _preferred(lambda p: p.fits(space) and not unmet(p.conditions, asked), ours, paths())
        if found is None:
            under = "".join(f", {condition} {value}" for condition, value in asked.items())
            raise PlanishError(f"no policy is for the actions of {space.observed.name}{under}", HINT)
        return found
    policy = load_policy(paths().get(name, Path(name)))
    if why := policy.unfit(space):
        raise PlanishError(f"the policy '{name}' {why}", HINT)
    return policy


def policy_for_schema(schema: FeatureSchema) -> SavedPolicy | None:
    """Return the policy that "auto" finds where there are all of its actions; None where there is none."""
    return _preferred(lambda policy: policy.schema == schema, 0, policy_paths())


def _preferred(
    fits: Callable[[SavedPolicy], bool], vector_bytes: int, paths: Mapping[str, Path]
) -> SavedPolicy | None:
    shipped = {*_shipped().values()}
    found = [pair for pair in _readable(paths.values()) if fits(pair[1])]
    # Of equals the first one: the user's stand before shipped ones.
    best = min(found, key=lambda p: _priority(p[1], vector_bytes, shipped=p[0] in shipped), default=None)
    return best and best[1]


def _priority(policy: SavedPolicy, vector_bytes: int, *, shipped: bool) -> tuple[int, float, int]:
    """Return the key by which policies that fit are ordered; the one with the least is asked."""
    apart = _doublings(policy.vector_bytes, vector_bytes)
    better = policy.held_out is not None and policy.held_out.is_better and not apart
    return 0 if better else 1 if shipped else 2, apart, -policy.programs


def _readable(paths: Iterable[Path]) -> Iterator[tuple[Path, SavedPolicy]]:
    for path in paths:
        try:
            yield path, load_policy(path)
        except PlanishError as error:  # one of the user's: a search has others
            _log.warning("%s; it is left out", error)


def vector_bytes_of(space: CanObserve) -> int:
    """Return the width of the vectors of a space's target; 0 where nothing is known of them."""
    return space.machine.vector_bytes if space.machine else 0


def _doublings(one: int, other: int) -> float:
    """Return the number of doublings between two widths; 0 where one is unknown."""
    return abs(math.log2(one / other)) if one and other else 0.0
