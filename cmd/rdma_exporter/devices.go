package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/ibverbs"
	"rdma_exporter/verbs/simulated"
)

// discoverer returns the function that lists the devices, and the settings of children.
func discoverer(o *options) (discover func() ([]string, error), s settings, err error) {
	s = o.settings()
	if o.provider == providerLibibverbs {
		if o.simulatedProfile != "" {
			return nil, s, fmt.Errorf("--simulated.profile needs --provider=%s", providerSimulated)
		}
		if err := ibverbs.Available(); err != nil {
			return nil, s, fmt.Errorf("--provider=%s: %w; or use --provider=%s", providerLibibverbs, err, providerSimulated)
		}
		// Without an RDMA driver, sysfs has no class/infiniband.
		if _, err := os.ReadDir(o.hardware.Sysfs); err != nil {
			return nil, s, fmt.Errorf("--path.sysfs: %w", err)
		}
		return filter(supervisor.SysfsDevices(o.hardware.Sysfs), o.include, o.exclude), s, nil
	}
	s.parsed, err = loadProfile(o)
	list := func() ([]string, error) { return s.parsed.Names(), nil }
	return filter(list, o.include, o.exclude), s, err
}

// loadProfile returns the profile of the simulated devices. Nil means that they are real.
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

func filter(list func() ([]string, error), include, exclude *regexp.Regexp) func() ([]string, error) {
	return func() ([]string, error) {
		all, err := list()
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
			return include != nil && !include.MatchString(name) || exclude != nil && exclude.MatchString(name)
		}), err
	}
}

// wholeName makes an expression match whole names only. An empty one, such as from an unset
// variable, counts as none.
func wholeName(re *regexp.Regexp) *regexp.Regexp {
	if re == nil || re.String() == "" {
		return nil
	}
	// The expression compiled, so it compiles in parentheses too.
	return regexp.MustCompile("^(?:" + re.String() + ")$")
}

func providerOf(s settings) (func(verbs.Tracer) verbs.Provider, error) {
	switch s.Provider {
	case providerLibibverbs:
		return ibverbs.New, nil
	case providerSimulated:
		return func(t verbs.Tracer) verbs.Provider { return simulated.New(s.parsed, t) }, nil
	default:
		return nil, fmt.Errorf("there is no provider %q", s.Provider)
	}
}

// driverTime limits the time for an answer of the kernel, which gives none while it adds or removes
// a device. That may take seconds.
const driverTime = 15 * time.Second

// driverOf returns the driver of a device. Only a contract run fails if the kernel does not answer,
// since it would report documented defects of the driver as findings.
func driverOf(ctx context.Context, s settings, command, device string) (errata.Driver, error) {
	if s.Provider == providerSimulated {
		p := s.parsed
		i := slices.IndexFunc(p.Devices, func(d simulated.DeviceProfile) bool { return d.Name == device })
		if i < 0 {
			return errata.Driver{}, nil // Opening it will fail.
		}
		return errata.Driver{Name: p.Devices[i].Driver, Kernel: p.Devices[i].Kernel}, nil
	}
	most := announceTime
	if command == string(state.KindContract) {
		most = driverTime
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	name := cmp.Or(restrack.Driver(ctx, device), hardware.SoftwareDriver(s.Hardware.Sysfs, device))
	d := errata.Driver{Name: name, RDMACore: rdmaCore()}
	if err := ctx.Err(); err != nil && d.Name == "" && command == string(state.KindContract) {
		return errata.Driver{}, fmt.Errorf("ask the kernel which driver %s has: %w", device, err)
	}
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err == nil {
		d.Kernel = unix.ByteSliceToString(kernel.Release[:])
	}
	return d, nil
}

// rdmaCore returns the release of rdma-core, such as 44.0, from the file of the loaded libibverbs,
// such as libibverbs.so.1.14.44.0. It is empty if unknown.
func rdmaCore() string {
	for _, file := range session.MappedFiles() {
		if release := releaseOf(filepath.Base(file)); release != "" {
			return release
		}
	}
	return ""
}

// releaseOf returns the release of rdma-core from the name of a file. It is empty for other files.
func releaseOf(file string) string {
	rest, isLibrary := strings.CutPrefix(file, "libibverbs.so.1.")
	// The number of the interface comes first.
	_, release, _ := strings.Cut(rest, ".")
	if !isLibrary || strings.Count(release, ".") != 1 {
		return ""
	}
	return release
}
