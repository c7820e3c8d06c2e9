"""Training samples of language models, their answers as a compiler judges them, and feedback (thesis 5.4)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Bindings, IRError
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.features import SIZES, CutWarning, instruction_schema, observe_module
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.levels.llvm.passes.space import Compiled, Passes, compile_lists, oz_of, reading_error
from planish.models.decoder import ROOM, CutTextWarning, DecoderShape, prompt_of
from planish.models.feedback import (
    Feedback,
    Kind,
    bleu,
    error_class,
    feedback_of,
    feedback_tokens,
    same_code,
    verdict_token,
)
from planish.models.ir_text import ALL, ModelAnswer, Tasks, Tokenizer, answer_tokens, question, read_answer
from planish.models.networks import Parameters
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row
from planish.train.cost_tables import CostTable
from planish.train.samples import ListDataset, Sample

HELD = 8
"""Every eighth package is held back from training, and decides when to stop."""


def read_list_dataset(
    corpus: Path,
    tables: Sequence[CostTable],
    objective: str,
    lists: Sequence[tuple[str, ...]],
    split: str = "train",
) -> ListDataset:
    """Read functions before and after -Oz, with what each list saves on them.

    A `CutWarning` says how many are longer than what is observed.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        tables: what lists cost on functions; no function is in two of them.
        objective: what is to be made less.
        lists: some of each table's, in the order in which all are run.
        split: of the packages to be read.

    Raises:
        PlanishError: there is no corpus; a table is of another LLVM, lacks a list or the objective, or they
            have none of the corpus' functions.
    """
    bindings = open_bindings()
    known: dict[str, tuple[NDArray[np.float32], float]] = {}
    for table in tables:
        known |= labels_of(table, objective, lists, bindings.version)
    rows, observed, cut = list[Row](), list[NDArray[np.int16]](), 0
    for row in read_corpus(corpus, split):
        found = _observed(bindings, row.ir) if row.identity in known else None
        if found is not None:
            rows.append(row)
            observed.append(found[0])
            cut += found[1]
    if not rows:
        what = f"the labels are of no function of {corpus}"
        raise PlanishError(what, "planish corpus costs CORPUS FILE makes them.")
    if cut:
        what = f"of {cut:,} of the {len(rows):,} functions that are read, the end is cut off"
        warnings.warn(f"{what}: they are longer than what is observed", CutWarning, stacklevel=2)
    labels = [known[row.identity] for row in rows]
    return ListDataset(
        [row.identity for row in rows],
        np.stack(observed),
        np.stack([shares for shares, _ in labels]),
        np.array([baseline for _, baseline in labels], np.float32),
        np.array([row.package for row in rows]),
        instruction_schema(objective),
        tuple(SIZES.values()),
        tuple(lists),
    )


def labels_of(
    table: CostTable, objective: str, lists: Sequence[tuple[str, ...]], llvm: str
) -> Mapping[str, tuple[NDArray[np.float32], float]]:
    """Return each list's savings on each function, as a share of its cost after -Oz, and that cost."""
    columns, hint = table.columns, "Make others: planish corpus costs CORPUS FILE."
    if columns.llvm != llvm:
        raise PlanishError(f"the labels are of LLVM {columns.llvm}, and this is {llvm}", hint)
    if objective not in columns.objectives or not {*lists} <= {*columns.lists}:
        lacks = "some lists" if objective in columns.objectives else objective
        raise PlanishError(f"the labels lack {lacks}", hint)
    baseline = table.baseline[:, columns.objectives.index(objective)]
    saved = table.saved(objective)[:, [columns.lists.index(passes) for passes in lists]]
    shares = (saved / np.maximum(baseline, 1)[:, None]).astype(np.float32)
    return dict(zip(table.identities.tolist(), zip(shares, baseline.tolist(), strict=True), strict=True))


