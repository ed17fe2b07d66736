# SPDX-License-Identifier: BSD-3-Clause
# A thin face over the CMake presets: each target here is one or two commands.

PRESET ?= release
PREFIX ?= /usr/local
FORMATTED = git ls-files '*.c' '*.h' '*.cpp' '*.hpp'

.DEFAULT_GOAL := help
.PHONY: help demo check test test-all test-numa test-cross build bench soak format install \
  uninstall dist install-openmpi peers clean packages-install packages-build packages-test \
  packages-all packages-cross

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

demo: packages-build ## Barriers and locks here beside others, and a verdict
	@cmake/build.sh release muster-demo muster_mpi_preload
	@bench/demo.sh

check: packages-test ## The quick tests, for every day
	@test/run.sh check

test: packages-test ## The release build's tests, but for the slowest and style
	@test/run.sh test

test-all: packages-all ## That, and sanitizers, aarch64, clang-tidy, style, mutants, NUMA
	@test/run.sh all

test-numa: packages-all ## Of these what only four NUMA nodes can show, on an emulated machine
	@cmake/build.sh release test-numa-programs
	@ctest --test-dir build/release -R '^numa$$' --output-on-failure --no-tests=error

test-cross: packages-cross ## Barriers and locks on s390x, riscv64 and ppc64le, emulated (minutes)
	@test/run.sh cross

build: packages-build ## build/$(PRESET): release, debug, asan, tsan, tsan-clang, s390x, soak, ...
	@cmake/build.sh $(PRESET)

bench: packages-build ## The barriers' benchmark with its default settings (40 s)
	@cmake/build.sh release muster-programs
	@build/release/muster bench barrier

soak: packages-test ## The tests MUSTER_SOAK times as long, by default 10 (half an hour)
	@cmake/build.sh soak
	@MUSTER_SOAK=$${MUSTER_SOAK:-10} ctest --test-dir build/soak --output-on-failure

format: ## Format every C and C++ source in place
	@$(FORMATTED) | xargs clang-format -i

install: packages-install ## Install to PREFIX (and DESTDIR)
	@cmake/build.sh release muster-programs
	@cmake/install.sh build/release $(PREFIX)

uninstall: ## Remove what the last `make install` installed
	@cmake/uninstall.sh build/release

dist: ## A tarball of the last commit: build/muster-VERSION.tar.gz
	@mkdir -p build
	@version=$$(sed -n 's/^  VERSION \(.*\)/\1/p' CMakeLists.txt) && \
	  git archive --prefix=muster-$$version/ -o build/muster-$$version.tar.gz HEAD && \
	  echo build/muster-$$version.tar.gz

install-openmpi: packages-install ## Open MPI's component, to ~/.openmpi or OPENMPI_PREFIX
	@cmake/build.sh release muster-programs
	@cmake/install-openmpi.sh build/release $(OPENMPI_PREFIX)

peers: packages-build ## More MPIs to measure against, to build/peers
	@cmake/peers.sh

clean: ## Remove the build trees
	@rm -rf build

packages-install:
	@cmake/packages.sh build

packages-build:
	@cmake/packages.sh build demo

packages-test:
	@cmake/packages.sh build demo test

packages-all:
	@cmake/packages.sh build demo test all

packages-cross:
	@cmake/packages.sh build test cross
