package bandwidth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/bandwidth"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// device is a ConnectX-7 with a port of 400 Gb/s on 16 lanes of 32 GT/s next to node 0, which moves
// these Gb/s with the memory of each node.
func device(name string, nodes ...float64) state.Bandwidth {
	b := state.Bandwidth{Device: name, Hardware: &state.Hardware{
		Device: name, Driver: "mlx5_core", Ports: []state.HardwarePort{{Number: 1, Rate: 400e9}},
		Identity: state.Adapter{
			BoardID: "MT_0000000838", PCI: "0000:18:00.0",
			Link: &state.PCILink{Address: "0000:18:00.0", Speed: 32e9, MaxSpeed: 32e9, Width: 16, MaxWidth: 16},
		},
	}}
	for n, gigabits := range nodes {
		for _, c := range []state.BandwidthCell{{Operation: "write", Size: 1 << 20}, {Operation: "read", Size: 1 << 20}, {Operation: "write", Size: 64}} {
			c.Port, c.Node, c.BytesPerSecond = 1, n, gigabits*1e9/8
			if c.Operation == "read" {
				c.BytesPerSecond /= 2 // The best counts.
			}
			b.Cells = append(b.Cells, c)
		}
	}
	return b
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	narrow := func(b *state.Bandwidth) { b.Hardware.Identity.Link.Width = 4 }
	for _, c := range []struct {
		name   string
		nodes  []float64
		change func(b *state.Bandwidth)
		want   []string // kind, reason, and a part of the detail of each
	}{
		{"fast", []float64{390, 380}, func(*state.Bandwidth) {}, nil},
		{"nothing was measured", nil, narrow, nil},
		{"a narrow link that does not matter", []float64{390}, narrow, nil},
		{"narrow", []float64{115}, narrow, []string{"bandwidth_low link 115 Gb/s of 400 Gb/s, its rate; the PCI link of 0000:18:00.0 has 32 of 32 GT/s and 4 of 16 lanes"}},
		{"a slow bridge", []float64{200}, func(b *state.Bandwidth) {
			b.Hardware.Identity.Bottleneck = &state.PCILink{Address: "0000:00:01.0", Speed: 8e9, MaxSpeed: 32e9, Width: 16, MaxWidth: 16}
		}, []string{"bandwidth_low link of 0000:00:01.0 has 8 of 32 GT/s"}},
		{"unknown", []float64{200}, func(*state.Bandwidth) {}, []string{"bandwidth_low unknown 200 Gb/s of 400 Gb/s"}},
		{"small reads", []float64{200}, func(b *state.Bandwidth) { b.PCI.MaxReadRequest = 128 }, []string{"bandwidth_low max_read_request is 128 bytes"}},
		{"small payload", []float64{200}, func(b *state.Bandwidth) { b.PCI.MaxPayload = 128 }, []string{"bandwidth_low max_payload is 128 bytes"}},
		{"ACS and IOMMU", []float64{200}, func(b *state.Bandwidth) { b.PCI.ACSRedirect, b.PCI.IOMMU = &yes, "DMA" }, []string{"bandwidth_low iommu DMA"}},
		{"ACS and ordered", []float64{200}, func(b *state.Bandwidth) { b.PCI.ACSRedirect, b.PCI.RelaxedOrdering = &yes, &no }, []string{"bandwidth_low relaxed_ordering off"}},
		{"ACS alone", []float64{200}, func(b *state.Bandwidth) {
			b.PCI = state.PCIPath{ACSRedirect: &yes, RelaxedOrdering: &yes, IOMMU: "identity"}
		}, []string{"bandwidth_low acs_redirect ACS"}},
		{"no ACS", []float64{200}, func(b *state.Bandwidth) { b.PCI.ACSRedirect, b.PCI.IOMMU = &no, "none" }, []string{"bandwidth_low unknown the reason is unknown"}},
		{"ordered", []float64{200}, func(b *state.Bandwidth) { b.PCI.RelaxedOrdering = &no }, []string{"bandwidth_low relaxed_ordering off"}},
		{"a narrow link that carries enough", []float64{100}, func(b *state.Bandwidth) {
			b.Hardware.Ports[0].Rate, b.Hardware.Identity.Link.Width, b.PCI.IOMMU = 200e9, 8, "DMA"
		}, []string{"bandwidth_low iommu 100 Gb/s of 200 Gb/s"}},
		{"a narrow link in front of far memory", []float64{100, 60}, func(b *state.Bandwidth) {
			narrow(b)
			b.Hardware.Ports[0].Rate, b.PCI.IOMMU = 100e9, "DMA"
		}, []string{"numa_asymmetric iommu 60 Gb/s"}},
		{"relaxed", []float64{200}, func(b *state.Bandwidth) { b.PCI.RelaxedOrdering = &yes }, []string{"bandwidth_low unknown the reason is unknown"}},
		{"all its PCI link carries", []float64{200}, func(b *state.Bandwidth) {
			b.Hardware.Identity.Link = &state.PCILink{Speed: 16e9, MaxSpeed: 16e9, Width: 16, MaxWidth: 16}
		}, nil},
		{"less than its PCI link carries", []float64{80}, func(b *state.Bandwidth) {
			b.Hardware.Ports[0].Rate, b.Hardware.Identity.Link = 0, &state.PCILink{Speed: 5e9, MaxSpeed: 5e9, Width: 32, MaxWidth: 32}
		}, []string{"bandwidth_low unknown 80 Gb/s of 117 Gb/s, what its PCI link carries"}},
		{"far memory", []float64{390, 250}, func(*state.Bandwidth) {}, []string{"numa_asymmetric unknown 250 Gb/s with the slowest NUMA node and 390 Gb/s with the fastest"}},
		{"slow and far", []float64{110, 60}, narrow, []string{"bandwidth_low link 110 Gb/s", "numa_asymmetric unknown 60 Gb/s"}},
		{"near node 1", []float64{300, 390}, func(b *state.Bandwidth) { b.Hardware.Identity.NUMANode = 1 }, nil},
		{"emulated", []float64{1, 20}, func(b *state.Bandwidth) { b.Hardware.Driver = "rxe" }, nil},
		{"unknown rate and link", []float64{1}, func(b *state.Bandwidth) { b.Hardware.Ports[0].Rate, b.Hardware.Identity.Link = 0, nil }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := device("mlx5_0", c.nodes...)
			c.change(&b)
			check(t, bandwidth.Evaluate([]state.Bandwidth{b}), c.want)
		})
	}
	// Siblings have the same model and rate.
	var all []state.Bandwidth
	for _, c := range []struct {
		name, board string
		rate        float64
		moves       float64
	}{{"mlx5_0", "x", 0, 390}, {"mlx5_1", "x", 0, 380}, {"mlx5_2", "x", 0, 390}, {"mlx5_3", "x", 0, 290}, {"mlx5_4", "y", 0, 100}, {"mlx5_5", "x", 200e9, 195}} {
		b := device(c.name, c.moves)
		b.Hardware.Ports[0].Rate, b.Hardware.Identity.Link, b.Hardware.Identity.BoardID = c.rate, nil, c.board
		all = append(all, b)
	}
	check(t, bandwidth.Evaluate(all), []string{"bandwidth_low unknown 290 Gb/s of 390 Gb/s, the median of its siblings"})
}

