package simulated_test

import (
	"errors"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// The medians of the devices of these tests.
const (
	polled   = 20 * time.Microsecond
	notified = 50 * time.Microsecond
	slow     = 400 * time.Microsecond
)

// bench is what measurements are taken with.
type bench struct {
	*testing.T
	d         verbs.Device
	pd        verbs.PD
	ch        verbs.CompChannel
	bystander verbs.CompChannel
	cq        verbs.CQ
}

// timed returns a profile of one device whose latencies do not differ.
func timed(t *testing.T, change func(*simulated.DeviceProfile)) *simulated.Profile {
	t.Helper()
	return like(t, "sim_ib0", func(d *simulated.DeviceProfile) {
		d.CompletionLatency = simulated.CompletionLatency{
			Polled: polled, Notified: notified, SlowVectors: map[int]time.Duration{5: slow},
		}
		if change != nil {
			change(d)
		}
	})
}

// newBench opens the first device of a profile, and has a CQ there on a vector.
func newBench(t *testing.T, p *simulated.Profile, tracer verbs.Tracer, vector int) *bench {
	t.Helper()
	b := &bench{T: t, d: must(simulated.New(p, tracer).Open(p.Devices[0].Name))(t)}
	b.pd = must(b.d.AllocPD())(t)
	b.ch = must(b.d.CreateCompChannel())(t)
	b.bystander = must(b.d.CreateCompChannel())(t)
	b.cq = must(b.d.CreateCQ(verbs.CQInitAttr{Entries: 16, Channel: b.ch, Context: 3, Vector: vector}))(t)
	return b
}

func (b *bench) flushes() verbs.Measurement {
	b.Helper()
	q := must(b.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: b.cq, RecvCQ: b.cq, Cap: qpCap}))(b.T)
	ok(b.T, q.Modify(verbs.ToError()))
	return verbs.Measurement{
		Sender: q, Send: verbs.SendWR{Flags: verbs.SendSignaled},
		CQ: b.cq, Channel: b.ch, Bystander: b.bystander, Status: verbs.WCWRFlushErr,
		Samples: 5, Deadline: 2 * moment, Budget: soon,
	}
}

func (b *bench) messages() verbs.Measurement {
	b.Helper()
	from := newEnd(b.T, b.d, b.pd, verbs.RC)
	at := &end{mr: from.mr}
	at.QP = must(b.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: from.recv, RecvCQ: b.cq, Cap: qpCap}))(b.T)
	from.rtr(b.T, b.d, at)
	at.rtr(b.T, b.d, from)
	from.rts(b.T)
	m := b.flushes()
	m.Sender, m.Send, m.Receiver, m.Recv = from.QP, send(from), at.QP, recv(at)
	m.Other, m.Status = from.send, verbs.WCSuccess
	return m
}

// measure measures, and sees that what it found can have passed.
func (b *bench) measure(m verbs.Measurement) verbs.Samples {
	b.Helper()
	start := time.Now()
	got, err := b.d.Measure(m)
	took := time.Since(start)
	ok(b.T, err)
	var sum time.Duration
	for _, times := range [][]time.Duration{got.Latency, got.Arm} {
		for _, d := range times {
			sum += d
		}
	}
	if sum > took {
		b.Errorf("latencies of %s together within %s", sum, took)
	}
	return got
}

func repeated(n int, d time.Duration) []time.Duration {
	return slices.Repeat([]time.Duration{d}, n)
}