def held_back(packages: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Return which functions are held back, by package; none where there is but one package."""
    names = np.unique(packages)
    return np.isin(packages, names[::HELD] if len(names) > 1 else [])


def _observed(bindings: Bindings, ir: str) -> tuple[NDArray[np.int16], bool] | None:
    """Return the observation of a function, and whether it was truncated; None where it cannot be read."""
    oz = oz_of({*elements()})
    assert oz is not None
    try:
        module = bindings.parse(for_size(ir))
    except IRError:
        return None
    try:
        module.run(print_pipeline((oz,)))
        # Counted: a line for each function would hide all others.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CutWarning)
            return observe_module(ir, module.text()).astype(np.int16), bool(caught)
    finally:
        module.close()


@dataclass(frozen=True)
class TextExample:
    """A function, and the answer that is expected of a language model.

    Args:
        identity: the hash of its IR.
        package: where it is from.
        ir: it.
        answer: the best list that is known, what it makes of the function, and counts.
        oz: instructions after -Oz, whatever its list makes less.
    """

    identity: str
    package: str
    ir: str
    answer: ModelAnswer
    oz: int


def read_text_examples(
    corpus: Path, tables: Sequence[CostTable], objective: str, lists: Sequence[Passes], split: str | None
) -> list[TextExample]:
    """Read functions that have labels, and compile each with the best of its lists; else with -Oz.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        tables: what lists cost on functions.
        objective: what is made less.
        lists: some of each table's.
        split: of the packages to be read; None reads all.

    Raises:
        PlanishError: there is no corpus, or the tables do not fit it.
    """
    bindings = open_bindings()
    known: dict[str, tuple[np.ndarray, float]] = {}
    for table in tables:
        known |= labels_of(table, objective, lists, bindings.version)
    rows = [row for row in read_corpus(corpus, split) if row.identity in known]
    if not rows:
        what = f"the labels are of no function of {corpus}"
        raise PlanishError(what, "planish corpus costs CORPUS FILE makes them.")
    best = [best_list(known[row.identity][0], lists) for row in rows]
    made = compile_lists(bindings, [(row.ir, passes) for row, passes in zip(rows, best, strict=True)])
    baseline = [int(known[row.identity][1]) for row in rows]
    if objective != "instructions":
        # The labels have another unit, and a model counts in instructions.
        small = compile_lists(bindings, [(row.ir, (_oz(),)) for row in rows])
        baseline = [0 if one is None else one.instructions for one in small]
    return [
        TextExample(
            row.identity, row.package, row.ir,
            ModelAnswer(passes, row.instructions, one.instructions, one.code), oz,
        )
        for row, passes, one, oz in zip(rows, best, made, baseline, strict=True)
        if one is not None and oz
    ]  # fmt: skip


def best_list(shares: np.ndarray, lists: Sequence[Passes]) -> Passes:
    """Return the first of the lists that save most; -Oz's where none saves."""
    return lists[int(shares.argmax())] if shares.max() > 0 else (_oz(),)


def _oz() -> str:
    oz = oz_of({*elements()})
    assert oz is not None
    return oz


def text_samples(
    tokenizer: Tokenizer, examples: Sequence[TextExample], context: int, tasks: Tasks = ALL
) -> list[Sample]:
    """Write examples as prompts and answers (figure 4.1); those that are too long are left out (4.3.1)."""
    found = list[Sample]()
    for example in examples:
        asked = question(tokenizer, example.ir)
        whole = [*asked, *answer_tokens(tokenizer, example.answer, tasks)]
        if len(whole) <= context:
            improvable = example.answer.passes != (_oz(),)
            found.append(Sample(np.array(whole, np.int32), len(asked), improvable))
    return found


@dataclass(frozen=True)
class EvaluatedAnswer:
    """An answer, and what came of it.

    Args:
        example: of what.
        answer: the model's.
        compiled: what its list makes of the function; None where it failed.
        error: what is wrong with the code that it wrote, by its class; "" where nothing is.
        bleu: of that code, beside what its list makes of the function; None without either.
        exact: whether it is the same.
    """

    example: TextExample
    answer: ModelAnswer
    compiled: Compiled | None
    error: str = ""
    bleu: float | None = None
    exact: bool = False

    @property
    def cost(self) -> int:
        """Instructions after the list; without a list that can be run, the function's own."""
        before = self.example.answer.before
        return self.compiled.instructions if self.compiled else before or 0


def answers_of(
    shape: DecoderShape,
    parameters: Parameters,
    tokenizer: Tokenizer,
    examples: Sequence[TextExample],
    *,
    code: bool,
    device: str = "cpu",
) -> list[ModelAnswer]:
    """Let a model answer greedily, many functions at once (4.3).

    Args:
        shape: of the network.
        parameters: of it.
        tokenizer: of it.
        examples: functions; long ones are cut, as they are where the model is used.
        code: whether it writes the optimized code, too, which takes most of the time.
        device: of PyTorch: "cpu" or "cuda".
    """
    from planish.train.torch_decoder import greedy_tokens

    names = ("[end]",) if code else ("[code]", "[end]")
    ends: Set[int] = {tokenizer.token(name) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutTextWarning)
        prompts = [prompt_of(shape, tokenizer, example.ir) for example in examples]
    written = greedy_tokens(shape, parameters, prompts, ends, None if code else ROOM, device)
    return [
        read_answer(tokenizer, [token for token in tokens if code or token not in ends]) for tokens in written
    ]


def evaluate_answers(
    examples: Sequence[TextExample], answers: Sequence[ModelAnswer]
) -> list[EvaluatedAnswer]:
    """Compile the lists of answers, and read their code."""
    bindings = open_bindings()
    jobs = [(example.ir, answer.passes) for example, answer in zip(examples, answers, strict=True)]
    found = list[EvaluatedAnswer]()
    for example, answer, made in zip(examples, answers, compile_lists(bindings, jobs), strict=True):
        one = EvaluatedAnswer(example, answer, made)
        if answer.code is not None:
            error = reading_error(bindings, answer.code)
            one = replace(
                one,
                error=error_class(error) if error else "",
                bleu=bleu(answer.code, made.code) if made else None,
                exact=made is not None and same_code(answer.code, made.code),
            )
        found.append(one)
    return found


def summary(evaluated: Sequence[EvaluatedAnswer]) -> Mapping[str, float]:
    """Return the value of answers, in the columns of figures 4.4, 4.5 and 4.6; at least one answer.

    Shares are of all answers, those without code or counts included, unless a name says otherwise.
    """
    oz = np.array([one.example.oz for one in evaluated], float)
    cost, best = (
        np.array(each, float)
        for each in ([one.cost for one in evaluated], [one.example.answer.after for one in evaluated])
    )
    found = {
        "functions": float(len(evaluated)),
        "functions improved": float((cost < oz).sum()),
        "functions regressed": float((cost > oz).sum()),
        "instructions saved": float(np.maximum(oz - cost, 0).sum()),
        "instructions regressed": float(np.maximum(cost - oz, 0).sum()),
        "improvement": 1 - cost.sum() / oz.sum(),
        "improvement with -Oz as backup": 1 - np.minimum(cost, oz).sum() / oz.sum(),
        "improvement of the labels": 1 - np.minimum(best, oz).sum() / oz.sum(),
        "lists that fail": float(np.mean([one.compiled is None for one in evaluated])),
    }
    found |= _count_quality(evaluated)
    if any(one.answer.code is not None for one in evaluated):
        found |= _code_quality(evaluated)
    return found


def _count_quality(evaluated: Sequence[EvaluatedAnswer]) -> Mapping[str, float]:
    """Return how good counts are: shares that are right, and mean errors of those that there are (MAPE)."""
    pairs = {
        "before": [(one.answer.before, one.example.answer.before) for one in evaluated],
        "after": [(one.answer.after, one.compiled and one.compiled.instructions) for one in evaluated],
    }
    found = dict[str, float]()
    for name, some in pairs.items():
        known = [(mine, true) for mine, true in some if mine is not None and true]
        if known:
            found[f"count {name} right"] = sum(mine == true for mine, true in known) / len(some)
            found[f"count {name} MAPE"] = sum(abs(mine - true) / true for mine, true in known) / len(known)
    return found


def _code_quality(evaluated: Sequence[EvaluatedAnswer]) -> Mapping[str, float]:
    """Return how good written code is; an answer without code does not compile, and scores nothing."""
    wrote = [one for one in evaluated if one.answer.code is not None]
    return {
        "BLEU": sum(one.bleu or 0.0 for one in wrote) / len(evaluated),
        "code compiles": sum(not one.error for one in wrote) / len(evaluated),
        "exact match": sum(one.exact for one in wrote) / len(evaluated),
    }


def feedback_on(one: EvaluatedAnswer) -> Feedback:
    """Return a compiler's feedback on an answer."""
    made = one.compiled
    after, code = (made.instructions, made.code) if made else (None, None)
    return feedback_of(one.answer, one.example.ir, after, code, one.error, one.bleu or 0.0)


def retry_prompt(tokenizer: Tokenizer, one: EvaluatedAnswer, kind: Kind) -> list[int]:
    """Return the tokens up to where a model tries again (figure 5.4): prompt, answer, feedback.

    For fast feedback the answer ends before its code, which was never written.
    """
    asked = question(tokenizer, one.example.ir)
    answer = answer_tokens(tokenizer, one.answer, Tasks(code=kind != "fast"))
    feedback = feedback_tokens(tokenizer, feedback_on(one), kind)
    return [*asked, *(answer[:-1] if kind == "fast" else answer), *feedback]


def feedback_samples(
    tokenizer: Tokenizer, evaluated: Sequence[EvaluatedAnswer], context: int, kind: Kind, tasks: Tasks = ALL
) -> list[Sample]:
    """Write answers, their feedback, and the answers that were expected; those too long are left out.

    What is expected begins with "I am sure!" where the model foresaw what its list does, else with "Let me
    try again." (5.4.1).

    Args:
        tokenizer: of the model.
        evaluated: the model's own answers.
        context: tokens of the longest text.
        kind: of feedback.
        tasks: what is asked beside the list.
    """
    found = list[Sample]()
    for one in evaluated:
        prompt = retry_prompt(tokenizer, one, kind)
        verdict = verdict_token(tokenizer, sure=feedback_on(one).sure)
        whole = [*prompt, verdict, *answer_tokens(tokenizer, one.example.answer, tasks)]
        if len(whole) <= context:
            improvable = one.example.answer.passes != (_oz(),)
            found.append(Sample(np.array(whole, np.int32), len(prompt), improvable))
    return found
