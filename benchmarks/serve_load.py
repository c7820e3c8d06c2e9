"""Load on `planish serve` by many clients, with bad requests, disconnects and restarts of the service.

    python benchmarks/serve_load.py [--clients 50] [--requests 10000] [--restarts 2] [--think 0.5]

Each client sends requests one after the other, after a pause of `--think` seconds on average, as an agent
does: descriptions, candidates, legal steps, histories; and among them malformed and huge bodies, wrong
tokens, connections closed in the midst of an evaluation, and answers that are read slowly. Meanwhile the
service is killed and started again; what waits for its start is not timed. Targets: each answer has the
expected status, no candidate is lost or measured twice, the 99th percentile of `describe` is below 50 ms
while candidates are measured, and the memory does not grow with the number of requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planish.levels.loops.level import LoopsLevel
from planish.store import open_store

PLANISH = str(Path(sys.executable).with_name("planish"))
PROGRAM = ["C[m,n] += A[m,k] * B[k,n]", "--size", "m=48,n=48,k=48", "--space", "marked-steps"]
KINDS = {
    "describe": 40,
    "evaluate": 25,
    "legal_steps": 8,
    "history": 5,
    "best": 5,
    "malformed": 5,
    "huge": 2,
    "wrong token": 4,
    "disconnect": 4,
    "slow reader": 2,
}
"""Kind of request to its weight."""
EXPECTED = {"malformed": {400, 422}, "huge": {413}, "wrong token": {401}}
OTHERWISE = {200, 429}
MALFORMED = [
    '{"steps"',
    "[]",
    '{"steps": 3}',
    '{"steps": [["Nothing", {}]]}',
    '{"steps": [["SplitBy", {"factor": NaN}]]}',
]
ANSWER_S = 120.0


@dataclass
class Service:
    """The service, which is started again on the same store and port.

    Args:
        folder: of its store and tokens.
        port: 0 before the first start.
    """

    folder: Path
    port: int = 0
    process: subprocess.Popen[str] | None = None
    starts: int = 0
    is_up: bool = False

    def start(self) -> None:
        """Start it, and wait until it listens."""
        options = ["--store", str(self.folder / "planish.db"), "--tokens", str(self.folder / "tokens.txt")]
        self.process = subprocess.Popen(
            [PLANISH, "serve", *PROGRAM, *options, "--port", str(self.port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        for line in self.process.stdout:
            if found := re.search(r":(\d+)/api", line):
                self.port = int(found[1])
            if line.startswith("Ctrl-C"):
                self.starts, self.is_up = self.starts + 1, True
                return
        raise SystemExit("the service did not start")

    def kill(self) -> None:
        """Kill it as a power cut would."""
        assert self.process
        self.is_up = False
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    @property
    def memory(self) -> float:
        """Return the resident memory of the process, in MiB."""
        assert self.process
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 2**20


@dataclass
class Seen:
    """What clients saw."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    describe_s: list[float] = field(default_factory=list[float])
    answers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    broken: int = 0
    changed: int = 0
    memory: list[float] = field(default_factory=list[float])

    @property
    def count(self) -> int:
        """Return how many requests had an answer, or none because that was not waited for."""
        return self.statuses.total()