func TestLatencyOfProfile(t *testing.T) {
	for _, test := range []struct {
		name   string
		vector int
		change func(*verbs.Measurement)
		want   time.Duration
	}{
		{"notified", 0, nil, notified},
		{"slow vector", 5, nil, slow},
		{"polled", 0, func(m *verbs.Measurement) { m.Channel = nil }, polled},
		{"slow vector polled", 5, func(m *verbs.Measurement) { m.Channel = nil }, polled},
		{"deadline", 5, func(m *verbs.Measurement) { m.Deadline = slow / 2 }, slow / 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, timed(t, nil), nil, test.vector)
			for path, m := range map[string]verbs.Measurement{"flush": b.flushes(), "loopback": b.messages()} {
				if test.change != nil {
					test.change(&m)
				}
				m.Warmup, m.Samples = 3, 100
				got := b.measure(m)
				if want := repeated(100, test.want); !slices.Equal(got.Latency, want) {
					t.Errorf("%s: latencies %v, want 100 of %s", path, got.Latency, test.want)
				}
				if got.Stopped != verbs.StopNone {
					t.Errorf("%s: stopped as %s", path, got.Stopped)
				}
			}
		})
	}
}

func TestLatencyWithoutProfile(t *testing.T) {
	b := newBench(t, timed(t, func(d *simulated.DeviceProfile) {
		d.CompletionLatency = simulated.CompletionLatency{Jitter: 1}
		d.Latency = map[verbs.Verb]time.Duration{verbs.PostSend: time.Millisecond}
	}), nil, 5)
	got := b.measure(b.flushes())
	if len(got.Latency) != 5 || len(got.Arm) != 5 {
		t.Fatalf("samples %+v", got)
	}
	for i, latency := range got.Latency {
		if latency < time.Millisecond || got.Arm[i] <= 0 {
			t.Errorf("sample %d: latency %s, armed in %s", i, latency, got.Arm[i])
		}
	}
}

// TestLatencyOfVerbs has verbs that take longer, for always or once.
func TestLatencyOfVerbs(t *testing.T) {
	b := newBench(t, timed(t, func(d *simulated.DeviceProfile) {
		d.Latency = map[verbs.Verb]time.Duration{verbs.PostSend: time.Millisecond, verbs.PostRecv: moment, verbs.ReqNotifyCQ: time.Millisecond}
		d.Faults = []simulated.Fault{{Verb: verbs.GetCQEvent, After: 1, Times: 1, Delay: moment / 2}}
	}), nil, 0)
	got := b.measure(b.flushes())
	want := repeated(5, notified+time.Millisecond)
	want[1] += moment / 2
	if !slices.Equal(got.Latency, want) {
		t.Errorf("latencies %v, want %v", got.Latency, want)
	}
	for _, arm := range got.Arm {
		if arm < time.Millisecond {
			t.Errorf("armed in %s", arm)
		}
	}
}

func TestLatencyDistribution(t *testing.T) {
	const n = 4000
	sample := func(name string) []time.Duration {
		p := timed(t, func(d *simulated.DeviceProfile) {
			d.Name = name
			d.CompletionLatency.Jitter = 0.3
		})
		b := newBench(t, p, nil, 0)
		m := b.flushes()
		m.Channel, m.Samples = nil, n
		return b.measure(m).Latency
	}
	one := sample("one")
	if !slices.Equal(one, sample("one")) {
		t.Error("a device of the same name has other latencies")
	}
	if slices.Equal(one, sample("two")) {
		t.Error("a device of another name has the same latencies")
	}
	slices.Sort(one)
	near := func(what string, got, want time.Duration) {
		t.Helper()
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("%s %s, want about %s", what, got, want)
		}
	}
	near("median", one[n/2], polled)
	near("16th percentile", one[n*16/100], time.Duration(float64(polled)*0.74))
	near("84th percentile", one[n*84/100], time.Duration(float64(polled)*1.35))
	if least, most := one[0], one[n-1]; least < polled/10 || most < 4*polled || most > 100*polled {
		t.Errorf("latencies from %s to %s", least, most)
	}
}

