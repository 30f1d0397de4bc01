package owner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrOutside is what [Reader.RDMAController] returns, wrapped, for a cgroup that is
// not below the root of this process's cgroup namespace, which is where cgroupRoot
// leads: it has a path like "/../x" and cannot be read from here.
var ErrOutside = errors.New("outside of the cgroup namespace")

// CgroupUse is how much of a resource of an RDMA device the processes of a cgroup,
// and of those below it, hold and may hold. It is a plain value.
type CgroupUse struct {
	// Device is the RDMA device, as mlx5_0.
	Device string
	// Resource is what is counted: hca_handle, opened devices, or hca_object, all
	// objects made with them; later kernels may know more.
	Resource string
	// Current is how many are held.
	Current int64
	// Limit is how many may be held; −1 is no limit in this cgroup. The cgroups
	// around it may have lower ones.
	Limit int64
}

// RDMAController returns what the RDMA controller counts and allows for a cgroup
// that is named as [Identity] names it, from rdma.current and rdma.max, by device
// and resource. See Documentation/admin-guide/cgroup-v1/rdma.rst and cgroup-v2.rst
// of the kernel.
//
// The list is empty, without an error, where the controller does not count for that
// cgroup by itself: the kernel has none, it is not enabled for the cgroup, the
// cgroup is the root, or it has been removed. So it is for the empty name, and for
// one that Identify could not reproduce because it is no UTF-8.
//
// The two files are read one after the other. A device that only one of them has
// came or went meanwhile; it has nothing in use, or no limit.
//
// A name never leads to a file outside of the cgroupRoot given to [New]. If it
// climbs above the root, errors.Is(err, ErrOutside); if this process may not look,
// errors.Is(err, fs.ErrPermission).
func (r *Reader) RDMAController(cgroup string) ([]CgroupUse, error) {
	if cgroup == "" {
		return nil, nil
	}
	if !strings.HasPrefix(cgroup, "/") {
		return nil, fmt.Errorf("the cgroup %q is no absolute path", cgroup)
	}
	below := path.Clean(strings.TrimLeft(cgroup, "/"))
	if below == ".." || strings.HasPrefix(below, "../") {
		return nil, fmt.Errorf("the cgroup %q: %w", cgroup, ErrOutside)
	}

	current, limits, err := r.readController(below)
	if err != nil {
		return nil, fmt.Errorf("the RDMA controller of the cgroup %q: %w", cgroup, err)
	}
	uses, err := mergeUses(current, limits)
	if err != nil {
		return nil, fmt.Errorf("the RDMA controller of the cgroup %q: %w", cgroup, err)
	}
	return uses, nil
}

// readController reads both files of a cgroup. They are empty if there are none.
func (r *Reader) readController(cgroup string) (current, limits []byte, err error) {
	root, err := os.OpenRoot(r.cgroupRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	mount, err := controllerMount(root)
	if err != nil || mount == "" {
		return nil, nil, err
	}
	// The directory is opened once, so that both files are of one cgroup.
	dir, err := root.OpenRoot(path.Join(mount, cgroup))
	if isRemoved(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = dir.Close() }()

	current, currentErr := readFile(dir, "rdma.current")
	limits, limitsErr := readFile(dir, "rdma.max")
	if isRemoved(currentErr) && isRemoved(limitsErr) {
		return nil, nil, nil
	}
	if isRemoved(currentErr) || isRemoved(limitsErr) {
		// Each cgroup has this file. Without it, the cgroup was removed meanwhile.
		if _, err := dir.Stat("cgroup.procs"); isRemoved(err) {
			return nil, nil, nil
		}
	}
	if err := errors.Join(currentErr, limitsErr); err != nil {
		return nil, nil, err
	}
	return current, limits, nil
}

// controllerMount returns where below the root the hierarchy is mounted that may
// have the RDMA controller; empty if there is none. A controller is in one hierarchy
// only, so only one is asked.
func controllerMount(root *os.Root) (string, error) {
	for _, m := range []struct{ witness, mount string }{
		{"cgroup.controllers", "."},
		{"rdma", "rdma"},
		{"unified/cgroup.controllers", "unified"},
	} {
		_, err := root.Stat(m.witness)
		if err == nil {
			return m.mount, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}

// isRemoved reports whether an error says that a file of a cgroup is not there, or
// not any more: a file that was opened before its cgroup was removed says ENODEV.
func isRemoved(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

// mergeUses makes one list of both files.
func mergeUses(current, limits []byte) ([]CgroupUse, error) {
	held, err := decodeController(current)
	if err != nil {
		return nil, fmt.Errorf("rdma.current: %w", err)
	}
	allowed, err := decodeController(limits)
	if err != nil {
		return nil, fmt.Errorf("rdma.max: %w", err)
	}
	var uses []CgroupUse
	for k, n := range held {
		if n < 0 {
			// The kernel prints the largest count as it prints the largest limit.
			n = math.MaxInt32
		}
		limit, ok := allowed[k]
		if !ok {
			limit = -1
		}
		uses = append(uses, CgroupUse{Device: k.device, Resource: k.resource, Current: n, Limit: limit})
	}
	for k, limit := range allowed {
		if _, ok := held[k]; !ok {
			uses = append(uses, CgroupUse{Device: k.device, Resource: k.resource, Limit: limit})
		}
	}
	slices.SortFunc(uses, func(a, b CgroupUse) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Resource, b.Resource))
	})
	return uses, nil
}

// A counted is what a number of the controller is about.
type counted struct{ device, resource string }

// decodeController decodes rdma.current or rdma.max: a line for each device, as
// "mlx5_0 hca_handle=2 hca_object=max ". −1 is max.
func decodeController(data []byte) (map[counted]int64, error) {
	numbers := make(map[counted]int64)
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			return nil, fmt.Errorf("%q is not a device and its resources", line)
		}
		for _, field := range fields[1:] {
			resource, value, ok := strings.Cut(field, "=")
			if !ok || resource == "" {
				return nil, fmt.Errorf("%q is not resource=number", field)
			}
			n := int64(-1)
			if value != "max" {
				u, err := strconv.ParseUint(value, 10, 63)
				if err != nil {
					return nil, fmt.Errorf("%q is not resource=number", field)
				}
				n = int64(u)
			}
			k := counted{text(fields[0]), text(resource)}
			if _, ok := numbers[k]; ok {
				return nil, fmt.Errorf("%s of %s is there twice", k.resource, k.device)
			}
			numbers[k] = n
		}
	}
	return numbers, nil
}
