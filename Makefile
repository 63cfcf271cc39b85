# What a person runs, and what CI runs: the same targets. Needs make and python3 >= 3.11 with venv.

VENV := .venv
BIN := $(VENV)/bin
OUT := out
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help serve install test lint format types unit cov rows mutants faults soak bench corebench peers lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

serve: $(VENV)/.installed ## start the server on this machine and print its address (ARGS="--port 9000")
	@$(BIN)/voxglove serve $(ARGS)

install: $(VENV)/.installed ## create .venv with everything `make serve` needs

test: $(VENV)/.installed-test peers lint types unit ## all checks, as CI runs them

lint: $(VENV)/.installed-test ## style, complexity, forbidden imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed-test ## put the code in the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.installed-test ## mypy, strict
	$(BIN)/mypy

unit: $(VENV)/.installed-test ## the tests alone (ARGS="tests/media -k resample")
	@mkdir -p $(OUT)
	$(BIN)/pytest -q --durations=15 --junitxml=$(OUT)/junit.xml $(ARGS)

cov: $(VENV)/.installed-test ## tests with branch coverage; HTML in out/coverage
	@mkdir -p $(OUT)
	$(BIN)/pytest -q --cov --cov-report=term --cov-report=html:$(OUT)/coverage $(ARGS)

rows: $(VENV)/.installed-test ## spec row -> test -> result of the last `make test`
	@$(BIN)/python tests/support/rows.py --report $(OUT)/junit.xml

mutants: $(VENV)/.installed-test ## put each known fault back and see its tests fail (ARGS="fault_08")
	@$(BIN)/python tests/support/mutants.py $(ARGS)

faults: $(VENV)/.installed-test ## realtime calls whose provider's connection dies, at every moment (ARGS="gemini tool")
	@$(BIN)/python -m tests.support.faults $(ARGS)

soak: $(VENV)/.installed-test ## the tests that run for minutes
	@mkdir -p $(OUT)
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest -q -m soak --timeout=3600 --junitxml=$(OUT)/junit-soak.xml $(ARGS)

# Each peer lives in an environment of its own: their pins and ours do not mix.
BENCH_PEERS := build/bench-pipecat/.installed build/bench-livekit/.installed

bench: $(VENV)/.installed-test $(if $(findstring --peers none,$(ARGS)),,$(BENCH_PEERS)) ## voxglove beside pipecat and livekit-agents, one table (ARGS="--quick")
	@mkdir -p $(OUT)
	$(BIN)/python -m bench.run $(ARGS)

CORE_PEERS := build/bench-openai-agents/.installed build/bench-pydantic-ai/.installed

corebench: $(VENV)/.installed-test $(if $(findstring --peers none,$(ARGS)),,$(CORE_PEERS)) ## a request without a model, beside openai-agents and pydantic-ai
	@mkdir -p $(OUT)
	$(BIN)/python -m bench.core $(ARGS)

build/bench-%/.installed: bench/peers/requirements-%.txt | $(BIN)/python
	@echo "Installing $* into build/bench-$* ..."
	$(BIN)/python -m venv build/bench-$*
	build/bench-$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# A lock is the whole closure with hashes, so a fresh install is the same everywhere. setuptools
# comes from the lock too and builds the package itself without fetching anything.
define install_locked
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(1)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
endef

$(VENV)/.installed: pyproject.toml requirements.lock | $(BIN)/python
	@echo "Installing voxglove and its local speech into $(VENV) (about 500 MB, once) ..."
	$(call install_locked,requirements.lock)

$(VENV)/.installed-test: pyproject.toml requirements-test.lock | $(BIN)/python
	@echo "Installing voxglove and its test tools into $(VENV) ..."
	$(call install_locked,requirements-test.lock)
	@touch $(VENV)/.installed  # the test lock holds all that the other one does

$(BIN)/python:
	@set -e; found=""; \
	for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found="$$python"; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "voxglove needs Python 3.11 or newer; python3 here is: $$(python3 --version 2>/dev/null || echo missing)."; \
	  echo "Install one (Debian 12+, Ubuntu 24.04+: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3.11"; \
	  exit 1; \
	fi; \
	if ! "$$found" -c 'import venv, ensurepip' 2>/dev/null; then \
	  echo "$$found has no venv module. Debian, Ubuntu: apt-get install python3-venv"; \
	  exit 1; \
	fi; \
	"$$found" -m venv $(VENV)

# Programs the tests talk to. Missing ones are installed where that needs no password; otherwise
# their tests are skipped, and fail when CI=true (tests/support/peers.py).
peers:
	@need=""; \
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || need="$$need chromium"; \
	command -v flite >/dev/null || need="$$need flite"; \
	command -v openssl >/dev/null || need="$$need openssl"; \
	command -v turnserver >/dev/null || need="$$need coturn"; \
	command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || need="$$need postgresql"; \
	[ -z "$$need" ] && exit 0; \
	if ! command -v apt-get >/dev/null; then echo "Not installed here:$$need"; exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then as_root=""; \
	elif sudo -n true 2>/dev/null; then as_root="sudo -n"; \
	else echo "Not installed:$$need (apt-get install$$need)"; exit 0; fi; \
	echo "Installing$$need ..."; \
	export DEBIAN_FRONTEND=noninteractive; \
	$$as_root apt-get update -qq && $$as_root apt-get install -y -qq --no-install-recommends $$need >/dev/null \
	  || echo "Could not install$$need"

# Fresh pins for the ranges in pyproject.toml. The smaller lock is cut from the larger one.
LOCK_TOOL := build/lock-tool
COMPILE := $(LOCK_TOOL)/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
  --generate-hashes --no-header --no-annotate --no-emit-index-url --extra local --extra openai --extra anthropic --extra gemini \
  --extra mcp --extra postgres --extra webrtc

lock: | $(BIN)/python ## refresh requirements.lock and requirements-test.lock
	$(BIN)/python -m venv $(LOCK_TOOL)
	$(LOCK_TOOL)/bin/python -m pip install --quiet uv
	$(COMPILE) --upgrade --extra test -o requirements-test.lock
	$(COMPILE) --extra build -c requirements-test.lock -o requirements.lock

clean: ## remove what the other targets made, .venv included
	rm -rf $(VENV) $(OUT) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