// TestMeasuredCompletionFaults has faults, and what measurements find of them. As
// in all tests of what comes in time and what too late, no time passes but that of
// waits.
func TestMeasuredCompletionFaults(t *testing.T) {
	const deadline = 2 * moment // that of the measurements
	at := func(n int) []time.Duration { return repeated(n, notified) }
	late := at(5)
	late[1] += moment
	for _, test := range []struct {
		name     string
		fault    simulated.CompletionFault
		messages bool
		polling  bool
		want     verbs.Samples
	}{
		{"none", simulated.CompletionFault{Fault: "drop_event", After: 5}, false, false, verbs.Samples{Latency: at(5)}},
		{"drop", simulated.CompletionFault{Fault: "drop_event", After: 1, Times: 1}, false, false, verbs.Samples{Latency: at(4), Missed: 1}},
		{"drop all", simulated.CompletionFault{Fault: "drop_event"}, false, false, verbs.Samples{Missed: 3, Stopped: verbs.StopMissed}},
		{"drop on the path", simulated.CompletionFault{Fault: "drop_event", After: 4, Path: "flush"}, false, false, verbs.Samples{Latency: at(4), Missed: 1}},
		{"drop on another path", simulated.CompletionFault{Fault: "drop_event", Path: "loopback"}, false, false, verbs.Samples{Latency: at(5)}},
		{"drop of messages", simulated.CompletionFault{Fault: "drop_event", Path: "loopback", After: 2, Times: 2}, true, false, verbs.Samples{Latency: at(3), Missed: 2}},
		{"drop while polling", simulated.CompletionFault{Fault: "drop_event"}, false, true, verbs.Samples{Latency: repeated(5, polled)}},
		{"delay", simulated.CompletionFault{Fault: "delay_event", After: 1, Times: 1, Delay: moment}, false, false, verbs.Samples{Latency: late}},
		{"delay too long", simulated.CompletionFault{Fault: "delay_event", Delay: time.Hour}, true, false, verbs.Samples{Missed: 3, Stopped: verbs.StopMissed}},
		{"misdirect", simulated.CompletionFault{Fault: "misdirect_event", Times: 2}, false, false, verbs.Samples{Latency: at(3), Misdirected: 2}},
		{"misdirect all", simulated.CompletionFault{Fault: "misdirect_event"}, true, false, verbs.Samples{Misdirected: 3, Stopped: verbs.StopMissed}},
		{"misname", simulated.CompletionFault{Fault: "misname_event", Times: 2}, true, false, verbs.Samples{Latency: at(3), Misdirected: 2}},
		{"spurious", simulated.CompletionFault{Fault: "spurious_event", After: 1, Times: 2}, false, false, verbs.Samples{Latency: at(5), Spurious: 2}},
		{"lose", simulated.CompletionFault{Fault: "lose_completion", After: 2}, false, false, verbs.Samples{Latency: at(2), Spurious: 1, Missing: 1, Stopped: verbs.StopMissing}},
		{"lose while polling", simulated.CompletionFault{Fault: "lose_completion", After: 2, Times: 1}, false, true, verbs.Samples{Latency: repeated(2, polled), Missing: 1, Stopped: verbs.StopMissing}},
		{"lose the sender's", simulated.CompletionFault{Fault: "lose_completion", After: 3, Times: 1}, true, false, verbs.Samples{Latency: at(1), Missing: 1, Stopped: verbs.StopMissing}},
		{"never complete", simulated.CompletionFault{Fault: "never_complete", After: 2, Times: 1}, false, false, verbs.Samples{Latency: at(2), Missing: 1, Stopped: verbs.StopMissing}},
		{
			"fail",
			simulated.CompletionFault{Fault: "fail_completion", After: 1, Status: "rem_op_err"},
			false, false,
			verbs.Samples{Latency: at(1), Unsuccessful: []verbs.WCStatus{remOpErr}, Stopped: verbs.StopUnsuccessful},
		},
		{
			"fail the sender's",
			simulated.CompletionFault{Fault: "fail_completion", After: 1, Status: "retry_exc_err"},
			true, false,
			verbs.Samples{Unsuccessful: []verbs.WCStatus{verbs.WCRetryExc}, Stopped: verbs.StopUnsuccessful},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, timed(t, func(d *simulated.DeviceProfile) {
					d.CompletionFaults = []simulated.CompletionFault{test.fault}
				}), nil, 0)
				var m verbs.Measurement
				if test.messages {
					m = b.messages()
					m.Send.Flags |= verbs.SendSolicited
				} else {
					m = b.flushes()
				}
				m.SolicitedOnly = true
				if test.polling {
					m.Channel = nil
				}
				m.Deadline = deadline
				got := b.measure(m)
				if !test.polling && len(got.Arm) != len(got.Latency) {
					t.Errorf("%d times of arming for %d latencies", len(got.Arm), len(got.Latency))
				}
				got.Arm = nil
				if len(got.Latency) == 0 {
					got.Latency = nil
				}
				if !reflect.DeepEqual(got, test.want) {
					t.Errorf("found %+v, want %+v", got, test.want)
				}
				// Nothing was left unacknowledged.
				for _, o := range []interface{ Close() error }{m.Receiver, m.Sender, m.Other, b.cq, b.ch, b.bystander} {
					if o != nil {
						wantAcknowledged(t, o)
					}
				}
			})
		})
	}
}

