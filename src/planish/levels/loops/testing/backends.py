"""Conformance suite of back ends of loops: subclass `BackendConformance` in a test module."""

from importlib.metadata import version

import numpy as np
import pytest

from planish.core import Candidate, Target, TargetError, rng
from planish.levels.loops.backends import Backend, Executable, tree_of
from planish.levels.loops.evaluator import verify_again
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import Parallel

SAMPLES = 4
SIZES = {"m": 5, "n": 7, "k": 6}
TEXTS = {
    "product": "C[m,n] += A[m,k] * B[k,n]",
    "chain": "C[m,n] += A[m,k] * B[k,n]; D[m] max= C[m,n]; O[m,n] = exp(C[m,n] - D[m])",
    "padded": "C[m] += pad(A[m + k - 2], 0) * B[k]",
    "transposed": "C[n,m] = A[m,n]",
    "scalar": "C[] += A[k] * B[k]",
}
"""Reductions, chains with temporaries, padding, strides, and no dimension at all."""


class BackendConformance:
    """Tests of a back end; a subclass named `Test...` overrides `backend`."""

    def backend(self) -> Backend:
        """Make the back end under test."""
        raise NotImplementedError

    def test_it_tells_its_registers_and_its_packages(self) -> None:
        backend = self.backend()
        assert backend.machine.vector_bytes >= 4
        assert backend.machine.vector_registers >= 8
        assert all(version(name) for name in backend.packages)

    @pytest.mark.parametrize("name", TEXTS)
    def test_candidates_compute_what_their_program_says(self, name: str) -> None:
        program = _program(name)
        for candidate in self._candidates(program):
            wrong = verify_again(self._compiled(program, candidate))
            assert wrong is None, f"{wrong}, with {candidate}"

    def test_a_parallel_loop_computes_the_same(self) -> None:
        program = _program("product")
        wrong = verify_again(self._compiled(program, Candidate((Parallel("m"),)), cores=2))
        assert wrong is None, wrong

    @pytest.mark.parametrize("name", TEXTS)
    def test_it_reads_its_inputs_each_time(self, name: str) -> None:
        """Inputs change without another `prepare`, which takes in constants alone."""
        program = _program(name)
        inputs = make_inputs(program)
        outputs = {output: aligned(program.type[output]) for output in program.outputs}
        bound = self._compiled(program, Candidate()).bind(inputs, outputs)
        bound.prepare()
        for seed in (1, 2):
            for changed, array in make_inputs(program, seed).items():
                np.copyto(inputs[changed], array)
            bound.repeat(seed)
            wrong = check(program, outputs, reference(program, inputs))
            assert wrong is None, f"{wrong}, after its inputs changed"

    def test_two_bindings_share_nothing(self) -> None:
        program = _program("chain")
        kernel = self._compiled(program, Candidate())
        pairs = [(make_inputs(program, seed), aligned(program.type["O"])) for seed in (1, 2)]
        bounds = [kernel.bind(inputs, {"O": output}) for inputs, output in pairs]
        for bound in bounds:
            bound.repeat(1)
        first = pairs[0][1].copy()
        bounds[1].repeat(1)
        np.testing.assert_array_equal(pairs[0][1], first)
        assert not np.array_equal(first, pairs[1][1])

    def test_its_own_memory_does_not_matter(self) -> None:
        program = _program("chain")
        kernel, output = self._compiled(program, Candidate()), aligned(program.type["O"])
        kernel.allocate()
        bound = kernel.bind(make_inputs(program), {"O": output})
        bound.poison()
        bound.repeat(1)
        assert np.isfinite(output).all()

    def _compiled(self, program: Program, candidate: Candidate, cores: int = 1) -> Executable:
        backend = self.backend()
        if not backend.works():
            pytest.skip("this machine does not run it")
        try:
            return backend.compile(program, tree_of(program, candidate), cores)
        except TargetError as error:
            pytest.skip(f"it makes no such code: {error}")

    def _candidates(self, program: Program) -> list[Candidate]:
        space = TemplateSpace(program, Target("", machine=self.backend().machine))
        return [Candidate(), space.start(), *(space.sample(rng(1, i)) for i in range(SAMPLES))]


def _program(name: str) -> Program:
    text = TEXTS[name]
    return parse(text, {axis: size for axis, size in SIZES.items() if axis in text})
