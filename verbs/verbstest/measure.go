package verbstest

import (
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/verbs"
)

// Bounds of the measurements: what must come has as long as elsewhere; what must
// not come is waited for to the deadline, which a completion that does come meets.
const (
	measureBudget = 30 * time.Second
	inVain        = 200 * time.Millisecond
)

// measuredVerbs are the verbs that a measurement calls, and may fail in.
func measuredVerbs() []verbs.Verb {
	return []verbs.Verb{
		verbs.PostRecv, verbs.ReqNotifyCQ, verbs.PostSend, verbs.GetCQEvent, verbs.AckCQEvents, verbs.PollCQ,
		verbs.ModifyQP,
	}
}

// wantCoherent checks what holds of every result, that of a failure included.
func wantCoherent(t *testing.T, m verbs.Measurement, got verbs.Samples, took time.Duration) {
	t.Helper()
	if n := len(got.Latency); n > max(m.Samples, 0) {
		t.Errorf("%d samples of %d", n, m.Samples)
	}
	want := 0
	if m.Channel != nil {
		want = len(got.Latency)
	}
	if len(got.Arm) != want {
		t.Errorf("%d times of arming with %d samples, want %d", len(got.Arm), len(got.Latency), want)
	}
	var sum time.Duration
	for i, l := range got.Latency {
		if l <= 0 {
			t.Errorf("latency %d is %v", i, l)
		}
		sum += l
	}
	for i, a := range got.Arm {
		if a < 0 {
			t.Errorf("arming %d took %v", i, a)
		}
		sum += a
	}
	if sum > took {
		t.Errorf("the samples took %v together, and the measurement %v", sum, took)
	}
	for what, n := range map[string]int{
		"missed": got.Missed, "spurious": got.Spurious, "misdirected": got.Misdirected, "missing": got.Missing,
	} {
		if n < 0 {
			t.Errorf("%d are %s", n, what)
		}
	}
	if len(got.Unsuccessful) > 0 != (got.Stopped == verbs.StopUnsuccessful) {
		t.Errorf("unsuccessful: %v, but stopped because %q", got.Unsuccessful, got.Stopped)
	}
	if slices.Contains(got.Unsuccessful, m.Status) && m.Other == nil {
		t.Errorf("unsuccessful: %v, though %s is what there should be", got.Unsuccessful, m.Status)
	}
	if got.Missing > 0 != (got.Stopped == verbs.StopMissing) {
		t.Errorf("%d completions missing, but stopped because %q", got.Missing, got.Stopped)
	}
}

// wantFound checks all of a result but the times: that n samples were taken, and
// that what else it says is as in want.
func wantFound(t *testing.T, got verbs.Samples, n int, want verbs.Samples) {
	t.Helper()
	if len(got.Latency) != n {
		t.Errorf("%d samples, want %d", len(got.Latency), n)
	}
	if got.Missed != want.Missed || got.Spurious != want.Spurious || got.Misdirected != want.Misdirected ||
		got.Missing != want.Missing || got.Stopped != want.Stopped {
		t.Errorf("missed %d, spurious %d, misdirected %d, missing %d, stopped: %q; want %d, %d, %d, %d, %q",
			got.Missed, got.Spurious, got.Misdirected, got.Missing, got.Stopped,
			want.Missed, want.Spurious, want.Misdirected, want.Missing, want.Stopped)
	}
	if !slices.Equal(got.Unsuccessful, want.Unsuccessful) {
		t.Errorf("unsuccessful: %v, want %v", got.Unsuccessful, want.Unsuccessful)
	}
}

// mustMeasure measures without a failure.
func (d *device) mustMeasure(m verbs.Measurement) verbs.Samples {
	d.b.t.Helper()
	return must(d.Measure(m))(d.b.t, "Measure")
}

// messages returns a measurement of messages of 8 bytes from one peer to the
// other.
func messages(from, to *peer) verbs.Measurement {
	return verbs.Measurement{
		Sender: from.qp, Send: verbs.SendWR{
			ID: math.MaxUint64, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{from.buf.SGE(0, 8)},
		},
		Receiver: to.qp, Recv: verbs.RecvWR{ID: math.MaxUint64, SGEs: []verbs.SGE{to.buf.SGE(room, 64)}},
		CQ: to.recv, Other: from.send, Channel: to.events, Bystander: from.events,
		Status: verbs.WCSuccess, Warmup: 3, Samples: 20, Deadline: soon, Budget: measureBudget,
	}
}