// wantAcknowledged closes an object, unless it is in use still, and sees that no
// event was left unacknowledged.
func wantAcknowledged(t *testing.T, o interface{ Close() error }) {
	t.Helper()
	if err := o.Close(); errors.Is(err, verbs.ErrUnacknowledged) {
		t.Error(err)
	}
}

// TestLateEvent has an event come when its sample was given up: it is not a
// spurious one.
func TestLateEvent(t *testing.T) {
	const deadline = moment
	p := timed(t, func(d *simulated.DeviceProfile) {
		d.CompletionFaults = []simulated.CompletionFault{{Fault: "delay_event", Times: 1, Delay: 2 * deadline}}
		d.Faults = []simulated.Fault{{Verb: verbs.PostSend, After: 2, Times: 1, Delay: 3 * deadline}}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, p, nil, 0)
		m := b.flushes()
		m.Deadline = deadline
		got := b.measure(m)
		if got.Missed != 1 || got.Spurious != 0 || len(got.Latency) != 4 {
			t.Errorf("found %+v, want one missed", got)
		}
	})
}

// TestMeasureVerbFails has each verb of a sample fail.
func TestMeasureVerbFails(t *testing.T) {
	for _, verb := range []verbs.Verb{
		verbs.PostRecv, verbs.ReqNotifyCQ, verbs.PostSend, verbs.GetCQEvent, verbs.AckCQEvents, verbs.PollCQ,
	} {
		t.Run(string(verb), func(t *testing.T) {
			tracer := &calls{}
			after := 2
			if verb == verbs.PollCQ {
				after = 4 // each sample polls two CQs
			}
			b := newBench(t, timed(t, func(d *simulated.DeviceProfile) {
				d.Faults = []simulated.Fault{{Verb: verb, After: after, Errno: "EIO"}}
			}), tracer, 0)
			m := b.messages()
			before := len(tracer.ended)
			got, err := b.d.Measure(m)
			wantErrno(t, err, verb, syscall.EIO)
			if !slices.Equal(got.Latency, repeated(2, notified)) || len(got.Arm) != 2 {
				t.Errorf("found %+v, want two samples", got)
			}
			// The tracer sees the verb that failed, and no other.
			if told := tracer.ended[before:]; len(told) != 1 || told[0].Verb != verb || told[0].Errno != syscall.EIO {
				t.Errorf("traced %+v, want one failure of %s", told, verb)
			}
			ok(t, m.Receiver.Close())
			wantAcknowledged(t, b.cq)
		})
	}
}

