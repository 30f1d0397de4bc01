// Package inventory counts the objects on one device that the kernel tracks, by type, state and
// owner, and the objects leaked by exited children of the exporter. It opens no device and changes
// nothing.
package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// Tables are the kernel's tables of RDMA objects, as package restrack reads them.
type Tables interface {
	Devices(ctx context.Context) ([]restrack.Device, error)
	Summary(ctx context.Context, index uint32) ([]restrack.Count, error)
	Dump(ctx context.Context, index uint32, t restrack.Type, visit func(*restrack.Object) error) error
	Get(ctx context.Context, index uint32, t restrack.Type, id uint32) (restrack.Object, error)
}

// People identifies processes, as package owner does.
type People interface {
	SeesAllPIDs() (bool, error)
	Relatives
	Memlock(pid int) (owner.Memlock, error)
	RDMAController(cgroup string) ([]owner.CgroupUse, error)
}

// Options describes an inventory and limits its cost.
type Options struct {
	Tables Tables
	People People
	// Device is the name of the device.
	Device string
	Config
	// MaxFill limits the completions that one use of a completion queue, by the send or the
	// receive side of a queue pair, can have outstanding on this device. Zero means unknown.
	MaxFill int64
	// Exporter is the process of the exporter, and Own the name of its children. Their objects
	// are counted apart, since they break queue pairs on purpose. A process of that name with
	// another parent is not one of them.
	Exporter int
	Own      string
	// LeakCandidates are device contexts that should have no objects left.
	LeakCandidates []state.Context
	// Out takes the report.
	Out *wire.Writer
}

// Run inventories a device once and ends the report. It first reports the kernel's counts, in case
// reading a table hangs. A missing device, or a kernel that does not count, is an error in the
// end of the report. Run returns an error only if the report could not be written or ctx ended.
func Run(ctx context.Context, o Options) error {
	var end wire.End
	if err := run(ctx, o); err != nil {
		end.Error = err.Error()
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("inventory %s: %w", o.Device, err)
	}
	if err := o.Out.Send(wire.Line{End: &end}); err != nil {
		return fmt.Errorf("inventory %s: %w", o.Device, err)
	}
	return nil
}

func run(all context.Context, o Options) error {
	asking := time.Now().Add(o.Budget + o.Budget/ownersShare)
	ctx, cancel := context.WithTimeout(all, o.Budget)
	defer cancel()
	index, err := Index(ctx, o.Tables, o.Device)
	if err != nil {
		return err
	}
	summary, err := summaryOf(ctx, o.Tables, index)
	if err != nil {
		return err
	}
	visible, err := o.People.SeesAllPIDs()
	if err != nil {
		return fmt.Errorf("ask which processes can be seen: %w", err)
	}
	// The counts are known even if the driver hangs below.
	people := &census{o: o, until: asking, processes: make(map[uint32]int), ours: make(map[int]bool), named: make(map[int]*state.Owner)}
	counted := newCount(o, people, index, summary)
	for _, t := range order() {
		counted.incomplete(newTally(t), state.IncompleteTimeout, "the inventory did not complete")
	}
	if err := o.Out.Send(wire.Line{Inventory: new(counted.inventory(visible))}); err != nil {
		return err
	}

	s := newCount(o, people, index, summary)
	for _, t := range order() {
		if err := s.read(ctx, t); err != nil {
			return err
		}
	}
	return o.Out.Send(wire.Line{Inventory: new(s.inventory(visible))})
}

const (
	// maxCount limits each count. Memory regions without bounds, such as those of implicit
	// on-demand paging, have more.
	maxCount = 1 << 40
	// ownersShare is the part of the budget that is added for the owners.
	ownersShare = 8
)

// order is the order of reading: first the tables that link objects to contexts, last the one that
// costs the driver a query for each row.
func order() []restrack.Type {
	return []restrack.Type{restrack.CTX, restrack.PD, restrack.CQ, restrack.SRQ, restrack.MR, restrack.CMID, restrack.QP}
}

// Index returns the kernel's number of a device.
func Index(ctx context.Context, tables Tables, device string) (uint32, error) {
	devices, err := tables.Devices(ctx)
	if err != nil && !errors.Is(err, restrack.ErrInterrupted) { // which returns some of them
		return 0, fmt.Errorf("list the devices: %w", err)
	}
	for _, d := range devices {
		if d.Name == device {
			return d.Index, nil
		}
	}
	return 0, fmt.Errorf("find the device: %w", cmp.Or[error](err, syscall.ENODEV))
}

