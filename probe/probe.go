package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rdma_exporter/report"
	"rdma_exporter/verbs"
)

// Options says which device to probe and where to report.
type Options struct {
	// Provider returns the provider of the devices. It is told the tracer through
	// which each verb is reported.
	Provider func(verbs.Tracer) verbs.Provider
	// Device is the name of the device.
	Device string
	Config Config
	// LocksMemory tells that what the provider locks counts against
	// RLIMIT_MEMLOCK.
	LocksMemory bool
	// Out takes the report.
	Out *report.Writer
}

// Run probes one device once and writes a whole report, whose end tells if the
// device could not be probed at all. It returns an error only if the report
// could not be written or ctx ended; ctx is looked at between the probes.
//
// Run is to be called from a goroutine that is locked to its thread, in a
// process that does nothing else: it measures the memory of the process.
func Run(ctx context.Context, o Options) error {
	r := &run{cfg: o.Config, out: o.Out, rec: &recorder{out: o.Out}, locksMemory: o.LocksMemory}
	err := r.device(ctx, o.Provider(r.rec), o.Device)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("probe %s: %w", o.Device, err)
	}
	end := report.End{MaxRSS: maxRSS()}
	if err != nil {
		end.Error = err.Error()
	}
	if err := o.Out.End(end); err != nil {
		return fmt.Errorf("probe %s: %w", o.Device, err)
	}
	return nil
}

// run is one run on one device.
type run struct {
	cfg Config
	out *report.Writer
	rec *recorder
	dev verbs.Device
	// attr are the device's attributes.
	attr verbs.DeviceAttr
	// locksMemory is Options.LocksMemory, and hinted tells that its limit was
	// mentioned.
	locksMemory, hinted bool
	// retried is the time spent so far on repeating refused destructions.
	retried time.Duration
	// undestroyed counts the objects that could not be destroyed.
	undestroyed int
}

// device opens and describes the device, runs the probes and closes it. Its
// error is what kept it from doing so; what the probes find is in the report.
func (r *run) device(ctx context.Context, p verbs.Provider, name string) error {
	dev, err := p.Open(name)
	if err != nil {
		return fmt.Errorf("open the device: %w", err)
	}
	r.dev = dev
	describeErr := r.describe()
	if r.attr.Ports > 0 {
		for _, probe := range []struct {
			name string
			run  func(*step)
		}{
			{"cq", r.cq},
			{"comp_channel", r.compChannel},
			{"srq", r.srq},
			{"qp", r.qp},
		} {
			if err := errors.Join(ctx.Err(), r.out.Err()); err != nil {
				return err
			}
			r.step(probe.name, probe.run)
		}
	}
	// While objects are left, libibverbs must not close the device; the end of
	// the process will.
	if r.undestroyed > 0 {
		return describeErr
	}
	if err := r.destroyObject("ctx", dev); err != nil {
		return errors.Join(describeErr, fmt.Errorf("close the device: %w", err))
	}
	return describeErr
}

// describe reports what the device says of itself.
func (r *run) describe() error {
	attr, err := r.dev.Query()
	if err != nil {
		return fmt.Errorf("query the device: %w", err)
	}
	if attr.Ports == 0 {
		return errors.New("query the device: it says that it has no port")
	}
	r.attr = attr
	d := report.Device{
		Transport:         r.dev.Transport().String(),
		Firmware:          strings.ToValidUTF8(attr.Firmware, "?"),
		VendorID:          attr.VendorID,
		VendorPartID:      attr.VendorPartID,
		HWVersion:         attr.HWVersion,
		NodeGUID:          attr.NodeGUID.String(),
		CompletionVectors: r.dev.CompletionVectors(),
		Limits:            limits(attr.Limits),
	}
	var errs []error
	for number := 1; number <= attr.Ports; number++ {
		port, err := r.dev.QueryPort(number)
		if err != nil {
			errs = append(errs, fmt.Errorf("query port %d: %w", number, err))
			continue
		}
		d.Ports = append(d.Ports, report.Port{
			Number:    number,
			State:     port.State.String(),
			LinkLayer: port.LinkLayer.String(),
			ActiveMTU: port.ActiveMTU,
		})
	}
	_ = r.out.Device(d) // the writer keeps its first error, and Run returns it
	return errors.Join(errs...)
}

// limits lists a device's limits under the names of struct ibv_device_attr.
func limits(l verbs.Limits) []report.Limit {
	return []report.Limit{
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

// recorder writes each verb to the report. It is used by one goroutine.
type recorder struct {
	out *report.Writer
	// expected tells which failures are provoked on purpose; nil for none.
	expected func(error) bool
}

// Begin implements verbs.Tracer. An error stays with the writer.
func (r *recorder) Begin(v verbs.Verb) { _ = r.out.Begin(string(v)) }

// End implements verbs.Tracer.
func (r *recorder) End(c verbs.Call) {
	call := report.Call{Verb: string(c.Verb), Duration: c.Duration}
	if c.Errno != 0 {
		call.Errno = verbs.ErrnoName(c.Errno)
		call.Expected = r.expected != nil && r.expected(c.Errno)
	}
	_ = r.out.Call(call)
}

// expecting runs f, in which failures for which expected returns true are
// provoked on purpose.
func (r *recorder) expecting(expected func(error) bool, f func()) {
	r.expected = expected
	f()
	r.expected = nil
}