func TestMeasureTraced(t *testing.T) {
	tracer := &calls{}
	b := newBench(t, timed(t, func(d *simulated.DeviceProfile) {
		d.Faults = []simulated.Fault{{Verb: verbs.PostSend, After: 2, Times: 1, Delay: time.Millisecond}}
	}), tracer, 0)
	m := b.messages()
	before := len(tracer.begun)
	b.measure(m)
	if told := tracer.begun[before:]; !slices.Equal(told, []verbs.Verb{verbs.PostSend}) {
		t.Errorf("traced %v, want the verb with the fault alone", told)
	}
	if ended := tracer.of(verbs.PostSend); len(ended) != 1 || ended[0].Duration < time.Millisecond {
		t.Errorf("traced %+v", ended)
	}
}

// TestMeasureHangs has a verb of the third sample hang.
func TestMeasureHangs(t *testing.T) {
	tracer := &calls{}
	b := newBench(t, timed(t, func(d *simulated.DeviceProfile) {
		d.Faults = []simulated.Fault{{Verb: verbs.GetCQEvent, After: 2, Hang: true}}
	}), tracer, 0)
	m := b.flushes()
	go func() { _, _ = b.d.Measure(m) }() // ends with the process, as the fault wants it
	for start := time.Now(); !tracer.began(verbs.GetCQEvent); time.Sleep(time.Millisecond) {
		if time.Since(start) > soon {
			t.Fatal("the tracer was not told")
		}
	}
	if ended := tracer.of(verbs.GetCQEvent); len(ended) > 0 {
		t.Errorf("ended: %+v", ended)
	}
}

func TestMeasureBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, timed(t, nil), nil, 5)
		m := b.flushes()
		m.Samples, m.Budget = verbs.MaxSamples, 50*slow
		start := time.Now()
		got := b.measure(m)
		// The latencies count, although they pass at the end only.
		if n := len(got.Latency); got.Stopped != verbs.StopBudget || n != 50 {
			t.Errorf("stopped as %q after %d samples", got.Stopped, n)
		}
		if took := time.Since(start); took != m.Budget {
			t.Errorf("took %s", took)
		}
	})
}

// TestOwnNumbers has a completion of another sample in the CQ.
func TestOwnNumbers(t *testing.T) {
	b := newBench(t, timed(t, nil), nil, 0)
	m := b.flushes()
	stale := m.Send
	stale.ID = 99
	ok(t, m.Sender.PostSend(stale))
	if got := b.measure(m); len(got.Latency) != 5 || got.Spurious != 0 {
		t.Errorf("found %+v", got)
	}
	none(t, b.cq)
}

// TestOrdinaryCompletionFaults has the faults act on calls outside measurements.
func TestOrdinaryCompletionFaults(t *testing.T) {
	for _, test := range []struct {
		fault                simulated.CompletionFault
		event, astray, named bool // it comes on the channel, on another one, and names the CQ
		completion           verbs.WCStatus
		further              bool // the next completion comes
	}{
		{simulated.CompletionFault{Fault: "drop_event"}, false, false, true, verbs.WCWRFlushErr, true},
		{simulated.CompletionFault{Fault: "delay_event", Delay: moment}, true, false, true, verbs.WCWRFlushErr, true},
		{simulated.CompletionFault{Fault: "misdirect_event"}, false, true, true, verbs.WCWRFlushErr, true},
		{simulated.CompletionFault{Fault: "misname_event"}, true, false, false, verbs.WCWRFlushErr, true},
		{simulated.CompletionFault{Fault: "lose_completion"}, true, false, true, -1, true},
		{simulated.CompletionFault{Fault: "never_complete"}, false, false, true, -1, false},
		{simulated.CompletionFault{Fault: "fail_completion", Status: "general_err"}, true, false, true, verbs.WCGeneralErr, true},
	} {
		t.Run(test.fault.Fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.fault.Times = 1
				c := newClient(t, test.fault)
				ch, other := c.channel(), c.channel()
				q, another := c.cq(ch), c.cq(nil)
				qp := c.failing(q)
				ok(t, q.ReqNotify(false))
				c.flush(qp)
				ev, err := ch.GetEvent(test.fault.Delay * 10)
				if came := err == nil; came != test.event {
					t.Errorf("event on the channel: %v", err)
				}
				if !test.event {
					ev, err = other.GetEvent(0)
					if came := err == nil; came != test.astray {
						t.Errorf("event on the other channel: %v", err)
					}
				}
				if err == nil {
					want := q
					if !test.named {
						want = another
					}
					if ev.CQ != want || ev.Context != cqContext {
						t.Errorf("the event names %v with %#x", ev.CQ, ev.Context)
					}
					ok(t, ev.CQ.AckEvents(1))
				}
				if test.completion < 0 {
					none(t, q)
				} else if wc := one(t, q, test.completion); wc.ID != 1 || wc.QPNum != qp.Number() {
					t.Errorf("completion %+v", wc)
				}
				c.flush(qp)
				if test.further {
					one(t, q, verbs.WCWRFlushErr)
				} else {
					none(t, q)
				}
				if _, again := c.notified(ch); again {
					t.Error("another event without arming")
				}
				ok(t, qp.Close())
				ok(t, q.Close())
				ok(t, another.Close())
			})
		})
	}
}

