"""The template space: that it is a space, that it holds the schedules that are known to be good."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from levels.loops.random_programs import programs
from planish.core import Cache, Candidate, Machine, ScheduleError, Space, Step, Target, rng
from planish.levels.loops.backends import UseBackend, backend_of, schedule_steps
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.space.cursor import STEPS, resolve
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import Split, Unroll
from planish.levels.loops.testing.interpreter import interpret
from planish.testing.spaces import SpaceConformance

AVX512 = Target("a processor", frozenset({"x86-avx512"}))
AVX2 = Target("a processor", frozenset({"x86-avx2"}))


def matmul(m: int = 192, n: int = 192, k: int = 192) -> Program:
    return parse("C[m,n] += A[m,k] * B[k,n]", {"m": m, "n": n, "k": k})


def convolution() -> Program:
    text = "O[k,y,x] += pad(I[c,y + r - 1,x + s - 1], 0) * W[k,c,r,s]"
    sizes = {"k": 64, "c": 64, "y": 56, "x": 56, "r": 3, "s": 3}
    return parse(text, sizes).with_constants(["W"])


def depthwise() -> Program:
    text = "O[c,y,x] += pad(I[c,y + r - 1,x + s - 1], 0) * W[c,r,s]"
    return parse(text, {"c": 128, "y": 56, "x": 56, "r": 3, "s": 3}).with_constants(["W"])


class TestTemplateSpace(SpaceConformance):
    program = parse("y[i] = relu(a[i])", {"i": 40})

    def space(self) -> Space:
        return TemplateSpace(self.program, AVX512)

    def known_steps(self) -> Mapping[str, type[Step]]:
        return STEPS

    def replay(self, space: Space, candidate: Candidate) -> None:
        assert isinstance(space, TemplateSpace)
        lower(resolve(self.program, schedule_steps(candidate)))
        # The space knows of what it made a candidate; another one reads its steps.
        again = self.space()
        assert isinstance(again, TemplateSpace)
        assert again.choices(candidate) == space.choices(candidate)
        assert again.candidate(again.choices(candidate)) == candidate


def test_a_nest_inside_large_steps_of_its_reduction_has_smaller_ones() -> None:
    text = "M[r] max= X[r,c]; E[r,c] = exp(X[r,c] - M[r]); S[r] += E[r,c]; Y[r,c] = E[r,c] / S[r]"
    space = TemplateSpace(parse(text, {"r": 512, "c": 1000}), AVX512)
    for seed in range(140):
        random = rng(seed, 0)
        space.mutate(space.sample(random), random)


SHAPES = (
    "C[a,b] += A[a,c] * B[c,b]",
    "C[a,b] += A[c,a] * B[b,c]",
    "y[a] += A[b,a] * x[b]",
    "y[a] = A[a] + B[a]",
    "O[a,b] += I[a + c,b + d] * W[c,d]",
    "M[a] max= X[a,b]; E[a,b] = exp(X[a,b] - M[a]); S[a] += E[a,b]; Y[a,b] = E[a,b] / S[a]",
)
EXTENTS = st.sampled_from([1, 2, 3, 7, 8, 16, 17, 64, 100, 256, 1000, 4096])


@given(st.sampled_from(SHAPES), st.tuples(EXTENTS, EXTENTS, EXTENTS, EXTENTS), st.integers(0, 99))
def test_whatever_the_knobs_offer_is_legal(shape: str, extents: tuple[int, ...], seed: int) -> None:
    """A matrix that is streamed by rows was split by 8 twice: unrolled, and again for the rows."""
    size = {axis: n for axis, n in zip("abcd", extents, strict=True) if axis in shape}
    space = TemplateSpace(parse(shape, size), AVX512)
    random = rng(seed, 0)
    drawn = [space.sample(random) for _ in range(8)]
    for a, b in pairwise(drawn):
        space.mutate(space.crossover(a, b, random)[0], random)


def test_a_reduction_that_is_unrolled_by_as_many_is_not_split_into_such_rows() -> None:
    space = TemplateSpace(parse("y[n] += A[k,n] * x[k]", {"k": 4096, "n": 4096}), AVX512)
    chosen = {"vector": "n", "unroll": "8", "reduce": "8"}
    assert space.choices(space.candidate(chosen))["reduce"] != "8"
    assert space.choices(space.candidate(chosen | {"unroll": "4"}))["reduce"] == "8"


class TestTemplateSpaceThatChoosesItsBackEnd(TestTemplateSpace):
    program = parse("y[i] = a[i] + b[i]", {"i": 1 << 20})

    def space(self) -> Space:
        return TemplateSpace(self.program, AVX512, {"x86-avx2": UseBackend("x86-avx2")})

    def known_steps(self) -> Mapping[str, type[Step]]:
        return {**STEPS, "UseBackend": UseBackend}

    def replay(self, space: Space, candidate: Candidate) -> None:
        super().replay(space, candidate)
        assert isinstance(space, TemplateSpace)
        assert space.choices(candidate)["build"] == (backend_of(candidate) or "own")


@pytest.mark.parametrize(("extent", "guess"), [(1 << 20, "own"), (1 << 24, "x86-avx2")])
def test_short_vectors_are_the_default_schedule_for_what_no_cache_holds(extent: int, guess: str) -> None:
    machine = Machine(64, 32, (Cache(2, 1 << 20), Cache(3, 1 << 25)))
    target = Target("", frozenset({"x86-avx512"}), machine=machine)
    program = parse("y[i] = a[i] + b[i]", {"i": extent})
    space = TemplateSpace(program, target, {"x86-avx2": UseBackend("x86-avx2")})
    assert space.choices(space.start())["build"] == guess


def test_only_what_flows_through_memory_chooses_its_back_end() -> None:
    builds = {"x86-avx2": UseBackend("x86-avx2")}
    offered = {knob.name for knob in TemplateSpace(matmul(), AVX512, builds).knobs}
    assert "build" not in offered


class TestTemplateSpaceOfAReduction(TestTemplateSpace):
    program = parse("y[i] += A[i,k] * x[k]", {"i": 3, "k": 5})


class TestTemplateSpaceOfAMatmul(TestTemplateSpace):
    program = matmul(20, 40, 12)

    def test_the_list_is_unique_and_in_a_fixed_order(self) -> None:
        """Of 600 candidates; there are too many for the suite's own test."""
        space = self.space()
        assert isinstance(space, TemplateSpace)
        listed = list(islice(space.candidates(), 600))
        assert len(set(listed)) == 600
        assert listed == list(islice(space.candidates(), 600))


