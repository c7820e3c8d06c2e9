# The environment is .venv, made from pyproject.toml and requirements.lock; it is remade when they change.
PYTHON ?= python3
PYTEST_PROCESSES := -n auto --maxprocesses 4 --dist worksteal
# Slow tests that would begin later than this are skipped, and of the examples of properties a part is tried.
PYTEST_ARGS ?= $(PYTEST_PROCESSES) --minutes 8
PLANISH_TEST_SHARE ?= 0.4
export PLANISH_TEST_SHARE
BENCH ?= [a-z]*
FAULTS ?=
FUZZ ?= --pairs 20000 --jobs 2
FUZZ_EINSUM ?= --calls 10000
FUZZ_NETWORKS ?= --networks 200
SOUNDNESS ?=
TORCH_INDEX ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
OLD_PYTHON := planish needs Python 3.11 or newer: make PYTHON=python3.12 ...
LIST_PEERS := import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*project["optional-dependencies"]["peers"], sep="\n")
NO_VENV := $(PYTHON) has no venv module: apt-get install python3-venv

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-all test-ray lint style types format docs fuzz fuzz-gpu fuzz-cc soundness faults bench golden lock peers release-check clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

setup: $(READY) ## Make the environment in .venv (PYTHON=... chooses the interpreter)

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo '$(OLD_PYTHON)' >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo '$(NO_VENV)' >&2; exit 1; }
	@echo "installing $$(grep -c '^[a-z].*==' requirements.lock) packages into $(VENV) (2 to 4 minutes, 2.5 GB)"
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes --requirement requirements.lock
	@echo 'installing planish'
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src/planish # confined workers cannot write bytecode
	@touch $@

demo: $(READY) ## Tune a matrix multiplication and a convolution, beside NumPy (seconds)
	@$(BIN)/python examples/demo.py

test: style ## Check style and layers, then types beside the tests (PYTEST_ARGS='-x tests/core' runs some)
	@echo 'running the tests; types are checked meanwhile, which takes minutes on a busy machine'
	@nice -n 2 $(BIN)/pyright --warnings >$(VENV)/types.txt & types=$$!; trap "kill $$types 2>/dev/null" INT TERM; \
	$(BIN)/pytest $(PYTEST_ARGS) && passed=0 || passed=$$?; \
	if wait $$types; then echo 'types: no errors'; else cat $(VENV)/types.txt; passed=1; fi; exit $$passed

test-all: ## Run all tests, slow ones too, with all examples of properties (an hour on a slow machine)
	@$(MAKE) test PYTEST_ARGS='$(PYTEST_PROCESSES)' PLANISH_TEST_SHARE=1

test-ray: $(READY) ## Test clusters, which need Ray (minutes; installs it: 70 MB that the lock does not bring)
	@$(PIP) install --no-build-isolation --editable '.[ray]'
	@$(BIN)/pytest -k 'test_ray or cluster' tests/measure tests/tuning tests/docs tests/train/labeling

lint: style types ## Check style, layers and types

style: $(READY) ## Check style and the layers of imports
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/lint-imports --no-logo >$(VENV)/layers.txt || { cat $(VENV)/layers.txt; exit 1; }

types: $(READY) ## Check types (a minute or more)
	@$(BIN)/pyright --warnings

format: $(READY) ## Format the code, and fix what can be fixed automatically
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

docs: $(READY) ## Build the documentation site in build/docs; a warning is an error
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs
	@echo 'build/docs/index.html'

fuzz: $(READY) ## Try random programs on every back end, calls of einsum, and networks (minutes; FUZZ='--seed 7 --jobs 16')
	@PYTHONPATH=tools $(BIN)/python -m fuzz $(FUZZ)
	@PYTHONPATH=tests $(BIN)/python tools/fuzz_einsum.py $(FUZZ_EINSUM)
	@$(BIN)/python tools/fuzz_networks.py $(FUZZ_NETWORKS)

fuzz-gpu: $(READY) ## Try random programs with GPU schedules on PoCL and Oclgrind (hours; FUZZ_GPU='--minutes 5 --state FILE' continues; needs pyopencl)
	@PYTHONPATH=tools $(BIN)/python tools/fuzz_gpu.py --device portable $(FUZZ_GPU)
	@PYTHONPATH=tools $(BIN)/python tools/fuzz_gpu.py --device oclgrind --pairs 2000 $(FUZZ_GPU)

fuzz-cc: $(READY) ## Try random programs by planish cc for several processors under QEMU (hours; FUZZ_CC='--programs 20 --targets rv32imac --state FILE' continues)
	@$(BIN)/python tools/fuzz_cc.py $(FUZZ_CC)

soundness: $(READY) ## Look for passes that break programs (half an hour; SOUNDNESS='--programs 2 --lists 20 --no-lua')
	@PYTHONPATH=tools $(BIN)/python -m soundness $(SOUNDNESS)

faults: $(READY) ## Disturb searches in every way, and count what is lost (an hour, as root; in parts: FAULTS='--state FILE --events 100'; with Ray, its hosts too)
	@PYTHONPATH=tools:tests $(BIN)/python -m faults $(FAULTS)

bench: $(READY) ## Run every benchmark (many minutes; BENCH=searchers runs one; `make peers` gives more to compare with)
	@for program in $$(grep -l __main__ benchmarks/$(BENCH).py); do echo "== $$program"; $(BIN)/python "$$program" || exit 1; done

golden: $(READY) ## Write the golden files and docs/reference/cli.md anew; read the difference before you commit
	@$(BIN)/python docs/commands.py
	@$(BIN)/pytest --update-golden $(PYTEST_ARGS)
	@git diff --stat -- tests docs

lock: ## Choose newer versions for requirements.lock
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/pip --disable-pip-version-check --quiet install 'uv>=0.9'
	@build/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--group dev --custom-compile-command 'make lock' pyproject.toml --output-file requirements.lock

peers: $(READY) ## Install what the benchmarks compare with (TORCH_INDEX=https://download.pytorch.org/whl/cpu: no CUDA)
	@$(BIN)/python -c '$(LIST_PEERS)' | while read -r peer; do \
		echo "installing $$peer"; \
		$(PIP) install $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) "$$peer" \
			|| echo "$$peer cannot be had here: the benchmarks will leave it out" >&2; \
	done

release-check: $(READY) ## Build the distributions, check them, and try each in a fresh environment (docs/release.md)
	@PYTHON=$(BIN)/python .ci/release-check

clean: ## Remove the environment and all that was built
	@rm -rf $(VENV) build dist out .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
