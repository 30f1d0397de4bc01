# Every command installs what it needs: Debian packages by apt, where something
# is missing; the rest lands in .cache, which git ignores.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The revision is stamped below; asking git fails in a clone of another user. A
# test has an hour, which only one that hangs needs; a machine has longer, so that the
# test can tell where it hangs.
export GOFLAGS := $(GOFLAGS) -buildvcs=false -trimpath -timeout=60m

bin := .cache/bin
exporter := $(bin)/rdma_exporter
promtool := .cache/prometheus
# One that has native histograms, which that of Debian 12 and 13 lacks or only tries out.
native_prometheus := .cache/prometheus-native
native_suite := forky
vm := '$(CURDIR)/test/vm/run' --timeout 3900
# Without the other providers, which each child would load as well. The machines of audits, of
# services and of the image have all.
rxe_vm := $(vm) --drivers rxe
port ?= 10879

golangci_lint := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
gofumpt := mvdan.cc/gofumpt@v0.12.0
node_exporter := github.com/prometheus/node_exporter@v1.12.1
# Not the newest: v2.47.0 and later need modules that the module proxy does not have.
nfpm_version := v2.45.2
vale_version := v3.21.0
actionlint_version := v1.7.7
helm_version := $(shell sed -n 's|.*helm.sh/helm/v3 \(v[^ ]*\).*|\1|p' deploy/check/go.mod)
# Their names have the version, so that each is built once, whatever else changes.
nfpm := $(bin)/nfpm-$(nfpm_version)
vale := $(bin)/vale-$(vale_version)
actionlint := $(bin)/actionlint-$(actionlint_version)
helm := $(bin)/helm-$(helm_version)
npd := $(bin)/node-problem-detector-$(shell sed -n 's|.*k8s.io/node-problem-detector \(v[^ ]*\).*|\1|p' deploy/npd/go.mod)
sbom := $(bin)/cyclonedx-gomod-$(shell sed -n 's|.*CycloneDX/cyclonedx-gomod \(v[^ ]*\).*|\1|p' deploy/sbom/go.mod)

info := github.com/prometheus/common/version
ldflags = -X $(info).Version=$(shell cat VERSION) \
	-X $(info).Revision=$(shell git rev-parse HEAD 2>/dev/null || echo unknown) \
	-X $(info).Branch=$(shell git rev-parse --abbrev-ref HEAD 2>/dev/null || echo unknown)

# What the tests find: the built binary, the program that it is measured against, one
# that holds objects, the library that makes verbs fail, promtool, and a newer one. Without
# paths in it, what is compiled once serves the exporter, the tests and every checkout.
# The linter vets, and nobody debugs the tests' programs.
test_env = GOFLAGS='$(strip $(GOFLAGS)) -vet=off -ldflags=-w' RDMA_EXPORTER_BINARY='$(CURDIR)/$(exporter)' RDMA_YARDSTICK='$(CURDIR)/$(bin)/yardstick' \
	RDMA_NATIVE_PROMETHEUS='$(CURDIR)/$(native_prometheus)/usr/bin' RDMA_HOLDER='$(CURDIR)/$(bin)/holder' RDMA_FAULTS_LIBRARY='$(CURDIR)/$(bin)/libfaults.so' PATH='$(CURDIR)/$(promtool)/usr/bin':"$$PATH"

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

# What waits now and then runs beside the machines.
.PHONY: test
test: beside := test-e2e
test: test-unit test-vm ## Run the tests, those on real devices in the VM included

# What is delivered changes seldom, and takes a fifth of the time of all tests.
.PHONY: test-packaging
test-packaging: test-tools $(bin)/holder ## Try what is delivered: packages and service, image, chart, what acts on the verdict
	@test/vm/setup
	@tools/packages $(systemd_packages) $(image_packages) $(slurm_packages)
	$(MAKE) --no-print-directory -o build -o test-tools -j 2 --output-sync=target test-systemd test-image test-deploy test-slurm test-npd

