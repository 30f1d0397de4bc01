package supervisor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"rdma_exporter/internal/state"
)

const (
	// MinBandwidthInterval is the minimum of Bandwidth.Interval, if it is not zero.
	MinBandwidthInterval = 4 * time.Hour
	// bandwidthTime limits how long a child measures.
	bandwidthTime = 2 * time.Minute
	// bandwidthPause is the pause after the first measurement that did not end well, and the least
	// between any two of a device. bandwidthWait is that of a device that cannot be measured now.
	bandwidthPause, bandwidthWait = time.Hour, time.Minute
)

// errBusy is the error if a device cannot be measured now.
var errBusy = errors.New("the device hangs, or another one is measured or asks a peer")

// Bandwidth is the schedule of measurements of bandwidth.
type Bandwidth struct {
	// Interval is the time between two measurements of a device. Zero means none.
	Interval time.Duration
	// Slot returns when a device is to be measured next after a time: once in an Interval.
	Slot func(device string, after time.Time) time.Time
	// Past returns what was measured of a device that appears. It must not call the supervisor. Nil
	// means nothing.
	Past func(device string) *state.BandwidthState
}

// bandwidthDue returns when the device is measured next. Pauses grow after measurements that did not end
// well. The slot counts again after a restart.
func (w *worker) bandwidthDue() time.Time {
	s, now, interval := w.s, time.Now(), w.bandwidth.Interval
	s.mu.Lock()
	last := copied(w.state.Bandwidth)
	s.mu.Unlock()
	if last.Failures > 0 && !w.bandwidth.began.IsZero() {
		pause := backoff(bandwidthPause, interval/4, last.Failures-1)
		return now.Add(pause + time.Duration(s.cfg.Jitter*s.random()*float64(pause)))
	}
	after := last.Tried.Add(bandwidthPause)
	if after.Before(now) || after.After(now.Add(bandwidthPause)) { // The clock was wrong then.
		after = now
	}
	return now.Add(time.Until(s.cfg.Bandwidth.Slot(w.name, after))) // The clock may be set later.
}

// acquireAlone waits for a slot. No other device of the host is measured then, and none asks a peer.
func (w *worker) acquireAlone(ctx context.Context) (release func(), err error) {
	free, err := w.s.runs.acquireAs(ctx, w.bandwidth.hung)
	if err != nil {
		return nil, err
	}
	if w.probes.hung || !w.s.measuring.TryLock() {
		free()
		return nil, errBusy
	}
	return func() {
		w.s.measuring.Unlock()
		free()
	}, nil
}

// measured processes a measurement. It returns how the state of the device changes.
func (w *worker) measured(run *state.Run) (change func(*state.DeviceState)) {
	w.bandwidth.record(run)
	result, detail := run.Measured()
	w.log.log.Info("Bandwidth measured", "result", result, "detail", detail)
	return func(dev *state.DeviceState) { dev.Bandwidth = new(copied(dev.Bandwidth).Next(run)) }
}

// Bandwidth measures a device in a child for somebody who waits. It kills the child when ctx is done,
// or after two minutes.
func (s *Supervisor) Bandwidth(ctx context.Context, device string) (b state.Bandwidth) {
	switch res := s.tryChild(ctx, task{device: device, kind: state.KindBandwidth, timeout: bandwidthTime}); {
	case res.notStarted != nil:
		b.Failure = res.notStarted.Error()
	case res.run == nil:
		b.Interrupted = "the command was interrupted"
	default:
		b = *cmp.Or(res.run.Bandwidth, &b)
		b.Time, b.Failure = res.run.Started.UTC(), res.run.Error
		if r := res.run.Reduced; r != nil {
			b.Interrupted = r.Detail
		}
	}
	b.Device, b.Hardware = device, cmp.Or(b.Hardware, new(state.Hardware))
	return b
}
