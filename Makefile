# The front door. `make help` lists what there is; every target sets up what it needs on a Debian machine.
MAKEFLAGS += --no-print-directory
SHELL     := /bin/bash
B         := build
PY        := $(B)/venv/bin/python
JOBS      ?= $(shell nproc)
CC        := $(if $(filter default,$(origin CC)),clang-22,$(CC))
CXX       := $(if $(filter default,$(origin CXX)),clang++-22,$(CXX))
export CC CXX
export PYTHONDONTWRITEBYTECODE = 1

CMAKE_FLAGS = -G Ninja -S . -DPython_EXECUTABLE=$(abspath $(PY)) \
  -DMLIR_DIR=/usr/lib/llvm-22/lib/cmake/mlir \
  $(if $(shell command -v ccache),-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

# What the wheel is made of; a change in any of it makes a new one.
WHEEL_SOURCES = $(shell git ls-files -co --exclude-standard -- CMakeLists.txt cmake pyproject.toml README.md LICENSE \
  base dialect include lowering runtime python 2>/dev/null)

.PHONY: build wheel demo test lint format generate sanitize gpu-test fuzz bench spec figures docs doctor help clean
.DEFAULT_GOAL := build

build: $(B)/dev/build.ninja ## build/venv with tilewright importable, build/bin/tw-opt
	@ninja -C $(B)/dev -j$(JOBS)

wheel: $(B)/stamp/wheel ## one self-contained abi3 wheel in dist/

demo: build ## four programs, one table, one picture
	@$(PY) python/examples/demo.py

test: build wheel $(B)/stamp/ptxas $(B)/stamp/test ## every test: quick checks, C unit tests, lit, pytest
	@$(PY) tools/run_tests.py --build $(B)/dev --jobs $(JOBS)

lint: build $(B)/stamp/lint ## clang-format, clang-tidy on what changed (ALL=1: on all), ruff, mypy, layers, generated files
	@$(PY) tools/lint.py --build $(B)/dev --jobs $(JOBS) $(if $(ALL),--all)

format: $(B)/stamp/lint ## rewrite C, C++ and Python sources in the house format
	@git ls-files '*.c' '*.h' '*.cpp' | xargs clang-format-22 -i
	@$(B)/venv/bin/ruff format --quiet python test tools bench && $(B)/venv/bin/ruff check --quiet --fix python test tools bench

generate: build ## write the files that are made from the dialect's definitions
	@$(PY) tools/twgen.py generate $(B)/dev/TileOps.json && $(PY) tools/errors.py && $(PY) tools/contract.py

sanitize: $(B)/san/build.ninja ## the C code and its tests under ASan and UBSan
	@ninja -C $(B)/san -j$(JOBS)
	@mkdir -p $(B)/san/python && tar -C python --exclude=_core.abi3.so -c . | tar -C $(B)/san/python -x
	@$(PY) tools/run_tests.py --build $(B)/san --jobs $(JOBS) --sanitize

gpu-test: build $(B)/stamp/ptxas ## every Python test, kernels on the GPU of this machine
	@$(PY) -m pytest -q --backend=cuda

SECONDS ?= 600
fuzz: build ## random programs, mutants of IR, arrays that lie, cache files, command lines: SECONDS=600 of all at once
	@nice $(PY) test/fuzz/run.py --seconds $(SECONDS)

bench: build ## measure against the peers; results go to bench/results/
	@$(PY) bench/run.py

spec: ## requirements by source, and which of them tests name
	@$(PY) tools/spec.py

figures: ## write the figures of README.md, their picture and bench/roofline.svg from bench/results/
	@python3 bench/readme.py
	@$(PY) bench/roofline.py

docs: build $(B)/stamp/docs ## the documentation as a site in build/site, with links checked
	@$(PY) tools/api.py && $(PY) tools/cutile.py
	@NO_MKDOCS_2_WARNING=1 $(B)/docs-venv/bin/mkdocs build --quiet --strict && echo "build/site/README.html"

doctor: build ## what was found on this machine, and what to do about what is missing
	@$(PY) -m tilewright doctor

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

clean: ## remove everything that was built
	rm -rf $(B) dist python/tilewright/_core.abi3.so compile_commands.json

# --- set-up: Debian packages and the venv, each with a stamp ---------------------------------------
$(B)/stamp/setup: tools/setup.sh tools/packages.txt tools/requirements.txt
	@bash tools/setup.sh $(B) build

$(B)/stamp/lint $(B)/stamp/test: tools/setup.sh tools/packages.txt tools/requirements.txt | $(B)/stamp/setup
	@bash tools/setup.sh $(B) $(@F)

# What only the site needs, in a venv of its own.
$(B)/stamp/docs: tools/requirements-docs.txt
	@mkdir -p $(@D) && python3 -m venv $(B)/docs-venv && $(B)/docs-venv/bin/pip install --quiet -r $< && touch $@

# The versions of ptxas that the machine code of the tests' kernels is checked with.
$(B)/stamp/ptxas: tools/ptxas.txt tools/fetch_ptxas.py | $(B)/stamp/setup
	@$(PY) tools/fetch_ptxas.py $(B)/ptxas
	@touch $@

# --- build trees: dev links tw-opt against the dylibs, the extension always against the archives ---
$(B)/dev/build.ninja: | $(B)/stamp/setup
	@cmake $(CMAKE_FLAGS) -B $(B)/dev --log-level=WARNING > /dev/null
	@ln -sfn dev/bin $(B)/bin
	@ln -sfn $(B)/dev/compile_commands.json compile_commands.json

$(B)/san/build.ninja: | $(B)/stamp/setup
	@cmake $(CMAKE_FLAGS) -B $(B)/san -DTW_SANITIZE=ON --log-level=WARNING > /dev/null

$(B)/stamp/wheel: $(B)/stamp/setup $(WHEEL_SOURCES)
	@bash tools/wheel.sh $(B) dist
	@touch $@
