package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"rdma_exporter/internal/restrack"
	"rdma_exporter/internal/state"
)

const (
	// maxTracked bounds the threads, contexts and protection domains that are remembered.
	// Objects of further ones count as those of other owners.
	maxTracked = 1 << 16
	// maxOwn bounds the objects of a table that count as those of the exporter's children. A probe
	// holds fewer, so a program that poses as one cannot hide more.
	maxOwn = 256
	// maxLate bounds the objects of a table that are kept because their thread has ended.
	maxLate = 1 << 10
	// unreported is the label for a QP type or state that the kernel does not report.
	unreported = "unknown"
)

// count is the result for one device.
type count struct {
	o      Options
	people *census
	index  uint32
	// summary is the kernel's own count of the objects of each type.
	summary map[string]int64
	// tallies are of the tables that were read, and marks of tables that were not, or not
	// reliably.
	tallies   []*tally
	uncounted []state.ObjectCount
	marks     []state.Incomplete

	// domains has the context of each protection domain, to trace the objects of the domain.
	domains map[uint32]uint32
	// threads has one thread that created objects of a context, if the kernel names any.
	threads map[uint32]uint32
	// look are the contexts that should have no objects left, and own the contexts of the
	// exporter's children.
	look, own map[uint32]bool
}

// tally counts the objects of one table.
type tally struct {
	typ          restrack.Type
	objects      int64
	user, kernel int64
	// late are objects that may have been destroyed since.
	late []restrack.Object
	// own counts the objects of the exporter's children. No other count includes them.
	own int64
	// partial is true if only a part of the table was read.
	partial    bool
	queuePairs map[[2]string]int64
	// broken counts queue pairs of programs in an error state, by their thread.
	broken             map[uint32]int64
	userSum, kernelSum int64
	unfillable         state.CQSum
	largestThread      uint32

	// byThread counts user objects by the thread that created them. byContext counts objects
	// whose thread has ended, by their context. untraced objects have neither, and beyond are
	// those above maxTracked.
	byThread  map[uint32]int64
	byContext map[uint32]int64
	untraced  int64
	beyond    int64
	// left counts the objects left in the contexts of look.
	left map[uint32]int64
	// used counts the uses of completion queues by queue pairs, to send and to receive, and uses
	// those in each context.
	used int64
	uses map[uint32]int64
}

func newCount(o Options, people *census, index uint32, summary map[string]int64) *count {
	s := &count{
		o: o, people: people, index: index, summary: summary,
		domains: make(map[uint32]uint32), threads: make(map[uint32]uint32),
		look: make(map[uint32]bool), own: make(map[uint32]bool),
	}
	for _, c := range o.LeakCandidates {
		if c.Index == index {
			s.look[c.ID] = true
		}
	}
	return s
}

func newTally(t restrack.Type) *tally {
	return &tally{
		typ: t, queuePairs: make(map[[2]string]int64), broken: make(map[uint32]int64),
		byThread: make(map[uint32]int64), byContext: make(map[uint32]int64), left: make(map[uint32]int64),
		uses: make(map[uint32]int64),
	}
}

// incomplete marks a table as not read completely, and counts its objects by the kernel's count.
// That includes the exporter's own objects. As far as they were seen, they are subtracted.
func (s *count) incomplete(got *tally, reason state.IncompleteReason, detail string) {
	s.mark(got.typ, reason, detail)
	name := got.typ.String()
	if n, known := s.summary[name]; known {
		s.uncounted = append(s.uncounted, state.ObjectCount{Type: name, Owner: state.OwnerUnknown, Objects: max(n-got.own, 0)})
		s.uncounted = append(s.uncounted, got.ours()...)
	}
}

// cut counts the objects of a table of which only a part was read, and names their owners as far as
// they are known. If completion queues are used by more queue pairs than were read, those tell it.
func (s *count) cut(ctx context.Context, got *tally, reason state.IncompleteReason, why string) {
	counted := max(s.summary[got.typ.String()], got.objects)
	s.incomplete(got, reason, fmt.Sprintf("of %d objects %d were looked at: %s", counted, got.objects, why))
	s.settle(ctx, got)
	for _, t := range s.tallies {
		if pairs := t.used / 2; got.typ == restrack.QP && pairs > got.user { //nolint:mnd // two uses each
			for context := range t.uses {
				t.uses[context] /= 2
			}
			clear(got.byThread)
			got.byContext, got.untraced, got.beyond, got.user = t.uses, 0, 0, pairs
		}
	}
	got.beyond += max(counted-got.own-got.kernel-got.user, 0)
	got.partial = true
	s.tallies = append(s.tallies, got)
}

