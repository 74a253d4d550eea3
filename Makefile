# `make` lists the targets. CI runs `make test`.

.DEFAULT_GOAL := help
.PHONY: help run test lint bench bench-state bench-calendar bench-market bench-orderless bench-signatures bench-slots bench-prices bench-pool bench-network sim model-long kill-long crash-long fault-long fuzz fuzz-long soak vectors foreign-vectors contracts explorer explorer-crowd screenshots newcomer bench-rpc sim-long mutants dist

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Start a developer chain on http://127.0.0.1:8545
	cargo run --release -- dev

test: lint ## Lint, all Rust tests, a throw-away door, then artifacts of contracts, the explorer and real clients
	scripts/phase "building tests" cargo test --workspace --no-run
	scripts/phase "Rust tests" cargo test --workspace --no-fail-fast
	scripts/phase "throw-away door" scripts/throwaway-door
	scripts/phase "contracts" scripts/contracts --check
	scripts/phase "explorer" scripts/explorer --check
	scripts/phase "explorer in a browser" scripts/explorer-test --no-build
	scripts/phase "clients on dev" scripts/client-test --no-build
	scripts/phase "clients on a network" scripts/client-test --no-build --node network

contracts: ## Compile contracts/ into contracts/artifacts
	scripts/contracts

explorer: ## Build explorer/src into explorer/dist, which is part of the binary
	scripts/explorer

screenshots: ## Make pictures of every page of the explorer in target/screenshots
	scripts/explorer-test --screenshots

explorer-crowd: ## Open the explorer over a million pending schedules and over none, and compare; SCHEDULES=n
	cargo build --release -p almanac
	ALMANAC="$(CURDIR)/target/release/almanac" scripts/explorer-test --no-build --crowd $(SCHEDULES)

newcomer: ## Follow README and five-minute guide word by word, in a fresh clone
	scripts/newcomer

lint: ## Format, clippy without warnings, licences and sources of dependencies
	scripts/phase "format" cargo fmt --all -- --check
	scripts/phase "clippy" cargo clippy --workspace --all-targets -- -D warnings
	scripts/phase "licences" scripts/deny
	scripts/phase "planted bugs" scripts/mutants --check

bench: ## Measure block execution
	cargo bench -p almanac-exec --bench block

bench-state: ## Measure state store and index; ALMANAC_BENCH_KEYS=10000000 for large ones
	cargo bench -p almanac-state --bench state
	cargo bench -p almanac-index --bench index -- $(if $(ALMANAC_BENCH_KEYS),--large)
	cargo bench -p almanac-feed --bench readers

bench-rpc: ## Measure JSON-RPC against anvil: transactions and reads under load, start, memory
	scripts/bench-rpc

bench-network: ## Measure four validators against a chain of one: time to finality, transactions, runs, bytes
	RUST_LOG=warn cargo bench -p almanac --bench network

bench-pool: ## Measure inserts into the pool against a plain map
	cargo bench -p almanac-mempool --bench insert

bench-calendar: ## Measure schedules in whole blocks, and the calendar against a map in memory
	cargo bench -p almanac-consensus --bench schedules
	cargo bench -p almanac-schedule --bench calendar

bench-market: ## Measure scheduled transactions: runs beside full blocks, selection beside many that pend or wait
	cargo bench -p almanac-consensus --bench schedules -- market

bench-orderless: ## Measure orderless transactions: against sequence numbers, beside many live nonces, and after a burst
	cargo bench -p almanac-consensus --bench schedules -- orderless

bench-signatures: ## Measure transactions that wait for signatures: against a loop that only verifies, by leaves, 180,000 that expire
	cargo bench -p almanac-consensus --bench schedules -- signatures

bench-slots: ## Measure callbacks: booking beside many bookings, and runs against plain calls
	cargo bench -p almanac-exec --bench slots

bench-prices: ## Measure the time per gas of every entry into native code
	cargo test --config profile.dev.opt-level=3 -p almanac-exec --test all -- --ignored --nocapture --test-threads 1 attack_27 dearest_precompile

model-long: ## Compare the schedulers with simple models: cron on 10,000 histories, callbacks and signatures on 2,000
	ALMANAC_MODEL_CASES=10000 cargo test -p almanac-exec --test all scheduler_model:: -- --nocapture
	ALMANAC_MODEL_CASES=2000 cargo test -p almanac-exec --test all flip330_model:: -- --nocapture
	ALMANAC_MODEL_CASES=2000 cargo test -p almanac-exec --test all hedera_model:: -- --nocapture

kill-long: ## Kill a node under load 200 times
	ALMANAC_KILLS=200 cargo test -p almanac --test chain kill:: -- --nocapture

fault-long: ## Kill, stop and disconnect real validators and fill their disks, under load, 10 times
	ALMANAC_FAULT_ROUNDS=10 cargo test -p almanac --test networks network_faults:: -- --nocapture

soak: ## Check that memory, files and disk stay flat under load and faults, for 30 minutes; SECONDS=n BLOCK_MS=n
	ALMANAC_SOAK_S=$(or $(SECONDS),1800) ALMANAC_SOAK_BLOCK_MS=$(or $(BLOCK_MS),100) cargo test --release -p almanac --test networks soak:: -- --ignored --nocapture

crash-long: ## Crash the store at every point of every recovery
	ALMANAC_CRASH_LONG=1 cargo test --release -p almanac-consensus --test all crash:: -- --nocapture

fuzz: ## Fuzz every decoder and RPC method by coverage, 1 minute each; MINUTES=n TARGETS="name …"
	scripts/fuzz $(or $(MINUTES),1) $(TARGETS)

fuzz-long: ## Send a running node 30,000 malformed requests; SEED=n replays a seed
	$(if $(SEED),ALMANAC_FUZZ_SEED=$(SEED) )ALMANAC_FUZZ_MESSAGES=5000 cargo test -p almanac --test chain fuzz:: -- --nocapture

sim: ## Simulate networks with faults; SEED=n replays a seed of the swarm, or of CAMPAIGN=name, and prints its digest
	$(if $(SEED),ALMANAC_SIM_SEED=$(SEED) )cargo test -p almanac-consensus --test all deterministic::
	$(if $(SEED),ALMANAC_SIM_SEED=$(SEED) )cargo test -p almanac-bft --test all $(if $(SEED),$(or $(CAMPAIGN),swarm)_of_,sim::) -- --nocapture

sim-long: ## Simulate 1,000 seeds of each campaign; SEEDS=n
	ALMANAC_SIM_SEEDS=$(or $(SEEDS),1000) cargo test --release -p almanac-bft --test all _seeds -- --nocapture --test-threads 2

mutants: ## Plant bugs in a copy of the sources and expect tests to fail; MUTANTS="name …" selects, JOBS=n at a time
	scripts/mutants --jobs $(or $(JOBS),1) $(MUTANTS)

vectors: ## Rewrite the golden encodings; review the difference like code
	UPDATE_VECTORS=1 cargo test -p almanac-primitives -p almanac-schedule -p almanac-exec -p almanac-state --tests

foreign-vectors: ## Run precompile vectors of another project in FOLDER=dir
	ALMANAC_VECTORS=$(FOLDER) cargo test -p almanac-exec --test all precompiles:: -- --ignored --nocapture

dist: ## Build a stripped release with completions, packaging/ and checksums in target/dist
	scripts/dist
