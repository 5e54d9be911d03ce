# Octet's commands. Each does its own set-up; docs/building.md says what that is.

.PHONY: help serve test test-layers fuzz bench build dist package contracts lint format picture clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: ## build what is missing and serve the page on http://localhost:8000 (PORT=… for another, VARIANTS=all for older browsers, too)
	@scripts/serve.sh

test: ## run every test: native, browsers, the page, the oracle
	@scripts/test.sh

test-layers: ## run the tests of the crates that need no engine; seconds after a change in one of them
	@scripts/test-layers.sh

fuzz: ## give damaged files to whatever reads files, OCTET_FUZZ_SECONDS=60 each (docs/security.md)
	@scripts/fuzz.sh

bench: ## run the benches against the peers; prints a table, writes bench.json
	@scripts/bench.sh

build: ## build the command line and both wasm variants
	@scripts/build.sh

dist: ## make one folder that any static host can serve (docs/hosting.md)
	@scripts/dist.sh

package: ## make the npm package, a tarball (docs/npm.md)
	@scripts/package.sh

contracts: ## write the settings' schema and tables and the TypeScript declarations from the Rust types
	@scripts/contracts.sh

lint: ## check format, types and lints
	@scripts/lint.sh

format: ## format the Rust code, and list in index.html what the page loads at start
	@scripts/lint.sh --fix

picture: ## take the README's pictures from the page again (docs/page.png, docs/layers.png)
	@scripts/picture.sh

clean: ## remove what was built in this checkout (the cache stays; its folder is printed)
	@scripts/clean.sh
