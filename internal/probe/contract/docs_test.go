package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/state"
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
		for _, text := range []string{c.Name, string(c.Severity), c.ManPage, c.Promise, c.Method, c.Consequence, c.Remedy} {
			if text == "" || strings.Contains(text, "\n") {
				t.Errorf("%s: the row is not whole: %q", c.Name, text)
			}
		}
		if c.Quote == "" && c.Severity != state.SeverityInfo {
			t.Errorf("%s: no man page promises it, and its severity is %s", c.Name, c.Severity)
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

The man pages of libibverbs make promises that event-driven programs rely on. The exporter checks each device against
them at its start, when a device or its software changes, and every ` + "`--contract.interval`" + `, in a child process like
that of the probes. Each contract is judged with its own small objects, on the device alone: no peer, no traffic beyond
the port. ` + "`rdma_contract_verdicts`" + ` counts the verdicts; ` + "`rdma_contract_violated`" + ` is 1 for a contract that the
device breaks, and its label ` + "`known`" + ` says whether the [driver is known for that](#known-of-drivers);
` + "`rdma_contract_skipped`" + ` says which contracts could not be judged, and why, except those on what the device does not offer. When a verdict changes, the log has the
evidence: what was asked, what the manual promises, and what was observed.

- **holds**: every observation agreed with the manual.
- **violated**: at least one did not.
- **skipped**: it could not be judged, and counts as neither. Reasons: ` + "`not_supported`" + ` (the device lacks what is
  needed), ` + "`not_permitted`" + `, ` + "`port_down`" + ` (the contract needs an active port), ` + "`prerequisite_failed`" + `
  (something else failed first, such as a completion that did not come), ` + "`timeout`" + ` and ` + "`crashed`" + ` (the child
  process ended while it judged).

Failures are retried, beside something plain that should succeed: only a repeated refusal counts. A process that dies or
hangs in something the manual says must work, such as polling a completion queue after its destruction was refused, is
evidence too; one killed from outside is not.

Completions are produced in two ways. On the **loopback** path two connected RC queue pairs on the same port exchange
messages of 8 bytes, or empty ones where no memory may be pinned; it needs an active port, and is not available on iWARP,
which connects only through a connection manager. On the **flush** path work requests fail on purpose, because their
queue pair is in the error state or enters it; it needs neither port nor peer. What should come gets up to 2 seconds,
what should not come 150 ms.

Severities: **critical**, a program that relies on it hangs or loses data; **warning**, a size or a state is reported
wrongly; **info**, the device allows more than the manual does, or breaks a **convention**: something that programs rely on
and no man page promises. Conventions are also part of other contracts, whose violation is info if nothing else is broken:
a refused destruction changes nothing, an object can still be destroyed afterwards, and timestamps never go back.

| contract | severity | source |
|---|---|---|
`)
	for _, c := range contract.Catalogue() {
		source := c.ManPage
		if c.Quote == "" {
			source = "convention"
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", c.Name, c.Name, c.Severity, source)
	}
	b.WriteString(`
## Known of drivers

Some drivers break contracts on every device. The status page and the audit report list these facts in their own
section, at info: they are no findings, raise no alert, do not affect the exit status, and a size that is short because of
one fails no probe. A violation in any other way, or by more, counts as usual. If a device keeps a contract that its
driver is known to break, the contract simply holds.

The driver of a device comes from the kernel over netlink, or from sysfs for drivers that do not support that (hns,
mthca), never from the device's name. Each row was checked in rdma-core 44 and its master of early 2026, and in Linux 6.1
and 6.12; those of rxe and siw were also seen on devices. The table is in ` + "`internal/probe/errata/list.go`" + `.

| driver | contract | what it does | fixed in | source |
|---|---|---|---|---|
`)
	for _, f := range errata.All() {
		mended := "–"
		switch {
		case f.FixedIn != "":
			mended = "Linux " + f.FixedIn
		case f.FixedInLibrary != "":
			mended = "rdma-core " + f.FixedInLibrary
		}
		fmt.Fprintf(&b, "| %s | [`%s`](#%s) | %s | %s | %s |\n", f.Driver, f.Contract, f.Contract, f.What, mended, f.Source)
	}
	for _, c := range contract.Catalogue() {
		source := "convention"
		if c.Quote != "" {
			source = fmt.Sprintf("“%s” (%s)", c.Quote, c.ManPage)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n- **Source:** %s\n- **Checked by:** %s\n- **If violated:** %s\n- **What to do:** %s\n",
			c.Name, c.Promise, source, c.Method, c.Consequence, c.Remedy)
	}
	return b.String()
}
