// Package bandwidth measures how fast an RDMA device reaches the memory of each NUMA node, and
// compares that with what its links can carry.
package bandwidth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

const (
	// cellTime and cellBytes limit what is posted for a cell of the matrix, in all its runs.
	cellTime, cellBytes   = 50 * time.Millisecond, 4 << 30
	drainTime, watchEvery = 5 * time.Second, time.Millisecond
	largeRuns             = 4 // of a cell of large messages: with one, two and four QPs, and the best of them again

	maxReads, batch            = 16, 16
	small, medium, large, half = 64, 4 << 10, state.LargeMessage, 2 << 20 // bytes: half is of the buffer
	filled                     = 0.9                                      // the part of its rate above which one QP fills a port
)

// Options are what a measurement needs.
type Options struct {
	session.Options
	Hardware state.Hardware
	PCI      state.PCIPath
	// Nodes has the CPUs of each NUMA node with memory.
	Nodes map[int][]int
	// Count returns the number of queue pairs on the device, and InUse who else uses it. Without
	// Count that does not matter.
	Count func(context.Context) (int64, error)
	InUse func(context.Context) *state.Reduced
}

type measuring struct {
	Options
	*session.Session
	out  state.Bandwidth
	used *state.Reduced
	stop atomic.Int64
	run  verbs.BandwidthRun
}

// Run measures a device and reports. Once others use the device or ctx ends, it posts nothing more.
func Run(ctx context.Context, o Options) error {
	return session.Run(ctx, o.Options, func(ctx context.Context, s *session.Session) (err error) {
		m := &measuring{Options: o, Session: s, out: state.Bandwidth{Device: o.Device, Hardware: &o.Hardware, PCI: o.PCI}}
		if len(m.Nodes) == 0 {
			err = errors.New("the kernel names no NUMA node with memory")
		}
		defer context.AfterFunc(ctx, func() { m.stop.CompareAndSwap(0, 1) })()
		for port := 1; port <= s.Attr.Ports && err == nil; port++ {
			err = m.port(ctx, port)
		}
		if m.used != nil {
			m.out.Interrupted = m.used.Detail + m.out.Interrupted
		}
		return errors.Join(err, s.Out.Send(wire.Line{Bandwidth: &m.out}))
	})
}

// port measures a port with each NUMA node. It leaves out a node that the process may not use, unless
// that is each, and a port that does not reach itself.
func (m *measuring) port(ctx context.Context, port int) error {
	routes, err := m.Routes(port)
	missing := 0
	for _, n := range slices.Sorted(maps.Keys(m.Nodes)) {
		if err != nil || m.stop.Load() != 0 {
			break
		}
		if err = m.node(ctx, routes, n); errors.Is(err, verbs.ErrNUMANode) {
			if missing++; missing < len(m.Nodes) {
				err = m.leaveOut(err, fmt.Sprintf("NUMA node %d: %v", n, err))
			}
		}
	}
	if o := session.ObstacleOf(err); o != nil && o.Reason != state.SkipNotPermitted {
		err = m.leaveOut(err, o.Detail)
	}
	return err
}

// leaveOut reports why something is not measured. It returns the error if an object is left.
func (m *measuring) leaveOut(err error, why string) error {
	if errors.Is(err, session.ErrUndestroyed) {
		return err
	}
	if !strings.Contains(m.out.Skipped, why) {
		m.out.Skipped = strings.TrimPrefix(m.out.Skipped+"; "+why, "; ")
	}
	return nil
}

func (m *measuring) node(ctx context.Context, routes []session.Route, node int) (err error) {
	scope := m.Scope()
	defer func() { err = errors.Join(err, scope.Close()) }()
	pd, err := m.PD()
	if err != nil {
		return err
	}
	const remote = verbs.AccessRemoteWrite | verbs.AccessRemoteRead
	memory, err := scope.MR(pd, 2*half, verbs.AccessLocalWrite|remote|verbs.AccessRelaxedOrdering, node)
	if err != nil {
		return err
	}
	m.run = verbs.BandwidthRun{Local: memory.SGE(0, half), Remote: memory.SGE(half, half), CPUs: m.Nodes[node], Stop: &m.stop, Drain: drainTime}
	for _, r := range routes {
		r.Access, r.Reads = remote, uint8(min(m.Attr.Limits.MaxQPInitRdAtom, m.Attr.Limits.MaxQPRdAtom, maxReads))
		if err = m.connect(scope, pd, r); err != nil {
			continue
		}
		defer m.watch(ctx)() // It ends before objects are destroyed, which it could miscount.
		for _, operation := range []string{"write", "read"} {
			if err = m.cells(state.BandwidthCell{Port: r.Port, Node: node, Operation: operation}); err != nil || m.stop.Load() != 0 {
				break
			}
		}
		return err
	}
	if session.IsRefused(err) {
		return &session.ObstacleError{Reason: state.SkipNeeds, Detail: fmt.Sprintf("port %d does not reach itself: %v", routes[0].Port, err)}
	}
	return err
}

