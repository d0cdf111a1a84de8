# One way to run each thing. Every target sets up what it needs in .venv, once.

VENV := .venv
PYTHON := $(VENV)/bin/python
STAMPS := $(VENV)/stamps
PIP_INSTALL := $(PYTHON) -m pip install --quiet --disable-pip-version-check
# Folders too: their time changes when a file is deleted.
SOURCES := $(shell find src -name __pycache__ -prune -o -print) \
  meson.build pyproject.toml README.md LICENSE
ARGS ?=
# The kernel of this machine alone; "all", as in wheels, takes three times as long to build.
INSTRUCTION_SETS ?= native

# The build finds meson, ninja and cython by name.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

# Tests run in a process for each core: BLAS with threads of its own would have them wait. What pytest
# makes of a test file is kept, also where bytecode is not.
PYTEST := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(PYTHON) -m pytest -n auto

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo serve test test-exhaustive test-integration test-all test-clang test-sanitized test-wheel test-oldest test-newest bench bench-summary guarantees lint docs figures clean

help:  ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo '  ARGS="..." is passed on, as in: make test ARGS="tests/linear -x"'

demo: $(STAMPS)/runtime $(STAMPS)/installed  ## evaluate a real stream and draw its intervals
	$(VENV)/bin/posterity demo $(ARGS)

# Spark, Dask, river, Jupyter, a browser: 800 MB to install. By name, so that ARGS can be a path.
INTEGRATION := tests/adapters tests/browser tests/test_notebooks.py docs/adapters.md

# Every model with every strategy, every interrupt, every file: half of the tests' time.
EXHAUSTIVE := tests/test_combinations.py tests/files/test_interrupts.py tests/files/test_reads.py \
  tests/files/test_round_trip.py tests/evidence/test_strategies.py tests/grouped/test_grouped_laws.py \
  tests/forgetting/test_forgetting_laws.py tests/generalized/test_robust.py \
  tests/generalized/test_softmax.py tests/generalized/test_softmax_forgetting.py \
  tests/generalized/test_softmax_one_pass.py tests/generalized/test_lean_softmax.py \
  tests/noise/test_heteroscedastic.py tests/posteriors/test_changepoint.py tests/posteriors/test_regimes.py \
  tests/bandits/test_policies.py tests/bandits/test_wrappers.py tests/basis/test_learned_scales.py \
  tests/service/test_crashes.py tests/service/test_state_machine.py \
  tests/service/test_postgresql.py \
  tests/bandits/test_bandit.py tests/linear/test_single_rows.py tests/grouped/test_grouped_reads.py \
  tests/generalized/test_lean_rows.py tests/targets/test_target_laws.py tests/evidence/test_relevance.py \
  tests/forgetting/test_every_likelihood.py tests/files/test_same_bytes.py tests/inputs \
  tests/service/test_neighbours.py tests/service/test_take_back.py \
  tests/forecasting/test_odd_series.py tests/forecasting/test_times.py tests/sparse/test_few_weights.py

serve: $(STAMPS)/runtime $(STAMPS)/installed  ## serve an example over HTTP, in the foreground
	$(VENV)/bin/posterity serve $(or $(ARGS),build/served --demo)

test: $(STAMPS)/test $(STAMPS)/installed  ## run the tests (not the exhaustive or the slow ones)
	$(PYTEST) --dist loadfile -m "not slow and not processes" $(INTEGRATION:%=--ignore=%) \
	  $(EXHAUSTIVE:%=--ignore=%) $(ARGS)

test-exhaustive: $(STAMPS)/test $(STAMPS)/installed  ## run those of every combination and interrupt
	$(PYTEST) --dist worksteal -m "not slow and not processes" $(EXHAUSTIVE) $(ARGS)

test-integration: $(STAMPS)/integration $(STAMPS)/installed  ## run those with Spark, Dask, river and a browser
	$(PYTEST) --dist loadfile -m "not slow" $(INTEGRATION) $(ARGS)
	$(PYTEST) --dist worksteal -m "processes and not slow" tests/cli tests/files tests/kernel tests/service $(ARGS)

