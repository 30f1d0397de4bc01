package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/internal/probe/known"
	"rdma_exporter/test/golden"
	"rdma_exporter/verbs/simulated"
)

// TestCatalogue makes sure that each row is whole, and that the simulated devices
// can break exactly these contracts.
func TestCatalogue(t *testing.T) {
	breakable := make(map[string]bool)
	for _, name := range simulated.Contracts() {
		breakable[name] = true
	}
	for _, c := range contract.Catalogue() {
		for _, text := range []string{c.Name, string(c.Severity), c.ManPage, c.Promise, c.Judged, c.Consequence, c.Remedy} {
			if text == "" || strings.Contains(text, "\n") {
				t.Errorf("%s: the row is not whole: %q", c.Name, text)
			}
		}
		if !breakable[c.Name] {
			t.Errorf("%s: no simulated device can break it", c.Name)
		}
		delete(breakable, c.Name)
	}
	for name := range breakable {
		t.Errorf("%s: simulated devices break it, and nobody judges it", name)
	}
}

// TestDocs compares docs/reference/contracts.md with the catalogue.
func TestDocs(t *testing.T) {
	golden.Check(t, "../../../docs/reference/contracts.md", docs())
}

// docs returns docs/reference/contracts.md.
func docs() string {
	var b strings.Builder
	b.WriteString(`# Contracts

This page follows from the catalogue in ` + "`internal/probe/contract/catalogue.go`; `go test ./internal/probe/contract -update`" + ` rewrites it.

The man pages of libibverbs make promises that event-driven programs rely on. At its start,
when a device or its software has changed, and each ` + "`--contract.interval`" + `, the exporter holds each device to them, in a child process like that of the
probes. Each contract is judged with small objects of its own, on the device alone: no peer, no traffic
beyond the port. ` + "`rdma_contract_verdicts`" + ` counts the verdicts, ` + "`rdma_contract_violated`" + ` is 1 for a contract that the device breaks, with the label ` + "`known`" + ` for whether its [driver is known for that](#known-of-drivers); ` + "`rdma_contract_skipped`" + ` says which could not be judged, and why. The log has the evidence when a
verdict changes: what was asked, what the manual has follow, and what was observed.

- **holds**: all that was looked at was as the manual has it.
- **violated**: at least one observation was not.
- **skipped**: it could not be judged. It counts as neither. Reasons: ` + "`not_supported`" + ` (the device does not
  offer what is needed), ` + "`not_permitted`" + `, ` + "`port_down`" + ` (no port is active, and the contract cannot be judged
  otherwise), ` + "`prerequisite_failed`" + ` (something else went wrong on the way, such as a completion that did not
  come), ` + "`timeout`" + ` and ` + "`crashed`" + ` (the child process ended while it judged).

What fails is asked for again, beside something plain that should succeed: only a refusal that repeats counts.
A process that dies of, or hangs in, what must work by the manual, such as polling a completion queue after its
destruction was refused, is evidence, too; one that was killed from outside is not.

Completions are brought about in one of two ways. On the **loopback** path two connected RC queue pairs
on the same port exchange messages of 8 bytes, or empty ones where no memory may be pinned; it needs an active port, and cannot be had on iWARP, which connects
through a connection manager only. On the **flush** path work requests fail on purpose, because their
queue pair is in the error state, or goes there; it needs neither port nor peer. What should come is waited
for up to 2 seconds; for what should not come, 150 ms.

The severities: **critical**, a program that relies on it hangs or loses data; **warning**, a size or a
state is reported wrongly; **info**, the device allows more than the manual does.

| contract | severity | man page |
|---|---|---|
`)
	for _, c := range contract.Catalogue() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", c.Name, c.Name, c.Severity, c.ManPage)
	}
	b.WriteString(`
## Known of drivers

Drivers break some contracts whatever the device. What is known of a driver is a fact about it, in a
section of its own on the status page and in the report of the command ` + "`audit`" + `, at info: it is no finding, raises no alert,
decides no exit status, and a size that comes short by it fails no probe. A violation in another way than the one that is known, or by more,
is one like any other. A contract that a device keeps although its driver is known to break it is simply told.

Which driver a device has is asked of the kernel, over netlink, and of sysfs where the driver does not let that
tell (hns, mthca), never taken from the name of the device. Each row was read in rdma-core 44 and its master of
early 2026, and in Linux 6.1 and 6.12; those of rxe and siw were seen on devices, too. The table is in ` + "`internal/probe/known/facts.go`" + `.

| driver | contract | what it does | mended by | source |
|---|---|---|---|---|
`)
	for _, f := range known.Facts() {
		mended := "–"
		switch {
		case f.Mended != "":
			mended = "Linux " + f.Mended
		case f.MendedLibrary != "":
			mended = "rdma-core " + f.MendedLibrary
		}
		fmt.Fprintf(&b, "| %s | [`%s`](#%s) | %s | %s | %s |\n", f.Driver, f.Contract, f.Contract, f.What, mended, f.Source)
	}
	for _, c := range contract.Catalogue() {
		fmt.Fprintf(&b, "\n## %s\n\n%s (%s)\n\n- **Severity:** %s\n- **Judged by:** %s\n- **If violated:** %s\n- **What to do:** %s\n",
			c.Name, c.Promise, c.ManPage, c.Severity, c.Judged, c.Consequence, c.Remedy)
	}
	return b.String()
}
