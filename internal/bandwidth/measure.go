// Package bandwidth measures how fast an RDMA device reaches the memory of each NUMA node, and
// compares that with what its links can carry.
package bandwidth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	cellTime, drainTime, watchEvery = 50 * time.Millisecond, 5 * time.Second, time.Millisecond
	cellBytes                       = 4 << 30
	maxReads                        = 16
	small, medium, large, half      = 64, 4 << 10, 1 << 20, 2 << 20 // bytes: half is of the buffer
	filled                          = 0.9                           // the part of its rate above which one QP fills a port
)

// Options are what a measurement needs.
type Options struct {
	session.Options
	// Sysfs has the NUMA nodes and the PCI functions.
	Sysfs    string
	Hardware state.Hardware
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

// Run measures a device and reports. Once others use the device, it posts nothing more.
func Run(ctx context.Context, o Options) error {
	return session.Run(ctx, o.Options, func(ctx context.Context, s *session.Session) error {
		m := &measuring{Options: o, Session: s, out: state.Bandwidth{Device: o.Device, Hardware: &o.Hardware, PCI: readPath(o.Sysfs, o.Hardware.Identity.PCI)}}
		nodes, err := nodesOf(o.Sysfs)
		for port := 1; port <= s.Attr.Ports; port++ {
			for _, n := range nodes {
				if err != nil || m.used != nil {
					break
				}
				err = m.node(ctx, port, n)
				if o := session.ObstacleOf(err); o != nil && o.Reason != state.SkipNotPermitted && !errors.Is(err, session.ErrUndestroyed) {
					if err = nil; !strings.Contains(m.out.Skipped, o.Detail) {
						m.out.Skipped = strings.TrimPrefix(m.out.Skipped+"; "+o.Detail, "; ")
					}
				}
			}
		}
		if m.used != nil {
			m.out.Interrupted = m.used.Detail + m.out.Interrupted
		}
		return errors.Join(err, s.Out.Send(wire.Line{Bandwidth: &m.out}))
	})
}

func (m *measuring) node(ctx context.Context, port int, n node) (err error) {
	routes, err := m.Routes(port)
	if err != nil {
		return err
	}
	scope := m.Scope()
	defer func() { err = errors.Join(err, scope.Close()) }()
	pd, err := m.PD()
	if err != nil {
		return err
	}
	const remote = verbs.AccessRemoteWrite | verbs.AccessRemoteRead
	memory, err := scope.MR(pd, 2*half, verbs.AccessLocalWrite|remote|verbs.AccessRelaxedOrdering, n.number)
	if err != nil {
		return fmt.Errorf("memory of NUMA node %d: %w", n.number, err)
	}
	m.run = verbs.BandwidthRun{Local: memory.SGE(0, half), Remote: memory.SGE(half, half), CPUs: n.cpus, Stop: &m.stop, Duration: cellTime, Drain: drainTime}
	for _, r := range routes {
		r.Access, r.Reads = remote, uint8(min(m.Attr.Limits.MaxQPInitRdAtom, m.Attr.Limits.MaxQPRdAtom, maxReads))
		if err = m.connect(scope, pd, r); err == nil {
			defer m.watch(ctx)() // It ends before objects are destroyed, which it could miscount.
			return errors.Join(m.cells(state.BandwidthCell{Port: port, Node: n.number, Operation: "write"}), m.cells(state.BandwidthCell{Port: port, Node: n.number, Operation: "read"}))
		}
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
			return err
		}
	}
	_, err = m.once(state.BandwidthCell{Operation: "write", Port: r.Port, Size: 1, QPs: 1}, 1)
	return err
}

// cells measures an operation. Several QPs send large messages only, and only if one does not fill the port.
func (m *measuring) cells(c state.BandwidthCell) error {
	var rate float64
	if i := slices.IndexFunc(m.out.Hardware.Ports, func(p state.HardwarePort) bool { return p.Number == c.Port }); i >= 0 {
		rate = m.out.Hardware.Ports[i].Rate / 8
	}
	for _, s := range []struct{ size, qps int }{{0, 1}, {small, 1}, {medium, 1}, {large, 1}, {large, 2}, {large, verbs.MaxBandwidthQPs}} {
		c.Size, c.QPs, c.Inline = s.size, s.qps, s.size == 0
		if c.Inline {
			c.Size = int(min(m.run.QPs[0].Created().MaxInlineData, small))
		}
		if c.Size == 0 || c.Inline && c.Operation == "read" {
			continue
		}
		got, err := m.once(c, cellBytes)
		if err == nil && s.size == large && (got.BytesPerSecond < enoughOfLink*rate || rate == 0) {
			var again state.BandwidthCell
			if again, err = m.once(c, cellBytes); again.BytesPerSecond > got.BytesPerSecond {
				got = again
			}
		}
		if err != nil || m.stop.Load() != 0 {
			return err
		}
		m.out.Cells = append(m.out.Cells, got)
		if s.size == large && rate > 0 && got.BytesPerSecond >= filled*rate {
			break
		}
	}
	return nil
}

// once measures a cell once.
func (m *measuring) once(c state.BandwidthCell, bytes int64) (state.BandwidthCell, error) {
	r := m.run
	r.QPs, r.Size, r.Read, r.Inline, r.Bytes, r.Window, r.Batch = r.QPs[:c.QPs], c.Size, c.Operation == "read", c.Inline, bytes, verbs.MaxBandwidthWindow, 16
	if c.Size > small {
		r.Window, r.Batch = max(4, r.Window*1024/c.Size), 1 // 128 KiB, or four messages
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
