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

// TestCatalogue verifies that each row is complete, and that simulated devices can break
// exactly these contracts.
func TestCatalogue(t *testing.T) {
	breakable := make(map[string]bool)
	for _, name := range simulated.Contracts() {
		breakable[name] = true
	}
	for _, c := range contract.Catalogue() {
		for _, text := range []string{c.Name, string(c.Severity), c.ManPage, c.Promise, c.Method, c.Consequence, c.Remedy} {
			if text == "" || strings.Contains(text, "\n") {
				t.Errorf("%s: the row is not complete: %q", c.Name, text)
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
		t.Errorf("%s: simulated devices break it, and no contract checks it", name)
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

This page follows from ` + "`internal/probe/contract/catalogue.go`; `go test ./internal/probe/contract -update`" + ` rewrites it.

The man pages of libibverbs make promises that event-driven programs rely on. The exporter checks each device against
them at its start, when a device or its software changes, and every ` + "`--contract.interval`" + `. Each check has small objects
of its own, in a child process, with no peer and no traffic beyond the port. ` + "`rdma_contract_verdicts`" + ` counts the
verdicts; ` + "`rdma_contract_violated`" + ` is 1 for a contract that the device breaks, and its label ` + "`known`" + ` says whether
the [driver is known for that](#known-of-drivers); ` + "`rdma_contract_skipped`" + ` says why a contract was not checked, unless
the device does not offer what it is about. When a verdict changes, the log has the evidence.

- **holds**: every observation agreed with the man page.
- **violated**: at least one did not.
- **skipped**: it could not be checked, and counts as neither. Reasons: ` + "`not_supported`, `not_permitted`, `port_down`" + `,
  ` + "`prerequisite_failed`" + ` (something else failed first), ` + "`timeout`" + ` and ` + "`crashed`" + ` (of the child process).

Only a refusal that repeats while a plain call succeeds counts. A process that dies or hangs in something that must work,
such as polling a completion queue after its destruction was refused, is evidence too; one killed from outside is not.

On the **loopback** path two connected RC queue pairs of a port exchange messages of 8 bytes, or empty ones if no memory
may be pinned; it needs an active port, and is not available on iWARP. On the **flush** path work requests fail because
their queue pair is in the error state; it needs neither port nor peer. An event that should come gets up to 2 seconds,
one that should not come 150 ms.

Severities: **critical**, a program that relies on it hangs or loses data; **warning**, a size or a state is reported
wrongly; **info**, the device allows more than the man page does, or breaks a **convention**, which programs rely on and no
man page promises. Some contracts include conventions, and are violated at info if nothing else is broken: a refused
destruction changes nothing, an object can still be destroyed afterwards, and timestamps never go back.

## Known of drivers

Some drivers break contracts on every device. The status page and the audit report list these facts at info: they are no
findings, raise no alert, do not affect the exit status, and fail no probe. A violation in any other way, or by more,
counts as usual.

The kernel reports the driver of a device over netlink or, for hns and mthca, in sysfs. Each row was checked in rdma-core
44 and its master of early 2026, and in Linux 6.1 and 6.12; those of rxe and siw were also seen on devices. Several
releases of rdma-core under "fixed in" are those with a backport, each for its major number, and the first of all later
ones. From a release that is fixed on, the violation is a finding. The table is in ` + "`internal/probe/errata/list.go`" + `.

| driver | contract | what it does | since | fixed in | source |
|---|---|---|---|---|---|
`)
	for _, f := range errata.All() {
		since, fixed := "–", "–"
		if f.SinceLibrary != "" {
			since = "rdma-core " + f.SinceLibrary
		}
		switch {
		case f.FixedIn != "":
			fixed = "Linux " + f.FixedIn
		case f.FixedInLibrary != "":
			fixed = "rdma-core " + strings.Join(strings.Fields(f.FixedInLibrary), ", ")
		}
		fmt.Fprintf(&b, "| %s | [`%s`](#%s) | %s | %s | %s | %s |\n", f.Driver, f.Contract, f.Contract, f.What, since, fixed, f.Source)
	}
	for _, c := range contract.Catalogue() {
		source := "convention"
		if c.Quote != "" {
			source = fmt.Sprintf("“%s” (%s)", c.Quote, c.ManPage)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n- **Source:** %s\n- **Checked by:** %s\n- **If violated (%s):** %s\n- **What to do:** %s\n",
			c.Name, c.Promise, source, c.Method, c.Severity, c.Consequence, c.Remedy)
	}
	return b.String()
}
