// Package refusal tells which limit refused an RDMA object: the device's, or one of the process
// or its host.
package refusal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/text"
	"rdma_exporter/verbs"
)

const (
	// hostReserve is the part of the host's memory, in per cent, that stays available.
	hostReserve = 10
	// maxPinned is more than drivers pin for one object that is as small as those of the probes.
	maxPinned = 1 << 20
	// objectMappings is how many mappings one object may need, for its queues and its doorbell.
	objectMappings = 4
)

// Cause is what refused an object.
type Cause string

// The causes.
const (
	Device   Cause = "device"
	Memlock  Cause = "memlock"    // RLIMIT_MEMLOCK
	Cgroup   Cause = "cgroup"     // the RDMA controller
	Files    Cause = "open_files" // RLIMIT_NOFILE or fs.file-max
	Mappings Cause = "mappings"   // vm.max_map_count
	Host     Cause = "host_memory"
	Unknown  Cause = "error"
)

// IsLimit reports whether a limit of the device, the process or the host is the cause.
func (c Cause) IsLimit() bool {
	return slices.Contains([]Cause{Device, Memlock, Cgroup, Files, Mappings}, c)
}

// Memory is the memory of the host, in bytes.
type Memory struct{ Available, Total int64 }

// IsLow reports whether so little memory is available that it can be the reason of a refusal.
func (m Memory) IsLow() bool { return m.Available <= m.Total/100*hostReserve }

// Limits are the limits of a process.
type Limits struct {
	// Pinned is the memory that drivers pin for the process, in bytes. Memlock is its
	// RLIMIT_MEMLOCK; −1 means unlimited or exempt.
	Pinned, Memlock int64
	// Mappings is the number of memory mappings. MaxMappings is its limit.
	Mappings, MaxMappings int64
	// Charges are what the RDMA controller counts for the cgroup and those around it. Hidden is
	// true if there may be more of those than the process sees.
	Charges []Charge
	Hidden  bool
}

// Charge is a count of the RDMA controller.
type Charge struct {
	Cgroup string
	owner.CgroupUse
}

// Request is one that was refused.
type Request struct {
	// Size is the size of memory to register, in bytes. Zero means an object as small as those
	// of the probes.
	Size int64
	// Objects is how many objects the device gave before. Without any, the device is only blamed
	// if nothing else can be the reason.
	Objects int64
}

// pins returns how much memory one more object pins at most.
func (r Request) pins(verb verbs.Verb, l Limits) int64 {
	switch {
	case r.Size > 0:
		return r.Size
	case r.Objects > 0:
		return l.Pinned / r.Objects
	case verb == verbs.AllocPD || verb == verbs.CreateAH:
		return 0
	default:
		return maxPinned
	}
}

// Of returns what refused a request, and why, in one line.
func Of(err error, r Request, m Memory, l Limits) (Cause, string) {
	said, v := err.Error(), new(verbs.Error)
	if !errors.As(err, &v) {
		return Unknown, said
	}
	// The kernel refuses to pin memory with ENOMEM, or with EPERM if the limit is 0 (ib_umem_get).
	pins := r.pins(v.Verb, l)
	pinning := pins > 0 && (v.Errno == syscall.ENOMEM || v.Errno == syscall.EPERM)
	full := slices.IndexFunc(l.Charges, func(c Charge) bool { return c.Device == v.Device && c.Limit >= 0 && c.Current >= c.Limit })
	switch {
	case v.Errno == syscall.ENODEV || v.Errno == syscall.ENXIO || v.Errno == syscall.ESHUTDOWN:
		return Unknown, said
	case v.Errno == syscall.EMFILE || v.Errno == syscall.ENFILE:
		return Files, said + "; the process or the host may not open more files (RLIMIT_NOFILE, fs.file-max)"
	case v.Errno == syscall.EAGAIN && full >= 0:
		c := l.Charges[full]
		return Cgroup, fmt.Sprintf("%s; the cgroup %s has %s of at most %s %s (rdma.max)", said, c.Cgroup, text.Number(c.Current), text.Number(c.Limit), c.Resource)
	case pinning && l.Memlock >= 0 && l.Pinned+pins > l.Memlock:
		return Memlock, fmt.Sprintf("%s; the process has %s pinned, and may have %s (RLIMIT_MEMLOCK)", said, text.Bytes(l.Pinned), text.Bytes(l.Memlock))
	case l.MaxMappings > 0 && l.Mappings+objectMappings > l.MaxMappings:
		return Mappings, fmt.Sprintf("%s; the process has %s memory mappings, and may have %s (vm.max_map_count)", said, text.Number(l.Mappings), text.Number(l.MaxMappings))
	case r.Objects > 0:
		return Device, said
	case !isExhausted(v.Errno):
		return Unknown, said
	case v.Errno == syscall.EAGAIN && l.Hidden:
		return Unknown, said + "; a cgroup that the process does not see may be the reason"
	case m.IsLow():
		return Host, fmt.Sprintf("%s; the host has only %s available", said, text.Bytes(m.Available))
	default:
		return Device, said
	}
}