// flushes is what a measurement of flushed sends needs.
type flushes struct {
	*failing
	p  *pd
	ch *channel
	c  *cq
	verbs.Measurement
}

// mustFlushes returns a measurement of sends that are flushed at once.
func (d *device) mustFlushes() *flushes {
	d.b.t.Helper()
	f := &flushes{p: d.mustPD(), ch: d.mustChannel()}
	f.c = d.mustCQ(16, f.ch, contextA)
	f.failing = d.mustFailing(f.p, f.c, f.c)
	f.Measurement = verbs.Measurement{
		Sender: f.qp, Send: verbs.SendWR{
			ID: math.MaxUint64, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{f.buf.SGE(0, 8)},
		},
		CQ: f.c, Channel: f.ch,
		Status: verbs.WCWRFlushErr, Warmup: 3, Samples: 20, Deadline: soon, Budget: measureBudget,
	}
	return f
}

// flush runs a subtest with flushed sends, after which nothing may be left.
func (s *suite) flush(t *testing.T, name string, test func(t *testing.T, d *device, f *flushes)) {
	t.Helper()
	s.run(t, name, func(t *testing.T, d *device) {
		f := d.mustFlushes()
		test(t, d, f)
		f.c.wantNothingLeft(f.ch)
		closeAll(f.handle, f.c.handle, f.ch.handle)
	})
}

// wantNothingLeft checks that the CQ may be destroyed: every completion of it was
// taken, and every event that was taken was acknowledged.
func (c *cq) wantNothingLeft(ch *channel) {
	c.b.t.Helper()
	c.mustBeEmpty()
	ch.mustBeQuiet()
	wantErrno(c.b.t, "AckEvents(1)", c.AckEvents(1), syscall.EINVAL)
}

// measure tests measurements: what is counted, when they end, and what they leave
// behind. It asserts no durations.
func (s *suite) measure(t *testing.T) {
	for _, part := range []func(*testing.T){
		s.measureMessages, s.measureFlushes, s.measureEnds, s.measureGoneWrong, s.measureArguments, s.measureClosed,
	} {
		part(t)
	}
}

// measureMessages tests measurements of messages in which nothing goes wrong.
func (s *suite) measureMessages(t *testing.T) {
	loopback := func(name string, change func(m *verbs.Measurement)) {
		t.Helper()
		s.run(t, name, func(t *testing.T, d *device) {
			a, b := s.connect(t, d, link{typ: verbs.RC})
			m := messages(a, b)
			change(&m)
			wantFound(t, d.mustMeasure(m), m.Samples, verbs.Samples{})
			b.recv.wantNothingLeft(b.events)
			a.send.mustBeEmpty()
			a.recv.wantNothingLeft(a.events)
			// The QPs are as before, and may be measured again.
			transfer(t, a, b, 1, 100)
			transfer(t, b, a, 2, 100)
			wantFound(t, d.mustMeasure(m), m.Samples, verbs.Samples{})
			closeAll(a.handle, b.handle, a.send.handle, b.send.handle, a.recv.handle, b.recv.handle, a.events.handle, b.events.handle)
		})
	}
	loopback("any", func(*verbs.Measurement) {})
	loopback("solicited", func(m *verbs.Measurement) {
		m.SolicitedOnly = true
		m.Send.Flags |= verbs.SendSolicited
	})
	loopback("polling", func(m *verbs.Measurement) { m.Channel, m.Bystander = nil, nil })
	loopback("no data", func(m *verbs.Measurement) { m.Send.SGEs, m.Recv.SGEs = nil, nil })
	loopback("unsignalled", func(m *verbs.Measurement) {
		m.Send.Flags, m.Other = 0, nil
		m.Samples = 4 // without completions, room in the send queue is unknown
	})
	s.run(t, "datagrams", func(t *testing.T, d *device) {
		s.requireType(t, verbs.UD)
		s.requirePort(t)
		p, ch := d.mustPD(), d.mustChannel()
		send, recv := d.mustCQ(16, nil, 0), d.mustCQ(16, ch, contextA)
		from, to := d.mustDatagramQP(verbs.UD, p, send, send), d.mustDatagramQP(verbs.UD, p, recv, recv)
		buf := p.mustMR(4096)
		way := must(p.CreateAH(d.mustPath().ah))(t, "CreateAH")
		m := verbs.Measurement{
			Sender: from, Send: verbs.SendWR{
				Flags: verbs.SendSignaled, SGEs: []verbs.SGE{buf.SGE(0, 8)},
				AH: way, RemoteQPN: to.Number(), RemoteQKey: verbs.UDQKey,
			},
			Receiver: to, Recv: verbs.RecvWR{SGEs: []verbs.SGE{buf.SGE(1024, headers(verbs.UD)+8)}},
			CQ: recv, Other: send, Channel: ch, Samples: 10, Deadline: soon, Budget: measureBudget,
		}
		wantFound(t, d.mustMeasure(m), m.Samples, verbs.Samples{})
		recv.wantNothingLeft(ch)
		way.mustClose()
		wantClosed(t, "Measure with its AH", errorOf(d.Measure(m)))
		m.Send.AH = nil
		wantErrno(t, "Measure of datagrams without an AH", errorOf(d.Measure(m)), syscall.EINVAL)
	})
}

