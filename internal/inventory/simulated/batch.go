package simulated

import (
	"cmp"
	"time"

	"rdma_exporter/internal/restrack"
	profile "rdma_exporter/verbs/simulated"
)

// batch is the objects of one owner on the device.
type batch struct {
	// holder is nil for what an exited process leaked.
	holder *profile.Holder
	// row has the fields of every row: the thread, or that the kernel is the owner.
	row restrack.Object
	// objects is the number of each type, and first the id of the first.
	objects, first map[restrack.Type]uint32
	// queuePairs are the first of the queue pairs; the rest are ready to send.
	queuePairs []profile.QueuePairs
	entries    uint32
	length     uint64
}

// Defaults for sizes that a profile leaves out.
const (
	usualEntries = 256
	usualLength  = 4096
)

// held returns the objects of a holder at a moment. Their ids follow those in next.
func held(h *profile.Holder, invisible bool, now time.Time, next map[restrack.Type]uint32) batch {
	b := batch{
		holder: h, queuePairs: h.QueuePairs, objects: make(map[restrack.Type]uint32),
		entries: cmp.Or(uint32(h.CQEntries), usualEntries), length: cmp.Or(uint64(h.MRBytes), usualLength),
	}
	b.row.Kernel = h.Kernel != ""
	if !invisible && !h.Ended(now) {
		b.row.Thread = uint32(h.PID)
	}
	for _, t := range restrack.Types() {
		b.objects[t] = uint32(h.Objects[t.String()] + grown(h.Growth[t.String()], h.GrowthShape, now))
	}
	for _, q := range h.QueuePairs {
		b.objects[restrack.QP] += uint32(q.Objects)
	}
	b.complete()
	b.number(next)
	return b
}

// leaked returns the objects that an exited process left in a context.
func leaked(objects map[string]int, context uint32, next map[restrack.Type]uint32) batch {
	b := batch{objects: make(map[restrack.Type]uint32), entries: usualEntries, length: usualLength}
	for _, t := range restrack.Types() {
		b.objects[t] = uint32(objects[t.String()])
	}
	b.objects[restrack.CTX] = 1
	b.complete()
	b.number(next)
	b.first[restrack.CTX] = context
	return b
}

// grown returns how much of the growth of an hour has happened at a moment.
func grown(perHour int, shape string, now time.Time) int {
	since, whole := now.Sub(now.Truncate(time.Hour)), time.Hour
	switch shape {
	case "step":
		since = since / (10 * time.Minute) * whole
	case "fill":
		whole = 20 * time.Minute
	case "churn":
		whole = 7 * time.Minute / 2
		if since %= 2 * whole; since > whole {
			since = 2*whole - since
		}
	}
	return int(int64(perHour) * min(since, whole).Milliseconds() / whole.Milliseconds())
}

// complete adds objects that the others depend on.
func (b *batch) complete() {
	n := b.objects
	if n[restrack.QP] > 0 {
		n[restrack.CQ] = max(n[restrack.CQ], 1)
	}
	if n[restrack.QP]+n[restrack.MR]+n[restrack.SRQ] > 0 {
		n[restrack.PD] = max(n[restrack.PD], 1)
	}
	if n[restrack.CQ]+n[restrack.PD] > 0 && !b.row.Kernel {
		n[restrack.CTX] = max(n[restrack.CTX], 1)
	}
}

// number assigns ids, which begin with 1.
func (b *batch) number(next map[restrack.Type]uint32) {
	b.first = make(map[restrack.Type]uint32)
	for t, n := range b.objects {
		b.first[t] = next[t] + 1
		next[t] += n
	}
}

func (b *batch) object(t restrack.Type, i uint32) restrack.Object {
	o := b.row
	o.Type, o.ID, o.HasID = t, b.first[t]+i, true
	switch t {
	case restrack.PD:
		o.Context, o.HasContext = b.parent(restrack.CTX, i)
	case restrack.CQ:
		o.Context, o.HasContext = b.parent(restrack.CTX, i)
		o.Entries, o.HasEntries = b.entries, true
		o.Users, o.HasUsers = b.users(i), true
	case restrack.QP:
		o.PD, o.HasPD = b.parent(restrack.PD, i)
		o.QPType, o.QPState = b.queuePair(i)
	case restrack.MR:
		o.PD, o.HasPD = b.parent(restrack.PD, i)
		o.Length = b.length
	case restrack.SRQ:
		o.PD, o.HasPD = b.parent(restrack.PD, i)
	}
	return o
}

// parent returns the id of the object of a type on which the i-th of another is built. The kernel
// reports it only for objects of programs.
func (b *batch) parent(t restrack.Type, i uint32) (id uint32, known bool) {
	if b.row.Kernel {
		return 0, false
	}
	return b.first[t] + i%b.objects[t], true
}

// users returns the number of uses of the i-th CQ. Each queue pair uses one for sending and one for
// receiving.
func (b *batch) users(i uint32) uint64 {
	uses, queues := 2*uint64(b.objects[restrack.QP]), uint64(b.objects[restrack.CQ])
	n := uses / queues
	if uint64(i) < uses%queues {
		n++
	}
	return n
}

func (b *batch) queuePair(i uint32) (typ, state string) {
	for _, q := range b.queuePairs {
		if i < uint32(q.Objects) {
			return q.Type, q.State
		}
		i -= uint32(q.Objects)
	}
	return "rc", "rts"
}
