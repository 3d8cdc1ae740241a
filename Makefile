# Everything that is run on this repository. `make` alone lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules

# Go's own installer puts it here, and not every shell has it on PATH.
ifeq ($(shell command -v go 2>/dev/null),)
ifneq ($(wildcard /usr/local/go/bin/go),)
export PATH := $(PATH):/usr/local/go/bin
endif
endif

# The modules of the workspace, and their packages.
MODULES := . grpcgate pgxgate promgate redisgate cmd/tidegate test tools
ALL     := ./... ./grpcgate/... ./pgxgate/... ./promgate/... ./redisgate/... ./cmd/tidegate/... ./test/... ./tools/...

PKG       ?= $(ALL)
RACE      ?= -race
TESTFLAGS ?= -timeout 20m
SIMREADS  ?= 1000000
FUZZTIME  ?= 5s
FUZZ      ?=
BENCH     ?= .
BENCHTIME ?= 1s
BENCHPKG  ?= ./...
CHROMIUM  ?= required
COUNT     ?= 1
# Shorter than the tool's default, to end within a minute on a small machine.
LABFLAGS  ?= --duration 15s

GOLANGCI_VERSION := v2.15.0
GOLANGCI         := $(CURDIR)/.cache/golangci-lint-$(GOLANGCI_VERSION)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets and the variables they take
	@echo 'usage: make TARGET [VARIABLE=value]'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  PKG=./internal/route/...   test, lint: only these packages (lint: of the root module)'
	@echo '  TESTFLAGS="-run Name -v"   test: more flags for go test'
	@echo '  RACE=                      test: without the race detector'
	@echo '  CHROMIUM=                  test: without requiring a browser'
	@echo '  SIMREADS=100000            test: how many reads the simulation makes without it'
	@echo '  LABFLAGS="--json"          lab: flags for tidegate lab (see: bin/tidegate lab --help)'
	@echo '  ROBUSTFLAGS="-robust.seed=7" robust: which seeds, how many runs, how long each'
	@echo '  FUZZTIME=1m FUZZ=Verify    fuzz-smoke: how long for each target, and which'
	@echo '  BENCH=Pick BENCHTIME=1x COUNT=10 BENCHPKG=./internal/route/...   bench'
	@echo '  TIDEGATE_PG_BIN=/folder    the PostgreSQL to use; else PATH and the usual folders'
	@echo '  TIDEGATE_PG_BIN_NEWER=/folder   a second, newer one, for need-postgres-newer and tests that run on both'
	@echo '  TIDEGATE_CHROMIUM=/program the Chromium or Chrome to use; else PATH'
	@echo '  TIDEGATE_REDIS_BIN=/file   the Redis or Valkey server to use; else PATH'

.PHONY: lab
lab: need-go need-postgres build ## a primary, two replicas and two ways to route reads, side by side
	@bin/tidegate lab $(LABFLAGS)

.PHONY: build
build: need-go ## build the command line tool as bin/tidegate
	@go build -o bin/ ./cmd/tidegate

# The modules whose tests start servers and put a load on them: one package at a time, or
# they would take each other's time.
SERVERS := ./pgxgate/... ./redisgate/... ./cmd/tidegate/... ./test/...

# The packages that drive a browser, if they are among those to test.
browser = $(filter ./test/... ./test/browser%,$(PKG))