# What people look at changes with metrics, findings and labels.
.PHONY: test-views
test-views: test-tools $(bin)/holder ## Look at the status page in a browser, and ask a real Prometheus each expression of dashboards and rules
	@test/vm/setup
	@tools/packages $(browser_packages)
	$(MAKE) --no-print-directory -o build -o test-tools -j 2 --output-sync=target test-prometheus test-browser

.PHONY: test-tools
test-tools: build
	@tools/packages xz-utils
	@tools/unpack prometheus $(promtool)
	@tools/unpack --suite=$(native_suite) prometheus promtool $(native_prometheus)

.PHONY: test-unit
test-unit: test-tools ## Run the tests of the packages, which need no RDMA device
	$(MAKE) --no-print-directory -j 2 --output-sync=target test-plain test-race

# The rooms in which goroutines share something, the tests of which the race detector
# watches: it makes them ten times slower, and would wait for a second when each ends. Long
# ones of a single goroutine it is spared, which are in these rooms; no other test is run
# without it as well.
concurrent := ./cmd/... ./collector ./internal/bandwidth ./internal/child ./internal/hardware ./internal/health ./internal/healthcheck ./internal/input ./internal/links ./internal/logqueue ./internal/path ./internal/path/answer ./internal/saved ./internal/supervisor ./internal/terminal ./internal/web ./internal/wire ./test/running ./verbs ./verbs/ibverbs ./verbs/verbstest
sequential := TestTroublesTogether|TestManyDevices|TestReadAtTheBounds|TestReadTruncatedAnywhere|TestOddStates|TestReportFits|TestAnyValues|TestExposition|TestOff|TestLatencyBounds|TestReadRefuses|TestEverythingIsBounded|TestPastIsBounded|FuzzCollect|FuzzPage

.PHONY: test-plain test-race
test-plain:
	$(test_env) go test $$(go list ./... | grep -vxF -e "$$(go list ./test/e2e $(concurrent))")
	$(test_env) go test -run '^($(sequential))$$' $(concurrent)
test-race:
	$(test_env) GORACE=atexit_sleep_ms=10 go test -race -skip '^($(sequential))$$' $(concurrent)

.PHONY: test-e2e
test-e2e: test-tools ## Run the tests of the built exporter on simulated devices, end to end
	$(test_env) go test ./test/e2e

browser_packages = chromium fonts-dejavu-core
.PHONY: screenshots
screenshots: build ## Take the pictures of the README, docs/images
	@tools/packages $(browser_packages)
	$(test_env) RDMA_CHROMIUM=/usr/bin/chromium go test -tags browser -run '^TestPictures$$' ./test/browser -update

.PHONY: test-browser
test-browser: build ## Look at the status page in a browser; what it showed is in .cache/screenshots
	@tools/packages $(browser_packages)
	$(test_env) RDMA_CHROMIUM=/usr/bin/chromium go test -tags browser ./test/browser

# Those that take longest come first, so that none is left for the end.
machines := test-audits test-preload test-devices test-some-adapters test-verbs test-moments test-vectors test-bed-fails

.PHONY: test-vm
test-vm: test-tools $(bin)/yardstick $(bin)/holder $(bin)/libfaults.so ## Run the tests on real devices in the VM
	@test/vm/setup
# What they need has been made (-o): otherwise make begins those that need nothing, and leaves the
# longest for the end. Two at a time: with more, all wait longer, and tests look more often at what they wait for.
	$(MAKE) --no-print-directory -o build -o test-tools -j 2 --output-sync=target $(wordlist 1,2,$(machines)) $(beside) $(wordlist 3,99,$(machines))

# Of the test bed, that what fails in it is a failure, and a machine that ends, too.
.PHONY: test-bed-fails
test-bed-fails:
	go test -tags vmhost -v -run '^(TestGoTestRunsInside|TestMachineDies)$$' ./test/vm

