# Every command installs what it needs: Debian packages by apt, where something
# is missing; the rest lands in .cache, which git ignores.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The revision is stamped below; asking git fails in a clone of another user.
export GOFLAGS := $(GOFLAGS) -buildvcs=false

bin := .cache/bin
exporter := $(bin)/rdma_exporter
promtool := .cache/prometheus
vm := '$(CURDIR)/test/vm/run'
port ?= 10879

golangci_lint := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
gofumpt := mvdan.cc/gofumpt@v0.12.0

info := github.com/prometheus/common/version
ldflags = -X $(info).Version=$(shell cat VERSION) \
	-X $(info).Revision=$(shell git rev-parse HEAD 2>/dev/null || echo unknown) \
	-X $(info).Branch=$(shell git rev-parse --abbrev-ref HEAD 2>/dev/null || echo unknown)

# What the tests find: the built binary, the program that it is measured against,
# one that holds objects, the library that makes verbs fail, and promtool.
test_env = RDMA_EXPORTER_BINARY='$(CURDIR)/$(exporter)' RDMA_YARDSTICK='$(CURDIR)/$(bin)/yardstick' \
	RDMA_HOLDER='$(CURDIR)/$(bin)/holder' RDMA_FAULTS_LIBRARY='$(CURDIR)/$(bin)/libfaults.so' PATH='$(CURDIR)/$(promtool)/usr/bin':"$$PATH"

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | awk -F'|' '{ printf "%-24s%s\n", $$1, $$2 }'

.PHONY: build
build: ## Build the exporter into .cache/bin
	@tools/packages gcc libc6-dev libibverbs-dev
	@mkdir -p $(bin)
	go build -trimpath -ldflags '$(ldflags)' -o $(exporter) ./cmd/rdma_exporter

.PHONY: run
run: build ## Build and run the exporter on :10879; with simulated devices where the host has none
	@if [[ -n "$$(ls /sys/class/infiniband 2>/dev/null)" ]]; then \
		exec $(exporter) --web.listen-address=:$(port) $(flags); \
	else \
		echo "This host has no RDMA device (/sys/class/infiniband is empty): running on simulated devices." >&2; \
		exec $(exporter) --web.listen-address=:$(port) --provider=simulated $(flags); \
	fi

.PHONY: demo
demo: build ## Serve the metrics of real Soft-RoCE devices, in a VM, on 127.0.0.1:10879
	@echo "Real Soft-RoCE devices in a VM: http://127.0.0.1:$(port)/ (end with Ctrl-C)" >&2
	@exec test/vm/run --smp 2 --timeout 0 --forward $(port):10879 $(exporter) $(flags)

.PHONY: test
test: test-unit test-browser test-vm ## Run every test, those on real devices in the VM included

.PHONY: test-tools
test-tools: build
	@tools/packages xz-utils
	@tools/unpack prometheus $(promtool)

.PHONY: test-unit
test-unit: test-tools ## Run the tests that need no RDMA device
	CGO_ENABLED=0 go build ./...
	$(test_env) go test -race ./...

.PHONY: test-browser
test-browser: build ## Look at the status page in a browser; what it showed is in .cache/screenshots
	@tools/packages chromium fonts-dejavu-core
	$(test_env) RDMA_CHROMIUM=/usr/bin/chromium go test -tags browser ./test/browser

.PHONY: test-vm
test-vm: test-tools $(bin)/yardstick $(bin)/holder $(bin)/libfaults.so ## Run the tests of the test bed, and those on real devices in it
	@test/vm/setup
	go test -tags vmhost ./test/vm
	$(prometheus) '^TestVM$$'
	$(test_env) go test -tags vm -v -run TestRealDevices -exec "$(vm)" ./probe/contract
	$(test_env) go test -tags vm -p 1 -timeout 25m -v -skip '^TestPreload$$' -exec "$(vm) --timeout 1500" ./verbs/ibverbs ./restrack ./test/softroce
	$(preload)
# A device has as many completion vectors as the machine has processors.
	for smp in 4 8; do \
		$(test_env) go test -tags vm -run TestManyVectors -v -exec "$(vm) --smp $$smp" ./test/softroce; \
	done

# A real Prometheus is on this machine; the exporter may be in the VM.
prometheus = $(test_env) go test -tags vmhost -v ./test/prometheus -run

.PHONY: test-prometheus
test-prometheus: test-tools $(bin)/holder ## Ask a real Prometheus each expression of dashboards and rules, of simulated and of real devices
	@test/vm/setup
	$(prometheus) .

# Every verb with every fault takes longer than all other tests together.
preload = $(test_env) go test -tags vm -timeout 40m -v -run '^TestPreload$$' -exec "$(vm) --timeout 2100" ./test/softroce

