# Everything by one verb each; `make test` and `make demo` install what they need first.

PYTHON ?= python3
VENV ?= .venv
# Which torch (any from 2.11 to 2.13 will do), and from which index: TORCH_INDEX=URL takes its CPU
# build from there.
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
# The versions of all else, and what is installed of pyproject.toml's extras. LOCK= takes the newest.
LOCK ?= requirements/locked.txt
EXTRAS ?= dev
# How many processes share the tests, and the slow ones, of which many wait for what they start.
WORKERS ?= 2
SLOW_WORKERS ?= 3
# Where benchmarks prepare their text.
WORK ?= /tmp/regard-bench

# Tests see the buffers that people have in their shells, and what is compiled is kept.
unexport PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
RUNTIME := $(VENV)/.installed
TOOLS := $(VENV)/.installed-tools

.PHONY: install lock demo format check kernels test slow shapes test-all newest oldest docs packages \
	bench records figures clean

install: $(TOOLS)

# Versions of today: the newest that go together, for tools, and the oldest that pyproject.toml
# admits. Torch is in neither, nor is setuptools, of which each torch wants another.
lock: | $(BIN)/python
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) --universal --fork-strategy fewest --extra dev --upgrade --output-file requirements/locked.txt
	$(COMPILE) --resolution lowest-direct $(USED:%=--extra %) | \
		$(COMPILE) --constraints - --extra test --upgrade --output-file requirements/oldest.txt

COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --python-version 3.11 --no-annotate \
	--no-emit-package setuptools \
	--custom-compile-command "make lock"
USED := bulk export interop parquet plots serve tensorboard vision

demo: $(RUNTIME)
	$(BIN)/regard demo

format: $(TOOLS)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	@if $(HAS_NODE); then $(NPM) && npm run --silent format; fi

check: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if $(HAS_NODE); then $(NPM) && npm run --silent check; \
	else echo "node or npm is not on the path: the page's scripts are not checked"; [ "$$CI" != true ]; fi

# The scripts of the pages are checked where there is node, which CI has.
HAS_NODE := command -v node >/dev/null && command -v npm >/dev/null
NPM := npm install --silent

# Processes with one thread each: half the time of one process with two. Threads that tests ask for
# sleep while they wait: others want their processor.
PYTEST := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/pytest
FAST := -m "not slow"
SHARED := --dist loadfile -n

# Tests of compiled loops, in one process: what they compile is there for all others.
KERNELS := tests/unit/kernels tests/unit/runtime tests/unit/attention/backends tests/unit/attention/inspect
kernels: $(TOOLS)
	$(PYTEST) $(FAST) -q $(KERNELS)

# All that a change can break in its own room. BUT=FOLDERS leaves these out.
test: kernels
	$(PYTEST) $(FAST) $(SHARED) $(WORKERS) $(patsubst %,--ignore=%,$(KERNELS) $(LEFT) $(BUT))

# Besides: whole commands, trainings, browsers, kills, benchmarks in small.
slow: $(TOOLS)
	$(PYTEST) -m slow --no-loadscope-reorder $(SHARED) $(SLOW_WORKERS) --durations=50 tests

# Shapes, checked as functions are called. Of `make test shapes`, the first leaves it its tests.
CHECKED := regard.attention,regard.layers,regard.models
CHECKED_BY := tests/unit/layers tests/unit/models tests/unit/attention/scores tests/unit/attention/masks
LEFT = $(if $(filter shapes,$(MAKECMDGOALS)),$(CHECKED_BY))
shapes: $(TOOLS)
	$(PYTEST) $(FAST) $(SHARED) $(WORKERS) --jaxtyping-packages=$(CHECKED),beartype.beartype $(CHECKED_BY)

test-all: test
	$(MAKE) slow
	$(MAKE) shapes

# The same tests with the newest versions, and with the oldest that pyproject.toml admits.
newest:
	$(MAKE) test VENV=$(VENV)-newest LOCK=

oldest:
	$(MAKE) test VENV=$(VENV)-oldest LOCK=requirements/oldest.txt EXTRAS=test

# The documentation site, build/site/index.html, in English and Chinese; it needs no network. The
# models of its gallery are trained the first time (some minutes), or for so many updates.
GALLERY_UPDATES ?=
docs: $(TOOLS)
	$(BIN)/python -m tools.website $(if $(GALLERY_UPDATES),--updates $(GALLERY_UPDATES))

# The wheel and the sdist, used where this folder is not.
packages: $(TOOLS)
	$(BIN)/python -m tools.packages

# The speed of training, and the pages of figures; benchmarks/README.md has the other figures.
bench: $(TOOLS)
	$(BIN)/python -m benchmarks.training_speed --work "$(WORK)"
	$(BIN)/python -m benchmarks.tables

# Every record made sure of by the code as it is, one after the other, on a machine that does nothing
# else: speed is measured again, trainings begin again. It goes on where it was stopped.
records: $(TOOLS)
	$(BIN)/python -m benchmarks.replay --work "$(WORK)"
	$(BIN)/python -m benchmarks.tables

# All that pages show of programs: pictures, samples, drawings and tables (needs Chromium).
figures: $(TOOLS)
	$(BIN)/python -m tools.demo_pictures
	$(BIN)/python -m tools.samples
	$(BIN)/python -m tools.figures
	$(BIN)/python -m benchmarks.tables

clean:
	rm -rf $(VENV) $(VENV)-newest $(VENV)-oldest node_modules .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Python compiles a module when it is imported first: most never are.
PIP := $(BIN)/python -m pip install --quiet --no-compile
LOCKED := $(if $(LOCK),--constraint $(LOCK))

# Torch first and by itself, so that the index is asked for nothing else; then by name, so that it is
# not replaced.
$(RUNTIME): pyproject.toml $(LOCK) | $(BIN)/python
	$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$(TORCH)"
	$(PIP) $(LOCKED) "$(TORCH)" --editable .
	touch $@

$(TOOLS): $(RUNTIME)
	$(PIP) $(LOCKED) "$(TORCH)" --editable ".[$(EXTRAS)]"
	touch $@
