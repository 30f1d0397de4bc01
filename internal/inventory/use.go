package inventory

import (
	"context"
	"errors"
	"fmt"

	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
)

// Relatives finds the process of a thread, and its parent, as package owner does.
type Relatives interface {
	Process(thread int) (int, error)
	Parent(pid int) (int, error)
	Identify(pid int) (owner.Identity, error)
}

// Usage describes a device for InUse.
type Usage struct {
	// Relatives finds the processes in Tables. Nil means that processes are unknown.
	Tables    Tables
	Relatives Relatives
	// Device is the name of the device.
	Device string
	// Exporter is the process of the exporter, and Own the name of its children. Their objects
	// are no use by others.
	Exporter int
	Own      string
}

// errUsed ends the reading of a table.
var errUsed = errors.New("used by others")

// InUse reports whether other programs hold queue pairs on a device. Nil means that none does. In
// doubt a device is in use: if the kernel does not list it, or lists fewer objects than it counts,
// or if the process of a queue pair is unknown. Queue pairs of the kernel do not count.
//
// It stops at the first that it finds. The kernel asks the driver about each queue pair that it
// lists, so the completion queues come first: the kernel itself knows whether queue pairs use them.
func InUse(ctx context.Context, u Usage) *state.Reduced {
	index, err := Index(ctx, u.Tables, u.Device)
	if err != nil {
		return UsageUnknown(err)
	}
	counts, err := summaryOf(ctx, u.Tables, index)
	if err != nil {
		return UsageUnknown(err)
	}
	name, seen := "", int64(0)
	uses := func(o *restrack.Object) error {
		seen++
		if o.Kernel || o.Type == restrack.CQ && o.Users == 0 || u.own(int(o.Thread)) {
			return nil
		}
		name = u.nameOf(int(o.Thread))
		return errUsed
	}
	for _, t := range []restrack.Type{restrack.CQ, restrack.QP} {
		seen = 0
		err = u.Tables.Dump(ctx, index, t, uses)
		if errors.Is(err, errUsed) {
			return &state.Reduced{Reason: state.ReducedBusy, Detail: name + " holds queue pairs"}
		}
	}
	// The table of queue pairs is what decides.
	if err != nil {
		return UsageUnknown(fmt.Errorf("list the queue pairs: %w", err))
	}
	if all := counts[restrack.QP.String()]; seen < all {
		return UsageUnknown(fmt.Errorf("of %d queue pairs it lists %d", all, seen))
	}
	return nil
}

// Count returns the number of objects of a type, as rdma(8) names it, that the kernel counts on a
// device.
func Count(ctx context.Context, t Tables, device, objects string) (int64, error) {
	index, err := Index(ctx, t, device)
	if err != nil {
		return 0, err
	}
	return CountAt(ctx, t, index, objects)
}

// CountAt is Count for the kernel's number of a device.
func CountAt(ctx context.Context, t Tables, index uint32, objects string) (int64, error) {
	counts, err := summaryOf(ctx, t, index)
	if n, known := counts[objects]; err != nil || known {
		return n, err
	}
	return 0, fmt.Errorf("the kernel does not count objects of type %s", objects)
}

// UsageUnknown is the result of InUse if the usage is unknown because of err.
func UsageUnknown(err error) *state.Reduced {
	return &state.Reduced{Reason: state.ReducedUnknown, Detail: fmt.Sprintf("the kernel does not tell who holds queue pairs: %v", err)}
}

// own reports whether a thread belongs to the exporter or a child of it.
func (u *Usage) own(thread int) bool {
	if thread == 0 || u.Relatives == nil {
		return false
	}
	pid, err := u.Relatives.Process(thread)
	if err != nil {
		return false
	}
	if pid == u.Exporter {
		return true
	}
	is, err := childOf(u.Relatives, pid, u.Exporter, u.Own)
	return err == nil && is
}

// childOf reports whether a process is a child of the exporter with its name.
func childOf(r Relatives, pid, exporter int, name string) (bool, error) {
	parent, err := r.Parent(pid)
	if err != nil || parent == 0 || parent != exporter {
		return false, err
	}
	id, err := r.Identify(pid)
	return id.Comm == name, err
}

// nameOf describes the process of a thread.
func (u *Usage) nameOf(thread int) string {
	if thread == 0 {
		return "a process that the kernel does not name"
	}
	if u.Relatives != nil {
		if pid, err := u.Relatives.Process(thread); err == nil {
			if id, err := u.Relatives.Identify(pid); err == nil && id.Comm != "" {
				return fmt.Sprintf("%s (process %d)", tidy(id.Comm), pid)
			}
			return fmt.Sprintf("process %d", pid)
		}
	}
	return fmt.Sprintf("thread %d", thread)
}
