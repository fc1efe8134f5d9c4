# What CI runs, in its order; `make` alone checks and tests, `make help` lists the rest.

# Every module has the versions of its own go.mod; go.work would raise them to the highest of all.
export GOWORK := off

WAZERO   := github.com/tetratelabs/wazero/cmd/wazero@v1.12.0
WASM_BROWSER := github.com/agnivade/wasmbrowsertest@v0.11.0
WINDOW   := xvfb pkg-config libgl1-mesa-dri libgl1-mesa-dev libxcursor-dev libxi-dev libxinerama-dev libxrandr-dev libxxf86vm-dev
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
APIDIFF  := golang.org/x/exp/cmd/apidiff@v0.0.0-20261113113407-e3970619a1a4
MISSPELL := github.com/golangci/misspell/cmd/misspell@v0.8.0
TYPESCRIPT := 5.9.3
FUZZTIME  ?= 10s
KILLS     ?= 200
TABKILLS  ?= 12
SIMS      ?= 20
CHECKS    ?= 1000
CUTS      ?= 100
FAULTS    ?= 110
KINDS     ?=
MINUTES   ?= 10
SCRUB     ?= 5s
FLIPS     ?= 100000
EVERY     ?= 1
SEED      ?= 1
MUTANTS   ?= 200
MODEL     ?=
SUITETIME ?= 0.2s
STRICT    ?= -strict -retry 2
DEBUG     ?= ./ecs ./ecs/internal/track ./ecs/rollback ./ecs/schedule ./examples/guide/chapters
RACE      ?= ./ecs ./ecs/schedule ./journal ./disk/... ./internal/parallel ./persist/...
PORTS     ?= linux/386 linux/arm windows/amd64 darwin/arm64 freebsd/amd64 js/wasm wasip1/wasm

# having NAME is the directories of packages with a test whose name begins so.
having = $$(go list -f '{{$$d := .Dir}}{{range .TestGoFiles}}{{$$d}}/{{.}} {{end}}{{range .XTestGoFiles}}{{$$d}}/{{.}} {{end}}' ./... \
	| xargs grep -l '^func $(1)' | xargs -n 1 dirname | sort -u)

.PHONY: all help quick check test work lint apidiff archives knots journeys mutants deep race debug script chromium browser opfs window site site-serve site-test tables nats model failover narrow machines wasm wasm-reads node ports inspect-data inspect-budgets main-job kills simulate programs powercut damage soak fuzz bench suites cells

all: check test

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

quick: ## what CI answers first, with the time of each step
	.ci/run quick

check: ## formatting, vet and wording
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt -w on these'; exit 1; }
	go vet ./...
	go run ./internal/wording

test: ## the README's test command
	go test ./...

work: ## the short tests of all modules, with the versions of go.work
	GOWORK= go test -short -timeout 10m work

# The modules that lie below this one.
NESTED = cmd/ecsdump-tables disk/browser/browsertest docs/site examples/asteroids/window persist/inspect/web/browsertest persist/replica/natslog

lint: ## golangci-lint, built from source at its pinned version, for every module; the spelling of pages and scripts
	@set -e; for module in . $(NESTED); do echo "golangci-lint in $$module"; \
		(cd $$module && go run $(GOLANGCI) run -c $(CURDIR)/.golangci.yml ./...); done
	go run $(MISSPELL) -error $$(git ls-files '*.md' '*.js' '*.html' '*.tmpl' '*.pml' .ci .github)

apidiff: ## incompatible changes of the exported API since the last version; each must be in CHANGELOG.md
	APIDIFF=$(APIDIFF) .ci/apidiff

archives: ## ecsdump for all platforms, with man pages and completions: in the directory dist
	.ci/archives

knots: ## the files of every package that need each other, and where to untie them
	@go test ./internal/arch -run HouseLimits -knots -count 1 -v

journeys: ## how many functions and files six common calls enter
	@dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; GOCOVERDIR=$$dir go run -cover -covermode atomic -coverpkg ./... ./internal/journeys

mutants: ## puts MUTANTS single faults into ecs, chosen by SEED, and prints those that no test sees; half an hour
	nice go run ./internal/mutants -n $(MUTANTS) -seed $(SEED) ./ecs ./ecs/rollback ./ecs/internal/track

deep: ## the tests with all that they can try
	STET_DEEP=1 go test -timeout 20m ./...

race: ## the tests of the packages RACE, or those of them that match RUN, under the race detector
	go test -race -short -timeout 20m $(if $(RUN),-run='$(RUN)') $(RACE)

debug: ## the build that finds stray writes, in the packages DEBUG
	go vet -tags stetdebug ./ecs/... ./examples/guide/chapters
	go test -tags stetdebug -gcflags=github.com/stet-ecs/stet/...=-d=checkptr $(DEBUG)

script: ## the types of the JavaScript of the pages, by tsc; skipped without npx
	@if command -v npx >/dev/null; then for dir in persist/inspect/web docs/site; do \
		npx --yes -p typescript@$(TYPESCRIPT) tsc -p $$dir/jsconfig.json || exit 1; done; \
	else echo 'skipped: npx is not installed'; fi

