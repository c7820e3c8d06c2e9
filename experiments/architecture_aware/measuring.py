"""Measuring the paper's configurations of one model, side by side, in several processes."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from configurations import Configuration, configurations

from planish.core import PlanishError, rng
from planish.levels.graph.evaluator import within_three_sigma
from planish.levels.graph.feeds import make_feeds
from planish.levels.graph.machine import Meter, counters, peak_memory
from planish.levels.graph.model_cache import Rewriter, model_cache_of
from planish.levels.graph.passes import Selection
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.rewriting import rewrite
from planish.levels.graph.sessions import SessionSettings, open_session
from planish.levels.graph.source import read_model
from planish.levels.graph.starting_lists import recognition_of
from planish.levels.graph.verification import difference, tolerance

QUICK = 20


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Args:
        runs: of each configuration, in all processes; the paper has 1,000.
        warm: runs before, in each process; the paper has 100.
        processes: fresh ones.
        rounds: in each process; in each, everybody has its share of the runs, in a shuffled order.
        creations: sessions of each configuration, in each process.
        tries: orders of each random list.
        cores: threads of a session.
        seed: of the random lists and orders.
    """

    runs: int = 1000
    warm: int = 100
    processes: int = 5
    rounds: int = 5
    creations: int = 5
    tries: int = 3
    cores: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Ready:
    """A configuration whose model was made.

    Args:
        name: of the configuration.
        file: the rewritten model.
        offline: the same, optimized by the runtime once and for all; its weights are beside it, as
            `planish export` writes them.
        disabled: the runtime's passes that are left out.
    """

    name: str
    file: Path
    offline: Path
    disabled: frozenset[str]


def measure(path: Path, effort: Effort) -> dict[str, Any]:
    """Measure the seven configurations of a model.

    Returns:
        `classes`, `batch`, `counters`, and `configurations`: name to `rewrites`, `disabled` (of the runtime's
        passes), `rewriting` (seconds), `latency`, `creation` and `offline` (seconds, by process and then by
        round), `kept` (runs within three standard deviations, and all), `peaks` and `offline_peaks` (MiB, by
        process), and `readings` of what counters there are; or `failed`.
    """
    program = read_model(path, {})
    recognition, settings = recognition_of(program), SessionSettings(cores=effort.cores)
    with tempfile.TemporaryDirectory() as folder:
        rewriter = Rewriter(program, model_cache_of(program), Path(folder))
        made: dict[str, dict[str, Any]] = {}
        ready: list[Ready] = []
        for configuration in configurations(recognition, effort.seed, effort.tries):
            chosen = _fastest(configuration, rewriter, program, settings)
            record, one = _prepared(configuration.name, chosen, rewriter, program, settings, effort.processes)
            made[configuration.name] = record
            ready += [one] if one else []
        _measured(made, ready, program, settings, effort)
    return {
        "model": path.stem,
        "classes": list(recognition.classes),
        "batch": program.batch,
        "effort": asdict(effort),
        "counters": sorted(counters()),
        "configurations": made,
    }


def _fastest(
    configuration: Configuration, rewriter: Rewriter, program: GraphProgram, settings: SessionSettings
) -> Selection:
    """Take the fastest order of a random list, by a few runs of each; the first where all fail."""
    feed = make_feeds(program, rewriter.original)[0]
    found: dict[Selection, float] = {}
    for chosen in (configuration.selection, *configuration.orders) if configuration.orders else ():
        try:
            session = open_session(rewriter.rewritten(chosen.rewrites).file, settings, chosen.disabled)
            found[chosen] = statistics.median(_timed(partial(session.run, feed), QUICK))
        except PlanishError:  # an order that fails is not taken; where all do, that is reported below
            continue
    return min(found, key=lambda chosen: found[chosen], default=configuration.selection)


