package health

import (
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/health/growth"
	"rdma_exporter/internal/state"
)

// Config has the thresholds of findings and the maximum age of runs. The thresholds are the key findings of the
// configuration file. The zero value is not valid. Start from Default.
type Config struct {
	// NearLimit is a fraction of the device's limit for a type of object.
	NearLimit Levels `yaml:"near_limit"`
	// CgroupNearLimit is a fraction of a cgroup's limit in the RDMA controller.
	CgroupNearLimit Levels `yaml:"cgroup_near_limit"`
	// MemlockNearLimit is a fraction of the memory that a process may lock.
	MemlockNearLimit Levels `yaml:"memlock_near_limit"`
	// OrphanAge is how long inventories must have found objects without an owner, or leaked by exited children. The
	// kernel takes a while to clean up after a process.
	OrphanAge time.Duration `yaml:"orphan_age"`
	QPErrors  int64         `yaml:"qp_errors"`
	// CQEntries is the total number of entries of completion queues that can never be filled.
	CQEntries    int64         `yaml:"cq_entries"`
	PortFlapping Flapping      `yaml:"port_flapping"`
	Growing      growth.Config `yaml:"growing"`
	// StaleAfter limits the age of the last run of each kind. A missing kind has no limit.
	StaleAfter map[state.Kind]time.Duration `yaml:"-"`
	// Never are the kinds of run that are switched off: what they found before has ended.
	Never []state.Kind `yaml:"-"`
	// Once is true for a single evaluation.
	Once bool `yaml:"-"`
	// Accept is the key accept of the configuration file. ValidateAccepts checks it.
	Accept []Accept `yaml:"-"`
	// DocsURL is prepended to the paths of documents in actions. It is the key docs_url of the configuration file.
	DocsURL string `yaml:"-"`
	// Now is the clock for first-seen times and expiry. If it is nil, findings have no times and nothing expires.
	Now func() time.Time `yaml:"-"`
	// Expect is the key expect of the configuration file. Its Validate checks it.
	Expect expect.Rules `yaml:"-"`
	// Memlock is as of Expect.Compare.
	Memlock *int64 `yaml:"-"`
}

// Levels are fractions of a limit, above 0 and up to 1.
type Levels struct {
	Warning  float64 `yaml:"warning"`
	Critical float64 `yaml:"critical"`
}

// Flapping is how often a port must go down within a window.
type Flapping struct {
	Downs  int64         `yaml:"downs"`
	Window time.Duration `yaml:"window"`
}

// Default returns the default thresholds. No run becomes stale.
func Default() Config {
	levels := Levels{Warning: 0.8, Critical: 0.95}
	return Config{
		NearLimit: levels, CgroupNearLimit: levels, MemlockNearLimit: levels,
		OrphanAge: time.Minute,
		// One, because a host with few queue pairs misses each. The alert waits out brief errors.
		QPErrors: 1,
		// 4 MiB of pinned memory at the usual 64 bytes an entry.
		CQEntries: 1 << 16,
		// One may be a restart of the peer, two a restart of a switch.
		PortFlapping: Flapping{Downs: 3, Window: time.Hour},
		// By then a job has created all that it needs, and a day is enough to restart one that leaks.
		Growing: growth.Config{Objects: 50, Window: 30 * time.Minute, Within: 24 * time.Hour},
	}
}

// Validate returns an error that names each invalid key of the configuration file and its range.
func (c Config) Validate() error {
	var errs []error
	refuse := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("findings."+key+" is "+format, args...))
	}
	levels := func(key string, l Levels) {
		isFraction := func(f float64) bool { return f > 0 && f <= 1 } // NaN is not.
		if !isFraction(l.Warning) {
			refuse(key+".warning", "%v: use a number above 0, up to 1", l.Warning)
		}
		if !isFraction(l.Critical) {
			refuse(key+".critical", "%v: use a number above 0, up to 1", l.Critical)
		} else if isFraction(l.Warning) && l.Warning > l.Critical {
			refuse(key+".warning", "%v: use a number not above critical, which is %v", l.Warning, l.Critical)
		}
	}
	count := func(key string, value, highest int64) {
		if value < 1 || value > highest {
			refuse(key, "%d: use a number from 1 to %d", value, highest)
		}
	}
	duration := func(key string, value, lowest, highest time.Duration) {
		if value < lowest || value > highest {
			refuse(key, "%s: use a duration from %s to %s", value, lowest, highest)
		}
	}
	const (
		day      = 24 * time.Hour
		maxCount = 1 << 48
	)
	levels("near_limit", c.NearLimit)
	levels("cgroup_near_limit", c.CgroupNearLimit)
	levels("memlock_near_limit", c.MemlockNearLimit)
	duration("orphan_age", c.OrphanAge, 0, day)
	count("qp_errors", c.QPErrors, maxCount)
	count("cq_entries", c.CQEntries, maxCount)
	count("port_flapping.downs", c.PortFlapping.Downs, state.MaxRecent)
	if w := c.PortFlapping.Window; w <= 0 || w > day {
		refuse("port_flapping.window", "%s: use a duration above 0s, up to %s", w, day)
	}
	count("growing.objects", c.Growing.Objects, maxCount)
	duration("growing.window", c.Growing.Window, 10*time.Minute, 55*time.Minute)
	duration("growing.within", c.Growing.Within, 0, 365*day)
	return errors.Join(errs...)
}
