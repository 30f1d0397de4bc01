package probe

import (
	"context"
	"errors"
	"strings"
	"time"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs"
)

// Options says which device to probe and where to report.
type Options struct {
	// Provider returns the provider of the devices. It is told the tracer through
	// which each verb is reported.
	Provider func(verbs.Tracer) verbs.Provider
	// Device is the name of the device.
	Device string
	// Driver is the driver of the device. What it is known for is not held against the
	// device.
	Driver errata.Driver
	Config Config
	// LocksMemory tells that what the provider locks counts against
	// RLIMIT_MEMLOCK.
	LocksMemory bool
	// Facts are what earlier runs found out about the device; nil for nothing. They are
	// used if they are those of the device as it is now.
	Facts *state.Facts
	// Short requests a short run. A run that cannot use Facts is full all the same.
	Short bool
	// Reduced is why the run must do as little as possible. Nil means that it need not.
	Reduced *state.Reduced
	// Opened, if not nil, is called once the device is open.
	Opened func()
	// Exhausted is that of [session.Options].
	Exhausted func(*verbs.Error) (state.Refused, bool)
	// RefusedMemory, if not nil, is asked at once when memory of a size was refused to be
	// registered what it was that refused it; it also says so in a line.
	RefusedMemory func(err *verbs.Error, size int) (state.RefusedBy, string)
	// Out takes the report.
	Out *wire.Writer
}

// Run probes one device once and writes a whole report, whose end tells if the
// device could not be probed at all. It returns an error only if the report
// could not be written or ctx ended; ctx is looked at between the probes.
//
// Run is to be called from a goroutine that is locked to its thread, in a
// process that does nothing else: it measures the memory of the process.
func Run(ctx context.Context, o Options) error {
	if o.Reduced != nil {
		_ = o.Out.Send(wire.Line{Reduced: o.Reduced}) // the writer keeps its first error
	}
	so := session.Options{
		Provider: o.Provider, Device: o.Device, Vectors: o.Config.Notification.Vectors,
		DestroyTimeout: o.Config.DestroyTimeout, Opened: o.Opened, Exhausted: o.Exhausted, Out: o.Out,
	}
	return session.Run(ctx, so, func(ctx context.Context, s *session.Session) error {
		r := &run{Session: s, driver: o.Driver, cfg: o.Config, locksMemory: o.LocksMemory, refusedMemory: o.RefusedMemory}
		var known bool
		r.facts, known = r.factsOf(o.Facts)
		switch {
		case o.Reduced != nil:
			r.depth = state.DepthReduced
		case o.Short && known:
			r.depth = state.DepthShort
		default:
			r.depth = state.DepthFull
		}
		_ = r.Out.Send(wire.Line{Depth: &wire.Depth{Depth: r.depth, Sizes: r.cfg.Sizes()}})
		if r.depth == state.DepthReduced {
			return r.reduced(ctx)
		}
		return r.all(ctx)
	})
}

// run is one run on one device.
type run struct {
	*session.Session
	driver errata.Driver
	cfg    Config
	facts  facts
	depth  state.Depth
	// locksMemory is Options.LocksMemory, and hinted tells that its limit was
	// mentioned.
	locksMemory, hinted bool
	// refusedMemory is Options.RefusedMemory.
	refusedMemory func(err *verbs.Error, size int) (state.RefusedBy, string)
	// noCQs tells that the device offers no completion queues.
	noCQs bool
	// inlineMax is what was found of inline data, by type of QP.
	inlineMax []inlineMax
	// searched is the time spent so far on what leads nowhere.
	searched time.Duration
}