.PHONY: test-bed
test-bed: ## Run all tests of the test bed: when test/vm has changed
	@test/vm/setup
	go test -tags vmhost -count 1 ./test/vm

# What must hold at any moment is tried where two things can happen at the same time.
moments := ^(TestDeviceRemoval|TestManyRemovals|TestExporterIsKilledAtAnyMoment)$$

# Half of the tests of devices, so that no machine takes much longer than the others: what is
# told of a device, and who may ask.
audits := ^Test(Audit|Contracts|Inventory|Privileges)

# TestMeter and what is fuzzed are not of any device, and a part of test-unit. TestRecord only prints.
.PHONY: test-devices test-audits test-preload test-moments test-verbs test-vectors
test-devices:
	$(test_env) go test -tags vm -v -skip '^Test(Preload|Soak|ManyVectors)$$|^TestTrial|$(audits)|$(moments)' -exec "$(rxe_vm)" ./test/softroce
test-audits:
	$(test_env) go test -tags vm -v -run '$(audits)' -exec "$(vm)" ./test/softroce
test-preload:
	$(preload)
test-moments:
	$(test_env) go test -tags vm -v -run '$(moments)' -exec "$(rxe_vm) --smp 2" ./test/softroce
test-verbs:
	$(test_env) go test -tags vm -v -run '^TestRealDevices$$' -exec "$(rxe_vm)" ./internal/probe/contract
	$(test_env) go test -tags vm -p 1 -v -skip '^(TestMeter|TestRecord)$$|^Fuzz' -exec "$(rxe_vm)" ./verbs/ibverbs ./internal/restrack
# More than the default of --notification.vectors; the others have two.
test-vectors:
	$(test_env) go test -tags vm -v -run '^TestManyVectors$$' -exec "$(rxe_vm) --vectors 8" ./test/softroce

.PHONY: test-path
test-path: ## Run the tests between two devices: in one VM, where a bridge joins them, and in two VMs
	@test/vm/setup
	$(test_env) go test -tags vm -v -skip '^TestTwoMachines' -exec "$(vm)" ./test/path
	$(test_env) go test -tags vm -v -run '^TestTwoMachines' -exec "$(vm) --nodes 2" ./test/path

.PHONY: test-bandwidth
test-bandwidth: test-tools $(bin)/holder ## Move data with the memory of two NUMA nodes in the VM, next to perftest
	@test/vm/setup
	$(test_env) go test -tags vm -v -count 1 -exec "$(vm) --smp 4 --numa 2" ./test/bandwidth

.PHONY: trials
trials: test-tools ## See what the exporter does when the clock jumps, the host is suspended, or memory or a system call is denied
	@test/vm/setup
	$(test_env) go test -tags vm -v -run '^TestTrial' -exec "$(vm)" ./test/softroce

systemd_packages = systemd udev openssl bash zsh fish mandoc rpm
systemd_env = RDMA_PACKAGES='$(CURDIR)/$(packages)' $(test_env)

.PHONY: test-systemd
test-systemd: $(bin)/holder ## Install the packages in a folder, try units, completions and man page, and run the service under systemd in the VM
	@tools/packages $(systemd_packages)
# Not a prerequisite: make begins what waits for one after all that waits for none.
	$(MAKE) --no-print-directory packages
	$(systemd_env) go test -tags vmhost -count 1 -v ./test/systemd/install
	@test/vm/setup
	$(systemd_env) go test -tags vm -count 1 -v -exec "$(vm) --systemd" ./test/systemd

.PHONY: test-prometheus
test-prometheus: test-tools $(bin)/holder ## Ask a real Prometheus each expression of dashboards and rules; when these, metrics or labels change
	@test/vm/setup
# It is on this machine; the exporter is, too, or in the VM.
	$(test_env) go test -tags prometheus -v ./test/prometheus