func check(t *testing.T, got []bandwidth.Finding, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%+v, want %q", got, want)
	}
	for i, f := range got {
		start, detail, _ := strings.Cut(want[i], " "+f.Reason+" ")
		if start != f.Kind || detail == "" || !strings.Contains(f.Detail, detail) {
			t.Errorf("%+v, want %q", f, want[i])
		}
	}
}

type result func(verbs.BandwidthRun) (verbs.BandwidthResult, error)

// fake is a simulated device whose runs have other results, and its provider.
type fake struct {
	verbs.Provider
	verbs.Device
	result
}

func (f fake) Open(name string) (_ verbs.Device, err error) {
	f.Device, err = f.Provider.Open(name)
	return f, err
}

func (f fake) Bandwidth(r verbs.BandwidthRun) (verbs.BandwidthResult, error) { return f.result(r) }

// faked gives runs other results.
func faked(r result) func(*bandwidth.Options) {
	return func(o *bandwidth.Options) {
		provider := o.Provider
		o.Provider = func(tr verbs.Tracer) verbs.Provider { return fake{Provider: provider(tr), result: r} }
	}
}

// moves is the result of a run at a speed, in bytes per second.
func moves(r verbs.BandwidthRun, speed float64) (verbs.BandwidthResult, error) {
	return r.Simulate(speed), nil
}

// options returns those for a simulated device with two NUMA nodes.
func options(t *testing.T, keys string, change func(*bandwidth.Options), out *bytes.Buffer) bandwidth.Options {
	t.Helper()
	p := running.Must(simulated.ParseProfile("profile", []byte("devices: [{name: sim0, like: sim_ib0, "+keys+"}]")))(t)
	o := bandwidth.Options{Nodes: map[int][]int{0: {0, 1}, 2: nil}, Hardware: *device("sim0").Hardware}
	o.Options = session.Options{Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) }, Device: "sim0", Out: wire.NewWriter(out)}
	if change != nil {
		change(&o)
	}
	return o
}

