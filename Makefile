# A fresh clone needs only two commands: make demo, make test.

# The supported versions of Python. The newest one that runs is used, or python3.
PYTHONS := $(shell sed -n 's/.*"Programming Language :: Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml)
PYTHON ?= $(shell for p in python3 $(PYTHONS:%=python%); do $$p -c '' 2>/dev/null && found=$$p; done; echo $$found)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Two test processes for each core: half of their time they wait for processes, sockets and timers.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 4 ? 2 * n : 8)))
# Each process of the end-to-end tests has a network, a stage and a site of its own. A module stays
# in one process, which starts what its tests share once.
E2E_WORKERS ?= 2
NETWORK := $(BIN)/python -m tests.e2e.privatenetwork -- $(BIN)/python
IN_PROCESSES := --tx '$(E2E_WORKERS)*popen//python=$(NETWORK)' --dist loadfile --no-loadscope-reorder
# Attacks at the same time, each on a process of its own: for half of the time they wait.
ATTACKS ?= 3
# Tests with targets of their own.
ELSEWHERE := --ignore=tests/e2e --ignore=tests/attack --ignore=tests/browser
# The lock files contain no address of a package index.
LOCK := --universal --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

# Without it, each process that a test starts compiles the sources again.
unexport PYTHONDONTWRITEBYTECODE

# The extras in the image.
SHIPPED := --extra aws --extra azure --extra google

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz e2e e2e-long e2e-causes e2e-stores browser attack bench soak lint audit format lock docs docs-site release release-dry-run proto pictures clean

help: ## list the targets
	@awk '/^##@ /{print "\n" substr($$0, 5)} /^[a-z0-9-]+:.*## /{name=$$0; sub(/:.*/, "", name); sub(/.*## /, ""); printf "  %-15s %s\n", name, $$0}' $(MAKEFILE_LIST)

# Made again for another Python: make test PYTHON=python3.12
ifneq ($(filter command environment,$(firstword $(origin PYTHON))),)
version_of = $(shell command -v $(1) >/dev/null && $(1) -V 2>&1)
ifneq ($(call version_of,$(PYTHON)),$(call version_of,$(BIN)/python))
.PHONY: $(READY)
endif
endif

$(READY): requirements-dev.lock pyproject.toml
	@sh environment.sh "$(PYTHON)" $(VENV) $(PYTHONS)
	@touch $@

##@ Try

demo: $(READY) ## run the autoscaling loop on this machine, without a cluster (ARGS="--seconds 30")
	$(BIN)/gpu-metrics-adapter demo $(ARGS)

##@ Test

test: $(READY) ## run the unit, property, contract and real-Prometheus tests in parallel (ARGS="-k name", ARGS="-n 0 --pdb")
	@$(BIN)/python -m tests.engines
	$(BIN)/python -m pytest tests $(ELSEWHERE) -n $(WORKERS) --dist worksteal $(ARGS)

fuzz: $(READY) ## run the property tests with more examples (FUZZ_TIMES=6)
	@$(BIN)/python -m tests.engines
	FUZZ_TIMES=$${FUZZ_TIMES:-6} $(BIN)/python -m pytest tests $(ELSEWHERE) -m hypothesis -n $(WORKERS) --dist worksteal $(ARGS)

e2e: $(READY) ## test against a real control plane; installs and builds what is missing (ARGS="-k name", E2E_WORKERS=1)
	$(BIN)/python -m tests.e2e.programs
	$(BIN)/python -m tests.e2e.modules
	$(BIN)/python -m tests.e2e.imagebuild
	$(BIN)/python -m tests.browser.axe
	$(NETWORK) -m pytest tests/e2e -m "not long" $(if $(filter-out 1,$(E2E_WORKERS)),$(IN_PROCESSES)) $(ARGS)

e2e-long: $(READY) ## run what `make e2e` leaves out: tests that wait for minutes, such as the guides of a migration
	$(BIN)/python -m tests.e2e.programs
	$(BIN)/python -m tests.e2e.modules
	$(NETWORK) -m pytest tests/e2e -m long $(if $(filter-out 1,$(E2E_WORKERS)),$(IN_PROCESSES)) $(ARGS)

e2e-causes: $(READY) ## test forty faults of real clusters on one stage: twice those of `make e2e`
	$(BIN)/python -m tests.e2e.programs
	CAUSES=all $(NETWORK) -m pytest tests/e2e/test_causes.py $(ARGS)

e2e-stores: $(READY) ## test Thanos too, which `make e2e` skips unless it is built: that takes 5 minutes of CPU time
	$(BIN)/python -m tests.e2e.programs stores
	$(NETWORK) -m pytest tests/e2e/test_thanos.py $(ARGS)

browser: $(READY) ## test the page of ui in headless Chromium (ARGS="-k name", ARGS="-s" prints times)
	$(BIN)/python -m tests.browser.axe
	$(BIN)/python -m pytest tests/browser $(ARGS)

attack: $(READY) ## attack the real serve process, bounded in count and time (ARGS="-k name")
	$(BIN)/python -m pytest tests/attack -n $(ATTACKS) --dist load $(ARGS)

##@ Measure

soak: $(READY) ## watch the memory of serve over two hours of change (SOAK_MINUTES=120)
	$(BIN)/python -m load soak

bench: $(READY) ## run every benchmark and write the tables to load/README.md (ARGS="parse pipeline")
	$(BIN)/python -m tests.e2e.programs
	$(BIN)/python -m load $(ARGS)

##@ Check

lint: $(READY) ## run ruff, mypy, import-linter and the lints of prose and suppressions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m docs.prose
	$(BIN)/python -m docs.suppressions

audit: $(READY) ## check the shipped dependencies for known vulnerabilities
	$(BIN)/python -m tests.security.audit

format: $(READY) ## format the sources with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

##@ Generate

docs: $(READY) ## generate pages from the code, and the chart's schema and README
	$(BIN)/python -m docs.generate

docs-site: $(READY) ## build the documentation as a site in build/site (ARGS=--serve, ARGS="--release 1.2.3")
	$(BIN)/python -m docs.site $(ARGS)

pictures: $(READY) ## take the picture and the recording of the README again, from real runs of the demo
	$(BIN)/python -m tests.browser.picture
	$(BIN)/python -m docs.recording

proto: $(READY) ## compile KEDA's protocol
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. adapter/answers/keda/externalscaler.proto

lock: ## update the lock files (needs uv)
	uv pip compile $(LOCK) $(SHIPPED) -o requirements.lock pyproject.toml
	uv pip compile $(LOCK) -c requirements.lock --group dev -o requirements-dev.lock pyproject.toml
	uv pip compile $(LOCK) -c requirements-dev.lock --group pyproject.toml:image --python-version 3.11 -o requirements-image.lock
	uv pip compile $(LOCK) --group pyproject.toml:go --python-version 3.11 -o requirements-go.lock

##@ Release

release-dry-run: $(READY) ## build in dist/ what a release publishes, with the image on a stand-in for its base
	$(BIN)/python -m tests.e2e.programs
	$(BIN)/python -m release --dry-run --image stand-in $(ARGS)

release: $(READY) ## build in dist/ what the tag of this commit publishes (ARGS="--tag v1.2.3"); needs helm and docker
	$(BIN)/python -m release $(ARGS)

##@ Tidy up

clean: ## remove the environment, builds and caches
	rm -rf $(VENV) .cache build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
