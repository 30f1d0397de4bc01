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

// ErrOutside is matched by the error for a cgroup outside this process's cgroup namespace. Its path
// is like "/../x", and it cannot be read from here.
var ErrOutside = errors.New("outside of the cgroup namespace")

// CgroupUse is the use of a resource of an RDMA device by a cgroup and those below it.
type CgroupUse struct {
	// Device is the RDMA device, such as mlx5_0.
	Device string
	// Resource is hca_handle, device contexts, or hca_object, all objects made with them. Later
	// kernels may have more.
	Resource string
	Current  int64
	// Limit of this cgroup. −1 is no limit. The cgroups around it may have lower limits.
	Limit int64
}

// RDMAController returns the counts and limits of the RDMA controller for a cgroup, named as in
// [Identity], from rdma.current and rdma.max, sorted by device and resource. See
// Documentation/admin-guide/cgroup-v1/rdma.rst and cgroup-v2.rst of the kernel.
//
// The list is empty, without an error, if the controller has no counts for this cgroup: the kernel
// has none, it is not enabled, the cgroup is the root or was removed, or the name is empty or not
// UTF-8.
//
// The two files are read one after the other. A device in only one of them was added or removed in
// between. It has nothing in use, or no limit.
//
// A name never leads to a file outside cgroupRoot. The error matches ErrOutside if it climbs above
// the root, and fs.ErrPermission if it may not be read.
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

// readController reads both files of a cgroup. They are empty if absent.
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
	// Both files are from one cgroup, because its directory is opened once.
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
		// Each cgroup has this file. Without it, the cgroup has been removed.
		if _, err := dir.Stat("cgroup.procs"); isRemoved(err) {
			return nil, nil, nil
		}
	}
	if err := errors.Join(currentErr, limitsErr); err != nil {
		return nil, nil, err
	}
	return current, limits, nil
}

// controllerMount returns the mount point, below the root, of the hierarchy with the RDMA controller.
// It is empty if there is none. A controller is in only one hierarchy.
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

// isRemoved reports whether a file of a cgroup does not exist. ENODEV is the error of a file that was
// opened before its cgroup was removed.
func isRemoved(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

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
			// The kernel prints the largest count as max, too.
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

// counted is the key of a number of the controller.
type counted struct{ device, resource string }

// decodeController decodes rdma.current or rdma.max: a line for each device, such as
// "mlx5_0 hca_handle=2 hca_object=max ". Max is −1.
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