.PHONY: reliability
reliability: test-tools $(bin)/libfaults.so ## Rewrite the table of docs/reliability.md from what is seen on a real device
	@test/vm/setup
	$(preload) -preload.print | tee .cache/reliability
	@awk -v doc=docs/reliability.md ' \
		/^<!-- What follows/ { on = 1 } \
		on { table = table $$0 "\n" } \
		/^<!-- Here ends/ { on = 0 } \
		END { \
			if (table == "") exit 1; \
			while ((getline line < doc) > 0) { \
				if (line ~ /^<!-- What follows/) { printf "%s", table; skip = 1 } \
				if (!skip) print line; \
				if (line ~ /^<!-- Here ends/) skip = 0; \
			} \
		}' .cache/reliability >.cache/reliability.md
	@cp .cache/reliability.md docs/reliability.md

.PHONY: test-kernels
test-kernels: test-tools ## Judge software iWARP, and a newer kernel (downloads some 450 MB at first)
	go test -tags vmhost,kernels -run TestSiw ./test/vm
	$(test_env) go test -tags vm,siw -run 'TestContracts|TestSiw' -v -exec "$(vm) --siw" ./test/softroce
	$(test_env) go test -tags vm,siw -run 'TestContracts|TestSiw' -v -exec "$(vm) --siw --kernel $(shell . /etc/os-release && echo $$VERSION_CODENAME)-backports" ./test/softroce

runs ?= 1000
minutes ?= 60
.PHONY: soak
soak: test-tools $(bin)/yardstick ## Run the probes 1000 times (runs=N), and audits, on a real device and look for what grows, for an hour at most (minutes=N)
	$(test_env) go test -tags vm -timeout 0 -run TestSoak -v \
		-exec "$(vm) --timeout 0" ./test/softroce -soak.runs=$(runs) -soak.time=$(minutes)m

.PHONY: bench
bench: test-tools $(bin)/yardstick $(bin)/holder ## Measure scrapes, child runs, memory, latencies beside those of a C program, and audits beside rdma(8)
	@test/vm/setup
	$(test_env) go test -run '^$$' -bench . -benchmem ./collector ./test/e2e
	$(test_env) go test -tags vm -run '^$$' -bench . -exec "$(vm)" ./test/softroce
	$(test_env) go test -tags vm -run '^$$' -bench . -benchtime 7x -exec "$(vm) --memory 4096" ./restrack

$(bin)/yardstick: test/yardstick/yardstick.c
	@tools/packages gcc libc6-dev libibverbs-dev
	@mkdir -p $(bin)
	cc -O2 -Wall -Wextra -Werror -pthread -o $@ $< -libverbs

$(bin)/holder: test/holder/holder.c
	@tools/packages gcc libc6-dev libibverbs-dev
	@mkdir -p $(bin)
	cc -O2 -Wall -Wextra -Werror -pthread -o $@ $< -libverbs

$(bin)/libfaults.so: test/faults/faults.c
	@tools/packages gcc libc6-dev libibverbs-dev
	@mkdir -p $(bin)
	cc -shared -fPIC -O2 -Wall -Wextra -Werror -o $@ $<

.PHONY: lint
lint: $(bin)/golangci-lint $(bin)/gofumpt ## Check style, import walls, scripts and generated files
	@tools/packages gcc libc6-dev libibverbs-dev shellcheck
	@unformatted="$$($(bin)/gofumpt -l .)"; \
		if [[ -n "$$unformatted" ]]; then echo "not formatted (make fmt):" $$unformatted >&2; exit 1; fi
	go vet ./...
	go vet -tags vm,vmhost,kernels,siw,browser ./...
	CGO_ENABLED=0 go vet ./...
	$(bin)/golangci-lint run ./...
	$(bin)/golangci-lint run --build-tags vm,vmhost,kernels,siw,browser ./verbs/ibverbs ./probe/contract ./restrack ./test/...
	@if grep -rl --include='*.go' '^import "C"' . | grep -v '^./verbs/ibverbs/'; then \
		echo "verbs/ibverbs is the only package with C" >&2; exit 1; fi
	shellcheck -x tools/* test/vm/run test/vm/setup test/vm/guest test/vm/init test/prometheus/testdata/guest .ci/run
	go mod tidy -diff

.PHONY: fmt
fmt: $(bin)/gofumpt ## Format the code
	$(bin)/gofumpt -w .

.PHONY: generate
generate: build ## Rewrite what follows from the code: lists in docs/, dashboards, and golden files
	$(test_env) go test ./audit ./collector ./dashboards ./probe ./probe/contract ./status ./terminal ./web ./test/e2e -update

$(bin)/golangci-lint: Makefile
	@mkdir -p $(bin)
	GOBIN='$(CURDIR)/$(bin)' go install $(golangci_lint)
	@touch $@

$(bin)/gofumpt: Makefile
	@mkdir -p $(bin)
	GOBIN='$(CURDIR)/$(bin)' go install $(gofumpt)
	@touch $@

.PHONY: clean
clean: ## Remove .cache
	rm -rf .cache
