package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/ibverbs"
	"rdma_exporter/verbs/simulated"
)

// discoverer returns the function that lists the devices to probe, and, if they
// are simulated, their profile. It touches no device.
func discoverer(o *options) (discover func() ([]string, error), profile *simulated.Profile, err error) {
	if o.provider == providerLibibverbs {
		if o.simulatedProfile != "" {
			return nil, nil, fmt.Errorf("--simulated.profile needs --provider=%s", providerSimulated)
		}
		if err := ibverbs.Available(); err != nil {
			return nil, nil, fmt.Errorf("--provider=%s: %w; or use --provider=%s", providerLibibverbs, err, providerSimulated)
		}
		// Without an RDMA driver there is no class/infiniband, but sysfs there is.
		if _, err := os.ReadDir(o.hardware.Sysfs); err != nil {
			return nil, nil, fmt.Errorf("--path.sysfs: %w", err)
		}
		return filter(supervisor.SysfsDevices(o.hardware.Sysfs), o.include, o.exclude), nil, nil
	}
	p, err := loadProfile(o)
	if err != nil {
		return nil, nil, err
	}
	names := p.Names()
	list := func() ([]string, error) { return names, nil }
	return filter(list, o.include, o.exclude), p, nil
}

// loadProfile returns the profile of the simulated devices; nil if the devices are real.
func loadProfile(o *options) (*simulated.Profile, error) {
	switch {
	case o.provider != providerSimulated:
		return nil, nil
	case o.simulatedProfile == "":
		return simulated.Default(), nil
	}
	p, err := simulated.LoadProfile(o.simulatedProfile)
	if err != nil {
		return nil, fmt.Errorf("--simulated.profile: %w", err)
	}
	return p, nil
}

// filter leaves out the devices that the flags leave out.
func filter(list func() ([]string, error), include, exclude *regexp.Regexp) func() ([]string, error) {
	return func() ([]string, error) {
		all, err := list()
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
			return include != nil && !include.MatchString(name) || exclude != nil && exclude.MatchString(name)
		}), err
	}
}

// whole makes a regular expression match whole names only. An empty one, such as
// an unset variable leaves, is none.
func whole(re *regexp.Regexp) *regexp.Regexp {
	if re == nil || re.String() == "" {
		return nil
	}
	// The expression compiled, so it compiles in parentheses too.
	return regexp.MustCompile("^(?:" + re.String() + ")$")
}

// providerOf returns the provider that children use.
func providerOf(s settings) (func(verbs.Tracer) verbs.Provider, error) {
	switch s.Provider {
	case providerLibibverbs:
		return ibverbs.New, nil
	case providerSimulated:
		return func(t verbs.Tracer) verbs.Provider {
			return simulated.New(s.parsed, t)
		}, nil
	default:
		return nil, fmt.Errorf("there is no provider %q", s.Provider)
	}
}

// driverTime bounds the time for finding out which driver a device has whose contracts are
// judged. The kernel answers nobody while a device is added or removed, which may take
// seconds.
const driverTime = 15 * time.Second

// driverOf returns the driver of a device, as far as that can be told. Contracts are not
// judged without an answer: what the driver is known to break would be news.
func driverOf(ctx context.Context, s settings, command, device string) (errata.Driver, error) {
	if s.Provider == providerSimulated {
		p := s.parsed
		i := slices.IndexFunc(p.Devices, func(d simulated.DeviceProfile) bool { return d.Name == device })
		if i < 0 {
			return errata.Driver{}, nil // to open it will fail
		}
		return errata.Driver{Name: p.Devices[i].Driver, Kernel: p.Devices[i].Kernel}, nil
	}
	most := announceTime
	if command == commandContract {
		most = driverTime
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	d := errata.Driver{Name: restrack.Driver(ctx, device), RDMACore: rdmaCore()}
	if err := ctx.Err(); err != nil && d.Name == "" && command == commandContract {
		return errata.Driver{}, fmt.Errorf("ask the kernel which driver %s has: %w", device, err)
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err == nil {
		d.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	return d, nil
}

// rdmaCore returns the release of rdma-core whose libibverbs the process has loaded, such
// as 44.0, which the library's file is named by: libibverbs.so.1.14.44.0. It is empty if
// that does not tell.
func rdmaCore() string {
	for _, file := range session.MappedFiles() {
		if release := releaseOf(filepath.Base(file)); release != "" {
			return release
		}
	}
	return ""
}

// releaseOf returns the release of rdma-core that a file of libibverbs is of; empty if the
// file is no such one.
func releaseOf(file string) string {
	if !strings.HasPrefix(file, "libibverbs.so.") { // as most of the files
		return ""
	}
	m := regexp.MustCompile(`^libibverbs\.so\.1\.[0-9]+\.([0-9]+\.[0-9]+)$`).FindStringSubmatch(file)
	if m == nil {
		return ""
	}
	return m[1]
}
