package contract

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/verbs"
)

func (j *check) extendedCQ(entries int, fields verbs.WCFields) (q verbs.CQ, err error) {
	if _, err := j.PD(); err != nil {
		return nil, err
	}
	return attempt(j, func() (verbs.CQ, error) {
		return j.CQ(verbs.CQInitAttr{Entries: entries, Vector: j.Vectors[0], Fields: fields})
	})
}

func cqExAtLeastRequested(j *check) {
	attr, err := j.Device.QueryExtended()
	session.Stop(cannot("query the device", err))
	fields, named := verbs.WCStandard, "IBV_WC_STANDARD_FLAGS"
	if attr.TimestampMask != 0 {
		fields, named = fields|verbs.WCTimestamp, named+" and IBV_WC_EX_WITH_COMPLETION_TIMESTAMP"
	}
	list := atMost(j.Attr.Limits.MaxCQE, smallCQ, smallCQ+1, 100, 256)
	j.describe(fmt.Sprintf("ibv_create_cq_ex with cqe %s and the wc_flags %s (completion_timestamp_mask %#x); two completions by ibv_start_poll",
		session.Join(list), named, attr.TimestampMask),
		"each CQ has at least as many entries; the completions have the number of their QP and their length, and timestamps that do not go back")
	// Without extended CQs, the contract cannot be checked.
	create := func(fields verbs.WCFields) func() error {
		return func() error {
			return created(func() (verbs.CQ, error) { return j.extendedCQ(smallCQ, fields) })
		}
	}
	session.Stop(cannot("create an extended CQ", create(verbs.WCStandard)()))
	if refusal := j.mustSucceed("a CQ with these wc_flags", create(fields), create(verbs.WCStandard)); refusal != nil {
		j.observeMode(errata.ModeRefused, false, "wc_flags %s: %s, although the device has timestamps", named, short(refusal))
		return
	}
	var c compared
	for _, n := range list {
		q, err := j.extendedCQ(n, fields)
		session.Stop(cannot(fmt.Sprintf("create an extended CQ of %d", n), err))
		c.addCQ(n, q)
		session.Stop(cannot("destroy an extended CQ", q.Close()))
	}
	if c.conclude(j, "asked→given"); !j.violated {
		j.readFields(fields, attr)
	}
}

// readFields checks the fields of completions of messages on an extended CQ. For flushed work
// requests only the number of the queue pair is promised.
func (j *check) readFields(fields verbs.WCFields, attr verbs.ExtendedAttr) {
	if j.sources.route == nil {
		j.remark("no completion was read: %v", session.Catch(j.needRoute))
		return
	}
	q, err := j.extendedCQ(smallCQ, fields)
	session.Stop(cannot("create an extended CQ", err))
	other := j.cq(nil, 0)
	p := j.connect(other, q, nil, false)
	r := newReading(fields, attr)
	if r.mask != 0 && !r.ordered {
		j.remark("the clock of the device starts again within seconds: timestamps were not checked")
	}
	r.number = p.to.Number()
	for _, sge := range p.data {
		r.length += sge.Length
	}
	for i := range 2 {
		messages{p, other, ""}.complete(false)
		j.presume("reading a completion of the extended CQ", true)
		wc := j.successful(q)
		text := fmt.Sprintf("completion %d: wr_id %d, qp_num %#x, byte_len %d", i+1, wc.ID, wc.QPNum, wc.ByteLen)
		if r.mask != 0 {
			text += fmt.Sprintf(", timestamp %#x", wc.Timestamp)
		}
		inOrder := r.inOrder(wc)
		ok := r.right(wc)
		if !ok {
			text += fmt.Sprintf("; expected were %d, %#x and %d", r.count, r.number, r.length)
		}
		j.observe(ok, "%s", text)
		if !inOrder {
			j.observeConvention(false, "the timestamp %#x goes back, or is beyond the mask %#x", wc.Timestamp, r.mask)
		}
	}
}