chromium: # The browser of four targets; installs Chromium if there is none.
	@for name in "$$STET_BROWSER" chromium chromium-browser google-chrome; do command -v "$$name" >/dev/null && exit; done; \
	.ci/install chromium chromium; command -v chromium >/dev/null || \
	{ echo 'install Chromium, or have STET_BROWSER name a program like it' >&2; exit 1; }

browser: chromium ## the page of ecsdump serve, used in Chromium; SHORT=-short leaves out what takes long, SCRUB=10m is for the test of memory
	cd persist/inspect/web/browsertest && go vet ./... && go test -count 1 -timeout 30m $(SHORT) ./... -scrub $(SCRUB)

opfs: chromium ## the files of package disk/browser, in Chromium with and without OPFS, whose tabs are killed TABKILLS times each; SHORT=-short kills no tabs
	@set -e; dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; GOBIN=$$dir go install $(WASM_BROWSER); \
	export GOOS=js GOARCH=wasm; go vet ./disk/browser; \
	go test -count 1 $(SHORT) -exec "$$dir/wasmbrowsertest" ./disk/flat ./disk/browser -test.bench . -test.benchtime 0.3s
	cd disk/browser/browsertest && GOOS=js GOARCH=wasm go vet ./program && go vet . $(if $(SHORT),,&& go test -count 1 . -kills $(TABKILLS))

window: chromium ## the game in a window of Xvfb and in Chromium; SHORT=-short tests only what needs no screen. Installs Xvfb and headers if there is no Xvfb
	@.ci/install Xvfb $(WINDOW)
	cd examples/asteroids/window && go vet ./... && GOOS=js GOARCH=wasm go vet . ./small && go test -count 1 -timeout 15m ./control $(if $(SHORT),,./windowtest)

site: ## the documentation for a web host with https, and the game: files in the directory site
	cd docs/site && go run . -build

site-serve: ## builds the same, and serves it at 127.0.0.1:8080
	cd docs/site && go run .

site-test: chromium ## the program that builds the documentation, and its pages in Chromium; npm downloads axe-core
	cd docs/site && go vet ./... && GOOS=js GOARCH=wasm go vet ./testdata/dots ./testdata/prints && go test -count 1 -timeout 5m ./...

tables: ## export --format parquet and sqlite, as pandas, DuckDB and sqlite3 read them: in a new environment of Python, with packages of PyPI
	@set -e; dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; python3 -m venv $$dir; $$dir/bin/pip install -q pandas pyarrow duckdb; \
	cd cmd/ecsdump-tables; go vet ./...; STET_PYTHON=$$dir/bin/python go test -count 1 ./...

nats: ## the log of a replicated store on NATS, with servers in the process
	cd persist/replica/natslog && go vet ./... && go test -count 1 -parallel 6 -timeout 10m ./...

model: ## the protocol of a replicated store, by the model checker spin: every order of a few entries and faults. Installs spin if there is none
	persist/replica/model/run.sh $(MODEL)

failover: ## a world on three NATS servers through FAULTS faults of all KINDS (kinds in failover_faults_test.go): no confirmed tick may be lost; partitions as root
	cd persist/replica/natslog && go test -run '^TestFailover$$' -faults $(FAULTS) -kinds '$(KINDS)' -faultseed $(SEED) -count 1 -timeout 90m -v

narrow: ## the tests of what knows no store, and of an int in saves, where an int has 32 bits
	GOARCH=386 go test -short ./ecs/... ./journal
	GOARCH=386 go test -short -run NarrowInt ./persist

machines: ## the digests of every tick of two examples on arm64, by qemu, and under WASI are those of this machine. Installs qemu-user if there is none
	WAZERO=$(WAZERO) .ci/machines

# What takes long there, or starts other processes, is left out.
SAVES = -short -run 'Stream|EveryMachine|Save_RandomWorlds|Compress|AnyPlace|AnOpenFile|^Example' ./ecs ./persist
READS = -short -skip 'Bisect_Secrets|Tree_RandomWorlds|Tree_LongChainOrManySources|Tree_InSaveFile|Referrers_RandomWorlds|Tree_LongChainAndManyChildren|Verify_FlippedBitsOfStore|Commands_FlippedBitsOfStore|OnDamagedStores|Graph_ShowsParentOfEachRecord|Bisect_LastChange' ./persist/inspect ./persist/repair ./internal/dump

WASM_NODE = GOOS=js GOARCH=wasm go test -exec $$(go env GOROOT)/lib/wasm/go_js_wasm_exec

# Runs tests under WASI by wazero, which is built from source.
WASI = set -e; dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; GOBIN=$$dir go install $(WAZERO); \
	wasi() { GOOS=wasip1 GOARCH=wasm go test -exec "$$dir/wazero run -mount /:/ -env-inherit" "$$@"; }