# Without the race detector, which is too slow and shuffles goroutines: a million
# reads in the simulation, on all cores, with what happened in them in the log;
# what the simulation catches only in many runs; that runs repeat themselves.
#
# The log is a new file every time, so that go test never answers from its
# cache for a package that asks a server: the list at the end is of this run.
.PHONY: test
test: need-go need-postgres need-redis $(if $(RACE),need-cc) $(if $(and $(CHROMIUM),$(browser)),need-chromium) ## test all modules with the race detector, on real servers
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; status=0; \
	$(if $(and $(RACE),$(filter $(ALL),$(PKG))),go test $(TESTFLAGS) -run 'Broken|RepeatsItself' ./engine || status=$$?; \
	TIDEGATE_SIM_READS=$(SIMREADS) go test $(TESTFLAGS) -v -run '^Test(Failover|Store)?Simulation$$' ./engine || status=$$?;) \
	export TIDEGATE_REQUIRE_PG=1 TIDEGATE_REQUIRE_REDIS=1 TIDEGATE_ENGINES_LOG=$$log $(if $(CHROMIUM),TIDEGATE_REQUIRE_CHROMIUM=1) $(if $(RACE),CGO_ENABLED=1); \
	$(if $(filter-out $(SERVERS),$(PKG)),go test $(RACE) $(TESTFLAGS) $(filter-out $(SERVERS),$(PKG)) || status=$$?;) \
	$(if $(filter $(SERVERS),$(PKG)),go test -p 1 $(RACE) $(TESTFLAGS) $(filter $(SERVERS),$(PKG)) || status=$$?;) \
	if [ -s "$$log" ]; then \
		echo 'engines that ran:'; sort "$$log" | uniq -c | sed 's/^ *\([0-9]*\) /  \1 x /'; \
	else \
		echo 'engines that ran: none recorded'; \
	fi; \
	exit $$status

# Ten minutes, over many seeds; each run lasts a little longer than it is told to, since
# the last fault is mended first.
ROBUSTFLAGS ?= -robust.runs=16 -robust.duration=30s

.PHONY: robust
robust: need-go need-postgres ## sessions on real clusters that are killed, cut off, promoted and rewound
	@cd test && TIDEGATE_REQUIRE_PG=1 go test ./robustness -run '^TestRobust$$' -count=1 -v -timeout 24h $(ROBUSTFLAGS)

.PHONY: lint
lint: need-go $(GOLANGCI) ## lint all modules: style, mistakes and the fences between the layers
ifeq ($(PKG),$(ALL))
	@status=0; for module in $(MODULES); do \
		echo "--> $$module"; \
		(cd "$$module" && $(GOLANGCI) run --allow-serial-runners ./...) || status=1; \
	done; exit $$status
else
	@$(GOLANGCI) run --allow-serial-runners $(PKG)
endif

.PHONY: fmt
fmt: need-go $(GOLANGCI) ## format all modules the way that lint wants it
	@for module in $(MODULES); do (cd "$$module" && $(GOLANGCI) fmt ./...) || exit; done

# Compiled from source once for each version: some minutes, the first time.
$(GOLANGCI):
	@scripts/need-go.sh
	@echo 'compiling golangci-lint $(GOLANGCI_VERSION) (once; this takes some minutes)'
	@mkdir -p $(@D)/install
	@cd $(@D)/install && GOWORK=off GOFLAGS= GOBIN=$(@D)/install \
		go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(@D)/install/golangci-lint $@ && rmdir $(@D)/install

.PHONY: fuzz-smoke
fuzz-smoke: need-go ## run every fuzz target for a few seconds
	@scripts/fuzz.sh $(FUZZTIME) $(FUZZ)

.PHONY: bench
bench: need-go ## benchmarks of the root module, the router's among them
	@go test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -count $(COUNT) $(BENCHPKG)

.PHONY: bench-smoke
bench-smoke: need-go need-postgres need-redis ## every benchmark of every module once, to see that it runs
	@TIDEGATE_REQUIRE_PG=1 TIDEGATE_REQUIRE_REDIS=1 go test -run '^$$' -bench . -benchtime 1x $(ALL)

# The tool stands on its own feet: a go.mod that is out of date elsewhere in
# the workspace must not keep it from building.
modcheck = cd tools && GOWORK=off go run ./modcheck

.PHONY: modules
modules: need-go ## build and install each published module alone, as a user would get it
	@$(modcheck) verify
	@$(modcheck) build

.PHONY: tidy
tidy: need-go ## bring the go.mod and go.sum of all modules up to date
	@$(modcheck) tidy

.PHONY: ci
ci: ## all that has to pass before a change is taken
	@.ci/run

.PHONY: clean
clean: ## remove what was built here (not the linter)
	@rm -rf bin

.PHONY: need-go need-cc need-postgres need-redis need-chromium
need-go need-cc need-postgres need-redis need-chromium:
	@scripts/$@.sh

.PHONY: need-postgres-newer
need-postgres-newer: ## a second, newer PostgreSQL for tests, unpacked into .cache
	@scripts/$@.sh
	@echo "TIDEGATE_PG_BIN_NEWER=$$(scripts/$@.sh --find)"
