// Package verbstest holds the one conformance suite that every provider of
// package verbs must pass: the binding of the system's libibverbs as well as
// the simulated devices.
//
// The suite checks what the interfaces of package verbs promise: lifetimes,
// errors, tracing, bounded waits, what an argument becomes. It does not check
// whether a driver obeys its manual: where drivers differ, either answer is
// accepted as long as it is coherent, which means an error that names verb,
// device and errno, or an object that can be used and closed.
//
// [Stalled] is a CQ for tests of code that waits.
package verbstest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/verbs"
)

// Config says what to test, and what the caller knows of it beforehand.
type Config struct {
	// New returns a new provider that tells the tracer of each verb.
	New func(verbs.Tracer) verbs.Provider
	// Device is the name of the device to test. That it is missing is a failure.
	Device string
	// PortActive is whether port 1 of the device is active. A port in another
	// state is a failure; with an active port the loopback tests must run.
	PortActive bool
	// Unsupported are the types of QP that the device does not offer. Creating
	// one must fail; every other type that the device says it may have must work, but
	// RawPacket, which needs no mention, because it also takes a privilege.
	Unsupported []verbs.QPType
	// Unbounded are the fields of verbs.QPCap that the device takes any number for.
	Unbounded []string
	// SingleUse is whether a QP that was brought to ERR or RESET is of no use
	// any more: RESET→INIT is EINVAL.
	SingleUse bool
	// SignalAllUntold is whether a query of a QP does not tell its SignalAll.
	SignalAllUntold bool
	// Simulated is whether the devices are in this process alone. The tests then run in
	// bubbles of testing/synctest, where no time passes but that of waits, at once.
	Simulated bool
}

// Bounds of the waits. The devices may be in a slow virtual machine, so what
// must happen gets much time; what must not happen is waited for briefly.
const (
	soon     = 15 * time.Second
	moment   = 50 * time.Millisecond
	watchdog = 2 * time.Minute
)

// suite is one run over one device.
type suite struct {
	cfg Config
	// types are those of QP that the device may have.
	types []verbs.QPType
}

// Run runs the whole suite on one device.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if cfg.New == nil || cfg.Device == "" {
		t.Fatal("verbstest: Config needs New and Device")
	}
	s := &suite{cfg: cfg, types: typesOf(t, cfg)}
	for _, topic := range []struct {
		name string
		test func(*suite, *testing.T)
	}{
		{"devices", (*suite).devices},
		{"query", (*suite).query},
		{"pd", (*suite).pd},
		{"mr", (*suite).mr},
		{"ah", (*suite).ah},
		{"cq", (*suite).cq},
		{"channel", (*suite).channel},
		{"srq", (*suite).srq},
		{"async", (*suite).async},
		{"qp", (*suite).qp},
		{"raw packet", (*suite).rawPacket},
		{"loopback", (*suite).loopback},
		{"datagram", (*suite).datagram},
		{"measure", (*suite).measure},
		{"bandwidth", (*suite).bandwidth},
		{"lifetime", (*suite).lifetime},
		{"arguments", (*suite).arguments},
		{"foreign", (*suite).foreign},
	} {
		t.Run(topic.name, func(t *testing.T) { topic.test(s, t) })
	}
}

// typesOf returns the types of QP that the device may have.
func typesOf(t *testing.T, cfg Config) []verbs.QPType {
	t.Helper()
	d := must(cfg.New(verbs.NopTracer{}).Open(cfg.Device))(t, "Open(%q)", cfg.Device)
	types := d.QPTypes()
	wantNoError(t, "Close", d.Close())
	return types
}

// offers reports whether the device is said to offer a type of QP.
func (s *suite) offers(typ verbs.QPType) bool {
	return slices.Contains(s.types, typ) && !slices.Contains(s.cfg.Unsupported, typ)
}

// requireType skips the test if the device does not offer the type.
func (s *suite) requireType(t *testing.T, typ verbs.QPType) {
	t.Helper()
	if !s.offers(typ) {
		t.Skipf("%s does not offer %s queue pairs", s.cfg.Device, typ)
	}
}

// requirePort skips the test if the port is not active.
func (s *suite) requirePort(t *testing.T) {
	t.Helper()
	if !s.cfg.PortActive {
		t.Skipf("port 1 of %s is not active", s.cfg.Device)
	}
}

// run runs a subtest with a device of its own. When it ends, everything that it
// opened is closed, newest first, and the device with it: all must succeed.
func (s *suite) run(t *testing.T, name string, test func(t *testing.T, d *device)) {
	t.Helper()
	s.runUnopened(t, name, func(t *testing.T, b *bench) { test(t, b.open(s.cfg.Device)) })
}

// runUnopened is run for a test that opens devices by itself.
func (s *suite) runUnopened(t *testing.T, name string, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		if !s.cfg.Simulated {
			test(t, newBench(t, s.cfg))
			return
		}
		skipped := false
		synctest.Test(t, func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			test(t, newBench(t, s.cfg))
		})
		if skipped {
			t.SkipNow()
		}
	})
}