class TestTemplateSpaceOfAConvolution(TestTemplateSpaceOfAMatmul):
    program = convolution()

    def space(self) -> Space:
        return TemplateSpace(self.program, Target("a processor", frozenset({"x86-avx2"}), cores=4))


def text(program: Program, candidate: Candidate) -> list[str]:
    return resolve(program, candidate).text.splitlines()


@pytest.mark.parametrize(("rows", "width"), [(6, 64), (9, 48), (12, 32), (14, 32), (28, 16)], ids=str)
def test_matmul_has_register_tiles_with_the_reduction_around(rows: int, width: int) -> None:
    space = TemplateSpace(matmul(), AVX512)
    candidate = space.candidate({"vector": "n", "tile": f"m={rows} n={width}", "pack B": f"n:{width}"})
    assert space.choices(candidate)["tile"] == f"m={rows} n={width}"
    assert text(matmul(), candidate) == [
        f"C: n:{width}, m:{rows}, k, m, n",
        f"pack B at n:{width} in C",
    ]


def test_matmul_has_the_loops_of_blis() -> None:
    program = matmul(768, 768, 768)
    choices = {
        "vector": "n",
        "tile": "m=12 n=32",
        "reduce": "256",
        "cache m": "8",
        "order": "k:256 m:96 n:32 m:12",
        "pack A": "m:96",
        "pack B": "k:256",
    }
    space = TemplateSpace(program, AVX512)
    candidate = space.candidate(choices)
    assert {name: space.choices(candidate)[name] for name in choices} == choices
    assert text(program, candidate) == [
        "C: k:256, m:96, n:32, m:12, k, m, n",
        "pack A at m:96 in C",
        "pack B at k:256 in C",
    ]