// measureFlushes tests measurements of flushed sends in which nothing goes wrong.
func (s *suite) measureFlushes(t *testing.T) {
	s.flush(t, "flush any", func(t *testing.T, d *device, f *flushes) {
		f.Bystander = d.mustChannel()
		wantFound(t, d.mustMeasure(f.Measurement), f.Samples, verbs.Samples{})
	})
	s.flush(t, "flush polling", func(t *testing.T, d *device, f *flushes) {
		f.Channel = nil
		wantFound(t, d.mustMeasure(f.Measurement), f.Samples, verbs.Samples{})
	})
	s.flush(t, "flush without channel", func(t *testing.T, d *device, f *flushes) {
		c := d.mustCQ(16, nil, 0)
		f.Sender, f.CQ, f.Channel = d.mustFailing(d.mustPD(), c, c).qp, c, nil
		wantFound(t, d.mustMeasure(f.Measurement), f.Samples, verbs.Samples{})
		c.mustBeEmpty()
	})
	s.flush(t, "warm-up", func(t *testing.T, d *device, f *flushes) {
		for _, n := range [][2]int{{0, 1}, {1, 1}, {30, 2}} {
			f.Warmup, f.Samples = n[0], n[1]
			wantFound(t, d.mustMeasure(f.Measurement), f.Samples, verbs.Samples{})
		}
	})
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UD, verbs.SRD} {
		s.run(t, "flushed receives "+typ.Label(), func(t *testing.T, d *device) { s.flushedReceives(t, d, typ) })
	}
	s.flush(t, "unacknowledged events of others", func(t *testing.T, d *device, f *flushes) {
		f.c.mustArm(false)
		f.complete(1)
		f.ch.awaitEvent(f.c)
		f.c.await(1)
		wantFound(t, d.mustMeasure(f.Measurement), f.Samples, verbs.Samples{})
		// That one is the caller's still, and the only one.
		wantErrno(t, "AckEvents(2)", f.c.AckEvents(2), syscall.EINVAL)
		wantNoError(t, "AckEvents(1)", f.c.AckEvents(1))
	})
}

// flushedReceives tests measurements of receives that are flushed, for which the QP
// goes through its states again and again. Some devices flush none, and some never
// let a QP be used again.
func (s *suite) flushedReceives(t *testing.T, d *device, typ verbs.QPType) {
	s.requireType(t, typ)
	p, ch := d.mustPD(), d.mustChannel()
	recv, idle := d.mustCQ(16, ch, contextA), d.mustCQ(16, nil, 0)
	q := p.mustQP(typ, idle, recv)
	attr, mask := verbs.ToInit(typ, 1, verbs.AccessLocalWrite)
	m := verbs.Measurement{
		Receiver: q, Recv: verbs.RecvWR{ID: math.MaxUint64, SGEs: []verbs.SGE{p.mustMR(64).SGE(0, 64)}},
		Init: &verbs.QPChange{Attr: attr, Mask: mask},
		CQ:   recv, Channel: ch, Bystander: d.mustChannel(),
		Status: verbs.WCWRFlushErr, Warmup: 3, Samples: 20, Deadline: soon, Budget: measureBudget,
	}
	if d.raw.Transport() == verbs.TransportIWARP {
		m.Deadline = inVain
	}
	got, err := d.Measure(m)
	if d.raw.Transport() == verbs.TransportIWARP && (err != nil || got.Missing > 0) {
		t.Skipf("%s speaks iWARP, and does not flush them again and again: %+v, %v", s.cfg.Device, got, err)
	}
	if s.cfg.SingleUse {
		wantErrno(t, "Measure", err, syscall.EINVAL)
		return
	}
	if err != nil {
		t.Fatalf("Measure: %v", err)
	}
	wantFound(t, got, m.Samples, verbs.Samples{})
	recv.wantNothingLeft(ch)
	idle.mustBeEmpty()
	// Again, by polling, from the state in which it was left.
	q.mustBe(verbs.Err)
	m.Channel, m.Bystander = nil, nil
	wantFound(t, d.mustMeasure(m), m.Samples, verbs.Samples{})
	recv.wantNothingLeft(ch)

	other := p.mustQP(typ, idle, recv)
	for what, change := range map[string]func(m *verbs.Measurement){
		"a sender":    func(m *verbs.Measurement) { m.Sender = other },
		"no receiver": func(m *verbs.Measurement) { m.Receiver = nil },
		"another CQ":  func(m *verbs.Measurement) { m.Other = idle },
		"no port":     func(m *verbs.Measurement) { m.Init = &verbs.QPChange{Attr: verbs.QPAttr{Port: 300}, Mask: mask} },
	} {
		wrong := m
		change(&wrong)
		if _, err := d.Measure(wrong); err == nil {
			t.Errorf("Measure of flushed receives with %s: no error", what)
		}
	}
}