// all describes the device and runs the probes. Its error is what kept it from
// doing so; what the probes find is in the report.
func (r *run) all(ctx context.Context) error {
	err := r.describe()
	for _, probe := range []struct {
		name    string
		run     func(*step)
		leftOut bool
	}{
		{name: "cq", run: r.cq},
		{name: "comp_channel", run: r.compChannel},
		{name: "srq", run: r.srq},
		{name: "qp", run: r.qp},
		{name: "mr", run: r.mr},
		{name: "notification", run: r.notification, leftOut: r.cfg.Notification.Samples == 0},
	} {
		if probe.leftOut || r.noCQs {
			continue
		}
		if err := errors.Join(ctx.Err(), r.Out.Err()); err != nil {
			return err
		}
		r.step(probe.name, probe.run)
		r.tellFacts()
	}
	return err
}

// describe reports what the device says of itself.
func (r *run) describe() error {
	attr := r.Attr
	d := state.Device{
		Driver:            r.driver.Name,
		Transport:         r.Device.Transport().String(),
		Firmware:          strings.ToValidUTF8(attr.Firmware, "?"),
		VendorID:          attr.VendorID,
		VendorPartID:      attr.VendorPartID,
		HWVersion:         attr.HWVersion,
		NodeGUID:          attr.NodeGUID.String(),
		CompletionVectors: r.Device.CompletionVectors(),
		Limits:            limits(attr.Limits),
	}
	// A device that does not tell is none the worse for it.
	r.Expecting(func(error) bool { return true }, func() {
		if attr, err := r.Device.QueryExtended(); err == nil {
			d.Extended = extendedLimits(attr)
		}
	})
	var errs []error
	for number := 1; number <= attr.Ports; number++ {
		port, err := r.Port(number)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d.Ports = append(d.Ports, state.Port{
			Number:    number,
			State:     port.State.String(),
			LinkLayer: port.LinkLayer.String(),
			ActiveMTU: port.ActiveMTU,
		})
	}
	_ = r.Out.Send(wire.Line{Device: &d}) // the writer keeps its first error, and Run returns it
	return errors.Join(errs...)
}

// extendedLimits lists further attributes, under the names of struct ibv_device_attr_ex.
func extendedLimits(a verbs.ExtendedAttr) []state.Limit {
	return []state.Limit{
		{Name: "completion_timestamp_mask", Value: clampInt64(a.TimestampMask)},
		{Name: "hca_core_clock", Value: clampInt64(a.CoreClock)},
		{Name: "max_dm_size", Value: clampInt64(a.MaxDMSize)},
		{Name: "raw_packet_caps", Value: int64(a.RawPacketCaps)},
	}
}

// limits lists a device's limits under the names of struct ibv_device_attr.
func limits(l verbs.Limits) []state.Limit {
	return []state.Limit{
		{Name: "max_qp", Value: int64(l.MaxQP)},
		{Name: "max_qp_wr", Value: int64(l.MaxQPWR)},
		{Name: "max_sge", Value: int64(l.MaxSGE)},
		{Name: "max_cq", Value: int64(l.MaxCQ)},
		{Name: "max_cqe", Value: int64(l.MaxCQE)},
		{Name: "max_srq", Value: int64(l.MaxSRQ)},
		{Name: "max_srq_wr", Value: int64(l.MaxSRQWR)},
		{Name: "max_srq_sge", Value: int64(l.MaxSRQSGE)},
		{Name: "max_mr", Value: int64(l.MaxMR)},
		{Name: "max_mr_size", Value: clampInt64(l.MaxMRSize)},
		{Name: "max_pd", Value: int64(l.MaxPD)},
		{Name: "max_mw", Value: int64(l.MaxMW)},
		{Name: "max_ah", Value: int64(l.MaxAH)},
		{Name: "max_mcast_grp", Value: int64(l.MaxMcastGroup)},
		{Name: "max_mcast_qp_attach", Value: int64(l.MaxMcastQP)},
		{Name: "max_qp_rd_atom", Value: int64(l.MaxQPRdAtom)},
		{Name: "max_qp_init_rd_atom", Value: int64(l.MaxQPInitRdAtom)},
		{Name: "max_pkeys", Value: int64(l.MaxPKeys)},
	}
}

func clampInt64(v uint64) int64 { return int64(min(v, 1<<63-1)) }
