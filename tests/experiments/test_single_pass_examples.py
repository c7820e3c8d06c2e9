"""What single passes are learnt from."""

from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.passes.space import compile_lists
from planish.models.ir_text import canonical
from planish.train.corpus.reader import read_corpus
from thesis_ch4.single_pass_examples import single_pass_examples, translated, translation, translation_samples
from train.corpus.test_text_examples import tokenizer


def test_single_passes_are_learnt_from_what_llvm_makes() -> None:
    rows = [row for row in read_corpus() if row.chars < 600][:20]
    found = single_pass_examples(rows, ("sroa<modify-cfg>", "instcombine<no-verify-fixpoint>"), 6, 0)
    again = single_pass_examples(rows, ("sroa<modify-cfg>", "instcombine<no-verify-fixpoint>"), 6, 0)
    assert found == again
    starts = {row.ir for row in rows}
    for name, pairs in found.items():
        assert 1 <= len(pairs) <= 6
        for before, after in pairs:
            (made,) = compile_lists(open_bindings(), [(before, (name,))])
            assert made is not None
            assert made.code == after
    every = [before for pairs in found.values() for before, _ in pairs]
    assert any(before not in starts for before in every), "nothing was optimized before"
    samples = translation_samples(tokenizer(), found, 4096)
    assert len(samples) == len(every)
    assert tokenizer().decode(samples[0].tokens[:2]).startswith("[pass] sroa<modify-cfg>")


def test_prompts_ask_for_the_effect_of_one_pass() -> None:
    learnt, code = tokenizer(), next(row.ir for row in read_corpus() if row.chars < 600)
    assert learnt.decode(translation(learnt, code, "gvn")) == f"[pass] gvn {canonical(code)} [code]"
    assert learnt.decode(translated(learnt, code)) == f"{canonical(code)} [end]"
