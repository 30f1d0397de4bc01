package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SysfsDevices returns a function for [Config].Discover which lists the RDMA
// devices that the kernel shows below sysfsRoot, most often /sys. It reads one
// folder and touches no device. A folder that is missing, as it is while no RDMA
// driver is loaded, means no devices; other errors are those of [os.ReadDir].
func SysfsDevices(sysfsRoot string) func() ([]string, error) {
	folder := filepath.Join(sysfsRoot, "class", "infiniband")
	return func() ([]string, error) {
		entries, err := os.ReadDir(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the RDMA devices: %w", err)
		}
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, nil
	}
}

// SysfsTransient returns a function for [Config].Transient. It reports virtual functions, which have
// a link to their physical function in sysfs, and subfunctions.
func SysfsTransient(sysfsRoot string) func(string) bool {
	return func(device string) bool {
		target, err := filepath.EvalSymlinks(filepath.Join(sysfsRoot, "class", "infiniband", device, "device"))
		_, noLink := os.Lstat(filepath.Join(target, "physfn"))
		return err == nil && (noLink == nil || strings.Contains(filepath.Base(target), ".sf."))
	}
}