scale ?= 1
.PHONY: drill
drill: test-tools ## Break simulated nodes in twenty ways at once, and print what a real Prometheus raises: 32 minutes, or 19 with scale=5 (run=TestPaths: dead rails and ToRs)
	DRILL_SCALE=$(scale) $(test_env) go test -tags drill -timeout 0 -count 1 -v -run '^$(or $(run),TestDrill)$$' ./test/drill

# Every verb with every fault takes longer than all other tests together.
preload = $(test_env) go test -tags vm -v -run '^TestPreload$$' -exec "$(rxe_vm)" ./test/softroce

.PHONY: reliability
reliability: test-tools $(bin)/libfaults.so ## Rewrite the table of docs/reference/reliability.md from what is seen on a real device
	@test/vm/setup
	$(preload) -preload.print | tee .cache/reliability
	@tools/splice docs/reference/reliability.md .cache/reliability

.PHONY: privileges
privileges: test-tools $(bin)/holder ## Rewrite the tables of docs/reference/privileges.md from what is seen on a real device
	@test/vm/setup
	$(test_env) go test -tags vm -v -run '^TestPrivileges$$' -exec "$(vm)" ./test/softroce -privileges.print | tee .cache/privileges
	@tools/splice docs/reference/privileges.md .cache/privileges

# Helm and the types of Kubernetes are the business of a module of its own.
chart := deploy/helm/rdma-exporter

.PHONY: test-deploy
test-deploy: build ## Render the Helm chart, decode each object strictly, and start the exporter as it says
	cd deploy/check && $(test_env) go test -count=1 -v .

slurm_packages = slurmctld slurmd slurm-client munge
.PHONY: test-slurm
test-slurm: build ## Drain and resume a node of a real Slurm on this machine by the scripts of deploy/slurm
	@tools/packages $(slurm_packages)
	$(test_env) go test -tags remediation -skip '^TestDetector$$' -count 1 -parallel 5 -v ./test/remediation

# Without what reads journals and what needs a cloud: the plug-in is what is tried.
npd_tags := disable_system_log_monitor,disable_system_stats_monitor,disable_stackdriver_exporter
.PHONY: test-npd
test-npd: build $(npd) ## Let a real node-problem-detector read the verdict as deploy/npd/rdma.json says
	$(test_env) RDMA_NPD='$(CURDIR)/$(npd)' go test -tags remediation -run '^TestDetector$$' -count 1 -v ./test/remediation

$(npd):
	@mkdir -p $(bin)
	cd deploy/npd && CGO_ENABLED=0 go build -tags $(npd_tags) -o '$(CURDIR)/$@' k8s.io/node-problem-detector/cmd/nodeproblemdetector

.PHONY: chart
chart: $(helm) ## Package the Helm chart, with rules and dashboards, into .cache/chart
	$(helm) package --destination .cache/chart $(chart)

$(helm):
	@mkdir -p $(bin)
	cd deploy/check && go build -o '$(CURDIR)/$@' helm.sh/helm/v3/cmd/helm

runbooks :=
grafana :=
rules := .cache/rules
.PHONY: rules
rules: ## Write rules and dashboards for your Prometheus to .cache/rules (runbooks=URL/ grafana=URL/ job=NAME cluster=LABEL)
	tools/rules $(rules) '$(runbooks)' '$(grafana)' '$(or $(job),rdma_exporter)' '$(or $(cluster),cluster)'

.PHONY: image
image: ## Build the container image without a registry, into .cache/image (as root); or on images by digest (build_image=, runtime_image=)
	@tools/image $(addprefix --build-image=,$(build_image)) $(addprefix --runtime-image=,$(runtime_image))

# As a container it runs in the VM, where podman can start one.
image_packages = buildah mmdebstrap podman crun conmon
image_env = RDMA_IMAGE='$(CURDIR)/.cache/image' $(test_env)