// measureEnds tests measurements that end early.
func (s *suite) measureEnds(t *testing.T) {
	s.flush(t, "budget", func(t *testing.T, d *device, f *flushes) {
		for _, ch := range []verbs.CompChannel{f.ch, nil} {
			f.Channel, f.Warmup, f.Samples, f.Budget = ch, 1, verbs.MaxSamples-1, time.Nanosecond
			got := d.mustMeasure(f.Measurement)
			if len(got.Latency) >= f.Samples {
				t.Errorf("%d samples within %v", len(got.Latency), f.Budget)
			}
			wantFound(t, got, len(got.Latency), verbs.Samples{Stopped: verbs.StopBudget})
			// It does not even last for the warm-up.
			f.Warmup, f.Samples, f.Budget = verbs.MaxSamples-1, 1, 2*time.Millisecond
			wantFound(t, d.mustMeasure(f.Measurement), 0, verbs.Samples{Stopped: verbs.StopBudget})
		}
	})
	s.flush(t, "unsuccessful", func(t *testing.T, d *device, f *flushes) {
		f.Status = verbs.WCSuccess
		for _, ch := range []verbs.CompChannel{f.ch, nil} {
			f.Channel = ch
			wantFound(t, d.mustMeasure(f.Measurement), 0, verbs.Samples{
				Unsuccessful: []verbs.WCStatus{verbs.WCWRFlushErr}, Stopped: verbs.StopUnsuccessful,
			})
		}
	})
	s.run(t, "missing", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC, tellSent: true})
		m := messages(a, b)
		m.Send.Flags = 0 // so that there is no completion of it
		m.Receiver, m.CQ, m.Other, m.Channel, m.Bystander = nil, a.send, nil, a.events, b.events
		m.Warmup, m.Deadline = 0, inVain
		for _, ch := range []verbs.CompChannel{a.events, nil} {
			m.Channel = ch
			b.expect(1)
			wantFound(t, d.mustMeasure(m), 0, verbs.Samples{Missing: 1, Stopped: verbs.StopMissing})
			b.recv.await(1)
		}
		a.send.wantNothingLeft(a.events)
	})
	s.run(t, "the sender's missing", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC})
		m := messages(a, b)
		m.Send.Flags = 0
		m.Warmup, m.Deadline = 0, inVain
		for _, ch := range []verbs.CompChannel{b.events, nil} {
			m.Channel = ch
			wantFound(t, d.mustMeasure(m), 0, verbs.Samples{Missing: 1, Stopped: verbs.StopMissing})
		}
		b.recv.wantNothingLeft(b.events)
	})
	s.run(t, "missed", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC})
		m := messages(a, b)
		m.SolicitedOnly, m.Deadline = true, inVain // though nothing is solicited
		wantFound(t, d.mustMeasure(m), 0, verbs.Samples{Missed: verbs.MaxMissed, Stopped: verbs.StopMissed})
		b.recv.wantNothingLeft(b.events)
		// As few as are to be taken are missed, and end nothing.
		m.Warmup, m.Samples, m.Bystander = 0, 1, nil
		wantFound(t, d.mustMeasure(m), 0, verbs.Samples{Missed: 1})
		b.recv.wantNothingLeft(b.events)
		a.send.mustBeEmpty()
	})
	s.flush(t, "verb fails", func(t *testing.T, d *device, f *flushes) {
		f.Send.SGEs = slices.Repeat(f.Send.SGEs, 1000)
		got, err := d.Measure(f.Measurement)
		wantError(t, "Measure of a send with 1000 SGEs", err)
		wantFound(t, got, 0, verbs.Samples{})
	})
	s.flush(t, "verb of the receiver fails", func(t *testing.T, d *device, f *flushes) {
		f.Receiver, f.Recv.SGEs = f.qp, slices.Repeat(f.Send.SGEs, 1000)
		got, err := d.Measure(f.Measurement)
		wantError(t, "Measure with a receive of 1000 SGEs", err)
		wantFound(t, got, 0, verbs.Samples{})
	})
}