wasm: ## the tests that write, under WASI, where a save has the same bytes; those of files also under node, if it is installed
	@$(WASI); wasi -short ./disk; wasi $(SAVES); \
	if command -v node >/dev/null; then $(WASM_NODE) -short -skip AllocatesNothing ./disk ./journal; fi

wasm-reads: ## the tests that read stores and saves, under WASI
	@$(WASI); wasi $(READS)

node: ## the tests that write saves, and that read stores and saves, under node
	$(WASM_NODE) $(SAVES)
	$(WASM_NODE) $(READS)

ports: ## builds for other systems and processors; the tests check their types
	@set -e; for port in $(PORTS); do echo "go build $$port"; GOOS=$${port%/*} GOARCH=$${port#*/} go build ./...; done

main-job: ## the README's first command
	go run ./examples/life

kills: ## SIGKILL at random moments: nothing durable may be lost
	go test ./examples/life ./persist -run Kill -kills $(KILLS) -count 1 -timeout 30m

simulate: ## a disk that fails or crashes at every call (one of EVERY), and processes that take a store from each other: SIMS programs from SEED on; 150 times as many of machines with a log
	go test ./persist/replica -run Simulated -sim.runs $$((150 * $(SIMS))) -sim.seed $(SEED) -count 1 -timeout 60m -v
	go test ./persist -run 'SimulatedStore|SimulatedOwners' -sim.runs $(SIMS) -sim.every $(EVERY) -sim.seed $(SEED) -count 1 -timeout 60m -v

programs: ## random programs against worlds that never leave memory; journals cut at every byte
	STET_DEEP=1 go test ./persist -run 'Random|Grouped|CutAnywhere' -rapid.checks $(CHECKS) -count 1 -timeout 60m

powercut: ## see docs/POWERCUT.md; as root
	go test ./persist -run '^TestPowerCuts$$' -powercuts $(CUTS) -powercutseed $(SEED) -count 1 -timeout 30m -v

damage: ## every bit of a small store, FLIPS random ones of a large one; files removed, doubled, swapped, cut, linked
	go test ./persist -run '^TestDamage_' -flips $(FLIPS) -flipseed $(SEED) -count 1 -timeout 60m -v

soak: ## 100,000 entities at 60 ticks a second under default options, for MINUTES: the bound holds, and the worst tick
	go test ./persist -run '^TestSoak' -soak.minutes $(MINUTES) -soak.seed $(SEED) -count 1 -timeout 0 -v

fuzz: ## every fuzz target for FUZZTIME; each package is built once
	@set -e; dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; cache=$$(go env GOCACHE)/fuzz; \
	for pkg in $(call having,Fuzz); do \
		go test -c -fuzz . -o $$dir/test $$pkg; cd $$pkg; \
		for target in $$($$dir/test -test.list '^Fuzz'); do \
			echo "$$pkg $$target"; \
			$$dir/test -test.run '^$$' -test.fuzz "^$$target$$" -test.fuzztime $(FUZZTIME) -test.fuzzcachedir $$cache/$$(go list) \
				>$$dir/log 2>&1 || { cat $$dir/log; exit 1; }; \
		done; cd - >/dev/null; \
	done

BUDGETS = -run '^$$' -bench '^BenchmarkBudget' -benchtime 1x -timeout 30m $(SHORT)

bench: ## every budget and what was measured; fails if one is over its limit by more than noise, and with STRICT= only says so; SHORT=-short is rougher
	@{ go test $(BUDGETS) $(call having,BenchmarkBudget); cd persist/replica/natslog && go test $(BUDGETS) .; } | \
		go run ./internal/benchtable $(STRICT) -limits internal/benchtable/limits.txt

suites: ## the published suites, as the tables of docs/BENCHMARKS.md
	@go test -run '^$$' -bench 'Go|Rust' -benchtime $(SUITETIME) -timeout 60m ./benchmarks | go run ./internal/benchtable -grid

inspect-data: ## what the figures of ecsdump are measured on, in DIR: a save of 1 GB and two stores; 2 GB of memory
	@test -n "$(DIR)" || { echo 'make inspect-data DIR=…'; exit 2; }
	go run ./internal/benchdata $(DIR)

inspect-budgets: ## every budget of ecsdump and its page, measured on that data in DIR and in Chromium
	@test -n "$(DIR)" || { echo 'make inspect-budgets DIR=…, of make inspect-data'; exit 2; }
	@run='-run ^$$ -bench ^BenchmarkInspector -benchtime 1x -timeout 30m -data '$$(realpath $(DIR)); \
	{ go test -p 1 ./internal/dump ./persist/inspect/web $$run; cd persist/inspect/web/browsertest && go test . $$run -bench 'InspectorBrowser|BudgetBrowser'; } | go run ./internal/benchtable

cells: ## what persistence adds to a tick of ten million cells; a minute, 2 GB of memory, some GB of disk
	@go test -run '^$$' -bench '^BenchmarkCells' -benchtime 1x -timeout 30m ./benchmarks | go run ./internal/benchtable -grid
