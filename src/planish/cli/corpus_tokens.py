"""`planish corpus tokens`: texts of a labeled corpus, for the training of a language model elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from planish.cli import options as given
from planish.cli.language_training import Device, device_of

Asked = Literal["all", "counts", "code", "none"]
Kind = Literal["short", "long", "fast"]


def tokens(
    corpus: Annotated[
        Path, typer.Argument(metavar="CORPUS", help="Corpus: its folder, or a .jsonl.gz file.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")],
    labels: Annotated[
        list[Path],
        typer.Option(
            "--labels",
            metavar="FILE",
            help="Table by 'planish corpus costs'; of several, the lists that all have count.",
        ),
    ],
    objective: Annotated[
        Literal["instructions", "text_bytes"], typer.Option("--objective", help="What to minimize.")
    ] = "instructions",
    context: Annotated[
        int,
        typer.Option(
            "--context",
            metavar="N",
            min=256,
            max=65_535,
            help="Tokens of the longest text; functions that do not fit are skipped.",
        ),
    ] = 2048,
    tasks: Annotated[
        Asked, typer.Option("--tasks", help="Auxiliary tasks that are learned with the list.")
    ] = "all",
    first: Annotated[
        Path | None,
        typer.Option(
            "--first", metavar="FILE", help="Language model that will be trained further: its vocabulary."
        ),
    ] = None,
    feedback: Annotated[
        Kind | None,
        typer.Option("--feedback", help="Add texts with feedback on the answers of --first."),
    ] = None,
    device: Device = "auto",
    form: given.Format = "text",
) -> None:
    """Write the functions of a labeled corpus as tokens, from which a language model is trained.

    The file has all that 'planish policy train --network decoder --tokens FILE' needs, also on a machine
    without LLVM and without the corpus. It needs the extra `train`.

        planish corpus tokens corpus/ corpus.tokens --labels costs.npz
    """
    from planish.cli.output import document, say, writing
    from planish.core import PlanishError
    from planish.models.ir_text import Tasks
    from planish.models.policy_files import load_policy
    from planish.train.texts import TextPlan, make_texts
    from planish.train.token_file import write_tokens

    plan = TextPlan(
        objective,
        context,
        Tasks(tasks in ("all", "counts"), tasks in ("all", "code")),
        load_policy(first) if first else None,
        feedback,
    )
    if feedback:
        if first is None:
            raise PlanishError("feedback is learned from the answers of a policy", "Name it: --first FILE.")
        plan = replace(plan, device=device_of(device))
    made, functions = make_texts(corpus, labels, plan)
    with writing(file):
        write_tokens(made, file)
    count = sum(len(one.tokens) for one in made.samples)
    if form == "json":
        document(
            {
                "functions": functions,
                "texts": len(made.samples),
                "validation": len(made.held),
                "tokens": count,
                "vocabulary": made.tokenizer.size,
                "bytes": file.stat().st_size,
            }
        )
        return
    say(
        f"{functions:,} functions: {len(made.samples):,} texts for training, of {count:,} tokens, and "
        f"{len(made.held):,} for validation; others are longer than {context:,} tokens\n"
        f"wrote {file}: {file.stat().st_size:,} bytes"
    )