// run measures a simulated device, and returns what a parent reads.
func run(t *testing.T, keys string, change func(*bandwidth.Options)) (r state.Run) {
	t.Helper()
	var out bytes.Buffer
	err := bandwidth.Run(t.Context(), options(t, keys, change, &out))
	if err = errors.Join(err, wire.Read(&out, &r)); err != nil || len(r.Undestroyed) > 0 {
		t.Fatalf("%v, left: %+v", err, r.Undestroyed)
	}
	return r
}

func TestRun(t *testing.T) {
	t.Parallel()
	b := run(t, "bandwidth_bytes_per_second: 46e9", nil).Bandwidth
	var cells []string
	for _, c := range b.Cells {
		cells = append(cells, fmt.Sprintf("%d.%d %s %d %t %d", c.Port, c.Node, c.Operation, c.Size, c.Inline, c.QPs))
		if c.BytesPerSecond < 45.9e9 || c.BytesPerSecond > 46.1e9 || c.MessagesPerSecond*float64(c.Size) != c.BytesPerSecond {
			t.Errorf("%+v", c)
		}
	}
	each := "%[1]s write 64 true 1, %[1]s write 64 false 1, %[1]s write 4096 false 1, %[1]s write 1048576 false 1, %[1]s read 64 false 1, %[1]s read 4096 false 1, %[1]s read 1048576 false 1"
	if got, want := strings.Join(cells, ", "), fmt.Sprintf(each+", ", "1.0")+fmt.Sprintf(each, "1.2"); got != want {
		t.Errorf("cells\n%s\nwant\n%s", got, want)
	}
	if b.Skipped != "port 2 is down" || b.Interrupted != "" {
		t.Errorf("skipped %q, interrupted %q", b.Skipped, b.Interrupted)
	}
	// One QP does not fill the port.
	if b = run(t, "bandwidth_bytes_per_second: 44e9", nil).Bandwidth; len(b.Cells) != 22 || b.Cells[5].QPs != 4 {
		t.Errorf("%+v", b.Cells)
	}
}

func TestRunWithout(t *testing.T) {
	t.Parallel()
	busy := &state.Reduced{Detail: "trainer holds queue pairs"}
	counts := func(n ...int64) func(context.Context) (int64, error) {
		return func(context.Context) (int64, error) {
			if len(n) > 1 {
				n = n[1:]
			}
			return n[0], nil
		}
	}
	for _, c := range []struct {
		name, keys string
		change     func(*bandwidth.Options)
		want       string // skipped, interrupted, error
		cells      bool
	}{
		{"iWARP", "transport: iWARP", nil, "iWARP connects through a connection manager only||", false},
		{"not supported", "bandwidth_bytes_per_second: 0", nil, "EOPNOTSUPP", false},
		{"refused", "bandwidth_bytes_per_second: 1e9, faults: [{verb: ibv_create_cq, errno: ENOMEM}]", nil, "||ibv_create_cq on sim0: ENOMEM", false},
		{"no inline data", "bandwidth_bytes_per_second: 1e9, max_inline_data: 0", nil, "port 2 is down||", true},
		{"no node", "bandwidth_bytes_per_second: 1e9", func(o *bandwidth.Options) { o.Nodes = nil }, "||the kernel names no NUMA node", false},
		{"no memory of one node", "", faked(func(r verbs.BandwidthRun) (verbs.BandwidthResult, error) {
			if len(r.CPUs) > 0 {
				return verbs.BandwidthResult{}, verbs.ErrNUMANode
			}
			return moves(r, 1e9)
		}), "NUMA node 0: the NUMA node is not available; port 2 is down||", true},
		{"no memory of any node", "", faked(func(verbs.BandwidthRun) (verbs.BandwidthResult, error) {
			return verbs.BandwidthResult{}, verbs.ErrNUMANode
		}), "NUMA node 0: the NUMA node is not available||the NUMA node is not available", false},
		{"no loopback", "", faked(func(verbs.BandwidthRun) (verbs.BandwidthResult, error) {
			return verbs.BandwidthResult{Status: verbs.WCRetryExc}, nil
		}), "port 1 does not reach itself: write 1 bytes on port 1: completion with retry_exc_err; port 2 is down||", false},
		{"no connection", "faults: [{verb: ibv_modify_qp, errno: EINVAL}]", nil, "port 1 does not reach itself: connect QPs: to INIT: ibv_modify_qp on sim0: EINVAL", false},
		{"in use", "bandwidth_bytes_per_second: 1e9", func(o *bandwidth.Options) {
			o.Count, o.InUse = counts(8), func(context.Context) *state.Reduced { return busy }
		}, "|trainer holds queue pairs|", false},
		{"unknown", "bandwidth_bytes_per_second: 1e9", func(o *bandwidth.Options) {
			o.Count, o.InUse = func(context.Context) (int64, error) { return 0, errors.New("no answer") }, func(context.Context) *state.Reduced { return nil }
		}, "|no answer|", false},
		{"idle", "bandwidth_bytes_per_second: 1e9", func(o *bandwidth.Options) {
			o.Count, o.InUse = counts(8), func(context.Context) *state.Reduced { return nil }
		}, "port 2 is down||", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, c.keys, c.change)
			got := r.Bandwidth.Skipped + "|" + r.Bandwidth.Interrupted + "|" + r.Error
			if !strings.Contains(strings.ReplaceAll(got, "create CQ: ", ""), strings.TrimPrefix(c.want, "||")) || (len(r.Bandwidth.Cells) > 0) != c.cells {
				t.Errorf("%q, %d cells, want %q", got, len(r.Bandwidth.Cells), c.want)
			}
		})
	}
}