def test_convolution_has_vectors_of_output_channels_with_weights_packed_ahead() -> None:
    choices = {"vector": "k", "tile": "x=14 k=32", "pack W": "ahead", "pack O": "x:14"}
    candidate = TemplateSpace(convolution(), AVX512).candidate(choices)
    assert text(convolution(), candidate) == [
        "O: k:32, y, x:14, c, r, s, x, k",
        "pack O at x:14 in O",
        "pack W at root in O ahead",
    ]


def test_convolution_has_vectors_of_the_image_with_weights_broadcast() -> None:
    choices = {"vector": "x", "tile": "k=14 x=32", "order": "k:14 y x:32"}
    candidate = TemplateSpace(convolution(), AVX512).candidate(choices)
    assert text(convolution(), candidate) == ["O: k:14, y, x:32, c, r, s, k, x"]


def test_depthwise_convolution_has_vectors_of_the_image_with_rows_of_it() -> None:
    candidate = TemplateSpace(depthwise(), AVX512).candidate({"vector": "x", "tile": "y=4 x=56"})
    # The image exceeds the second cache: its copy with edges is made for each channel.
    assert text(depthwise(), candidate) == ["O: c, y:4, r, s, y, x", "pack I at c in O"]


@pytest.mark.parametrize(("target", "registers", "lanes"), [(AVX512, 28, 16), (AVX2, 12, 8)])
def test_samples_keep_to_the_register_file(target: Target, registers: int, lanes: int) -> None:
    space = TemplateSpace(matmul(), target)
    for index in range(30):
        choices = space.choices(space.sample(rng(0, index)))
        sides = {axis: int(n) for axis, n in (word.split("=") for word in choices["tile"].split())}
        width = sides.pop(choices["vector"])
        rows = next(iter(sides.values()), 1)
        assert rows * (1 if choices["vector"] == "k" else -(-width // lanes)) <= registers


def test_the_default_schedule_vectorizes_what_lies_in_sequence_and_reuses_registers() -> None:
    space = TemplateSpace(matmul(), AVX512)
    choices = space.choices(space.start())
    assert choices["vector"] == "n"
    rows, width = (int(word.partition("=")[2]) for word in choices["tile"].split())
    assert rows * width / 16 >= 20
    assert choices["pack A"] == choices["pack B"] == choices["pack C"] == "none"


def test_the_default_schedule_packs_what_does_not_lie_in_sequence() -> None:
    transposed = parse("C[m,n] += A[m,k] * B[n,k]", {"m": 256, "n": 256, "k": 256})
    space = TemplateSpace(transposed, AVX512)
    choices = space.choices(space.start())
    assert choices["vector"] == "n"
    assert choices["pack B"].startswith("n:")


def test_a_matrix_vector_product_is_vectorized_along_the_rows_of_its_matrix() -> None:
    program = parse("y[m] += A[m,k] * x[k]", {"m": 512, "k": 512})
    assert TemplateSpace(program, AVX512).choices(TemplateSpace(program, AVX512).start())["vector"] == "k"


def test_only_constants_are_packed_ahead() -> None:
    named = TemplateSpace(matmul().with_constants(["B"]), AVX512)
    assert named.choices(named.candidate({"pack B": "ahead"}))["pack B"] == "ahead"
    free = TemplateSpace(matmul(), AVX512)
    assert free.choices(free.candidate({"pack B": "ahead"}))["pack B"] != "ahead"


def test_a_nest_that_follows_is_offered_to_walk_its_result_in_sequence() -> None:
    program = parse("T[k,x] += I[c,x] * W[k,c]; O[k,x] = relu(T[k,x] + b[k])", {"k": 64, "x": 196, "c": 64})
    program = program.with_constants(["W"])
    space = TemplateSpace(program, AVX512)
    candidate = space.candidate({"vector": "k", "tile": "x=14 k=32", "loops O": "turned"})
    assert text(program, candidate)[:2] == ["T: k:32, x:14, c, x, k", "O: k:32, x:14, k, x"]


def chain() -> Program:
    text = "S[m,n] += A[m,k] * B[k,n]; O[m,p] += S[m,n] * C[n,p]"
    return parse(text, {"m": 128, "n": 256, "k": 256, "p": 256})


def test_the_second_of_two_products_has_a_register_tile_of_its_own() -> None:
    space = TemplateSpace(chain(), AVX512)
    assert space.choices(space.start())["loops O"] == "0 p"
    chosen = {"vector": "n", "tile": "m=8 n=32", "loops O": "0 p", "tile O": "m=6 p=64"}
    candidate = space.candidate(chosen)
    assert text(chain(), candidate)[:2] == ["S: n:32, m:8, k, m, n", "O: m:6, p:64, n, m, p"]


def test_a_nest_may_keep_inside_the_outer_loops_of_the_main_one() -> None:
    """What passes from one product to the other is then a few rows."""
    space = TemplateSpace(chain(), AVX512)
    chosen = {"vector": "n", "tile": "m=8 n=32", "cache m": "4", "order": "m:32 m:8 n:32"}
    candidate = space.candidate({**chosen, "loops O": "1 p", "tile O": "m=8 p=32"})
    assert text(chain(), candidate)[:2] == ["S: m:32, m:8, n:32, k, m, n", "O: m:32, m:8, p:32, n, m, p"]


def test_a_nest_follows_where_each_element_is_used_once() -> None:
    """A reduction along rows that the main nest reads again is best in the same loops."""
    program = parse("M[r] max= X[r,c]; Y[r,c] = exp(X[r,c] - M[r])", {"r": 64, "c": 100})
    space = TemplateSpace(program, AVX512)
    assert space.choices(space.start())["loops M"] == "follow"


def test_images_whose_rows_fill_no_vectors_are_one_axis_in_the_default_schedule() -> None:
    program = parse("O[k,y,x] += I[c,y,x] * W[k,c]", {"k": 64, "c": 64, "y": 28, "x": 28})
    space = TemplateSpace(program, AVX512)
    assert space.choices(space.start())["vector"] == "y.x"
    plain = space.candidate({"fuse": "none", "vector": "x", "cache y": "2"})
    assert space.choices(plain)["fuse"] == "none"
    child, other = space.crossover(plain, space.start(), rng(1))
    assert {space.choices(c)["fuse"] for c in (child, other)} == {"none", "all"}


def test_threads_are_offered_where_there_are_several_cores() -> None:
    several = TemplateSpace(matmul(), Target("a processor", frozenset({"x86-avx512"}), cores=2))
    assert text(matmul(), several.start())[0].startswith("C: n:64 parallel, ")
    assert "parallel" not in [knob.name for knob in TemplateSpace(matmul(), AVX512).knobs]


def test_a_foreign_candidate_is_refused() -> None:
    space = TemplateSpace(matmul(), AVX512)
    with pytest.raises(ScheduleError, match="is not a step of this template"):
        space.choices(space.start().then(Unroll("k")))
    with pytest.raises(ScheduleError, match="is not a step of this template"):
        space.choices(Candidate((Split("m", 5),)))


def test_a_program_without_loops_has_one_candidate() -> None:
    space = TemplateSpace(parse("y[] = a[]", {}), AVX512)
    assert list(space.candidates()) == [Candidate()]
    assert space.size() == 1
    assert space.mutate(Candidate(), rng(0)) == Candidate()


@settings(max_examples=examples(40), deadline=None)
@given(programs(points=150), st.integers(0, 1000), st.sampled_from([AVX512, AVX2]))
def test_samples_of_any_program_are_legal_and_compute_it(program: Program, seed: int, target: Target) -> None:
    space, again = TemplateSpace(program, target), TemplateSpace(program, target)
    inputs = make_inputs(program, 0)
    answer = reference(program, inputs)
    for candidate in (space.start(), space.sample(rng(seed)), space.mutate(space.start(), rng(seed))):
        assert again.candidate(again.choices(candidate)) == candidate
        outputs = interpret(lower(resolve(program, candidate)), inputs)
        shaped = {n: a.reshape(program.type[n].shape) for n, a in outputs.items()}
        assert check(program, shaped, answer) is None


def test_the_default_schedule_packs_what_a_reduction_walks_page_by_page() -> None:
    for n in (512, 1024, 2048, 4096):
        choices = TemplateSpace(matmul(n, n, n), AVX512).choices(
            TemplateSpace(matmul(n, n, n), AVX512).start()
        )
        assert choices["vector"] == "n"
        assert choices["pack B"] == choices["order"].split()[0]
    space = TemplateSpace(matmul(), AVX512)
    assert space.choices(space.start())["pack B"] == "none"


def test_the_default_schedule_reads_a_matrix_that_is_used_once_by_rows() -> None:
    program = parse("y[n] += x[k] * B[k,n]", {"n": 2048, "k": 2048})
    space = TemplateSpace(program, AVX512)
    choices = space.choices(space.start())
    assert choices["order"].split()[0] == f"k:{choices['reduce']}"


def test_the_default_schedule_comes_first_in_a_search() -> None:
    space = TemplateSpace(matmul(), AVX512)
    assert list(space.seeds()) == [space.start()]


def test_the_default_schedule_passes_through_large_tensors_in_sequence() -> None:
    program = parse("C[r,c] = A[r,c] + B[r,c]", {"r": 5000, "c": 5000})
    space = TemplateSpace(program, AVX512)
    assert space.choices(space.start())["order"].split()[0] == "r"


@pytest.mark.parametrize(("n", "chosen"), [(32, "none"), (64, "none"), (256, "outermost")])
def test_the_default_schedule_shares_work_among_cores_where_there_is_enough(n: int, chosen: str) -> None:
    space = TemplateSpace(matmul(n, n, n), Target("a processor", frozenset({"x86-avx512"}), cores=2))
    assert space.choices(space.start())["parallel"] == chosen


@pytest.mark.parametrize("program", [matmul(), convolution(), depthwise()])
def test_what_was_asked_before_changes_no_proposal(program: Program) -> None:
    used = TemplateSpace(program, AVX512)
    candidate = used.start()
    for index in range(examples(40)):
        sampled, new = used.sample(rng(1, index)), TemplateSpace(program, AVX512)
        assert new.sample(rng(1, index)) == sampled
        mutated = used.mutate(candidate, rng(2, index))
        assert new.mutate(candidate, rng(2, index)) == mutated
        children = used.crossover(mutated, sampled, rng(3, index))
        assert new.crossover(mutated, sampled, rng(3, index)) == children
        candidate = children[0]


def test_a_candidate_equals_one_of_the_same_steps_and_its_pickle_holds_these_alone() -> None:
    made = TemplateSpace(matmul(), AVX512).start()
    plain = Candidate(made.steps)
    assert made == plain
    assert plain == made
    assert hash(made) == hash(plain)
    assert type(pickle.loads(pickle.dumps(made))) is Candidate
    assert made != Candidate(made.steps[1:])
