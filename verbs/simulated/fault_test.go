package simulated_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// childProfile is the variable that makes the test binary a child process, which
// calls verbs of the profile in it.
const childProfile = "SIMULATED_TEST_PROFILE"

func TestMain(m *testing.M) {
	if text := os.Getenv(childProfile); text != "" {
		child(text)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// announcer is a tracer that prints.
type announcer struct{}

func (announcer) Begin(v verbs.Verb)  { fmt.Println("begin", v) }
func (announcer) End(call verbs.Call) { fmt.Println("end", call.Verb) }

// child lives through a device's life once, without tests.
func child(text string) {
	var p simulated.Profile
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		_, err = life(simulated.New(&p, announcer{}), p.Devices[0].Name)
	}
	fmt.Println("done", err)
}

// life calls every verb. Each call that fails is noted, and tried once more.
func life(p verbs.Provider, name string) (failed []error, err error) {
	try := func(call func() error) {
		if err != nil {
			return
		}
		if first := call(); first != nil {
			failed = append(failed, first)
			err = call()
		}
	}
	var d verbs.Device
	var pd verbs.PD
	var m verbs.MR
	var a verbs.AH
	var ch verbs.CompChannel
	var c verbs.CQ
	var s verbs.SRQ
	var q verbs.QP
	var table []verbs.GIDEntry
	try(func() (e error) { d, e = p.Open(name); return e })
	try(func() error { return second(d.Query()) })
	try(func() error { return second(d.QueryExtended()) })
	try(func() error { return second(d.QueryPort(1)) })
	try(func() (e error) { table, e = d.GIDTable(); return e })
	try(func() error { return second(d.PKey(1, 0)) })
	try(func() (e error) { pd, e = d.AllocPD(); return e })
	try(func() (e error) { m, e = pd.RegMR(100, verbs.AccessLocalWrite); return e })
	try(func() (e error) {
		a, e = pd.CreateAH(verbs.AHAttr{Port: 1, Global: true, DGID: table[0].GID})
		return e
	})
	try(func() (e error) { ch, e = d.CreateCompChannel(); return e })
	try(func() (e error) { c, e = d.CreateCQ(verbs.CQInitAttr{Entries: 16, Channel: ch, Context: 5}); return e })
	var ex verbs.CQ
	try(func() (e error) {
		ex, e = d.CreateCQ(verbs.CQInitAttr{Entries: 16, Fields: verbs.WCStandard})
		return e
	})
	try(func() error { return second(ex.Poll(1)) })
	try(func() error { return c.ReqNotify(false) })
	try(func() error { return c.Resize(32) })
	try(func() (e error) { s, e = pd.CreateSRQ(verbs.SRQAttr{MaxWR: 16, MaxSGE: 2}); return e })
	try(func() error { return second(s.Query()) })
	try(func() error { return s.SetLimit(0) })
	try(func() error { return second(d.AsyncEvent(0)) })
	try(func() error { return s.PostRecv(verbs.RecvWR{}) })
	try(func() (e error) {
		q, e = pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: c, RecvCQ: c, Cap: qpCap})
		return e
	})
	try(func() error { return second(q.Query()) })
	try(func() error { return q.Modify(verbs.ToError()) })
	try(func() error { return q.PostSend(verbs.SendWR{AH: a}) })
	try(func() error { return q.PostRecv(verbs.RecvWR{}) })
	try(func() error { return second(c.Poll(1)) })
	try(func() error { return second(ch.GetEvent(soon)) })
	try(func() error { return c.AckEvents(1) })
	for _, o := range []interface{ Close() error }{q, s, ex, c, ch, a, m, pd, d} {
		try(o.Close)
	}
	return failed, err
}

func second[T any](_ T, err error) error { return err }

// faulty returns a device with faults.
func faulty(t *testing.T, faults ...simulated.Fault) *simulated.Profile {
	t.Helper()
	return like(t, "sim_ib0", func(d *simulated.DeviceProfile) { d.Faults, d.AsyncEvents = faults, []string{"port_active"} })
}

