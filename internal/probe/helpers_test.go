package probe_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
	"rdma_exporter/verbs/simulated/simulatedtest"
)

const quickSamples = 10

// quick is the default configuration with fewer samples, ample time for them, and hardly any
// for refused destructions.
func quick() probe.Config {
	c := probe.DefaultConfig()
	c.DestroyTimeout = 20 * time.Millisecond
	c.Notification.Samples, c.Notification.Budget = quickSamples, time.Hour
	return c
}

// impatient is quick with a deadline for tests in which something never comes.
func impatient() probe.Config {
	c := quick()
	c.Notification.Deadline = 50 * time.Millisecond
	return c
}

// parse returns a profile with one device. Its verbs take no time unless it has a latency.
func parse(t testing.TB, keys string) *simulated.Profile {
	t.Helper()
	if !strings.Contains(keys, "latency:") {
		keys += ", default_latency: 0s, latency: {}"
	}
	p := running.Must(simulatedtest.Parse([]byte("devices: [{name: dev, " + strings.ReplaceAll(keys, "\n", " ") + "}]")))(t)
	return p
}

// on returns options for a device of a profile, by default the first one.
func on(p *simulated.Profile, o probe.Options) probe.Options {
	o.Device = cmp.Or(o.Device, p.Devices[0].Name)
	o.Provider = func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) }
	i := slices.IndexFunc(p.Devices, func(d simulated.DeviceProfile) bool { return d.Name == o.Device })
	o.Driver = errata.Driver{Name: p.Devices[i].Driver, Kernel: p.Devices[i].Kernel}
	return o
}

// probed probes a device and returns the report and its text.
func probed(t *testing.T, p *simulated.Profile, o probe.Options) (state.Run, string) {
	t.Helper()
	var out bytes.Buffer
	o = on(p, o)
	o.Out = wire.NewWriter(&out)
	running.Check(t, probe.Run(t.Context(), o))
	text := out.String()
	r := state.Run{Device: o.Device}
	if err := wire.Read(&out, &r); err != nil {
		t.Fatalf("the report cannot be read: %v\n%s", err, text)
	}
	return r, text
}

// still is probed in virtual time, which a busy host cannot take away.
func still(t *testing.T, p *simulated.Profile, o probe.Options) (r state.Run) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r, _ = probed(t, p, o) })
	return r
}

func named(t testing.TB, r state.Run, name string) state.Probe {
	t.Helper()
	i := slices.IndexFunc(r.Probes, func(p state.Probe) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no probe %s: %+v", name, r)
	}
	return r.Probes[i]
}

// measure returns the result of the notification probe on a device. Nothing may be left.
func measure(t *testing.T, keys string, c probe.Config) state.Probe {
	t.Helper()
	r := still(t, parse(t, keys), probe.Options{Config: c})
	if r.Error != "" || len(r.Undestroyed) > 0 {
		t.Errorf("error %q, undestroyed %v", r.Error, r.Undestroyed)
	}
	return named(t, r, "notification")
}

// failures lists failures as "rc small: message".
func failures(p state.Probe) string {
	var lines []string
	for _, f := range p.Failures {
		lines = append(lines, f.Subject.String()+": "+f.Message)
	}
	return strings.Join(lines, "\n")
}

func failedSubjects(p state.Probe) string {
	return join(p.Failures, func(f state.Failure) string { return f.Subject.String() })
}

// skips lists skips as "loopback port 1: port_down".
func skips(list []state.Skip) string {
	return join(list, func(s state.Skip) string { return s.Subject.String() + ": " + string(s.Reason) })
}

// taken lists measurements as "loopback any 1/0", with port and vector.
func taken(list []state.Latency) string { return join(list, latency) }

func latency(l state.Latency) string {
	return fmt.Sprintf("%s %s %d/%d", l.Path, l.Mode, l.Port, l.Vector)
}

func join[T any](list []T, name func(T) string) string {
	var names []string
	for _, e := range list {
		names = append(names, name(e))
	}
	return strings.Join(names, ", ")
}

// methodOf returns how the completions of a path were produced.
func methodOf(p state.Probe, path state.LatencyPath) state.Method {
	i := slices.IndexFunc(p.Methods, func(w state.Method) bool { return w.Path == path })
	if i < 0 {
		return state.Method{}
	}
	return p.Methods[i]
}
