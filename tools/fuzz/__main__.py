"""Fuzz the code generators: random programs, random candidates, every back end, an independent answer.

`PYTHONPATH=tools python -m fuzz --pairs 20000 --jobs 2` needs NumPy and iced-x86, and llvmlite for the
portable back end. It prints a table, and ends with 1 if a kernel was wrong or crashed; what failed is made as
small as possible and written into `tools/fuzz/cases`, which the tests try again.

`--mutants 3000` makes mistakes in kernels on purpose instead, one in each, and counts how many of those that
are really wrong verification accepts. Each of these is written into `tools/fuzz/mutants`; it ends with 1 if
there are any, or if a right kernel is refused.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from fuzz.candidates import KINDS
from fuzz.case import Case, judge
from fuzz.draw import PROGRAMS
from fuzz.mutant import NONE, Mutant
from fuzz.mutation_run import ACCEPTED, Confronted, Confronting, shrunk, table, try_mutants
from fuzz.shrink import fails, shrink
from fuzz.worker import Plan, Tried, try_cases, words_of, work
from planish.levels.loops.backends import supported_isas

CASES = Path(__file__).parent / "cases"
MUTANTS = Path(__file__).parent / "mutants"
MOST_SHRUNK = 10
"""Failures that are made smaller; more are most likely the same ones."""
INPUTS = ("both", "plain", "special")
VERDICTS = ("right", "wrong", "crashed", "refused")


def main() -> int:
    """Run the program; return its exit code."""
    options = _options()
    if options.worker:
        work(*words_of(options.worker))
    if options.replay:
        return _replay(options.replay)
    backends = options.backend or _backends()
    if options.mutants:
        return _mutants(options, Plan(options.seed, options.jobs, backends, programs=options.programs))
    counts: Counter[tuple[str, str, str]] = Counter()
    failures: list[Tried] = []
    seconds = options.minutes * 60
    plan = Plan(options.seed, options.jobs, backends, options.inputs, options.programs)
    for tried in try_cases(plan, options.first, options.pairs, seconds):
        counts[tried.case.backend, tried.case.kind, tried.verdict] += 1
        if tried.verdict in ("wrong", "crashed"):
            failures.append(tried)
            _say(f"{tried.verdict}: {tried.message}\n{tried.case.to_json('')}")
        elif tried.verdict == "refused":
            _say(f"refused: {tried.message} ({tried.case.backend})")
    _table(counts)
    for tried in failures[:MOST_SHRUNK]:
        _keep(tried, options.cases)
    return int(bool(failures) or not counts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="of programs, candidates and inputs")
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first program; later ones go on from a run"
    )
    parser.add_argument("--pairs", type=int, default=20_000, help="programs with candidates to try")
    parser.add_argument("--mutants", type=int, default=0, help="so many wrong kernels instead, or fewer")
    parser.add_argument("--minutes", type=float, default=1e6, help="when to end in any case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--inputs", choices=INPUTS, default="both", help="special ones hold NaN, inf and 0")
    parser.add_argument("--programs", choices=[*PROGRAMS, ""], default="", help="only programs of this kind")
    parser.add_argument("--backend", action="append", help="only this one; may be given several times")
    parser.add_argument("--cases", type=Path, default=CASES, help="where failures are written")
    parser.add_argument("--replay", type=Path, nargs="+", help="try cases of these files, nothing else")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def _mutants(options: argparse.Namespace, plan: Plan) -> int:
    """Try mutants, and write down those that verification accepts."""
    folder = MUTANTS if options.cases == CASES else options.cases
    end, tried = time.monotonic() + options.minutes * 60, list[Confronted]()
    with closing(try_mutants(plan, options.first, options.mutants)) as found:
        for one in found:
            if time.monotonic() > end:
                break
            tried.append(one)
            if one.verdict in ACCEPTED:
                _say(f"{one.verdict}: {one.message}\n{one.mutant.to_json('')}")
    _say(table(tried))
    passed = [one for one in tried if one.verdict in ACCEPTED]
    for number, one in enumerate(passed):
        small = shrunk(one.mutant, plan.seed) if number < MOST_SHRUNK else one
        _write(folder, (small or one).mutant.to_json((small or one).message))
    alarms = [one for one in tried if one.mutant.mistake == NONE and one.verdict == "doubted"]
    for one in alarms:
        _say(f"a right kernel was refused:\n{one.mutant.to_json('')}")
    return int(bool(passed or alarms) or not tried)


def _backends() -> list[str]:
    portable = ["portable"] if find_spec("llvmlite") else []
    return [*(f"x86-{name}" for name in supported_isas()), *portable]


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _table(counts: Mapping[tuple[str, str, str], int]) -> None:
    _say(f"{'back end':12}{'candidate':18}{'pairs':>8}" + "".join(f"{v:>9}" for v in VERDICTS[1:]))
    backends = sorted({backend for backend, _, _ in counts})
    for backend in backends:
        for kind in KINDS:
            _row(backend, kind, [counts.get((backend, kind, v), 0) for v in VERDICTS])
    _row("all", "", [sum(n for (_, _, v), n in counts.items() if v == verdict) for verdict in VERDICTS])


def _row(backend: str, kind: str, numbers: list[int]) -> None:
    _say(f"{backend:12}{kind:18}{sum(numbers):8}" + "".join(f"{n:9}" for n in numbers[1:]))


def _keep(tried: Tried, folder: Path) -> None:
    """Write a failure, as small as it gets."""
    if not fails(tried.case):
        _say(f"once only: {tried.message}\n{tried.case.to_json('')}")
        return
    _write(folder, shrink(tried.case).to_json(tried.message))


def _write(folder: Path, text: str) -> None:
    path = folder / f"{sha256(text.encode()).hexdigest()[:12]}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    _say(f"{path}:\n{text}")


def _replay(paths: list[Path]) -> int:
    wrong = 0
    for path in paths:
        if "mistake" in json.loads(path.read_text()):
            mutant = Mutant.of_json(path.read_text())
            found = Confronting(mutant, 0).confront(mutant)
            wrong += found.verdict in ACCEPTED
            _say(f"{path.name}: {found.verdict} {found.message}")
            continue
        case = Case.of_json(path.read_text())
        verdict, message = ("crashed", "") if fails(case) else judge(case)
        wrong += verdict in ("wrong", "crashed")
        _say(f"{path.name}: {verdict} {message}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