async def request(
    port: int, tool: str, body: bytes, token: str, *, leave: bool = False, slow: bool = False
) -> tuple[int, bytes]:
    """Send a request; return the status, 0 where the answer was not waited for, and the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"POST /api/{tool} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        head += "Connection: close\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        if leave:
            return 0, b""
        parts = list[bytes]()
        while part := await reader.read(16 if slow else 1 << 16):
            parts.append(part)
            if slow and len(parts) < 20:
                await asyncio.sleep(0.05)
        answer = b"".join(parts)
        if not answer:
            raise ConnectionResetError
        return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]
    finally:
        writer.close()


def candidate(choose: random.Random) -> list[Any]:
    """Return one of some two thousand candidates, of which many are asked for several times."""
    steps = [["SplitBy", {"factor": choose.choice((2, 3, 4, 6, 8, 12, 16, 24))}]]
    steps += [
        [name, {}] for name in choose.choices(("Down", "SwapDown", "UnrollHere"), k=choose.randint(0, 3))
    ]
    return steps + [["SplitBy", {"factor": choose.choice((2, 4, 8))}]] * choose.randint(0, 1)


async def client(number: int, token: str, service: Service, seen: Seen, total: int, think_s: float) -> None:
    """Send requests until all clients together have sent so many."""
    choose = random.Random(number)
    while seen.count < total:
        await asyncio.sleep(choose.uniform(0, 2 * think_s))
        (kind,) = choose.choices([*KINDS], [*KINDS.values()])
        steps = candidate(choose)
        tool = {"disconnect": "evaluate", "slow reader": "describe"}.get(kind, kind)
        body = json.dumps({"steps": steps} if tool in ("evaluate", "legal_steps") else {}).encode()
        if kind in ("malformed", "huge", "wrong token"):
            tool = "evaluate"
            body = (
                choose.choice(MALFORMED).encode()
                if kind == "malformed"
                else b"[" * 300_000
                if kind == "huge"
                else body
            )
        began, state = time.monotonic(), (service.starts, service.is_up)
        try:
            async with asyncio.timeout(ANSWER_S):
                given = "guess" if kind == "wrong token" else token
                leave, slow = kind == "disconnect", kind == "slow reader"
                status, answer = await request(service.port, tool, body, given, leave=leave, slow=slow)
        except (OSError, IndexError, ValueError):  # the service was killed, or is not there yet
            seen.broken += 1
            await asyncio.sleep(0.2)
            continue
        seen.statuses[kind, status] += 1
        if kind == "describe" and state == (service.starts, True):
            seen.describe_s.append(time.monotonic() - began)
        if kind == "evaluate" and status == 200:
            _note(seen, steps, json.loads(answer))


def _note(seen: Seen, steps: list[Any], answer: dict[str, Any]) -> None:
    """Note an answer, and whether it is that of an earlier request."""
    if answer["outcome"] == "lost":
        return
    text = json.dumps(steps)
    before = seen.answers.setdefault(text, answer)
    seen.changed += (before["trial"], before.get("values")) != (answer["trial"], answer.get("values"))


async def restarts(service: Service, seen: Seen, total: int, count: int) -> None:
    """Kill the service and start it again, so many times, evenly; note its memory meanwhile."""
    due = [total * (each + 1) // (count + 1) for each in range(count)]
    while seen.count < total:
        await asyncio.sleep(0.5)
        seen.memory.append(service.memory)
        if due and seen.count >= due[0]:
            due.pop(0)
            print(f"killed after {seen.count:,} requests", flush=True)
            service.kill()
            await asyncio.to_thread(service.start)


async def load(service: Service, tokens: Sequence[str], total: int, count: int, think_s: float) -> Seen:
    """Have all clients send their requests."""
    seen = Seen()
    clients = [client(number, token, service, seen, total, think_s) for number, token in enumerate(tokens)]
    await asyncio.gather(*clients, restarts(service, seen, total, count))
    return seen


def check(store: Path, seen: Seen) -> list[str]:
    """Return what is wrong: answers that are not stored, or candidates that were measured twice."""
    wrong = list[str]()
    with open_store(store, read_only=True) as opened:
        texts = Counter[str]()
        trials = dict[int, Any]()
        for run in opened.runs():
            for trial in opened.each_trial(run.id, LoopsLevel().steps):
                texts[trial.candidate.text] += not trial.cached
                trials[trial.index] = trial
    twice = [text for text, count in texts.items() if count > 1]
    if twice:
        wrong.append(f"{len(twice)} candidates were measured twice, such as {twice[0]}")
    lost = [text for text, answer in seen.answers.items() if answer["trial"] not in trials]
    if lost:
        wrong.append(f"{len(lost)} answers are not stored, such as that of {lost[0]}")
    if seen.changed:
        wrong.append(f"{seen.changed} answers differ from an earlier one for the same candidate")
    wrong += [
        f"{count} requests of kind '{kind}' had status {status}"
        for (kind, status), count in sorted(seen.statuses.items())
        if status not in EXPECTED.get(kind, OTHERWISE | ({0} if kind == "disconnect" else set()))
    ]
    return wrong


def main() -> None:
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--clients", type=int, default=50)
    given.add_argument("--requests", type=int, default=10_000)
    given.add_argument("--restarts", type=int, default=2)
    given.add_argument("--think", type=float, default=0.5)
    asked = given.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tokens = [secrets.token_urlsafe(24) for _ in range(asked.clients)]
        lines = [f"client-{number} {token}\n" for number, token in enumerate(tokens)]
        (Path(folder) / "tokens.txt").write_text("".join(lines))
        service = Service(Path(folder))
        service.start()
        began = time.monotonic()
        try:
            seen = asyncio.run(load(service, tokens, asked.requests, asked.restarts, asked.think))
        finally:
            service.kill()
        took = time.monotonic() - began
        wrong = check(Path(folder) / "planish.db", seen)
    for (kind, status), count in sorted(seen.statuses.items()):
        print(f"{kind:<12} status {status:<3} {count:>6,}")
    print(f"{seen.count:,} requests of {asked.clients} clients in {took:.0f} s; {seen.broken:,} were cut off")
    print(f"{len(seen.answers):,} candidates were measured")
    times = sorted(seen.describe_s)
    median, last = statistics.median(times), times[int(0.99 * (len(times) - 1))]
    print(f"describe: {1e3 * median:.1f} ms (median), {1e3 * last:.1f} ms (99th percentile; target 50 ms)")
    print(f"memory: {min(seen.memory):.0f} to {max(seen.memory):.0f} MiB")
    print("\n".join(wrong) or "nothing was lost, nothing was measured twice")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