test-all: test-sanitized test-clang $(STAMPS)/integration $(STAMPS)/installed  ## run every test, on new random examples
	HYPOTHESIS_PROFILE=explore $(PYTEST) --dist loadfile $(ARGS)

# The package built in other ways, each in a folder of its own, and the tests of what is compiled.
BUILD_INTO := $(PIP_INSTALL) --no-build-isolation --no-deps --upgrade .
COMPILED := tests/kernel tests/factor -m "not slow" -n auto

test-clang: $(STAMPS)/test $(STAMPS)/build  ## build with Clang, and test what is compiled
	CC=clang $(BUILD_INTO) --target build/clang/site -Cbuild-dir=build/clang/objects
	PYTHONPATH=build/clang/site $(PYTHON) -m pytest $(COMPILED) $(ARGS)

# Python is not built with sanitizers: their library must be there before it. It leaks on purpose.
test-sanitized: $(STAMPS)/test $(STAMPS)/build  ## the same under GCC's ASan and UBSan
	CC=gcc $(BUILD_INTO) --target build/sanitized/site -Cbuild-dir=build/sanitized/objects \
	  -Csetup-args=-Db_sanitize=address,undefined -Csetup-args=-Db_lundef=false
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 \
	  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONPATH=build/sanitized/site \
	  $(PYTHON) -m pytest $(COMPILED) $(ARGS)

test-wheel: $(STAMPS)/build  ## a wheel, in a new environment that finds no compiler, with the hard core only
	rm -rf build/wheel
	$(PYTHON) -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wheel -Cbuild-dir=build .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	build/wheel/venv/bin/python -m pip install --quiet --group test-core build/wheel/*.whl
	env -i PATH="$(CURDIR)/build/wheel/venv/bin" POSTERITY_DATA="$(POSTERITY_DATA)" LOKY_MAX_CPU_COUNT=1 \
	  build/wheel/venv/bin/python -m pytest tests/evidence tests/posteriors tests/distributions $(COMPILED) $(ARGS)

# Both ends of the dependencies: the lowest version of each, and the newest of all on the newest Python
# that is found. uv resolves both; each has an environment of its own.
UV := $(VENV)/bin/uv --quiet
EXTRAS := --extra all --extra service
ENDS = PATH="$(CURDIR)/build/$(1)/bin:$$PATH" OPENBLAS_NUM_THREADS=1 build/$(1)/bin/python -m pytest -n auto --dist loadfile

test-oldest: $(STAMPS)/uv $(STAMPS)/build  ## test with the lowest versions of the dependencies and of every extra
	$(UV) venv --clear --python $(PYTHON) build/oldest
	$(UV) pip install --python build/oldest --resolution lowest-direct -r pyproject.toml $(EXTRAS) --group ends \
	  "pyparsing>=3,<3.3"  # newer ones warn of what Matplotlib 3.8 does
	$(PYTHON) -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wheel -Cbuild-dir=build .
	$(UV) pip install --python build/oldest --no-deps build/wheel/posterity-*.whl
	$(call ENDS,oldest) -m "not slow and not processes" $(INTEGRATION:%=--ignore=%) $(ARGS)
	$(UV) venv --clear --python $(PYTHON) build/oldest-adapters
	$(UV) pip install --python build/oldest-adapters --resolution lowest-direct -r pyproject.toml --all-extras --group ends \
	  "pyparsing>=3,<3.3"
	$(UV) pip install --python build/oldest-adapters --no-deps build/wheel/posterity-*.whl
	$(call ENDS,oldest-adapters) -m "not slow" tests/adapters $(ARGS)

# The newest Python builds a package of its own. It is looked for on PATH and among pyenv's.
NEWEST_PYTHON = $(shell for python in python3 $$(seq -f python3.%g 12 19) \
  $$(ls -d $$HOME/.pyenv/versions/3.*/bin/python 2>/dev/null); do \
    $$python -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)' 2>/dev/null; \
  done | sort -V | tail -1 | cut -d " " -f 2)
