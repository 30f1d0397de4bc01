package probe

import (
	"context"
	"errors"
	"reflect"
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
	// Options are those of the session, without Vectors and DestroyTimeout, which Config has.
	session.Options
	// Driver is the driver of the device. Its known errata are no failures.
	Driver errata.Driver
	Config Config
	// LocksMemory is true if what the provider locks counts against RLIMIT_MEMLOCK.
	LocksMemory bool
	// Facts are results of earlier runs. They are used if they are about the device as it is
	// now. Nil means none.
	Facts *state.Facts
	// Short requests a short run. A run that cannot use Facts is full anyway.
	Short bool
	// Quick requests a short run even without Facts.
	Quick bool
	// Reduced is why the run must do as little as possible. Nil means that it need not.
	Reduced *state.Reduced
	// RefusedMemory, if not nil, is called at once when the registration of memory failed. It
	// returns what refused it, and a line that says so.
	RefusedMemory func(err *verbs.Error, size int) (state.RefusedBy, string)
}

// Run probes one device once and writes a complete report, whose end says if the device could
// not be probed at all. It returns an error only if the report could not be written or ctx
// ended. It looks at ctx between the probes.
//
// It measures the memory of the process, so the process must do nothing else, and the
// goroutine must be locked to its thread.
func Run(ctx context.Context, o Options) error {
	if o.Reduced != nil {
		_ = o.Out.Send(wire.Line{Reduced: o.Reduced}) // The writer keeps its first error.
	}
	o.Vectors, o.DestroyTimeout = o.Config.Notification.Vectors, o.Config.DestroyTimeout
	return session.Run(ctx, o.Options, func(ctx context.Context, s *session.Session) error {
		r := &run{Session: s, driver: o.Driver, cfg: o.Config, locksMemory: o.LocksMemory, refusedMemory: o.RefusedMemory}
		var known bool
		r.facts, known = r.factsOf(o.Facts)
		switch {
		case o.Reduced != nil:
			r.depth = state.DepthReduced
		case o.Quick || o.Short && known:
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

type run struct {
	*session.Session
	driver errata.Driver
	cfg    Config
	facts  facts
	depth  state.Depth
	// locksMemory and refusedMemory are those of Options. hinted is true once the limit on
	// locked memory was mentioned.
	locksMemory, hinted bool
	refusedMemory       func(err *verbs.Error, size int) (state.RefusedBy, string)
	// noCQs is true if the device has no completion queues.
	noCQs     bool
	inlineMax []inlineMax
	// searched is the time spent so far in waiting for what never came.
	searched time.Duration
}

// all describes the device and runs the probes. The error is not about what they find.
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
		r.reportFacts()
	}
	return err
}

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
	// Not every device has the verb.
	r.Tolerating(func() {
		if attr, err := r.Device.QueryExtended(); err == nil {
			d.Extended = limits(attr)
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
	_ = r.Out.Send(wire.Line{Device: &d})
	return errors.Join(errs...)
}

// limits returns the numbers of a struct of package verbs, by their names in C.
func limits(attr any) (all []state.Limit) {
	for field, value := range reflect.ValueOf(attr).Fields() {
		var n int64
		if value.CanUint() {
			n = clampInt64(value.Uint())
		} else {
			n = value.Int()
		}
		all = append(all, state.Limit{Name: field.Tag.Get("yaml"), Value: n})
	}
	return all
}

func clampInt64(v uint64) int64 { return int64(min(v, 1<<63-1)) }