.PHONY: test-image
test-image: $(bin)/holder ## Look at the image, run it with simulated devices, and in the VM as a container on real ones
	@tools/packages $(image_packages)
	$(MAKE) --no-print-directory build image
	@test/vm/setup
	$(image_env) go test -tags image -count 1 -v ./test/image
	$(image_env) go test -tags imagevm -count 1 -v -exec "$(vm)" ./test/image

# The vendors' own libraries, on devices without hardware: see test/adapters.
adapters := mlx5,mlx5-ib,mlx5-ib-limited,mlx5-ib-grh,mlx5-down,bnxt_re,efa,efa_eq,erdma,hns,irdma,mana,qedr
providers :=
in_adapters = $(test_env) RDMA_STRAY='$(CURDIR)/$(bin)/stray' go test -tags vm -v -count 1 -exec "$(vm) --no-devices --adapter $(adapters) $(addprefix --providers ,$(providers))" ./test/adapters/check

.PHONY: test-adapters
test-adapters: build $(bin)/stray ## Run the vendors' provider libraries on paper adapters in the VM, and the exporter on them (adapters=LIST, providers=SUITE)
	@test/vm/setup
	$(in_adapters)

.PHONY: test-some-adapters
test-some-adapters: adapters := mlx5,mlx5-ib-limited,efa_eq
test-some-adapters: test-adapters

.PHONY: adapters
adapters: build ## Rewrite what the exporter must say of each paper adapter from what it says (adapters=LIST, providers=SUITE)
	@test/vm/setup
	$(in_adapters) -run TestAudit -check.print=$(if $(providers),version,all) | tee .cache/adapters || true
	@mkdir -p test/adapters/check/testdata
	awk '/^== testdata/ { file = "test/adapters/check/" $$2; printf "" >file; next } \
		/^(driver|run|probe|known|contract|  skipped|  failed) / && file { print >file; next } { file = "" }' .cache/adapters

.PHONY: test-kernels
test-kernels: test-tools ## Judge software iWARP, newer kernels and newer providers (downloads some 500 MB at first)
	go test -tags vmhost,kernels -run 'TestSiw|TestProviders' ./test/vm
	$(test_env) go test -tags vm -run TestConformance -v -exec "$(vm) --providers sid" ./verbs/ibverbs
	$(test_env) go test -tags vm,siw -run 'TestContracts|TestSiw' -v -exec "$(vm) --siw" ./test/softroce
	$(test_env) go test -tags vm,siw -run 'TestContracts|TestSiw' -v -exec "$(vm) --siw --kernel $(shell . /etc/os-release && echo $$VERSION_CODENAME)-backports" ./test/softroce
	$(test_env) go test -tags vm -run '^TestContracts$$' -v -exec "$(vm) --kernel sid --providers sid" ./test/softroce

time ?= 60s
.PHONY: fuzz
fuzz: ## Fuzz everything that reads what comes from outside, for a minute each (time=T)
	@tools/packages gcc libc6-dev libibverbs-dev
	tools/fuzz $(time)

.PHONY: test-fuzz
test-fuzz: ## The same, for a second each, and the tests of tools/fuzz; make test has the seeds alone
	@tools/packages gcc libc6-dev libibverbs-dev
	tools/fuzz 1s
	go test -tags fuzzing ./test/fuzzing

runs ?= 1000
minutes ?= 60
.PHONY: soak
soak: test-tools $(bin)/yardstick ## Run the probes 1000 times (runs=N), and inventories, on a real device and look for what grows, for an hour at most (minutes=N)
	$(test_env) go test -tags vm -timeout 0 -run TestSoak -v \
		-exec "$(rxe_vm) --timeout 0" ./test/softroce -soak.runs=$(runs) -soak.time=$(minutes)m

.PHONY: bench
bench: test-tools $(bin)/yardstick ## Measure latencies beside those of a C program
	@test/vm/setup
	$(test_env) go test -tags vm -run '^$$' -bench . -exec "$(rxe_vm) --smp 2" ./test/softroce