// measureGoneWrong tests what is counted as gone wrong and ends nothing.
func (s *suite) measureGoneWrong(t *testing.T) {
	s.flush(t, "stale event", func(t *testing.T, d *device, f *flushes) {
		f.c.mustArm(false)
		f.complete(1)
		f.c.await(1)
		time.Sleep(moment) // the event may come after its completion
		wantFound(t, d.mustMeasure(f.Measurement), f.Samples, verbs.Samples{Spurious: 1})
	})
	s.flush(t, "event of another CQ", func(t *testing.T, d *device, f *flushes) {
		other := d.mustCQ(16, f.ch, contextB)
		q := d.mustFailing(d.mustPD(), other, other)
		other.mustArm(false)
		q.complete(1)
		other.await(1)
		time.Sleep(moment)
		wantFound(t, d.mustMeasure(f.Measurement), f.Samples, verbs.Samples{Misdirected: 1})
		other.wantNothingLeft(f.ch)
		q.mustClose()
		other.mustClose()
	})
	s.run(t, "event on the bystander", func(t *testing.T, d *device) {
		a, b := s.connect(t, d, link{typ: verbs.RC})
		m := messages(a, b)
		m.SolicitedOnly, m.Deadline = true, inVain
		beside := d.mustChannel()
		m.Bystander = beside
		other := d.mustCQ(16, beside, contextB)
		q := d.mustFailing(d.mustPD(), other, other)
		other.mustArm(false)
		q.complete(1)
		other.await(1)
		time.Sleep(moment)
		wantFound(t, d.mustMeasure(m), 0, verbs.Samples{
			Misdirected: 1, Missed: verbs.MaxMissed - 1, Stopped: verbs.StopMissed,
		})
		other.wantNothingLeft(beside)
		b.recv.wantNothingLeft(b.events)
		q.mustClose()
		other.mustClose()
		beside.mustClose()
	})
}

// strangeQP is a QP of another implementation. None of its methods may be called.
type strangeQP struct{ verbs.QP }