// ours returns the objects of the exporter's children, if any.
func (t *tally) ours() []state.ObjectCount {
	if t.own == 0 {
		return nil
	}
	return []state.ObjectCount{{Type: t.typ.String(), Owner: state.OwnerExporter, Objects: t.own}}
}

// mark records why a table is incomplete, and replaces an earlier mark.
func (s *count) mark(t restrack.Type, reason state.IncompleteReason, detail string) {
	s.marks = slices.DeleteFunc(s.marks, func(m state.Incomplete) bool { return m.Type == t.String() })
	s.marks = append(s.marks, state.Incomplete{Type: t.String(), Reason: reason, Detail: detail})
}

// take adds an object to a tally, or keeps it for settle. It identifies the process at once.
func (s *count) take(to *tally, obj *restrack.Object) {
	to.objects++
	context, known := s.context(obj)
	if obj.Type == restrack.PD && !obj.Kernel && obj.HasID && known && len(s.domains) < maxTracked {
		s.domains[obj.ID] = context
	}
	switch {
	case obj.Kernel:
	case to.own < maxOwn && (s.people.own(obj.Thread) || obj.Thread == 0 && known && s.own[context]):
		to.own++
		if known && len(s.own) < maxTracked {
			s.own[context] = true
		}
		return
	case (known || obj.HasPD) && s.people.gone(obj.Thread) && len(to.late) < maxLate:
		to.late = append(to.late, *obj)
		return
	}
	s.add(to, obj, context, known)
}

// settle counts the objects of a table whose thread had ended, if they still exist. Usually their
// process has ended, such as a child of the exporter, and all of its objects with it.
func (s *count) settle(ctx context.Context, to *tally) {
	type parent struct {
		typ restrack.Type
		id  uint32
	}
	there := make(map[parent]bool)
	for i := range to.late {
		obj := &to.late[i]
		context, known := s.context(obj)
		p := parent{restrack.CTX, context}
		if !known { // The domain was created after its table was read.
			p = parent{restrack.PD, obj.PD}
		}
		is, asked := there[p]
		if !asked {
			_, err := s.o.Tables.Get(ctx, s.index, p.typ, p.id)
			is = !errors.Is(err, syscall.ENOENT)
			there[p] = is
		}
		if is {
			s.add(to, obj, context, known)
		}
	}
	to.late = nil
}

func (s *count) add(to *tally, obj *restrack.Object, context uint32, known bool) {
	size := int64(0)
	switch obj.Type {
	case restrack.QP:
		to.queuePairs[[2]string{cmp.Or(obj.QPType, unreported), cmp.Or(obj.QPState, unreported)}]++
	case restrack.CQ:
		size = int64(obj.Entries)
	case restrack.MR:
		size = int64(min(obj.Length, maxCount))
	}
	if obj.Kernel {
		to.kernel++
		to.kernelSum += size
		return
	}
	to.user++
	to.userSum += size
	if obj.Type == restrack.CQ {
		s.oversized(to, obj)
		if _, seen := to.uses[context]; known && (seen || len(to.uses) < maxTracked) {
			n := int64(min(obj.Users, maxCount))
			to.uses[context] += n
			to.used += n
		}
	}
	if known && s.look[context] {
		to.left[context]++
	}
	switch {
	case obj.Thread != 0:
		if obj.Type == restrack.QP && (obj.QPState == "err" || obj.QPState == "sqe") && len(to.broken) < maxTracked {
			to.broken[obj.Thread]++
		}
		if _, seen := s.threads[context]; known && !seen && len(s.threads) < maxTracked {
			s.threads[context] = obj.Thread
		}
		to.add(to.byThread, obj.Thread)
	case known:
		to.add(to.byContext, context)
	default:
		to.untraced++
	}
}

func (t *tally) add(to map[uint32]int64, key uint32) {
	if _, seen := to[key]; !seen && len(to) >= maxTracked {
		t.beyond++
		return
	}
	to[key]++
}

// context returns the context that a user object belongs to.
func (s *count) context(obj *restrack.Object) (id uint32, known bool) {
	switch {
	case obj.Type == restrack.CTX:
		return obj.ID, obj.HasID
	case obj.HasContext:
		return obj.Context, true
	case obj.HasPD:
		id, known = s.domains[obj.PD]
		return id, known
	default:
		return 0, false
	}
}

