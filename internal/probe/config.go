package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
)

// Config says what to request of a device. The zero value is not valid; start from
// DefaultConfig.
type Config struct {
	CQ  Profiles[CQSize]  `json:"cq" yaml:"cq"`
	SRQ Profiles[SRQSize] `json:"srq" yaml:"srq"`
	// QP has the sizes of QPs of every type.
	QP Profiles[QPSize] `json:"qp" yaml:"qp"`
	// NoMemory leaves out what an object costs the process that creates it.
	NoMemory bool `json:"no_memory" yaml:"-"`
	// DestroyTimeout limits the time that a run spends on repeating refused destructions.
	DestroyTimeout time.Duration `json:"destroy_timeout" yaml:"destroy_timeout"`
	// Notification is set by flags, not in the file.
	Notification NotificationConfig `json:"notification" yaml:"-"`
}

// NotificationConfig says how completion notification is measured.
type NotificationConfig struct {
	// Samples is the number of samples of each measurement. Zero leaves the probe out.
	Samples int `json:"samples"`
	// Vectors selects the completion vectors of CQs in every run. All of them are measured.
	Vectors session.Vectors `json:"vectors"`
	// Deadline limits the wait for one event or completion.
	Deadline time.Duration `json:"deadline"`
	// Budget limits the time of the probe in one run. It may overrun by MaxDeadlines times
	// Deadline.
	Budget time.Duration `json:"budget"`
}

// MaxDeadlines limits by how many deadlines the measurement of notification overruns its
// budget.
const MaxDeadlines = searchDeadlines + overrunDeadlines

const (
	// searchDeadlines limits, in deadlines, how long a run waits for what never comes.
	searchDeadlines = 5
	// overrunDeadlines covers one sample, which waits for several things in a row: the
	// budget is only checked between samples.
	overrunDeadlines = 5
)

// Profiles are the sizes that are requested of a type of object.
type Profiles[T any] struct {
	Small  T `json:"small" yaml:"small"`
	Medium T `json:"medium" yaml:"medium"`
	Large  T `json:"large" yaml:"large"`
}

// CQSize is a size of a CQ.
type CQSize struct {
	Entries int `json:"entries" yaml:"entries"`
}

// SRQSize is a size of an SRQ.
type SRQSize struct {
	WorkRequests  int `json:"work_requests" yaml:"work_requests"`
	ScatterGather int `json:"scatter_gather_entries" yaml:"scatter_gather_entries"`
}

// QPSize is a size of a QP.
type QPSize struct {
	SendWorkRequests  int `json:"send_work_requests" yaml:"send_work_requests"`
	RecvWorkRequests  int `json:"recv_work_requests" yaml:"recv_work_requests"`
	SendScatterGather int `json:"send_scatter_gather_entries" yaml:"send_scatter_gather_entries"`
	RecvScatterGather int `json:"recv_scatter_gather_entries" yaml:"recv_scatter_gather_entries"`
	InlineBytes       int `json:"inline_bytes" yaml:"inline_bytes"`
}

// DefaultConfig returns sizes that applications use and every device has.
func DefaultConfig() Config {
	return Config{
		CQ:             Profiles[CQSize]{CQSize{16}, CQSize{256}, CQSize{4096}},
		SRQ:            Profiles[SRQSize]{SRQSize{16, 1}, SRQSize{256, 2}, SRQSize{4096, 4}},
		QP:             Profiles[QPSize]{QPSize{16, 16, 1, 1, 0}, QPSize{128, 128, 2, 2, 64}, QPSize{1024, 1024, 4, 4, 220}},
		DestroyTimeout: 2 * time.Second,
		Notification: NotificationConfig{
			Samples: 100, Vectors: session.Vectors{Most: session.DefaultVectors}, Deadline: 500 * time.Millisecond, Budget: 2 * time.Second,
		},
	}
}

// Limits of the configuration. Sizes near a device's maximum take seconds and hundreds of
// megabytes, which would not be harmless.
const (
	maxCQEntries      = 1 << 18
	maxWorkRequests   = 1 << 14
	maxScatterGather  = 256
	maxInlineBytes    = 1 << 16
	maxDestroyTimeout = time.Minute

	maxSamples  = 10000
	minDeadline = 10 * time.Millisecond
	maxDeadline = 10 * time.Second
	minBudget   = 10 * time.Millisecond
	maxBudget   = time.Minute
)

