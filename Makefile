# reelahead: see "make help".
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PREFIX    ?= /usr/local
DESTDIR   ?=
# mount(8) looks for the helpers of filesystem types here.
HELPERDIR ?= /sbin
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

# The version is given by the linker. Stamping by go fails in clones that
# belong to another user.
export GOFLAGS ?= -buildvcs=false

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
# Of one package's tests. Those that mount take the longest.
TEST_TIMEOUT ?= 10m
RACE_TIMEOUT ?= 15m
FUZZ_TIME    ?= 60s
# "go test" flags of your own, for instance TEST_FLAGS="-run Mount -v".
TEST_FLAGS   ?=

# need COMMAND,PACKAGE: install PACKAGE unless COMMAND is there.
define need
if ! command -v $(1) >/dev/null; then \
  if [[ $$EUID -eq 0 ]] && command -v apt-get >/dev/null; then \
    echo "installing $(2) for $(1)"; \
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2) >/dev/null; \
  else echo "$(1) is missing: install the package $(2) (apt-get install $(2)) and try again" >&2; exit 1; fi; \
fi
endef

.PHONY: help
help: ## Show what there is
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 14

.PHONY: go
go:
	@command -v go >/dev/null || { echo "go is missing: https://go.dev/doc/install" >&2; exit 1; }

.PHONY: fuse
fuse:
	@$(call need,fusermount3,fuse3)
	@[[ -c /dev/fuse ]] || { echo "/dev/fuse is missing: modprobe fuse, or in a container pass --device /dev/fuse --cap-add SYS_ADMIN" >&2; exit 1; }

.PHONY: build
build: go ## Build bin/reelahead
	@CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/reelahead ./cmd/reelahead

.PHONY: demo
demo: fuse build ## Compare a slow server played raw and through reelahead, on this machine alone
	@bin/reelahead bench demo

.PHONY: install
install: build ## Install under PREFIX (/usr/local), with the helper for mount(8) and fstab
	install -D -m 755 bin/reelahead $(DESTDIR)$(PREFIX)/bin/reelahead
	install -d $(DESTDIR)$(HELPERDIR)
	ln -sfn $(PREFIX)/bin/reelahead $(DESTDIR)$(HELPERDIR)/mount.fuse.reelahead

.PHONY: uninstall
uninstall: ## Remove what install has installed
	rm -f $(DESTDIR)$(PREFIX)/bin/reelahead $(DESTDIR)$(HELPERDIR)/mount.fuse.reelahead

.PHONY: test-tools
test-tools: go fuse
	@$(call need,ffmpeg,ffmpeg)
	@$(call need,identify,imagemagick)
	@$(call need,rsync,rsync)
	@$(call need,/usr/bin/python3,python3)
	@$(call need,oiiotool,openimageio-tools)

.PHONY: test
test: test-tools ## Run all tests, those with real mounts too
	go test -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...

.PHONY: reader-tools
reader-tools: test-tools
	@$(call need,mpv,mpv)
	@$(call need,gst-launch-1.0,gstreamer1.0-tools gstreamer1.0-plugins-good)

.PHONY: torch
torch: test-tools
	@/usr/bin/python3 -c 'import torch' 2>/dev/null || { $(call need,python3-torch,python3-torch); }

.PHONY: test-readers
test-readers: reader-tools ## Have mpv, oiiotool, GStreamer and others read through a mount: the table of docs/naming.md
	go test -timeout $(TEST_TIMEOUT) -count=1 -v -run TestRealReaders $(TEST_FLAGS) ./test

.PHONY: test-torch
test-torch: torch ## Have PyTorch's data loader read through a mount
	go test -timeout $(TEST_TIMEOUT) -count=1 -v -run TestTorchReaders $(TEST_FLAGS) ./test

.PHONY: test-frametest
test-frametest: go fuse ## Play the same files with a tframetest that was built elsewhere: TFRAMETEST=PATH
	@[[ -x "$(TFRAMETEST)" ]] || { echo "say where it is: make test-frametest TFRAMETEST=PATH" >&2; exit 1; }
	REELAHEAD_TFRAMETEST=$(TFRAMETEST) go test -timeout $(TEST_TIMEOUT) -count=1 -v -run 'Tframetest' $(TEST_FLAGS) ./test

.PHONY: recordings
recordings: reader-tools torch ## Record real readers anew, for the tests of the predictor
	go test -timeout $(TEST_TIMEOUT) -count=1 -run 'TestRealReaders|TestTorchReaders' ./test -recordings $(CURDIR)/prefetch/testdata/readers

.PHONY: race
race: test-tools ## Run all tests under the race detector
	@$(call need,gcc,gcc libc6-dev)
	CGO_ENABLED=1 go test -race -timeout $(RACE_TIMEOUT) $(TEST_FLAGS) ./...

.PHONY: fuzz
fuzz: go ## Run every fuzz target for FUZZ_TIME (60s)
	@grep -rHoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | sort | \
	while IFS=: read -r file target; do \
	  echo "== $${target#func } in $$(dirname "$$file")"; \
	  go test -run '^$$' -fuzz "^$${target#func }$$" -fuzztime $(FUZZ_TIME) "$$(dirname "$$file")" </dev/null; \
	done

# Flags of the figures, for instance BENCH_FLAGS="--quick --figures 1,2 --json out.json".
BENCH_FLAGS  ?=

.PHONY: bench
bench: fuse go ## Measure the figures of docs/performance.md, each against its reference
	@$(call need,fio,fio)
	@go run ./test/performance $(BENCH_FLAGS)

.PHONY: bench-rivals
bench-rivals: fuse go ## Play the same frames through rclone's cache and Samba's preopen
	@$(call need,rclone,rclone)
	@$(call need,smbd,samba samba-vfs-modules)
	@go run ./test/performance --figures 14 $(BENCH_FLAGS)

.PHONY: bench-micro
bench-micro: go ## Run the Go benchmarks
	go test -run '^$$' -bench . -benchmem -timeout 30m ./...

.PHONY: lint
lint: go ## Check with gofmt, go vet and staticcheck
	@unformatted=$$(gofmt -l .); [[ -z $$unformatted ]] || { echo "gofmt -w is needed for:"; echo "$$unformatted"; exit 1; } >&2
	go vet ./...
	go run $(STATICCHECK) ./...

.PHONY: clean
clean: ## Remove what build has built
	rm -rf bin