func TestErrnoOfEveryVerb(t *testing.T) {
	errnos := []syscall.Errno{syscall.ENOMEM, syscall.EBUSY, syscall.EPERM, syscall.EOPNOTSUPP}
	for i, verb := range verbs.Verbs() {
		errno := errnos[i%len(errnos)]
		symbol := verbs.ErrnoName(errno)
		t.Run(string(verb)+" "+symbol, func(t *testing.T) {
			tracer := &calls{}
			p := simulated.New(faulty(t, simulated.Fault{Verb: verb, Times: 1, Errno: symbol}), tracer)
			failed, err := life(p, "sim_ib0")
			if err != nil {
				t.Fatalf("a second try failed: %v", err)
			}
			if len(failed) != 1 {
				t.Fatalf("failures %v, want one of %s", failed, verb)
			}
			wantErrno(t, failed[0], verb, errno)
			if verb != verbs.GetDeviceList {
				var e *verbs.Error
				if errors.As(failed[0], &e) && e.Device != "sim_ib0" {
					t.Errorf("error %v is of device %q", e, e.Device)
				}
			}
			got := tracer.of(verb)
			if len(got) < 2 || got[0].Errno != errno || slices.ContainsFunc(got[1:], func(c verbs.Call) bool { return c.Errno != 0 }) {
				t.Errorf("traced %+v, want a failure and successes", got)
			}
			for _, v := range verbs.Verbs() {
				if len(tracer.of(v)) == 0 {
					t.Errorf("%s was never called", v)
				}
			}
		})
	}
}

func TestFaultCounts(t *testing.T) {
	d := open(t, faulty(
		t,
		simulated.Fault{Verb: verbs.CreateCQ, After: 2, Times: 3, Errno: "ENOMEM"},
		simulated.Fault{Verb: verbs.CreateCQ, After: 7, Errno: "EIO"},
	))
	want := []syscall.Errno{0, 0, syscall.ENOMEM, syscall.ENOMEM, syscall.ENOMEM, 0, 0, syscall.EIO, syscall.EIO, syscall.EIO}
	for i, errno := range want {
		_, err := d.CreateCQ(verbs.CQInitAttr{Entries: 1})
		got, _ := verbs.ErrnoOf(err)
		if got != errno {
			t.Errorf("call %d: %v, want errno %d", i, err, int(errno))
		}
	}
}

func TestRefusedDestroy(t *testing.T) {
	d := open(t, faulty(t, simulated.Fault{Verb: verbs.DestroyCQ, Errno: "EBUSY"}))
	c := must(d.CreateCQ(verbs.CQInitAttr{Entries: 1}))(t)
	for range 3 {
		wantErrno(t, c.Close(), verbs.DestroyCQ, syscall.EBUSY)
	}
	ok(t, c.ReqNotify(false))
	wantErrno(t, d.Close(), verbs.CloseDevice, syscall.EBUSY)
}

func TestRefusedEventStays(t *testing.T) {
	profile := faulty(t, simulated.Fault{Verb: verbs.GetCQEvent, Times: 1, Errno: "EINTR"})
	d := open(t, profile)
	ch := must(d.CreateCompChannel())(t)
	pd := must(d.AllocPD())(t)
	c := must(d.CreateCQ(verbs.CQInitAttr{Entries: 4, Channel: ch}))(t)
	q := must(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, Cap: qpCap}))(t)
	ok(t, q.Modify(verbs.ToError()))
	ok(t, c.ReqNotify(true))
	ok(t, q.PostRecv(verbs.RecvWR{}))
	_, err := ch.GetEvent(soon)
	wantErrno(t, err, verbs.GetCQEvent, syscall.EINTR)
	ev := must(ch.GetEvent(0))(t)
	if ev.CQ != c {
		t.Errorf("event of %v", ev.CQ)
	}
	ok(t, c.AckEvents(1))
	wantErrno(t, c.AckEvents(1), verbs.AckCQEvents, syscall.EINVAL)
}

func TestShort(t *testing.T) {
	for short, want := range map[int]struct {
		cqe         int
		srq         verbs.SRQAttr
		qp, withSRQ verbs.QPCap
	}{
		5: {
			11,
			verbs.SRQAttr{MaxWR: 11},
			verbs.QPCap{MaxSendWR: 3, MaxRecvWR: 3, MaxInlineData: 27},
			verbs.QPCap{MaxSendWR: 3, MaxInlineData: 27},
		},
		1000: {},
	} {
		var faults []simulated.Fault
		for _, v := range []verbs.Verb{verbs.CreateCQ, verbs.CreateSRQ, verbs.QuerySRQ, verbs.CreateQP, verbs.QueryQP} {
			faults = append(faults, simulated.Fault{Verb: v, Short: short})
		}
		d := open(t, faulty(t, faults...))
		pd := must(d.AllocPD())(t)
		c := must(d.CreateCQ(verbs.CQInitAttr{Entries: 16}))(t)
		s := must(pd.CreateSRQ(verbs.SRQAttr{MaxWR: 16, MaxSGE: 2}))(t)
		if queried := must(s.Query())(t); c.Entries() != want.cqe || s.Created() != want.srq || queried != want.srq {
			t.Errorf("CQ %d, SRQ %+v, queried %+v; want %+v", c.Entries(), s.Created(), queried, want)
		}
		for shared, sizes := range map[verbs.SRQ]verbs.QPCap{nil: want.qp, s: want.withSRQ} {
			q := must(pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c, RecvCQ: c, SRQ: shared, Cap: qpCap}))(t)
			if queried := must(q.Query())(t); q.Created() != sizes || queried.Cap != sizes {
				t.Errorf("QP with SRQ %v: %+v, queried %+v; want %+v", shared, q.Created(), queried.Cap, sizes)
			}
		}
	}
}

