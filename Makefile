# Two commands to know: `make demo` and `make test`. `make help` lists the rest.

# Outside the clone, so that a fresh clone does not compile RocksDB again.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/samestory/target

# Programs that the checks need, kept beside the build.
export SAMESTORY_TOOLS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/samestory/tools

CORE := --release --no-default-features
# Labelled articles: perturb.py, data sets and labelled pairs.
LABELLED := $(or $(DATA),$(SAMESTORY_DATA),../shared/data)
DENY := $(SAMESTORY_TOOLS)/bin/cargo-deny --workspace check --hide-inclusion-graph

.PHONY: help demo install test test-python test-clients test-brokers test-deploy test-pages test-semantic test-wasm test-image test-faults test-mutants test-bombs test-edges test-space check deny bench bench-store bench-corpus bench-query bench-kafka bench-day bench-python bench-readme quality quality-natural fit fuzz kafka-demo tools-demo tools-test clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 12

demo: tools-demo ## build without C++ and judge the articles of demo/
	cargo build $(CORE) --target-dir $(CARGO_TARGET_DIR)/core --bin samestory
	@demo/run $(CARGO_TARGET_DIR)/core/release/samestory

install: tools-build ## build with Kafka and RocksDB, and install as ~/.cargo/bin/samestory (RocksDB compiles once)
	cargo install --path . --locked

test: tools-test check ## install what is missing and run all tests
	cargo test --release --features tlsh,faults -- --skip kafka::
	@echo "tests on a real broker, one at a time, because each needs both cores:"
	cargo test --release --features tlsh,faults --test it -- --test-threads 1 kafka::
	@echo "the engine without C++:"
	cargo check $(CORE)
	@$(MAKE) --no-print-directory test-python FEATURES=rocksdb
	@$(MAKE) --no-print-directory test-deploy

test-python: tools-python ## build the Python package without RocksDB, and test it (FEATURES=rocksdb: with an index on disk)
	@wheel=$$(dev/wheel $(FEATURES)) && eval "$$wheel" && (cd python && "$$python" -m mypy --strict samestory) \
	  && SAMESTORY_PROGRAM=$(wildcard $(CARGO_TARGET_DIR)/release/samestory) "$$python" -m pytest -q python/tests
test-clients: tools-test ## run the example consumers in Python, Rust and Java on a real broker
	cargo build --release --features tlsh,faults --example consumer
	cargo test --release --features tlsh,faults --test it -- --test-threads 1 --nocapture kafka::clients

# Kafka versions that docs/operations.md lists as tried.
BROKERS := 3.9.1 4.1.1
test-brokers: tools-test ## run a part of the tests on a real broker with each Kafka version of BROKERS (a few minutes each)
	cargo test --release --features tlsh,faults --test it --no-run
	set -e; for version in $(BROKERS); do echo "Apache Kafka $$version:"; KAFKA_VERSION=$$version dev/kafka fetch; \
	  KAFKA_VERSION=$$version cargo test --release --features tlsh,faults --test it -- --test-threads 1 kafka::topics kafka::transactions \
	    kafka::verdicts kafka::inputs kafka::groups::the_classic kafka::groups::a_static || exit 1; done

test-deploy: tools-deploy ## check the Helm chart, the image, the alerts and the dashboard, without a cluster
	cargo test --release --features tlsh,faults --test it --no-run
	@echo "chart, alerts, dashboard and image:"
	@dev/test-deploy $(CARGO_TARGET_DIR)/release/samestory
	@echo "an alert from the program to Slack:"
	cargo test --release --features tlsh,faults --test it -- --ignored watching::

test-pages: tools-pages ## check the HTML report in Chromium: two widths, light and dark, keyboard, axe-core (PICTURES=folder keeps the screenshots)
	cargo build $(CORE) --target-dir $(CARGO_TARGET_DIR)/core --bin samestory
	@node dev/pages/check.mjs $(CARGO_TARGET_DIR)/core/release/samestory $(or $(PICTURES),$(CARGO_TARGET_DIR)/pages)

test-semantic: tools-demo ## test sentence embeddings (crates/samestory-semantic): a workspace of its own, so that no other build compiles its hundred crates more
	cd crates/samestory-semantic && export CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/semantic && cargo fmt --check \
	  && cargo clippy --locked --all-targets -- -D warnings && cargo test --locked

test-wasm: ## build the engine as WebAssembly, and compare texts in Chromium (examples/wasm; needs the target wasm32-unknown-unknown)
	@dev/test-wasm

test-image: tools-test ## run the steps of the Dockerfile and the commands of docker-compose.yml, without Docker
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && dev/image "$$work" \
	  && "$$(dev/venv checks dev/deploy/python.txt)" dev/deploy/compose.py run "$$work/root/usr/local/bin/samestory"

test-faults: tools-test ## inject random faults from SEED into the stage on a real broker for MINUTES
	SAMESTORY_FAULTS_SEED=$(SEED) SAMESTORY_FAULTS_MINUTES=$(or $(MINUTES),5) \
	  cargo test --release --features tlsh,faults --test it -- --include-ignored --test-threads 1 --nocapture kafka::faults::runs

test-bombs: tools-test ## test the stage's memory against compression bombs of gigabytes (needs two gigabytes, about a minute)
	cargo test --release --features tlsh,faults --test it -- --ignored --nocapture --test-threads 1 kafka::delivery::a_gzip_bomb

test-mutants: tools-test ## remove each guard once and check that a test fails (about 25 minutes)
	cargo test --release --features tlsh,faults --test it -- --ignored --nocapture --test-threads 1 kafka::faults::mutants kafka::recovery::without \
	  kafka::generations::a_generation_end kafka::delivery::records_that_are_not_measured kafka::delivery::a_parser_that_panics \
	  kafka::delivery::calls_without_a_limit