func TestSpuriousEvent(t *testing.T) {
	c := newClient(t, simulated.CompletionFault{Fault: "spurious_event", Times: 1})
	ok(t, c.cq(nil).ReqNotify(false)) // without a channel: does not count
	ch := c.channel()
	q := c.cq(ch)
	qp := c.failing(q)
	ok(t, q.ReqNotify(false))
	if ev, is := c.notified(ch); !is || ev.CQ != q {
		t.Errorf("event %t, %+v", is, ev)
	}
	none(t, q)
	c.flush(qp)
	if _, is := c.notified(ch); !is {
		t.Error("the arming is used up")
	}
	ok(t, q.ReqNotify(false))
	if _, is := c.notified(ch); is {
		t.Error("a second spurious event")
	}
}

// TestFaultsWithoutAnother has events that should go astray, but there is nowhere.
func TestFaultsWithoutAnother(t *testing.T) {
	for _, fault := range []string{"misdirect_event", "misname_event"} {
		c := newClient(t, simulated.CompletionFault{Fault: fault})
		ch := c.channel()
		q := c.cq(ch)
		ok(t, q.ReqNotify(false))
		c.flush(c.failing(q))
		if _, is := c.notified(ch); is {
			t.Errorf("%s: an event", fault)
		}
	}
}

// TestDelayedBeyondItsCQ has an event come after its CQ and its channel are gone.
func TestDelayedBeyondItsCQ(t *testing.T) {
	c := newClient(t, simulated.CompletionFault{Fault: "delay_event", Delay: moment})
	ch, gone := c.channel(), c.channel()
	for _, ch := range []verbs.CompChannel{ch, gone} {
		q := c.cq(ch)
		qp := c.failing(q)
		ok(t, q.ReqNotify(false))
		c.flush(qp)
		ok(t, qp.Close())
		ok(t, q.Close())
	}
	ok(t, gone.Close())
	if _, err := ch.GetEvent(2 * moment); !errors.Is(err, verbs.ErrTimeout) {
		t.Errorf("an event of a CQ that is gone: %v", err)
	}
}

// TestOvertaken has an event that is delayed come after one that arose later.
func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, simulated.CompletionFault{Fault: "delay_event", Times: 1, Delay: moment})
		ch := c.channel()
		late, early := c.cq(ch), c.cq(ch)
		for _, q := range []verbs.CQ{late, early} {
			ok(t, q.ReqNotify(false))
			c.flush(c.failing(q))
		}
		start := time.Now()
		for _, want := range []verbs.CQ{early, late} {
			if ev := must(ch.GetEvent(soon))(t); ev.CQ != want {
				t.Errorf("the event names %v, want %v", ev.CQ, want)
			}
		}
		if took := time.Since(start); took != moment {
			t.Errorf("it took %s", took)
		}
	})
}