// measureArguments tests measurements that cannot be taken.
func (s *suite) measureArguments(t *testing.T) {
	cases := []struct {
		name   string
		change func(d *device, m *verbs.Measurement)
	}{
		{"nothing", func(_ *device, m *verbs.Measurement) { *m = verbs.Measurement{} }},
		{"no sender", func(_ *device, m *verbs.Measurement) { m.Sender = nil }},
		{"strange sender", func(_ *device, m *verbs.Measurement) { m.Sender = strangeQP{unwrap(m.Sender)} }},
		{"sender of another device", func(d *device, m *verbs.Measurement) { m.Sender = d.again().mustFlushes().qp }},
		{"strange receiver", func(_ *device, m *verbs.Measurement) { m.Receiver = strangeQP{unwrap(m.Sender)} }},
		{"receiver of another device", func(d *device, m *verbs.Measurement) { m.Receiver = d.again().mustFlushes().qp }},
		{"no CQ", func(_ *device, m *verbs.Measurement) { m.CQ, m.Channel = nil, nil }},
		{"strange CQ", func(_ *device, m *verbs.Measurement) { m.CQ = strangeCQ{unwrap(m.CQ)} }},
		{"CQ of another device", func(d *device, m *verbs.Measurement) { m.CQ, m.Channel = d.again().mustCQ(4, nil, 0), nil }},
		{"strange other CQ", func(d *device, m *verbs.Measurement) { m.Other = strangeCQ{d.mustCQ(4, nil, 0).raw} }},
		{"other CQ of another device", func(d *device, m *verbs.Measurement) { m.Other = d.again().mustCQ(4, nil, 0) }},
		{"the CQ twice", func(_ *device, m *verbs.Measurement) { m.Other = m.CQ }},
		{"strange channel", func(_ *device, m *verbs.Measurement) { m.Channel = strangeChannel{unwrap(m.Channel)} }},
		{"channel of another device", func(d *device, m *verbs.Measurement) { m.Channel = d.again().mustChannel() }},
		{"channel of another CQ", func(d *device, m *verbs.Measurement) { m.Channel = d.mustChannel() }},
		{"channel with a CQ that has none", func(d *device, m *verbs.Measurement) { m.CQ = d.mustCQ(4, nil, 0) }},
		{"strange bystander", func(d *device, m *verbs.Measurement) { m.Bystander = strangeChannel{d.mustChannel().raw} }},
		{"bystander of another device", func(d *device, m *verbs.Measurement) { m.Bystander = d.again().mustChannel() }},
		{"the channel for bystander", func(_ *device, m *verbs.Measurement) { m.Bystander = m.Channel }},
		{"no samples", func(_ *device, m *verbs.Measurement) { m.Samples = 0 }},
		{"fewer samples than none", func(_ *device, m *verbs.Measurement) { m.Samples = -1 }},
		{"too many samples", func(_ *device, m *verbs.Measurement) { m.Warmup, m.Samples = 0, verbs.MaxSamples+1 }},
		{"too many with warm-up", func(_ *device, m *verbs.Measurement) { m.Warmup, m.Samples = 1, verbs.MaxSamples }},
		{"far too many", func(_ *device, m *verbs.Measurement) { m.Warmup, m.Samples = math.MaxInt, math.MaxInt }},
		{"less warm-up than none", func(_ *device, m *verbs.Measurement) { m.Warmup = -1 }},
		{"no deadline", func(_ *device, m *verbs.Measurement) { m.Deadline = 0 }},
		{"deadline in the past", func(_ *device, m *verbs.Measurement) { m.Deadline = -time.Second }},
	}
	s.flush(t, "arguments", func(t *testing.T, d *device, f *flushes) {
		for _, tt := range cases {
			m := f.Measurement
			tt.change(d, &m)
			got, err := d.Measure(m)
			wantErrno(t, tt.name, err, syscall.EINVAL)
			wantFound(t, got, 0, verbs.Samples{})
		}
		// Nothing was posted or armed, and nothing is held.
	})
	s.flush(t, "longest times", func(t *testing.T, d *device, f *flushes) {
		m := f.Measurement
		m.Deadline, m.Budget = math.MaxInt64, math.MaxInt64
		got, err := d.raw.Measure(verbs.Measurement{
			Sender: f.raw, Send: m.Send, CQ: f.c.raw, Channel: f.ch.raw, Status: m.Status,
			Samples: m.Samples, Deadline: m.Deadline, Budget: m.Budget,
		})
		if err != nil {
			t.Fatalf("Measure: %v", err)
		}
		wantFound(t, got, m.Samples, verbs.Samples{})
	})
}

// measureClosed tests measurements with objects that are closed.
func (s *suite) measureClosed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		close func(d *device, f *flushes)
	}{
		{"sender closed", func(_ *device, f *flushes) { f.mustClose() }},
		{"receiver closed", func(d *device, f *flushes) { f.Receiver = closed(d.mustFlushes().qp) }},
		{"CQ closed", func(d *device, f *flushes) { f.CQ = closed(d.mustCQ(4, f.ch, 0)) }},
		{"other CQ closed", func(d *device, f *flushes) { f.Other = closed(d.mustCQ(4, nil, 0)) }},
		{"channel closed", func(_ *device, f *flushes) { closeAll(f.handle, f.c.handle, f.ch.handle) }},
		{"bystander closed", func(d *device, f *flushes) { f.Bystander = closed(d.mustChannel()) }},
	} {
		s.run(t, tt.name, func(t *testing.T, d *device) {
			f := d.mustFlushes()
			tt.close(d, f)
			got, err := d.Measure(f.Measurement)
			wantClosed(t, "Measure with an object", err)
			wantFound(t, got, 0, verbs.Samples{})
		})
	}
	s.run(t, "device closed", func(t *testing.T, d *device) {
		d = d.b.open(d.device)
		f := d.mustFlushes()
		closeAll(f.handle, f.buf.handle, f.c.handle, f.ch.handle, f.p.handle, d.armed.handle, d.handle)
		wantClosed(t, "Measure of the device", errorOf(d.Measure(f.Measurement)))
	})
}
