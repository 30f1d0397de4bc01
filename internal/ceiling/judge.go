package ceiling

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"rdma_exporter/internal/text"
	"rdma_exporter/verbs"
)

// Limits are those that bind a process, beside the device's.
type Limits struct {
	// Pinned is what drivers hold in place for the process, in bytes, and Memlock its
	// RLIMIT_MEMLOCK; −1 is unlimited, or a process that is exempt from it.
	Pinned, Memlock int64
	// Mappings is how many memory mappings the process has, and MaxMappings how many it
	// may have.
	Mappings, MaxMappings int64
	// Files is how many files the process may open.
	Files int64
	// Charges are what the RDMA controller counts on all devices, for the cgroup of the
	// process and for those around it.
	Charges []Charge
	// Hidden tells that there may be cgroups around those that the process sees.
	Hidden bool
}

// Charge is how much of a resource of a device a cgroup has, and may have.
type Charge struct {
	Cgroup, Device, Resource string
	// Current is how many there are, and Limit how many may be; −1 is no limit.
	Current, Limit int64
}

// spareMappings is how many mappings an object may need at once: those of its queues and
// of its doorbell.
const spareMappings = 4

// judge tells what it was that refused one more object of a type, when there were so many
// already, and says so in a line.
func judge(err error, t Type, objects int64, l Limits) (End, string) {
	said := err.Error()
	errno, ok := verbs.ErrnoOf(err)
	if !ok || slices.Contains([]syscall.Errno{syscall.ENODEV, syscall.ENXIO, syscall.ESHUTDOWN}, errno) {
		return EndError, said
	}
	if errno == syscall.EAGAIN {
		for _, c := range l.Charges {
			if c.Limit >= 0 && c.Current >= c.Limit && isOn(err, c.Device) {
				return EndCgroup, fmt.Sprintf("%s; the RDMA controller allows the cgroup %s %s of %s, and counts %s (rdma.max)", said, c.Cgroup, text.Number(c.Limit), c.Resource, text.Number(c.Current))
			}
		}
	}
	switch {
	case errno == syscall.EMFILE:
		return EndFiles, fmt.Sprintf("%s; the process may open %s (RLIMIT_NOFILE)", said, text.Plural(l.Files, "file"))
	case errno == syscall.ENFILE:
		return EndFiles, said + "; the host may open no more files (fs.file-max)"
	case (errno == syscall.ENOMEM || errno == syscall.EPERM) && l.bindsMemory(t, objects):
		return EndMemlock, fmt.Sprintf("%s; drivers hold %s in place for the process, which may have %s (RLIMIT_MEMLOCK)", said, text.Bytes(l.Pinned), text.Bytes(l.Memlock))
	case l.MaxMappings > 0 && l.Mappings+spareMappings > l.MaxMappings:
		return EndMappings, fmt.Sprintf("%s; the process has %s memory mappings, and may have %s (vm.max_map_count)", said, text.Number(l.Mappings), text.Number(l.MaxMappings))
	case objects == 0 && !isExhausted(errno):
		// It never gave any, so that nothing is used up.
		return EndError, said
	default:
		return EndDevice, said
	}
}

// isOn tells whether an error is one of a device.
func isOn(err error, device string) bool {
	var v *verbs.Error
	return errors.As(err, &v) && v.Device == device
}

// isExhausted tells whether an errno says by itself that something is used up, as drivers
// of Linux have it:
//
//   - ENOMEM: mlx5 for "limits exceeded" of the firmware (cmd_status_to_err), efa for
//     EFA_ADMIN_RESOURCE_ALLOCATION_FAILURE (efa_com_comp_status_to_errno), siw above
//     SIW_MAX_CQ and its like (siw_create_cq), and whoever gets no memory.
//   - EAGAIN: mlx5 for "no resources" (cmd_status_to_err), the RDMA controller above
//     rdma.max (rdmacg_try_charge).
//   - ENOSPC: erdma (erdma_alloc_idx), and whoever numbers objects with ida_alloc_range.
//   - EOVERFLOW: irdma (irdma_alloc_rsrc).
//   - ENOBUFS and EDQUOT can mean nothing else.
//
// EINVAL is none: Soft-RoCE refuses with it above its limits (__rxe_add_to_pool), as it
// refuses everything that is asked wrongly.
func isExhausted(errno syscall.Errno) bool {
	return slices.Contains([]syscall.Errno{syscall.ENOMEM, syscall.EAGAIN, syscall.ENOSPC, syscall.EOVERFLOW, syscall.ENOBUFS, syscall.EDQUOT}, errno)
}

// bindsMemory tells whether one more object of a type, which pins as much as those before
// did, would pin more than the process may have pinned.
func (l Limits) bindsMemory(t Type, objects int64) bool {
	if l.Memlock < 0 {
		return false
	}
	one := int64(0)
	switch {
	case objects > 0:
		one = l.Pinned / objects
	case t == MR:
		one = 1
	}
	return one > 0 && l.Pinned+one > l.Memlock
}
