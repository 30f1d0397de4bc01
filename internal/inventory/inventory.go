// Package inventory counts the objects on one device: what the kernel
// tracks, by type, state and owner, and what is left of children of the exporter
// that have ended. It opens no device and changes nothing.
package inventory

import (
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

// People tells who processes are, as package owner does.
type People interface {
	SeesAllPIDs() (bool, error)
	Relatives
	Memlock(pid int) (owner.Memlock, error)
	RDMAController(cgroup string) ([]owner.CgroupUse, error)
}

// Options says what to inventory, and what that may cost.
type Options struct {
	Tables Tables
	People People
	// Device is the name of the device.
	Device string
	Config
	// MaxFill is the most completions that one use of a completion queue, by the
	// send or the receive side of a queue pair, can have outstanding on this device;
	// 0 if that is not known.
	MaxFill int64
	// Exporter is the process of the exporter, and Own the name of its children: what
	// these hold is nobody's use of the device, and they break queue pairs on purpose, as
	// the children of other exporters do.
	Exporter int
	Own      string
	// Look are opened devices of which nothing should be left.
	Look []state.Context
	// Out takes the report.
	Out *wire.Writer
}

// Run inventories a device once and ends the report. Before it looks at anything
// it reports what the kernel counts, for the case that it does not come to its end.
// That the device is not there, or that the kernel does not even tell how many
// objects it has, is told by the end of the report. An error is returned only if the report could not be
// written or ctx ended.
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
	index, err := find(ctx, o.Tables, o.Device)
	if err != nil {
		return err
	}
	counts, err := o.Tables.Summary(ctx, index)
	if err != nil {
		return fmt.Errorf("count the objects: %w", err)
	}
	summary := make(map[string]int64)
	for _, c := range counts {
		summary[c.Name] = int64(min(c.Objects, maxCount))
	}
	visible, err := o.People.SeesAllPIDs()
	if err != nil {
		return fmt.Errorf("ask which processes can be seen: %w", err)
	}
	// Told at once, so that it is known even if what follows hangs in the driver.
	people := newCensus(o, asking)
	counted := newCount(o, people, index, summary)
	for _, t := range order() {
		counted.incomplete(newTally(t), state.IncompleteTimeout, "the inventory did not come to its end")
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
	// maxCount is the most that anything counts for. Memory regions without bounds,
	// such as those of implicit on-demand paging, say more.
	maxCount = 1 << 40
	// ownersShare is the part of the budget that comes on top of it for the owners.
	ownersShare = 8
)

// order is the order in which the tables are read: first those that tell which
// context an object belongs to, last the one that costs the driver a query for
// each of its rows.
func order() []restrack.Type {
	return []restrack.Type{restrack.CTX, restrack.PD, restrack.CQ, restrack.SRQ, restrack.MR, restrack.CMID, restrack.QP}
}

func find(ctx context.Context, tables Tables, device string) (uint32, error) {
	devices, err := tables.Devices(ctx)
	if err != nil {
		return 0, fmt.Errorf("list the devices: %w", err)
	}
	for _, d := range devices {
		if d.Name == device {
			return d.Index, nil
		}
	}
	return 0, fmt.Errorf("find the device: %w", syscall.ENODEV)
}

// attempts is how often a table is read of which the reading fails or, so says the
// kernel, is interrupted. A queue pair that is being destroyed makes the driver fail
// to tell of it, and with it the reading.
const attempts = 3

// errTooMany ends the reading of a table.
var errTooMany = errors.New("too many objects")

// read reads one table. An error is returned only if the device is no more.
func (s *count) read(ctx context.Context, t restrack.Type) error {
	counted, known := s.summary[t.String()]
	if known && counted > s.o.MaxObjects {
		s.incomplete(newTally(t), state.IncompleteMaxObjects, fmt.Sprintf("%d objects are more than %d", counted, s.o.MaxObjects))
		return nil
	}
	var got *tally
	var err error
	short, before := false, int64(-1)
	for range attempts {
		got = newTally(t)
		err = s.o.Tables.Dump(ctx, s.index, t, func(obj *restrack.Object) error {
			if got.objects >= s.o.MaxObjects {
				return errTooMany
			}
			s.take(got, obj)
			return nil
		})
		if err == nil {
			// A table that always shows less than is counted does not hide it by changing.
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
		// What was seen is nearly right, and all that can be had.
		s.mark(t, state.IncompleteInterrupted, err.Error())
	case errors.Is(err, errTooMany):
		s.incomplete(got, state.IncompleteMaxObjects, fmt.Sprintf("there are more than %d objects", s.o.MaxObjects))
		return nil
	case ctx.Err() != nil:
		s.incomplete(got, state.IncompleteTimeout, fmt.Sprintf("%v were over after %d objects", s.o.Budget, got.objects))
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

// passedOver reports whether a reading that seems whole shows less than the kernel
// counts, both before and after it. Where objects are destroyed meanwhile, the kernel
// passes over others without a word: it goes on by position.
func (s *count) passedOver(ctx context.Context, got *tally) bool {
	name := got.typ.String()
	counted, known := s.summary[name]
	if !known || got.objects >= counted {
		return false
	}
	counts, err := s.o.Tables.Summary(ctx, s.index)
	if err != nil {
		return false
	}
	for _, c := range counts {
		if c.Name == name {
			s.summary[name] = int64(min(c.Objects, maxCount))
			return got.objects < s.summary[name]
		}
	}
	return false
}

// confirm asks for each context that is looked for and is not among those that were
// found: while a table changes, a reading of it can pass over a row.
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
