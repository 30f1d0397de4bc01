package verbs

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A BandwidthRun says how [Device].Bandwidth moves data. Nothing else may use its objects then.
type BandwidthRun struct {
	// QPs are RC QPs in RTS whose peers may access Remote. CQ, their send CQ, is empty.
	QPs []QP
	CQ  CQ
	// Local and Remote are the buffers, whose parts of Size bytes are used one after another.
	Local, Remote SGE
	Size          int
	// Read is true for RDMA READ. Otherwise messages are written, Inline ones from the request.
	Read, Inline bool
	// Window limits the outstanding messages of a QP. It is a multiple of Batch, the messages
	// that one call posts. The last of them is signalled.
	Window, Batch int
	// CPUs are where the posting thread may run. Empty means anywhere.
	CPUs []int
	// Nothing is posted after Duration or Bytes. Drain limits the wait for what is outstanding.
	Duration, Drain time.Duration
	Bytes           int64
	// Stop ends posting when another goroutine sets it, to the time in nanoseconds of
	// CLOCK_MONOTONIC. Zero lets it go on.
	Stop *atomic.Int64
}

// The limits of a run.
const (
	MaxBandwidthQPs    = 4
	MaxBandwidthWindow = 128
)

// Validate returns an error for numbers that no run can have.
func (r BandwidthRun) Validate() error {
	if n := len(r.QPs); r.Stop == nil || n < 1 || n > MaxBandwidthQPs || r.Size < 1 || r.Size > int(min(r.Local.Length, r.Remote.Length)) ||
		r.Batch < 1 || r.Window < r.Batch || r.Window > MaxBandwidthWindow || r.Window%r.Batch != 0 || max(r.Duration, r.Drain) > time.Minute {
		return fmt.Errorf("no run has %d QPs, a window of %d by %d messages of %d bytes, within %s and %s", n, r.Window, r.Batch, r.Size, r.Duration, r.Drain)
	}
	return nil
}

// Simulate returns, at once, the result of a device that moves speed bytes per second.
func (r BandwidthRun) Simulate(speed float64) (found BandwidthResult) {
	if r.Stop.Load() != 0 {
		return found
	}
	n := max(1, min(r.Bytes, int64(speed*r.Duration.Seconds()))/int64(r.Size))
	return BandwidthResult{Messages: n, Elapsed: time.Duration(float64(n*int64(r.Size)) / speed * float64(time.Second))}
}

// BandwidthResult is what a run moved.
type BandwidthResult struct {
	// Messages completed. Elapsed is from before the first ibv_post_send to after the last
	// completion.
	Messages int64
	Elapsed  time.Duration
	// Status is that of the first unsuccessful completion, which ends the run and its QPs.
	Status WCStatus
	// Posting and Draining are from the time in Stop to the last call of ibv_post_send, and to the
	// last completion. Zero means that these came before.
	Posting, Draining time.Duration
}