// watch ends posting once the device has more queue pairs. Callers must call end.
func (m *measuring) watch(ctx context.Context) (end func()) {
	if m.Count == nil {
		return func() {}
	}
	// The end of a measurement must not end the question who took the device.
	watched, cancel := context.WithCancel(ctx)
	before, err := m.Count(ctx)
	if m.used = m.InUse(ctx); m.used == nil && err != nil {
		m.used = &state.Reduced{Detail: err.Error()}
	}
	if m.used != nil {
		m.stop.Store(1)
	}
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for ; watched.Err() == nil && m.stop.Load() == 0; time.Sleep(watchEvery) {
			if n, err := m.Count(watched); (err != nil || n > before) && watched.Err() == nil {
				var now unix.Timespec
				_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // Each kernel has it.
				m.stop.Store(now.Nano())
				m.used = cmp.Or(m.InUse(ctx), &state.Reduced{Detail: "a queue pair was created"})
			}
		}
	})
	return func() {
		cancel()
		watcher.Wait()
	}
}

// connect connects pairs of QPs by a route, and tries it.
func (m *measuring) connect(scope *session.Scope, pd verbs.PD, r session.Route) (err error) {
	if m.run.CQ, err = scope.CQ(verbs.CQInitAttr{Entries: verbs.MaxBandwidthQPs * verbs.MaxBandwidthWindow}); err != nil {
		return err
	}
	sizes := verbs.QPCap{MaxSendWR: verbs.MaxBandwidthWindow, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: small}
	m.run.QPs = nil
	for len(m.run.QPs) < 2*verbs.MaxBandwidthQPs {
		q, err := scope.QP(pd, verbs.QPInitAttr{Type: verbs.RC, SendCQ: m.run.CQ, RecvCQ: m.run.CQ, Cap: sizes})
		switch {
		case err == nil:
			m.run.QPs = append(m.run.QPs, q)
		case sizes.MaxInlineData == 0:
			return err
		default:
			sizes.MaxInlineData = 0 // The device takes less, or none.
		}
	}
	for i, peer := range m.run.QPs[verbs.MaxBandwidthQPs:] {
		if err := session.Connect(m.run.QPs[i], peer, r); err != nil {
			return session.Refused(err)
		}
	}
	m.run.Duration, m.run.Bytes = cellTime, batch
	_, err = m.once(state.BandwidthCell{Operation: "write", Port: r.Port, Size: 1, QPs: 1})
	if err != nil && !errors.Is(err, verbs.ErrNUMANode) {
		err = &session.RefusedError{Err: err}
	}
	return err
}

// cells measures an operation. Several QPs send large messages only, and only if one does not fill the
// port. Large messages below their bound are measured again, since only they can be a finding.
func (m *measuring) cells(c state.BandwidthCell) error {
	var rate float64
	if i := slices.IndexFunc(m.out.Hardware.Ports, func(p state.HardwarePort) bool { return p.Number == c.Port }); i >= 0 {
		rate = m.out.Hardware.Ports[i].Rate / 8
	}
	best := -1 // of large messages
	for _, s := range []struct{ size, qps, runs int }{
		{0, 1, 1}, {small, 1, 1}, {medium, 1, 1}, {large, 1, largeRuns}, {large, 2, largeRuns}, {large, verbs.MaxBandwidthQPs, largeRuns},
	} {
		c.Size, c.QPs, c.Inline = s.size, s.qps, s.size == 0
		if c.Inline {
			c.Size = int(min(m.run.QPs[0].Created().MaxInlineData, small))
		}
		if c.Size == 0 || c.Inline && c.Operation == "read" {
			continue
		}
		m.run.Duration, m.run.Bytes = cellTime/time.Duration(s.runs), cellBytes/int64(s.runs)
		got, err := m.once(c)
		if err != nil || m.stop.Load() != 0 {
			return err
		}
		m.out.Cells = append(m.out.Cells, got)
		if s.size == large && (best < 0 || got.BytesPerSecond > m.out.Cells[best].BytesPerSecond) {
			best = len(m.out.Cells) - 1
		}
		if s.size == large && rate > 0 && got.BytesPerSecond >= filled*rate {
			break
		}
	}
	if first := m.out.Cells[best]; first.BytesPerSecond < enoughOfLink*rate || rate == 0 {
		again, err := m.once(first)
		if err != nil || m.stop.Load() != 0 {
			return err
		}
		if again.BytesPerSecond > first.BytesPerSecond {
			m.out.Cells[best] = again
		}
	}
	return nil
}

// once measures a cell once.
func (m *measuring) once(c state.BandwidthCell) (state.BandwidthCell, error) {
	r := m.run
	r.QPs, r.Size, r.Read, r.Inline, r.Window, r.Batch = r.QPs[:c.QPs], c.Size, c.Operation == "read", c.Inline, verbs.MaxBandwidthWindow, batch
	if c.Size > small {
		// Outstanding are 128 KiB or two messages, and at least one of each QP: enough to fill a link, and
		// little to wait for when it stops.
		r.Window, r.Batch = max(1, 128<<10/c.Size, 2/c.QPs), 1
	}
	got, err := m.Device.Bandwidth(r)
	if err == nil && got.Status != verbs.WCSuccess {
		err = fmt.Errorf("%s %d bytes on port %d: completion with %s", c.Operation, c.Size, c.Port, got.Status)
	}
	if got.Messages > 0 && m.stop.Load() != 0 {
		m.out.Interrupted = fmt.Sprintf("; posting ended within %s, and the last message completed within %s", got.Posting, got.Draining)
	}
	if seconds := got.Elapsed.Seconds(); seconds > 0 {
		c.MessagesPerSecond = float64(got.Messages) / seconds
		c.BytesPerSecond = c.MessagesPerSecond * float64(c.Size)
	}
	return c, err
}