def _prepared(
    name: str,
    chosen: Selection,
    rewriter: Rewriter,
    program: GraphProgram,
    settings: SessionSettings,
    processes: int,
) -> tuple[dict[str, Any], Ready | None]:
    """Make a configuration's files, make sure that its answers are right, and see what memory they take."""
    record: dict[str, Any] = {"rewrites": list(chosen.rewrites), "disabled": sorted(chosen.disabled)}
    feeds = make_feeds(program, rewriter.original)
    try:
        file, offline = rewriter.rewritten(chosen.rewrites).file, rewriter.new_file()
        start = time.perf_counter()  # the passes' libraries are loaded now
        rewrite(rewriter.original, chosen.rewrites)
        record["rewriting"] = time.perf_counter() - start
        session = open_session(file, settings, chosen.disabled, keep=offline, apart=True)
        expected = open_session(program.file, settings, as_it_is=True)
        for feed in feeds:
            wrong = difference(session.run(feed), expected.run(feed), tolerance(chosen.rewrites))
            if wrong:
                return {**record, "failed": wrong}, None
        disabled, feed, turns = chosen.disabled, feeds[0], range(processes)
        record["peaks"] = [peak_memory(file, settings, disabled, feed) for _ in turns]
        record["offline_peaks"] = [peak_memory(offline, settings, (), feed, as_it_is=True) for _ in turns]
    except PlanishError as error:
        return {**record, "failed": error.message}, None
    return record, Ready(name, file, offline, chosen.disabled)


def _measured(
    made: dict[str, dict[str, Any]],
    ready: Sequence[Ready],
    program: GraphProgram,
    settings: SessionSettings,
    effort: Effort,
) -> None:
    """Measure in fresh processes one after the other, and add what was found."""
    keys = ("latency", "creation", "offline", "kept")
    for one in ready:
        made[one.name] |= {key: [] for key in keys} | {"readings": []}
    for process in range(effort.processes):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found = pool.submit(_in_process, program, ready, settings, effort, process).result()
        for name, values in found.items():
            for key, value in values.items():
                made[name][key].append(value)


def _in_process(
    program: GraphProgram, ready: Sequence[Ready], settings: SessionSettings, effort: Effort, process: int
) -> dict[str, dict[str, Any]]:
    """Measure all configurations alternately, in this process."""
    import onnx

    feed = make_feeds(program, onnx.load(program.file))[0]
    found: dict[str, dict[str, Any]] = {one.name: {"creation": [], "offline": []} for one in ready}
    order = rng(effort.seed, process)
    for _ in range(effort.creations):
        for one in _shuffled(ready, order):
            found[one.name]["creation"].append(open_session(one.file, settings, one.disabled).seconds)
            found[one.name]["offline"].append(open_session(one.offline, settings, as_it_is=True).seconds)
    sessions = {one.name: open_session(one.file, settings, one.disabled) for one in ready}
    for session in sessions.values():
        _timed(partial(session.run, feed), effort.warm)
    share = max(1, effort.runs // (effort.processes * effort.rounds))
    samples: dict[str, list[list[float]]] = {one.name: [] for one in ready}
    readings: dict[str, list[Mapping[str, float]]] = {one.name: [] for one in ready}
    for _ in range(effort.rounds):
        for one in _shuffled(ready, order):
            meter = Meter(frozenset(("power", "temperature")))
            meter.begin()
            samples[one.name].append(_timed(partial(sessions[one.name].run, feed), share))
            readings[one.name].append(meter.end(share))
    for name, rounds in samples.items():
        within = [within_three_sigma(each) for each in rounds]
        found[name]["latency"] = [statistics.fmean(each) for each in within]
        found[name]["kept"] = [sum(map(len, within)), sum(map(len, rounds))]
        found[name]["readings"] = readings[name]
    return found


def _shuffled(ready: Sequence[Ready], order: Any) -> list[Ready]:
    return [ready[int(place)] for place in order.permutation(len(ready))]


def _timed(run: Any, count: int) -> list[float]:
    """Time single calls, in seconds."""
    seconds: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds
