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

// Config says what to ask of a device. The zero value is not valid; start from
// DefaultConfig.
type Config struct {
	CQ  CQProfiles  `json:"cq" yaml:"cq"`
	SRQ SRQProfiles `json:"srq" yaml:"srq"`
	QP  QPProfiles  `json:"qp" yaml:"qp"`
	// NoMemory leaves out what an object costs the process that creates it.
	NoMemory bool `json:"no_memory" yaml:"-"`
	// DestroyTimeout bounds the time that a run spends on repeating refused
	// destructions, all together.
	DestroyTimeout time.Duration `json:"destroy_timeout" yaml:"destroy_timeout"`
	// Notification is set by flags, not in the file.
	Notification NotificationConfig `json:"notification" yaml:"-"`
}

// NotificationConfig says how completion notification is measured.
type NotificationConfig struct {
	// Samples is the number of samples of each measurement; 0 leaves the probe
	// out.
	Samples int `json:"samples"`
	// Vectors says on which completion vectors there may be CQs, of any run: all of them
	// are measured.
	Vectors session.Vectors `json:"vectors"`
	// Deadline is how long one event or completion is waited for.
	Deadline time.Duration `json:"deadline"`
	// Budget is the time that the probe may take in one run, all together. It is
	// overrun by no more than MostDeadlines times Deadline.
	Budget time.Duration `json:"budget"`
}

// MostDeadlines is by how many times its deadline the measurement of notification may
// overrun its budget.
const MostDeadlines = searchDeadlines + overrunDeadlines

const (
	// searchDeadlines is for how many deadlines in one run there may be waiting for what
	// never comes, in search of what does.
	searchDeadlines = 5
	// overrunDeadlines: the budget is looked at between two samples, and one sample waits
	// for several things, one after the other.
	overrunDeadlines = 5
)

// CQProfiles are the sizes of CQ that are asked for.
type CQProfiles struct {
	Small  CQProfile `json:"small" yaml:"small"`
	Medium CQProfile `json:"medium" yaml:"medium"`
	Large  CQProfile `json:"large" yaml:"large"`
}

// SRQProfiles are the sizes of SRQ that are asked for.
type SRQProfiles struct {
	Small  SRQProfile `json:"small" yaml:"small"`
	Medium SRQProfile `json:"medium" yaml:"medium"`
	Large  SRQProfile `json:"large" yaml:"large"`
}

// QPProfiles are the sizes of QP that are asked for, of each type.
type QPProfiles struct {
	Small  QPProfile `json:"small" yaml:"small"`
	Medium QPProfile `json:"medium" yaml:"medium"`
	Large  QPProfile `json:"large" yaml:"large"`
}

// CQProfile is one size of a CQ.
type CQProfile struct {
	Entries int `json:"entries" yaml:"entries"`
}

// SRQProfile is one size of an SRQ.
type SRQProfile struct {
	WorkRequests  int `json:"work_requests" yaml:"work_requests"`
	ScatterGather int `json:"scatter_gather_entries" yaml:"scatter_gather_entries"`
}

// QPProfile is one size of a QP.
type QPProfile struct {
	SendWorkRequests  int `json:"send_work_requests" yaml:"send_work_requests"`
	RecvWorkRequests  int `json:"recv_work_requests" yaml:"recv_work_requests"`
	SendScatterGather int `json:"send_scatter_gather_entries" yaml:"send_scatter_gather_entries"`
	RecvScatterGather int `json:"recv_scatter_gather_entries" yaml:"recv_scatter_gather_entries"`
	InlineBytes       int `json:"inline_bytes" yaml:"inline_bytes"`
}

// DefaultConfig returns sizes that applications use and that no device finds
// large.
func DefaultConfig() Config {
	return Config{
		CQ:  CQProfiles{Small: CQProfile{16}, Medium: CQProfile{256}, Large: CQProfile{4096}},
		SRQ: SRQProfiles{Small: SRQProfile{16, 1}, Medium: SRQProfile{256, 2}, Large: SRQProfile{4096, 4}},
		QP: QPProfiles{
			Small:  QPProfile{16, 16, 1, 1, 0},
			Medium: QPProfile{128, 128, 2, 2, 64},
			Large:  QPProfile{1024, 1024, 4, 4, 220},
		},
		DestroyTimeout: 2 * time.Second,
		Notification: NotificationConfig{
			Samples: 100, Vectors: session.Vectors{Most: session.DefaultVectors}, Deadline: 500 * time.Millisecond, Budget: 2 * time.Second,
		},
	}
}

// The most that may be configured. A probe is to be harmless: sizes near a
// device's maximum take seconds and hundreds of megabytes.
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

// Validate returns an error that names each size that cannot be used, and the
// range that can.
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

// Validate returns an error that names each flag whose value cannot be used, and
// the range that can.
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

// Asked returns the sizes that are asked for, which are the same for every device and type
// of queue pair.
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

// profiles returns the profiles that a run of a depth creates, the smallest first.
func profiles[T any](d state.Depth, all []named[T]) []named[T] {
	if d == state.DepthFull {
		return all
	}
	return all[:1]
}

// named is a profile with its name, which becomes a label.
type named[T any] struct {
	name string
	size T
}

func three[T any](small, medium, large T) []named[T] {
	return []named[T]{{"small", small}, {"medium", medium}, {"large", large}}
}

func (p CQProfiles) all() []named[CQProfile]   { return three(p.Small, p.Medium, p.Large) }
func (p SRQProfiles) all() []named[SRQProfile] { return three(p.Small, p.Medium, p.Large) }
func (p QPProfiles) all() []named[QPProfile]   { return three(p.Small, p.Medium, p.Large) }
