//go:build vm

package check

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"rdma_exporter/internal/bandwidth"
	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/ibverbs"
)

// observed is a paper adapter whose counters are read around each run.
type observed struct {
	verbs.Provider
	verbs.Device
	t       *testing.T
	adapter adapter
	kinds   map[string]bool
}

func (o observed) Open(name string) (_ verbs.Device, err error) {
	o.Device, err = o.Provider.Open(name)
	return o, err
}

func (o observed) Bandwidth(r verbs.BandwidthRun) (verbs.BandwidthResult, error) {
	before := o.adapter.counters(o.t)
	got, err := o.Device.Bandwidth(r)
	after, n := o.adapter.counters(o.t), int(got.Messages)
	want := map[string]int{"sends": n, "writes": n, "reads": 0, "inline": 0, "signalled": n / r.Batch, "completions": n / r.Batch, "bytes": n * r.Size, "receives": 0, "events": 0}
	if r.Read {
		want["writes"], want["reads"] = 0, n
	}
	if r.Inline {
		want["inline"] = n
	}
	for name := range want {
		if got := after[name] - before[name]; n == 0 || got != want[name] {
			o.t.Errorf("%d QPs, %d bytes, read %t, inline %t: the adapter counts %d %s, want %d", len(r.QPs), r.Size, r.Read, r.Inline, got, name, want[name])
		}
	}
	o.kinds[fmt.Sprintf("%d QPs, %d bytes, read %t, inline %t", len(r.QPs), r.Size, r.Read, r.Inline)] = true
	return got, err
}

// TestBandwidth verifies that the library posts the operations, sizes and flags that a measurement
// asks for, and nothing else.
func TestBandwidth(t *testing.T) {
	for _, a := range adapters(t) {
		if a.of() != "mlx5" || a.is("limited") || a.is("alone") || a.is("down") {
			continue
		}
		var out bytes.Buffer
		kinds := make(map[string]bool)
		err := bandwidth.Run(t.Context(), bandwidth.Options{
			Options: session.Options{Device: a.name, Out: wire.NewWriter(&out), Provider: func(tr verbs.Tracer) verbs.Provider {
				return observed{Provider: ibverbs.New(tr), t: t, adapter: a, kinds: kinds}
			}},
			Hardware: state.Hardware{Device: a.name}, Nodes: hardware.NUMANodes(t.Context(), "/sys"),
		})
		r := state.Run{Device: a.name, Bandwidth: new(state.Bandwidth)}
		if err = errors.Join(err, wire.Read(&out, &r)); err != nil || r.Error+r.Bandwidth.Skipped+r.Bandwidth.Interrupted != "" {
			t.Fatalf("%s: %v, %s, %+v", a.spec, err, r.Error, r.Bandwidth)
		}
		if len(kinds) != 12 { // one that tries the connection, six that write, and five that read
			t.Errorf("%d kinds of runs: %q", len(kinds), slices.Sorted(maps.Keys(kinds)))
		}
	}
}