// oversized counts a completion queue that is larger than its users can fill.
func (s *count) oversized(to *tally, obj *restrack.Object) {
	if !obj.HasUsers || !obj.HasEntries || obj.Users > 0 && s.o.MaxFill <= 0 {
		return
	}
	entries := int64(obj.Entries)
	// The bounds prevent an overflow.
	if most := int64(min(obj.Users, 1<<20)) * min(s.o.MaxFill, 1<<40); entries <= most {
		return
	}
	u := &to.unfillable
	u.Objects++
	u.Entries += entries
	if entries > u.Largest {
		u.Largest, to.largestThread = entries, obj.Thread
	}
}

// inventory sums up the tallies, and identifies the owners.
func (s *count) inventory(visible bool) state.Inventory {
	people := s.people
	i := state.Inventory{
		Index: s.index, PIDsVisible: visible, Incomplete: s.marks,
		Objects: slices.Clone(s.uncounted),
	}
	orphans := make(map[uint32][]state.TypeCount)
	for _, t := range s.tallies {
		name := t.typ.String()
		if !t.partial {
			i.Objects = append(i.Objects,
				state.ObjectCount{Type: name, Owner: state.OwnerUser, Objects: t.user},
				state.ObjectCount{Type: name, Owner: state.OwnerKernel, Objects: t.kernel})
			i.Objects = append(i.Objects, t.ours()...)
			sums := []state.OwnerSum{{Owner: state.OwnerUser, Sum: t.userSum}, {Owner: state.OwnerKernel, Sum: t.kernelSum}}
			switch t.typ {
			case restrack.CQ:
				i.CQEntries = sums
			case restrack.MR:
				i.MRBytes = sums
			case restrack.QP:
				i.TransientErrors = people.passing(t.broken, maxOwn-t.own)
			}
			for key, n := range t.queuePairs {
				i.QueuePairs = append(i.QueuePairs, state.QueuePairCount{Type: key[0], State: key[1], Objects: n})
			}
			if u := t.unfillable; u.Objects > 0 {
				u.PID = people.process(t.largestThread)
				i.OversizedCQs = &u
			}
			for id, n := range t.left {
				i.Leftover = append(i.Leftover, state.Leftover{Context: state.Context{Index: s.index, ID: id}, Type: name, Objects: n})
			}
		}
		threads := maps.Clone(t.byThread)
		var ownerless int64
		for context, n := range t.byContext {
			// The thread has ended. If its process lives, it has usually created another object
			// of the same context.
			if thread, found := s.threads[context]; found {
				threads[thread] += n
			} else {
				ownerless += n
				orphans[context] = append(orphans[context], state.TypeCount{Type: name, Objects: n})
			}
		}
		add := func(to *[]state.TypeCount, n int64) {
			if n > 0 {
				*to = append(*to, state.TypeCount{Type: name, Objects: n})
			}
		}
		add(&i.Ownerless, ownerless)
		add(&i.Untraced, t.untraced)
		add(&i.Others, t.beyond+people.count(name, threads))
	}
	i.Owners, i.Cgroups = people.owners()
	s.contexts(i.Owners)
	i.Orphans = orphansOf(orphans)
	// Maps have no order, reports do.
	slices.SortFunc(i.Objects, func(a, b state.ObjectCount) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(b.Owner, a.Owner))
	})
	slices.SortFunc(i.QueuePairs, func(a, b state.QueuePairCount) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.State, b.State))
	})
	slices.SortFunc(i.Leftover, func(a, b state.Leftover) int {
		return cmp.Or(cmp.Compare(a.Context.ID, b.Context.ID), cmp.Compare(a.Type, b.Type))
	})
	return i
}

// contexts adds their device contexts to the owners.
func (s *count) contexts(owners []state.Owner) {
	of := make(map[int][]uint32)
	for context, thread := range s.threads {
		pid := s.people.processes[thread] // 0 if unknown
		of[pid] = append(of[pid], context)
	}
	for n := range owners {
		all := of[owners[n].PID]
		slices.Sort(all)
		owners[n].Contexts = all[:min(len(all), state.MaxContexts)]
	}
}

// orphansOf returns the largest contexts without an owner, with their objects.
func orphansOf(all map[uint32][]state.TypeCount) []state.Orphan {
	size := make(map[uint32]int64, len(all))
	for context, counts := range all {
		for _, c := range counts {
			size[context] += c.Objects
		}
	}
	var orphans []state.Orphan
	for _, context := range largest(size) {
		if len(orphans) == state.MaxOrphans {
			break
		}
		orphans = append(orphans, state.Orphan{Context: context, Objects: all[context]})
	}
	return orphans
}