.PHONY: bench-peers
bench-peers: runs = 3
bench-peers: build $(bin)/holder $(bin)/node_exporter ## Measure beside node_exporter, rdma(8) and perftest, 3 times (runs=N): tables for docs/performance.md
	@test/vm/setup
	$(peers) -skip TestReal ./peers -peers.runs=$(runs)
	$(peers) -run TestReal -exec "$(vm) --smp 2 --memory 4096 --timeout 0" ./peers -peers.runs=$(runs)

peers = cd test/bench && $(test_env) RDMA_NODE_EXPORTER='$(CURDIR)/$(bin)/node_exporter' go test -timeout 0 -count 1 -v

$(bin)/node_exporter: Makefile
	@mkdir -p $(bin)
	GOBIN='$(CURDIR)/$(bin)' go install $(node_exporter)
	@touch $@

$(bin)/yardstick: test/yardstick/yardstick.c test/yardstick/common.h
	@tools/packages gcc libc6-dev libibverbs-dev
	@mkdir -p $(bin)
	cc -O2 -Wall -Wextra -Werror -pthread -o $@ $< -libverbs

$(bin)/holder: test/holder/holder.c
	@tools/packages gcc libc6-dev libibverbs-dev
	@mkdir -p $(bin)
	cc -O2 -Wall -Wextra -Werror -pthread -o $@ $< -libverbs

$(bin)/stray: test/stray/stray.c
	@tools/packages gcc libc6-dev libibverbs-dev
	@mkdir -p $(bin)
	cc -O2 -Wall -Wextra -Werror -o $@ $< -libverbs

$(bin)/libfaults.so: test/faults/faults.c
	@tools/packages gcc libc6-dev libibverbs-dev
	@mkdir -p $(bin)
	cc -shared -fPIC -O2 -Wall -Wextra -Werror -o $@ $<

tags := vm,vmhost,kernels,siw,browser,image,imagevm,prometheus,drill,fuzzing,release,remediation

.PHONY: lint
# What is cached with -trimpath names the files of cgo by the clone that filled the cache,
# which may be no more.
lint: export GOFLAGS := -buildvcs=false
lint: $(bin)/golangci-lint $(bin)/gofumpt $(vale) $(actionlint) ## Check style, import walls, scripts, workflows, generated files and prose
	@tools/packages gcc libc6-dev libibverbs-dev shellcheck
	@unformatted="$$($(bin)/gofumpt -l .)"; \
		if [[ -n "$$unformatted" ]]; then echo "not formatted (make fmt):" $$unformatted >&2; exit 1; fi
