# Thin entry points; each line is one call. `scripts/bootstrap` is the only installer.
.PHONY: setup build demo test test-slow test-aarch64 test-old-torch test-old-glibc test-importers test-cluster test-web web docs asan tsan fuzz bench eval lint format wheel bundle release check clean

setup:
	@scripts/bootstrap
build: setup
	@scripts/build
demo: build
	@scripts/demo
test: build
	@scripts/test
test-slow: build
	@scripts/test --slow
	@scripts/test-wheel
test-aarch64: setup
	@scripts/test-aarch64
test-old-torch:
	@scripts/test-old-torch
test-importers: build
	@scripts/test-importers
test-cluster: build
	@scripts/test-cluster
test-old-glibc: bundle
	@scripts/test-old-glibc
web:
	@scripts/bootstrap web
	@cd web && npm run --silent build
docs:
	@scripts/docs
test-web: build
	@scripts/test-web
asan: setup
	@scripts/sanitize asan
tsan: setup
	@scripts/sanitize tsan
fuzz: setup
	@scripts/fuzz
bench: build
	@scripts/bench
eval: build
	@scripts/eval
lint: build
	@scripts/lint
format:
	@scripts/lint --fix
wheel: setup
	@scripts/wheel
bundle: setup
	@scripts/bundle
release: setup
	@scripts/release
check: test-slow test-web test-aarch64 test-old-torch test-old-glibc test-importers test-cluster asan tsan lint fuzz
clean:
	rm -rf build dist demo_out