// Validate returns an error that names each key whose value cannot be used, and the
// valid range.
func (c Config) Validate() error {
	var errs []error
	check := func(key string, value, low, high int) {
		if value < low || value > high {
			errs = append(errs, fmt.Errorf("probe.%s is %d: use a number from %d to %d", key, value, low, high))
		}
	}
	for _, p := range c.CQ.all() {
		check("cq."+p.name+".entries", p.size.Entries, 1, maxCQEntries)
	}
	for _, p := range c.SRQ.all() {
		check("srq."+p.name+".work_requests", p.size.WorkRequests, 1, maxWorkRequests)
		check("srq."+p.name+".scatter_gather_entries", p.size.ScatterGather, 1, maxScatterGather)
	}
	for _, p := range c.QP.all() {
		check("qp."+p.name+".send_work_requests", p.size.SendWorkRequests, 1, maxWorkRequests)
		check("qp."+p.name+".recv_work_requests", p.size.RecvWorkRequests, 1, maxWorkRequests)
		check("qp."+p.name+".send_scatter_gather_entries", p.size.SendScatterGather, 1, maxScatterGather)
		check("qp."+p.name+".recv_scatter_gather_entries", p.size.RecvScatterGather, 1, maxScatterGather)
		check("qp."+p.name+".inline_bytes", p.size.InlineBytes, 0, maxInlineBytes)
	}
	if c.DestroyTimeout < 0 || c.DestroyTimeout > maxDestroyTimeout {
		errs = append(errs, fmt.Errorf("probe.destroy_timeout is %s: use a duration from 0s to %s", c.DestroyTimeout, maxDestroyTimeout))
	}
	return errors.Join(append(errs, c.Notification.Validate())...)
}

// Validate returns an error that names each flag whose value cannot be used, and the valid
// range.
func (c NotificationConfig) Validate() error {
	var errs []error
	check := func(ok bool, flag string, value, low, high any) {
		if !ok {
			errs = append(errs, fmt.Errorf("--notification.%s is %v: use one from %v to %v", flag, value, low, high))
		}
	}
	check(c.Samples >= 0 && c.Samples <= maxSamples, "samples", c.Samples, 0, maxSamples)
	check(c.Deadline >= minDeadline && c.Deadline <= maxDeadline, "deadline", c.Deadline, minDeadline, maxDeadline)
	check(c.Budget >= minBudget && c.Budget <= maxBudget, "budget", c.Budget, minBudget, maxBudget)
	return errors.Join(append(errs, c.Vectors.Validate())...)
}

// Asked returns the requested sizes, which are the same for every device and type of queue
// pair.
func (c Config) Asked() state.Probe {
	var p state.Probe
	for _, s := range c.CQ.all() {
		p.CQs = append(p.CQs, state.CQSize{Profile: s.name, Requested: int64(s.size.Entries)})
	}
	for _, s := range c.SRQ.all() {
		p.SRQs = append(p.SRQs, state.SRQSize{Profile: s.name, Requested: state.SRQAttr{
			WorkRequests: int64(s.size.WorkRequests), ScatterGather: int64(s.size.ScatterGather),
		}})
	}
	for _, s := range c.QP.all() {
		p.QPs = append(p.QPs, state.QPSize{Profile: s.name, Requested: state.QPCap{
			SendWorkRequests: int64(s.size.SendWorkRequests), RecvWorkRequests: int64(s.size.RecvWorkRequests),
			SendScatterGather: int64(s.size.SendScatterGather), RecvScatterGather: int64(s.size.RecvScatterGather),
			InlineBytes: int64(s.size.InlineBytes),
		}})
	}
	return p
}

// Sizes identifies the sizes that the configuration requests, see [state.Run.Sizes].
func (c Config) Sizes() string {
	digest := sha256.Sum256(fmt.Appendf(nil, "%v", []any{c.CQ, c.SRQ, c.QP}))
	return hex.EncodeToString(digest[:8])
}

// named is a profile with its name, which becomes a label.
type named[T any] struct {
	name string
	size T
}

func (p Profiles[T]) all() []named[T] {
	return []named[T]{{"small", p.Small}, {"medium", p.Medium}, {"large", p.Large}}
}

// of returns the profiles that a run of a depth creates, the smallest first.
func (p Profiles[T]) of(d state.Depth) []named[T] {
	if d == state.DepthFull {
		return p.all()
	}
	return p.all()[:1]
}