# golangci-lint vets as well, save what is built without cgo.
	CGO_ENABLED=0 go vet ./...
	$(bin)/golangci-lint run ./...
	$(bin)/golangci-lint run --build-tags $(tags) ./verbs/ibverbs ./internal/probe/contract ./internal/restrack ./test/...
	@for module in test/bench deploy/check deploy/sbom; do (cd $$module && '$(CURDIR)/$(bin)/golangci-lint' run --config ../../.golangci.yml ./...) || exit 1; done
	cd test/bench && go mod tidy -diff
	@if grep -rl --include='*.go' '^import "C"' . | grep -v '^./verbs/ibverbs/'; then \
		echo "verbs/ibverbs is the only package with C" >&2; exit 1; fi
	shellcheck -x $(filter-out %.tsv %.txt tools/phrases,$(wildcard tools/*)) deploy/packages/{postinstall,preremove} deploy/slurm/* test/vm/run test/vm/setup test/vm/guest test/vm/init test/prometheus/testdata/guest .ci/run
	$(actionlint) .github/workflows/*.yml
	go mod tidy -diff
	$(vale) --output=line README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs
	tools/phrases --check
	tools/size --check

.PHONY: size
size: ## Compare the lines of each room with its bound
	@tools/size

.PHONY: fmt
fmt: $(bin)/gofumpt ## Format the code
	$(bin)/gofumpt -w .

.PHONY: generate
generate: build ## Rewrite what follows from the code: lists in docs/, dashboards, golden files, and the README of the chart
	$(test_env) go test ./internal/hardware/counters ./internal/health ./collector ./dashboards ./internal/supervisor ./internal/probe ./internal/probe/contract ./internal/api ./internal/terminal ./internal/web ./test/adapters/check ./test/e2e ./test/security -update
	cd deploy/check && $(test_env) go test -run '^Test(Readme|InhibitRules)$$' . -update

$(bin)/golangci-lint: Makefile
	@mkdir -p $(bin)
	GOBIN='$(CURDIR)/$(bin)' go install $(golangci_lint)
	@touch $@

$(bin)/gofumpt: Makefile
	@mkdir -p $(bin)
	GOBIN='$(CURDIR)/$(bin)' go install $(gofumpt)
	@touch $@

packages := .cache/packages

.PHONY: packages
packages: build $(nfpm) ## Make a deb and an rpm of the exporter, with all that belongs to it, in .cache/packages
	@tools/packages binutils
	rm -rf $(packages)
	NFPM=$(nfpm) tools/nfpm $(exporter) "$$(go env GOARCH)" $(packages)

release_env = NFPM='$(CURDIR)/$(nfpm)' HELM='$(CURDIR)/$(helm)' SBOM='$(CURDIR)/$(sbom)'

.PHONY: pin
pin: ## Pin actions and base images by commit and digest, which asks their hosts (needs git and skopeo)
	tools/pin

.PHONY: release
release: $(nfpm) $(helm) $(sbom) ## Make the files of a release for amd64 and arm64, in .cache/release, and try them (as root)
	@$(release_env) tools/release
	@$(MAKE) --no-print-directory test-release

# The arm64 program runs in an emulation, of which this machine is to know nothing: proot
# puts it before each child, too, in place of the kernel.
emulator := .cache/qemu-user

.PHONY: test-release
test-release: $(nfpm) $(helm) $(sbom) ## Try what make release made: install, upgrade and remove the deb in a root of its own, run the arm64 program in an emulation (as root)
	@tools/packages mmdebstrap rpm mandoc binutils
	@tools/unpack qemu-user-static proot libtalloc2 $(emulator)
	@$(release_env) tools/release --before
	RDMA_RELEASE='$(CURDIR)/.cache/release' RDMA_RELEASE_BEFORE='$(CURDIR)/.cache/release-before' RDMA_SYSROOT='$(CURDIR)/.cache/sysroot-arm64' \
		RDMA_EMULATOR='$(CURDIR)/$(emulator)' RDMA_HELM='$(CURDIR)/$(helm)' go test -tags release -count 1 -v ./test/release
	cd deploy/sbom && RDMA_RELEASE='$(CURDIR)/.cache/release' RDMA_VERSION="$$(cat ../../VERSION)" go test -count 1 -v .

$(sbom):
	@mkdir -p $(bin)
	cd deploy/sbom && go build -o '$(CURDIR)/$@' github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

$(vale):
	@mkdir -p $(bin)
	GOBIN='$(CURDIR)/$(bin)' go install github.com/vale-cli/vale/v3/cmd/vale@$(vale_version)
	mv $(bin)/vale $@

$(actionlint):
	@mkdir -p $(bin)
	GOBIN='$(CURDIR)/$(bin)' go install github.com/rhysd/actionlint/cmd/actionlint@$(actionlint_version)
	mv $(bin)/actionlint $@

$(nfpm):
	@mkdir -p $(bin)
	GOBIN='$(CURDIR)/$(bin)' go install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(nfpm_version)
	mv $(bin)/nfpm $@

.PHONY: clean
clean: ## Remove .cache
	rm -rf .cache