// summaryOf returns how many objects of each type the kernel counts.
func summaryOf(ctx context.Context, tables Tables, index uint32) (map[string]int64, error) {
	counts, err := tables.Summary(ctx, index)
	if err != nil {
		return nil, fmt.Errorf("count the objects: %w", err)
	}
	summary := make(map[string]int64)
	for _, c := range counts {
		summary[c.Name] = int64(min(c.Objects, maxCount))
	}
	return summary, nil
}

// attempts is how often a table is read if reading fails or is interrupted. A queue pair that is
// being destroyed makes the driver fail, and with it the dump.
const attempts = 3

// tableShare is the part of the budget for which a table with more than Config.MaxObjects is read.
const tableShare = 4

// errTooMany ends the reading of such a table.
var errTooMany = errors.New("too many objects")

// read reads one table. It returns an error only if the device has been removed.
func (s *count) read(ctx context.Context, t restrack.Type) error {
	enough := time.Now().Add(s.o.Budget / tableShare)
	var got *tally
	var err error
	short, before := false, int64(-1)
	for range attempts {
		got = newTally(t)
		err = s.o.Tables.Dump(ctx, s.index, t, func(obj *restrack.Object) error {
			if got.objects >= s.o.MaxObjects && time.Now().After(enough) {
				return errTooMany
			}
			s.take(got, obj)
			return nil
		})
		if err == nil {
			// A table that always shows the same number does not change.
			if short = s.passedOver(ctx, got) && got.objects != before; !short {
				break
			}
			before = got.objects
			continue
		}
		short = false
		if errors.Is(err, errTooMany) || ctx.Err() != nil || errors.Is(err, restrack.ErrNotSupported) || errors.Is(err, syscall.ENODEV) {
			break
		}
	}
	switch {
	case short:
		s.mark(t, state.IncompleteInterrupted, fmt.Sprintf("only %d of some %d objects were seen", got.objects, s.summary[t.String()]))
	case err == nil:
	case errors.Is(err, restrack.ErrInterrupted):
		// The objects that were seen are nearly right.
		s.mark(t, state.IncompleteInterrupted, err.Error())
	case errors.Is(err, errTooMany):
		s.cut(ctx, got, state.IncompleteMaxObjects, fmt.Sprintf("beyond %d, reading ends after %v", s.o.MaxObjects, s.o.Budget/tableShare))
		return nil
	case ctx.Err() != nil:
		s.cut(ctx, got, state.IncompleteTimeout, fmt.Sprintf("%v were over", s.o.Budget))
		return nil
	case errors.Is(err, restrack.ErrNotSupported):
		s.incomplete(got, state.IncompleteNotSupported, err.Error())
		return nil
	case errors.Is(err, syscall.ENODEV):
		return fmt.Errorf("read the table of %s: %w", t, err)
	default:
		s.incomplete(got, state.IncompleteFailed, err.Error())
		return nil
	}
	s.settle(ctx, got)
	s.tallies = append(s.tallies, got)
	if t == restrack.CTX {
		return s.confirm(ctx, got)
	}
	return nil
}

// passedOver reports whether a dump has fewer rows than the kernel counted before and after it. If
// objects are destroyed while it runs, the kernel skips others, because it continues by position.
func (s *count) passedOver(ctx context.Context, got *tally) bool {
	name := got.typ.String()
	counted, known := s.summary[name]
	if !known || got.objects >= counted {
		return false
	}
	counts, err := summaryOf(ctx, s.o.Tables, s.index)
	if counted, known = counts[name]; err != nil || !known {
		return false
	}
	s.summary[name] = counted
	return got.objects < counted
}

// confirm asks for each context of look that was not found, because a dump of a changing table can
// skip a row.
func (s *count) confirm(ctx context.Context, contexts *tally) error {
	for id := range s.look {
		if contexts.left[id] > 0 {
			continue
		}
		switch _, err := s.o.Tables.Get(ctx, s.index, restrack.CTX, id); {
		case err == nil:
			contexts.left[id] = 1
		case errors.Is(err, syscall.ENOENT):
		case errors.Is(err, syscall.ENODEV):
			return fmt.Errorf("ask for context %d: %w", id, err)
		default:
			s.mark(restrack.CTX, state.IncompleteFailed, fmt.Sprintf("context %d: %v", id, err))
			return nil
		}
	}
	return nil
}