// TestRunAgain verifies that the best cell of large messages is measured again if it is below its
// bound, and that all runs together stay within the bounds of a cell.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	const large = 1 << 20
	for _, c := range []struct {
		name   string
		speeds []float64 // of the runs of a cell of 1 MiB, of 50 GB/s
		qps    string    // of these runs
		best   float64
	}{
		{"all of it", []float64{46e9}, "1", 46e9},
		{"enough", []float64{41e9, 44e9, 43e9}, "1 2 4", 44e9},
		{"too little", []float64{20e9, 25e9, 22e9, 30e9}, "1 2 4 2", 30e9},
		{"even less", []float64{20e9, 25e9, 22e9, 10e9}, "1 2 4 2", 25e9},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var qps []string
			var posting time.Duration
			var posted int64
			r := run(t, "", faked(func(r verbs.BandwidthRun) (verbs.BandwidthResult, error) {
				if r.Size != large || r.Read || len(r.CPUs) == 0 {
					return moves(r, 50e9)
				}
				posting, posted, qps = posting+r.Duration, posted+r.Bytes, append(qps, fmt.Sprint(len(r.QPs)))
				return moves(r, c.speeds[len(qps)-1])
			}))
			var best float64
			for _, cell := range r.Bandwidth.Cells {
				if cell.Size == large && cell.Operation == "write" && cell.Node == 0 {
					best = max(best, cell.BytesPerSecond)
				}
			}
			if got := strings.Join(qps, " "); got != c.qps || math.Abs(best/c.best-1) > 0.01 || posting > 50*time.Millisecond || posted > 4<<30 {
				t.Errorf("runs of %s QPs in %s with %d bytes, at best %g", got, posting, posted, best)
			}
		})
	}
}

// TestRunEnds verifies that nothing is posted once the context has ended.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	err := bandwidth.Run(ctx, options(t, "", faked(func(r verbs.BandwidthRun) (verbs.BandwidthResult, error) {
		if runs++; runs == 3 {
			cancel()
			running.Eventually(t, "the run is stopped", func() bool { return r.Stop.Load() != 0 })
		}
		return moves(r, 1e9)
	}), new(bytes.Buffer)))
	if !errors.Is(err, context.Canceled) || runs != 3 {
		t.Errorf("%v after %d runs", err, runs)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	slow, broken := device("mlx5_0", 200), state.Bandwidth{Hardware: new(state.Hardware), Device: "mlx5_1", Failure: "ENOMEM"}
	slow.Cells[2].MessagesPerSecond = 2.5e6
	for _, c := range []struct {
		devices []state.Bandwidth
		good    bool
		want    []string
	}{
		{[]state.Bandwidth{device("mlx5_0", 390)}, true, []string{"mlx5_0     1     0             0     0      0    390          0      0    195"}},
		{[]state.Bandwidth{slow}, false, []string{"mlx5_0     1     0             0   2.5      0", "mlx5_0: bandwidth_low: port 1 moves 200 Gb/s"}},
		{[]state.Bandwidth{broken}, false, []string{"mlx5_1: failed: ENOMEM"}},
		{[]state.Bandwidth{{Hardware: new(state.Hardware), Device: "siw0", Skipped: "iWARP"}}, true, []string{"siw0: not measured: iWARP"}},
		{[]state.Bandwidth{{Hardware: new(state.Hardware), Device: "rxe0", Skipped: "x", Interrupted: "in use"}}, false, []string{"rxe0: interrupted: in use", "rxe0: not measured: x"}},
	} {
		r := bandwidth.NewReport(c.devices)
		text, good := r.Text()
		for _, want := range c.want {
			if !strings.Contains(text, want) || good != c.good {
				t.Errorf("good %t, %s\nlacks %q", good, text, want)
			}
		}
	}
}
