"""Policies over lists: networks that read programs as instructions."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from planish.core import Objective, PlanishError, SearchContext
from planish.levels.llvm.ir.features import SIZES, instruction_schema, observe_module
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.pipeline import passes_of
from planish.levels.llvm.passes.space import PassSpace, pass_space
from planish.models.named_policies import ListPolicy, policy_of
from planish.models.networks import HEADS, PackedRows, ReaderShape, list_scores, pack_rows, predict_lists
from planish.models.policy_files import SavedPolicy, load_policy, policy_for, write_policy
from planish.search.decoding import priority_samples
from planish.search.minimization import Portfolio
from planish.search.policies import greedy_rollout
from planish.train.cost_tables import UNCOUNTED, Columns, CostTable
from planish.train.samples import ListDataset

LISTS = (("sroa<modify-cfg>",), ("sroa<modify-cfg>", "gvn"), ("gvn", "adce"), ("adce",))
CODE = "define i32 @f(i32 %0) {\n  %2 = add i32 %0, 1\n  ret i32 %2\n}\n"
MORE = CODE.replace("%2 = add i32 %0, 1", "%3 = mul i32 %0, %0\n  %2 = add i32 %3, 9")
COUNT = Objective("instructions", exact=True)
SHAPE = ReaderShape(sizes=tuple(SIZES.values()), rows=448, lists=len(LISTS), width=8, depth=1, heads=2)


def made(seed: int = 0, shape: ReaderShape = SHAPE) -> SavedPolicy:
    """A network of chance."""
    random = np.random.default_rng(seed)
    sizes = shape.parameters().items()
    arrays = {name: (random.normal(size=size) / 4).astype(np.float32) for name, size in sizes}
    actions = tuple(map(",".join, LISTS))
    return SavedPolicy("chance", "llvm", instruction_schema(), actions, 2, shape, arrays, {}, 3)


def space(*texts: str) -> PassSpace:
    known = elements()
    return PassSpace([known[text] for text in texts or ("sroa<modify-cfg>", "gvn", "adce", "dce")], ir=CODE)


def test_programs_do_not_depend_on_each_other_nor_on_padding() -> None:
    policy = made()
    seen = np.stack([observe_module(CODE, CODE), observe_module(MORE, CODE)])
    together = predict_lists(SHAPE, policy.parameters, seen)
    alone = [predict_lists(SHAPE, policy.parameters, seen[i : i + 1])[0] for i in range(2)]
    np.testing.assert_allclose(together, np.stack(alone), rtol=1e-4, atol=1e-4)
    assert not np.allclose(together[0], together[1])


def test_torch_computes_what_numpy_does() -> None:
    torch = pytest.importorskip("torch")
    policy, seen = made(), np.stack([observe_module(CODE, CODE), observe_module(MORE, CODE)])
    given = PackedRows(*map(torch.from_numpy, pack_rows(SHAPE, seen)))
    tensors = {name: torch.from_numpy(array) for name, array in policy.parameters.items()}
    found = list_scores(torch, SHAPE, tensors, given).numpy()
    np.testing.assert_allclose(found, predict_lists(SHAPE, policy.parameters, seen), rtol=1e-3, atol=1e-3)


def test_every_list_is_as_probable_as_the_network_has_it() -> None:
    policy, here = made(), space()
    chosen = predict_lists(SHAPE, policy.parameters, here.observe(here.start())[None])[
        0, HEADS.index("choice")
    ]
    listing = policy_of(policy)
    assert isinstance(listing, ListPolicy)
    for passes, sure in zip(LISTS, chosen - np.logaddexp.reduce(chosen), strict=True):
        state, found = listing.begin(here), 0.0
        for step in [next(one for one in here.actions if str(one) == text) for text in passes]:
            (steps,) = listing.log_probabilities([state])
            assert sum(map(math.exp, steps.values())) == pytest.approx(1)
            found += steps[step]
            state = listing.extend(state, step)
        found += listing.log_probabilities([state])[0][None]
        assert found == pytest.approx(float(sure), abs=1e-4)


def test_samples_are_the_lists_each_once_and_the_greedy_one_is_first() -> None:
    policy, here = policy_of(made(1)), space()
    samples = [passes_of(one) for one in islice(priority_samples(policy, here), 10)]
    assert sorted(samples) == sorted(LISTS)
    assert passes_of(next(greedy_rollout(policy, here))) == samples[0]


def test_lists_of_what_the_space_lacks_are_left_out() -> None:
    here = space("sroa<modify-cfg>", "gvn")
    samples = {passes_of(one) for one in priority_samples(policy_of(made()), here)}
    assert samples == set(LISTS[:2])


def test_it_is_kept_as_it_is(tmp_path: Path) -> None:
    policy, path = made(), tmp_path / "policy-some.safetensors"
    write_policy(policy, path)
    held = load_policy(path)
    assert replace(held, parameters={}) == replace(policy, name="some", parameters={})
    assert policy_for(space(), str(path)).shape == SHAPE


def test_what_does_not_fit_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "some.safetensors"
    write_policy(made(), path)
    with pytest.raises(PlanishError, match="writes lists of steps that there are not here: adce"):
        policy_for(space("gvn"), str(path))
    older = replace(made(), schema=replace(instruction_schema(), version=0))
    write_policy(older, path)
    with pytest.raises(PlanishError, match="was trained on version 0 of llvm/instructions"):
        policy_for(space(), str(path))
    with pytest.raises(PlanishError, match="was trained on version 0"):
        policy_of(older).begin(space())


def dataset() -> ListDataset:
    """Where a program multiplies, the second list saves; else none."""
    seen = np.stack([observe_module(*[MORE if n % 2 else CODE] * 2) for n in range(64)]).astype(np.int16)
    shares = np.zeros((64, len(LISTS)), np.float32)
    shares[1::2, 1] = 0.1
    groups = np.array([f"p{n // 8}" for n in range(64)])
    whole = instruction_schema(), tuple(SIZES.values()), LISTS
    return ListDataset([str(n) for n in range(64)], seen, shares, np.full(64, 20, np.float32), groups, *whole)


def test_training_learns_which_list_saves_where(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from planish.train.list_ranker import RankerConfig, train_ranker

    known = dataset()
    held = known.groups == "p3"
    config = RankerConfig(30, 0, tmp_path / "c.checkpoint", width=16, depth=1)
    shape, arrays, _ = train_ranker(known, config, held)
    said = predict_lists(shape, arrays, known.observed[:2])
    assert said[1, HEADS.index("choice")].argmax() == 1
    assert said[1, 0, 1] > 0.5 > said[0, 0, 1]


def test_without_auxiliary_tasks_gains_alone_are_learnt(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from planish.train.list_ranker import RankerConfig, train_ranker

    known = dataset()
    for auxiliary, learnt in ((True, [True, True, True]), (False, [True, False, False])):
        config = RankerConfig(
            1, 0, tmp_path / f"{auxiliary}.checkpoint", width=8, depth=1, auxiliary=auxiliary
        )
        _, arrays, _ = train_ranker(known, config, known.groups == "p3")
        # Biases begin with 0, and stay there where nothing is learnt.
        assert arrays["lists bias"].reshape(len(HEADS), -1).any(axis=1).tolist() == learnt


def test_an_interrupted_training_goes_on_to_the_same_network(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from planish.train.list_ranker import RankerConfig, train_ranker
    from planish.train.optimization import TrainingProgress

    known = dataset()
    held = known.groups == "p3"

    def stop(epoch: TrainingProgress) -> None:
        if epoch.step == 2:
            raise KeyboardInterrupt

    whole, parts = (RankerConfig(4, 0, tmp_path / f"{name}.checkpoint", width=8, depth=1) for name in "ab")
    _, arrays, metrics = train_ranker(known, whole, held)
    train_ranker(known, parts, held, stop)
    _, resumed, same = train_ranker(known, parts, held)
    assert metrics == same
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, resumed[name])
    with pytest.raises(PlanishError, match="is of another training"):
        train_ranker(known, RankerConfig(5, 0, tmp_path / "a.checkpoint", width=8, depth=1), held)


def sample_table(count: int) -> CostTable:
    """Label the first functions of the sample corpus: the first list saves a tenth."""
    from planish.levels.llvm.bindings.libraries import open_bindings
    from planish.train.corpus.reader import SAMPLE, read_corpus

    rows = list(read_corpus(SAMPLE, "train"))[:count]
    columns = Columns(open_bindings().version, "x86_64", ("instructions",), LISTS, ())
    return CostTable(
        columns,
        np.array([row.identity for row in rows]),
        np.array([row.package for row in rows]),
        {row.package: "train" for row in rows},
        np.full((count, 1), 20, np.int32),
        np.full((count, 1), 10, np.int32),
        np.tile(np.array([[[9], [12], [-1], [10]]], np.int32), (count, 1, 1)),
        np.zeros((count, 2, 0), np.int32),
        np.full((count, 2), UNCOUNTED, np.int32),
    )


def test_labels_must_be_of_this_llvm_and_of_the_corpus() -> None:
    from planish.train.corpus.answers import read_list_dataset
    from planish.train.corpus.reader import SAMPLE

    table, count = sample_table(3), 3
    first, others = table.take(np.array([0])), table.take(np.array([1, 2]))
    found = read_list_dataset(SAMPLE, [first, others], "instructions", LISTS)
    assert len(found) == count
    np.testing.assert_allclose(found.shares, np.tile([[0.1, 0, 0, 0]], (count, 1)), atol=1e-6)
    assert (found.observed[:, 0, 0] == 1).all()
    other = replace(table, columns=replace(table.columns, llvm="3.8.0"))
    with pytest.raises(PlanishError, match=r"the labels are of LLVM 3.8.0"):
        read_list_dataset(SAMPLE, [other], "instructions", LISTS)
    strangers = replace(table, identities=np.array([f"{n:032x}" for n in range(count)]))
    with pytest.raises(PlanishError, match="the labels are of no function"):
        read_list_dataset(SAMPLE, [strangers], "instructions", LISTS)
    with pytest.raises(PlanishError, match="the labels lack text_bytes"):
        read_list_dataset(SAMPLE, [table], "text_bytes", LISTS)


def test_the_number_of_functions_read_in_part_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from planish.levels.llvm.ir import features
    from planish.train.corpus.answers import read_list_dataset
    from planish.train.corpus.reader import SAMPLE

    monkeypatch.setattr(features, "BEFORE", 9)
    with pytest.warns(features.CutWarning) as caught:
        assert len(read_list_dataset(SAMPLE, [sample_table(4)], "instructions", LISTS)) == 4
    # They have 22, 10, 7 and 9 instructions.
    expected = "of 2 of the 4 functions that are read, the end is cut off"
    assert [str(one.message) for one in caught] == [f"{expected}: they are longer than what is observed"]


def test_a_file_that_is_none_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "wrong.safetensors"
    write_policy(made(), path)
    whole = path.read_bytes()
    head = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
    about = json.loads(head["__metadata__"]["planish"])
    assert about["shape"]["kind"] == "reader"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PlanishError, match="cannot read a policy"):
        load_policy(path)


def test_a_portfolio_measures_what_a_policy_holds_for_most_probable_before_other_seeds(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lists.safetensors"
    write_policy(made(), path)
    known = pass_space("passes", tuple(elements().values()), ir=CODE)
    oz, first, *others = known.seeds()
    similar = others[3]
    context = SearchContext(warm_start=[similar])
    likely = [*priority_samples(policy_of(made()), known, samples=2, by="whole")]

    searcher = Portfolio(known, [COUNT], 0, context, policy=str(path), proposed=2)
    asked = searcher.ask(5)
    assert asked == [oz, similar, *likely, first]
    assert searcher.model_s > 0
    assert Portfolio(known, [COUNT], 0, policy="none").ask(2) == [oz, first]
    with pytest.raises(PlanishError, match="writes lists of steps that there are not here"):
        Portfolio(space("dce"), [COUNT], 0, policy=str(path))


def test_no_policy_proposes_where_it_has_not_read_the_whole_program() -> None:
    long = CODE.replace(
        "  %2 = add i32 %0, 1\n", "".join(f"  %{n} = add i32 %0, {n}\n" for n in range(2, 400))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for code, begins in ((CODE, False), (long.replace("ret i32 %2", "ret i32 %399"), True)):
            known = pass_space("passes", tuple(elements().values()), ir=code)
            assert (Portfolio(known, [COUNT], 0).ask(4) == list(known.seeds()[:4])) == begins