// reading is what is expected of successive completions on an extended CQ.
type reading struct {
	// number is that of their QP, length that of each message.
	number, length uint32
	// mask is the largest timestamp. Zero means that the device has none.
	mask uint64
	// ordered is true if the clock wraps so seldom that a timestamp that seems to go back does.
	// Older libraries of irdma give round-trip times instead, beyond any mask.
	ordered bool
	// count is the number of completions, and last the timestamp of the last.
	count, last uint64
}

func newReading(fields verbs.WCFields, attr verbs.ExtendedAttr) (r reading) {
	if fields&verbs.WCTimestamp == 0 {
		return r
	}
	// The fastest clock of any device, in kHz, for one that does not report its own.
	const fastest = 1_000_000
	half := attr.TimestampMask / 2 / cmp.Or(attr.CoreClock, fastest) // in milliseconds
	r.mask, r.ordered = attr.TimestampMask, half > uint64(2*eventTimeout/time.Millisecond)
	return r
}

func (r *reading) right(wc verbs.WC) bool {
	r.count++
	return wc.ID == r.count && wc.QPNum == r.number && wc.ByteLen == r.length
}

// inOrder reports whether the timestamp of the next completion is valid and not before the
// last. It goes back if it is behind the last by less than half of the way round to 0.
func (r *reading) inOrder(wc verbs.WC) bool {
	back := r.ordered && r.count > 0 && (wc.Timestamp-r.last)&r.mask > r.mask/2
	beyond := r.ordered && wc.Timestamp > r.mask
	r.last = wc.Timestamp
	return !beyond && !back
}

// batch is the number of completions polled in one batch. A library may lose only later ones.
const batch = 6

// cqExBatchKeepsCompletions uses flushed work requests: if the queue overran, no message
// and no other queue pair would suffer. A loss counts only if it repeats, and if batches of
// one completion lose none.
func cqExBatchKeepsCompletions(j *check) {
	j.describe(fmt.Sprintf("a CQ of ibv_create_cq_ex with %d completions in it, polled as one batch: ibv_start_poll, ibv_next_poll until there are no more (ENOENT), ibv_end_poll; the same with one completion more", batch),
		"each completion is polled once, in the order of the work requests, and no other")
	if len(j.sources.flushes) == 0 {
		session.Stop(j.noFlushes())
	}
	want := upTo(batch + following)
	polled := func(most int) (ids []uint64) {
		j.isolated(func() { ids = j.pollBatches(j.sources.flushes[0], most) })
		return ids
	}
	ids := polled(2 * batch)
	if slices.Equal(ids, want) {
		j.observe(true, "polled were %d completions, in order", len(ids))
		return
	}
	if len(ids) < len(want) {
		single := polled(1)
		ids = polled(2 * batch)
		if !slices.Equal(single, want) || slices.Equal(ids, want) {
			session.Stop(fmt.Errorf("polled one by one were the completions of %v: %w", single, errNoCompletion))
		}
	}
	j.observe(false, "polled were the completions of %v, of work requests %v", ids, want)
}

// upTo returns the ids of the first n work requests.
func upTo(n uint64) []uint64 {
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = uint64(i) + 1
	}
	return ids
}

// pollBatches flushes two groups of work requests and polls the completions of each in
// batches of at most most.
func (j *check) pollBatches(method session.Flush, most int) (ids []uint64) {
	q, err := j.extendedCQ(smallCQ, verbs.WCStandard)
	session.Stop(cannot("create an extended CQ", err))
	c := j.flusher(q, method, batch+following)
	want := 0
	for _, n := range []int{batch, following} {
		c.flush(n)
		want += n
		time.Sleep(silenceWindow) // A completion after the end of a batch may find no room.
		j.presume("polling a batch of completions", true)
		// Further completions come with the next batch.
		w := verbs.NewWait(eventTimeout)
		for last := false; !last; time.Sleep(w.Pause(time.Millisecond)) {
			last = len(ids) >= want || w.Left() <= 0
			wcs, err := q.Poll(most)
			session.Stop(cannot("poll an extended CQ", err))
			for _, wc := range wcs {
				ids = append(ids, wc.ID)
			}
		}
	}
	return ids
}
