# `make` lists the words. CI uses these words and nothing else.

.DEFAULT_GOAL := help
.PHONY: help run test lint bench bench-state bench-calendar bench-prices bench-pool bench-network sim model-long kill-long crash-long fault-long fuzz fuzz-long soak vectors foreign-vectors contracts bench-rpc sim-long mutants

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Start a developer chain on http://127.0.0.1:8545
	cargo run --release -- dev

test: lint ## Lint, all Rust tests, then artifacts of contracts and real clients
	cargo test --workspace
	scripts/contracts --check
	scripts/client-test --no-build
	scripts/client-test --no-build --node network

contracts: ## Compile contracts/ into contracts/artifacts
	scripts/contracts

lint: ## Format, clippy without warnings, licences and sources of dependencies
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets -- -D warnings
	scripts/deny

bench: ## Measure block execution
	cargo bench -p almanac-exec --bench block

bench-state: ## Measure state store and index; ALMANAC_BENCH_KEYS=10000000 for large ones
	cargo bench -p almanac-state --bench state
	cargo bench -p almanac-index --bench index -- $(if $(ALMANAC_BENCH_KEYS),--large)
	cargo bench -p almanac-rpc --bench readers

bench-rpc: ## Measure JSON-RPC against anvil: transactions and reads under load, start, memory
	scripts/bench-rpc

bench-network: ## Measure four validators against a chain of one: time to finality, transactions, runs, bytes
	RUST_LOG=warn cargo bench -p almanac --bench network

bench-pool: ## Measure the pool of pending transactions against a plain map
	cargo bench -p almanac-mempool --bench insert

bench-calendar: ## Measure schedules through whole blocks, and the calendar against a plain map in memory
	cargo bench -p almanac-consensus --bench schedules
	cargo bench -p almanac-schedule --bench calendar

bench-prices: ## Measure the time that every way into native code takes for its gas
	cargo test --config profile.dev.opt-level=3 -p almanac-exec --test attacks -- --ignored --nocapture --test-threads 1 attack_27

model-long: ## Compare the scheduler with the dull one on 10,000 histories of 500 operations
	ALMANAC_MODEL_CASES=10000 cargo test -p almanac-exec --test scheduler_model -- --nocapture

kill-long: ## Kill a node under load 200 times
	ALMANAC_KILLS=200 cargo test -p almanac --test kill -- --nocapture

fault-long: ## Kill, stop, cut off and fill the disks of real validators under load, 10 times
	ALMANAC_FAULT_ROUNDS=10 cargo test -p almanac --test network_faults -- --nocapture

soak: ## Run real validators under load and faults for 10 minutes, or SECONDS=n, BLOCK_MS=n: memory, files and disk stay flat
	ALMANAC_SOAK_S=$(or $(SECONDS),600) ALMANAC_SOAK_BLOCK_MS=$(or $(BLOCK_MS),200) cargo test --release -p almanac --test soak -- --ignored --nocapture

crash-long: ## Crash the store at every point of every recovery
	ALMANAC_CRASH_LONG=1 cargo test --release -p almanac-consensus --test crash -- --nocapture

fuzz: ## Fuzz every decoder and RPC method by coverage, 1 minute each or MINUTES=n; TARGETS="name …" chooses some
	scripts/fuzz $(or $(MINUTES),1) $(TARGETS)

fuzz-long: ## Send a running node 30,000 bad requests; SEED=n sends those of that seed
	$(if $(SEED),ALMANAC_FUZZ_SEED=$(SEED) )ALMANAC_FUZZ_MESSAGES=5000 cargo test -p almanac --test fuzz -- --nocapture

sim: ## Run networks with faults in the simulator; SEED=n runs that seed (CAMPAIGN=name, swarm) and prints its digest
	$(if $(SEED),ALMANAC_SIM_SEED=$(SEED) )cargo test -p almanac-consensus --test deterministic
	$(if $(SEED),ALMANAC_SIM_SEED=$(SEED) )cargo test -p almanac-bft --test sim $(if $(SEED),$(or $(CAMPAIGN),swarm)_of_ )-- --nocapture

sim-long: ## Run 1,000 seeds of each campaign of networks with faults, or SEEDS=n
	ALMANAC_SIM_SEEDS=$(or $(SEEDS),1000) cargo test --release -p almanac-bft --test sim _seeds -- --nocapture --test-threads 2

mutants: ## Plant bugs in a copy of the sources and expect tests to fail; MUTANTS="name …" chooses some
	scripts/mutants $(MUTANTS)

vectors: ## Write the golden encodings anew; review the difference like code
	UPDATE_VECTORS=1 cargo test -p almanac-primitives -p almanac-schedule -p almanac-exec -p almanac-state --tests

foreign-vectors: ## Run precompile vectors of another project; FOLDER=dir names them
	ALMANAC_VECTORS=$(FOLDER) cargo test -p almanac-exec --test precompiles -- --ignored --nocapture
