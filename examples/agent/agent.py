"""Agent that improves a program by the tools of `planish serve`, which it starts and calls over MCP.

    python examples/agent/agent.py examples/llvm/inflate.ll
    python examples/agent/agent.py "C[m,n] += A[m,k] * B[k,n]" --size m=64,n=64,k=64 --space marked-steps
    python examples/agent/agent.py examples/hlo/regression.mlir

What stands after the program is passed on to `planish serve`. The policy is a script, so that no network is
needed: it tries some of the steps that are legal, and goes on from the best. `propose` is where a language
model would be asked; see its docstring.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp import Client, StdioServerParameters

EVALUATIONS = int(os.environ.get("AGENT_EVALUATIONS", "40"))
WIDTH = 8
"""Candidates that are tried from one place."""
PATIENCE = 3
"""Rounds without a better candidate, after which the agent stops."""

Steps = list[Any]


@dataclass
class Tried:
    """A candidate that was measured.

    Args:
        steps: of the candidate.
        cost: by the first objective, less is better; None where it failed.
    """

    steps: Steps
    cost: float | None


def propose(
    task: dict[str, Any], here: Steps, legal: dict[str, Any], history: Sequence[Tried]
) -> list[Steps]:
    """Return candidates to try next.

    A language model would be asked here: its prompt is the `task` (with the program, the kinds of steps and
    the rules), the `history` and what is `legal`; its answer is parsed as JSON. Read its API key from the
    environment, as in `os.environ["API_KEY"]`, and never send it to the service, which does not need it.
    """
    del task
    known = [each.steps for each in history]
    found = legal.get("neighbors") or [[*here, step] for step in legal.get("next_steps", [])]
    new = [steps for steps in found if steps not in known]
    return random.Random(len(history)).sample(new, min(WIDTH, len(new)))


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool; return its answer.

    Raises:
        RuntimeError: the tool refuses it.
    """
    found = await client.call_tool(tool, arguments)
    if found.is_error or found.structured_content is None:
        raise RuntimeError(f"{tool}: {found.content}")
    return found.structured_content


def cost_of(answer: dict[str, Any], objective: dict[str, Any]) -> float | None:
    """Return the cost in an answer of `evaluate`; None where the candidate failed."""
    if answer["outcome"] != "measured":
        return None
    value = answer["values"][objective["name"]]
    return value if objective["direction"] == "down" else -value


async def improve(client: Client) -> None:
    """Improve the program of a service, and print what was found."""
    task = await call(client, "describe")
    objective, here = task["objectives"][0], task["start"]["steps"]
    print(f"{task['level']}: {task['program'].splitlines()[0][:70]}")
    history = [Tried(here, cost_of(task["start"], objective))]
    best, vain = history[0], 0
    while len(history) < EVALUATIONS and vain < PATIENCE:
        legal = await call(client, "legal_steps", steps=best.steps if vain == 0 else here)
        chosen = propose(task, best.steps if vain == 0 else here, legal, history)
        if not chosen:
            break
        tried = list[Tried]()
        for steps in chosen[: EVALUATIONS - len(history)]:
            answer = await call(client, "evaluate", steps=steps)
            tried.append(Tried(steps, cost_of(answer, objective)))
        history += tried
        measured = [each for each in tried if each.cost is not None]
        if not measured:
            vain += 1
            continue
        first = min(measured, key=lambda each: each.cost or 0.0)
        here = first.steps  # a step that does not help by itself may be the way to one that does
        if best.cost is None or (first.cost or 0.0) < best.cost:
            best, vain = first, 0
            print(f"  {len(history):>3} candidates: {objective['name']} {abs(best.cost or 0.0):.4g}")
        else:
            vain += 1
    found = await call(client, "compare")
    print(f"  {found['headline']}{'' if found['conclusive'] else ' (not conclusive: compare again)'}")


async def main(words: Sequence[str]) -> None:
    """Start the service of a program, and improve it."""
    service = [
        sys.executable,
        "-c",
        "from planish.cli.script import main; main()",
        "serve",
        *words,
        "--stdio",
    ]
    server = StdioServerParameters(command=service[0], args=service[1:], env=dict(os.environ))
    async with Client(server, read_timeout_seconds=600) as client:
        await improve(client)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1:]))