// isExhausted reports whether an errno alone says that something is used up:
//
//   - ENOMEM: mlx5 for "limits exceeded" of the firmware (cmd_status_to_err), efa for
//     EFA_ADMIN_RESOURCE_ALLOCATION_FAILURE (efa_com_comp_status_to_errno), siw above
//     SIW_MAX_CQ and similar limits (siw_create_cq), and any driver that gets no memory.
//   - EAGAIN: mlx5 for "no resources" (cmd_status_to_err), the RDMA controller above
//     rdma.max (rdmacg_try_charge).
//   - ENOSPC: erdma (erdma_alloc_idx), and drivers that use ida_alloc_range.
//   - EOVERFLOW: irdma (irdma_alloc_rsrc).
//   - ENOBUFS and EDQUOT can mean nothing else.
//
// EINVAL is missing: Soft-RoCE uses it above its limits (__rxe_add_to_pool), but also for
// invalid requests.
func isExhausted(errno syscall.Errno) bool {
	return slices.Contains([]syscall.Errno{syscall.ENOMEM, syscall.EAGAIN, syscall.ENOSPC, syscall.EOVERFLOW, syscall.ENOBUFS, syscall.EDQUOT}, errno)
}

// System reads the limits of this process and its host. Its fields are mount points.
type System struct{ Procfs, Cgroup string }

// Memory returns the memory of the host.
func (s System) Memory() (m Memory, err error) {
	b, err := os.ReadFile(filepath.Join(s.Procfs, "meminfo"))
	if err != nil {
		return m, err
	}
	for key, to := range map[string]*int64{"MemTotal:": &m.Total, "MemAvailable:": &m.Available} {
		_, value, _ := bytes.Cut(b, []byte(key))
		if _, err := fmt.Sscan(string(value), to); err != nil {
			return m, fmt.Errorf("meminfo has no %s %w", key, err)
		}
		*to <<= 10 // It is in KiB.
	}
	return m, nil
}

// Limits returns the limits of this process. With an error, they are those that could be read.
func (s System) Limits() (Limits, error) {
	l := Limits{Memlock: -1}
	err := errors.Join(l.readOwner(s), l.readMappings(s))
	return l, err
}

func (l *Limits) readOwner(s System) error {
	people, err := owner.New(s.Procfs, s.Cgroup)
	if err != nil {
		return err
	}
	m, err := people.Memlock(os.Getpid())
	if err != nil {
		return err
	}
	if l.Pinned = m.Pinned; !verbs.LocksFreely() {
		l.Memlock = m.Limit
	}
	id, err := people.Identify(os.Getpid())
	if err != nil {
		return err
	}
	// In a cgroup namespace, the cgroup is its root or outside, and those above are not seen.
	l.Hidden = id.Cgroup == "/" || strings.HasPrefix(id.Cgroup, "/..")
	for cgroup, last := id.Cgroup, ""; cgroup != last; cgroup, last = path.Dir(cgroup), cgroup {
		uses, err := people.RDMAController(cgroup)
		if errors.Is(err, owner.ErrOutside) {
			return nil
		} else if err != nil {
			return err
		}
		for _, u := range uses {
			l.Charges = append(l.Charges, Charge{cgroup, u})
		}
	}
	return nil
}

// readMappings does not hold the list of mappings, which can take megabytes.
func (l *Limits) readMappings(s System) error {
	limit, err := os.ReadFile(filepath.Join(s.Procfs, "sys", "vm", "max_map_count"))
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(s.Procfs, "self", "maps"))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		l.Mappings++
	}
	_, err = fmt.Sscan(string(limit), &l.MaxMappings)
	return errors.Join(err, lines.Err())
}