func TestDelayAndLatency(t *testing.T) {
	tracer := &calls{}
	p := faulty(t, simulated.Fault{Verb: verbs.AllocPD, Times: 1, Delay: moment})
	p.Devices[0].DefaultLatency = moment / 2
	p.Devices[0].Latency = map[verbs.Verb]time.Duration{verbs.PollCQ: moment, verbs.CreateCQ: 0}
	d := must(simulated.New(p, tracer).Open("sim_ib0"))(t)
	must(d.AllocPD())(t)
	must(d.AllocPD())(t)
	c := must(d.CreateCQ(verbs.CQInitAttr{Entries: 1}))(t)
	must(c.Poll(1))(t)
	for verb, least := range map[verbs.Verb]time.Duration{
		verbs.OpenDevice: moment / 2, verbs.AllocPD: moment + moment/2, verbs.PollCQ: moment,
	} {
		if got := tracer.of(verb)[0].Duration; got < least {
			t.Errorf("%s took %s, want at least %s", verb, got, least)
		}
	}
}

func TestVanish(t *testing.T) {
	p := simulated.Default()
	p.Devices[0].Vanish = true
	provider := simulated.New(p, nil)
	for _, name := range []string{"sim_rxe0", "sim_none", ""} {
		d, err := provider.Open(name)
		if d != nil {
			t.Errorf("Open(%q) returned a device", name)
		}
		wantErrno(t, err, verbs.OpenDevice, syscall.ENODEV)
	}
}

// runChild runs a child process whose device has a fault until it ends or the
// context does, and returns what it printed.
func runChild(ctx context.Context, t *testing.T, fault simulated.Fault, each func(line string)) (lines []string, state *os.ProcessState) {
	t.Helper()
	text := must(json.Marshal(faulty(t, fault)))(t)
	cmd := exec.CommandContext(ctx, must(os.Executable())(t))
	cmd.Env = append(os.Environ(), childProfile+"="+string(text))
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	for scan := bufio.NewScanner(out); scan.Scan(); {
		lines = append(lines, scan.Text())
		each(scan.Text())
	}
	_ = cmd.Wait() // its state says it all
	return lines, cmd.ProcessState
}

// TestChildren has a verb abort a child process, or hang until the child is killed.
func TestChildren(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault  simulated.Fault
		verbs  []verbs.Verb
		signal syscall.Signal // a deadlock would end it otherwise
	}{
		{
			simulated.Fault{Crash: true},
			[]verbs.Verb{verbs.GetDeviceList, verbs.OpenDevice, verbs.CreateCQ, verbs.PollCQ, verbs.CloseDevice},
			syscall.SIGABRT,
		},
		{
			simulated.Fault{Hang: true},
			[]verbs.Verb{verbs.GetDeviceList, verbs.CreateQP, verbs.GetCQEvent, verbs.DestroyCQ},
			syscall.SIGKILL,
		},
	} {
		for _, verb := range test.verbs {
			fault, last := test.fault, "begin "+string(verb)
			fault.Verb = verb
			t.Run(string(verb)+" "+test.signal.String(), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), soon)
				defer cancel()
				lines, state := runChild(ctx, t, fault, func(line string) {
					if fault.Hang && line == last {
						time.AfterFunc(10*moment, cancel)
					}
				})
				if n := len(lines); n == 0 || lines[n-1] != last {
					t.Errorf("the child said last %q", lines[max(0, n-1):])
				}
				status, is := state.Sys().(syscall.WaitStatus)
				if !is || !status.Signaled() || status.Signal() != test.signal || status.CoreDump() {
					t.Errorf("the child ended with %s, want %s and no core file", state, test.signal)
				}
			})
		}
	}
}