test-newest: $(STAMPS)/uv  ## test with the newest Python that is found, and the newest of everything
	$(UV) venv --clear --python "$(NEWEST_PYTHON)" build/newest
	$(UV) pip install --python build/newest -r pyproject.toml $(EXTRAS) --group ends cython meson meson-python ninja
	PATH="$(CURDIR)/build/newest/bin:$$PATH" $(UV) pip install --python build/newest --no-build-isolation --no-deps \
	  --reinstall-package posterity -C build-dir=build/newest-objects .
	$(call ENDS,newest) -m "not slow and not processes" $(INTEGRATION:%=--ignore=%) $(ARGS)

bench: $(STAMPS)/bench $(STAMPS)/installed  ## time posterity beside its peers
	$(PYTHON) benchmarks/run.py $(ARGS)

bench-summary: $(STAMPS)/bench $(STAMPS)/installed  ## the ten tasks of docs/benchmarks.md, in some minutes
	$(PYTHON) benchmarks/summary.py --output docs/benchmarks.md $(ARGS)

guarantees: $(STAMPS)/test $(STAMPS)/installed  ## simulate what intervals hold: docs/guarantees.md
	OPENBLAS_NUM_THREADS=1 $(PYTHON) -m guarantees --output docs/guarantees.md $(ARGS)

lint: $(STAMPS)/lint $(STAMPS)/runtime  ## check style, format and types
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

docs: $(STAMPS)/docs $(STAMPS)/test $(STAMPS)/installed  ## build the documentation into docs/_build
	$(PYTHON) -m sphinx -W --keep-going -q -b html docs docs/_build/html $(ARGS)
	@echo "open docs/_build/html/index.html"

figures: $(STAMPS)/test $(STAMPS)/installed  ## draw the figures of the documentation again
	$(PYTHON) docs/figures.py $(ARGS)
	$(PYTHON) docs/figures_answers.py $(ARGS)
	$(PYTHON) docs/figures_likelihoods.py $(ARGS)
	$(PYTHON) docs/figures_gallery.py $(ARGS)
	$(PYTHON) docs/figures_moving.py

clean:  ## remove everything that make made
	rm -rf $(VENV) build dist docs/_build docs/_notebooks docs/reference .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The first interpreter that is new enough and can make virtual environments.
$(STAMPS)/venv:
	@for candidate in python3.11 python3.12 python3.13 python3.14 python3; do \
	  if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	      >/dev/null 2>&1; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "posterity needs Python 3.11 or newer with its venv module; none was found on PATH." >&2; \
	  echo "Install one (on Debian and Ubuntu: apt install python3 python3-venv), then try again." >&2; \
	  exit 1; \
	fi; \
	test -x $(PYTHON) || { echo "making $(VENV) with $$found"; $$found -m venv $(VENV); }
	@# Dependency groups need pip 25.1.
	$(PIP_INSTALL) --upgrade "pip>=25.1"
	@mkdir -p $(STAMPS) && touch $@

# One stamp for each dependency group of pyproject.toml.
GROUPS := build runtime test integration lint docs bench uv
$(GROUPS:%=$(STAMPS)/%): $(STAMPS)/%: pyproject.toml $(STAMPS)/venv
	$(PIP_INSTALL) --group $*
	@touch $@

# A real wheel, not an editable install: the tests see what users get. build/ is kept, so only what
# changed is compiled again.
$(STAMPS)/installed: $(SOURCES) $(STAMPS)/build
	@find src -name __pycache__ -prune -exec rm -rf {} +
	$(PIP_INSTALL) --no-build-isolation --no-deps --force-reinstall -Cbuild-dir=build \
	  -Csetup-args=-Dinstruction_sets=$(INSTRUCTION_SETS) .
	@touch $@