test-edges: tools-test ## run the longer tests: expired offsets, a backlog, a truncated log, a cold pod, batch sizes (about 8 minutes)
	cargo test --release --features tlsh,faults --test it -- --ignored --nocapture --test-threads 1 kafka::generations::offsets_that_have_expired \
	  kafka::generations::unjudged_articles kafka::generations::a_raw_topic_created_again kafka::recovery::a_truncated_log \
	  kafka::routes::verdicts_do_not_depend kafka::recovery::an_operators_decision kafka::recovery::a_cold_pod \
	  kafka::days::a_broker_that_is_away

test-space: tools-test ## fill the disk during match and during a restore, ROUNDS times (50: about 15 minutes; needs root)
	SAMESTORY_SPACE_ROUNDS=$(or $(ROUNDS),50) \
	  cargo test --release --features tlsh,faults --test it -- --ignored --nocapture --test-threads 1 kafka::space

check: tools-test ## check format, lints, documentation, licences and sources
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets --features samestory/tlsh,samestory/faults -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps --no-default-features
	$(DENY) licenses bans sources

deny: tools-test ## check licences, sources and, over the network, known advisories
	$(DENY)

bench: tools-test ## print benchmark tables beside peers and limits; FULL=1 fills stores with a million articles
	cargo run --release -p samestory-bench -- $(if $(FULL),full)

bench-store: tools-test ## benchmark only the stores, with a million articles
	cargo run --release -p samestory-bench -- full store

bench-corpus: tools-test ## fill one store with 15.8 million stories in ten languages: rate, memory and disk every million, and an SVG (ARTICLES=100000, STATE=dir keeps it)
	cargo run --release -p samestory-bench -- corpus

bench-query: tools-test ## benchmark queries over HTTP while the store is filled; FULL=1 with a million articles
	cargo run --release -p samestory-bench -- $(if $(FULL),full) query

bench-kafka: tools-test ## benchmark the stage on a real broker, beside a bare exactly-once pipe (ARTICLES=60000)
	cargo build --release --bin samestory
	cargo run --release -p samestory-bench --bin kafka -- $(CARGO_TARGET_DIR)/release/samestory

bench-day: tools-test ## run a newsroom's day of 25,000 items in HTML and ten languages through the stage on a real broker (ITEMS=2500)
	cargo build --release --bin samestory
	cargo run --release -p samestory-bench --bin day -- $(CARGO_TARGET_DIR)/release/samestory

bench-python: tools-python ## benchmark the Python package beside rensa, datasketch and text-dedup on articles made from DATA (ARTICLES=100000)
	@wheel=$$(dev/wheel) && eval "$$wheel" && "$$(dev/venv bench-python dev/bench-python.txt)" dev/bench_python.py $(LABELLED) $(or $(ARTICLES),100000)

bench-readme: tools-demo ## write README's table of speeds from the results of bench FULL=1, bench-kafka and bench-corpus
	cargo run $(CORE) --target-dir $(CARGO_TARGET_DIR)/core -p samestory-bench -- readme

quality: tools-demo ## measure verdicts on the articles in DATA (../shared/data), planted and natural, and write docs/quality.md; QUALITY="--seeds 7 --limit 300" is faster
	cargo build $(CORE) --target-dir $(CARGO_TARGET_DIR)/core --bin samestory
	dev/quality $(CARGO_TARGET_DIR)/core/release/samestory $(LABELLED) $(QUALITY)
	"$$(dev/venv peers dev/peers.txt)" dev/natural.py $(CARGO_TARGET_DIR)/core/release/samestory $(LABELLED)

quality-natural: tools-demo ## measure only natural news, beside three peers (a few minutes)
	cargo build $(CORE) --target-dir $(CARGO_TARGET_DIR)/core --bin samestory
	"$$(dev/venv peers dev/peers.txt)" dev/natural.py $(CARGO_TARGET_DIR)/core/release/samestory $(LABELLED)

fit: tools-demo ## fit the evidence weights to the labelled pairs in DATA and write crates/samestory-engine/src/engine/compare/weights.rs (WORK keeps the sets)
	cargo build $(CORE) --target-dir $(CARGO_TARGET_DIR)/core --bin samestory
	@python=$$(dev/venv fit dev/fit.txt) && work=$(WORK) && if [ -z "$$work" ]; then work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT; fi \
	  && "$$python" dev/fit.py prepare $(LABELLED) "$$work" \
	  && $(CARGO_TARGET_DIR)/core/release/samestory eval "$$work"/*.ndjson --evidence "$$work/evidence.tsv" >/dev/null \
	  && "$$python" dev/fit.py fit "$$work/evidence.tsv" crates/samestory-engine/src/engine/compare/weights.rs $(LABELLED)/natural.pairs.tsv

kafka-demo: tools-test ## run the stage on a real broker, from an empty directory to verdicts
	cargo build --release --bin samestory
	@dev/kafka-demo $(CARGO_TARGET_DIR)/release/samestory $(ARTICLES)

fuzz: ## fuzz TARGET=markup|normalize|fingerprint_decode|json|fields|avro|values|times|routed for SECONDS (needs nightly and cargo-fuzz)
	cd fuzz && cargo +nightly fuzz run $(if $(filter routed,$(TARGET)),--features kafka) $(or $(TARGET),markup) -- -max_total_time=$(or $(SECONDS),60)

tools-demo:
	@dev/tools demo

tools-python:
	@dev/tools python

tools-build:
	@dev/tools build

tools-pages: tools-demo
	@dev/tools pages

tools-test:
	@dev/tools test

tools-deploy:
	@dev/tools deploy

clean: ## remove the build, including the shared cache
	rm -rf $(CARGO_TARGET_DIR)
