package probe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/faults/expected"
	"rdma_exporter/test/golden"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

func TestDefaultDevices(t *testing.T) {
	for _, device := range simulated.Default().Names() {
		t.Run(device, func(t *testing.T) {
			r, _ := probed(t, simulated.Default(), probe.Options{Options: session.Options{Device: device}, Config: quick()})
			if r.Error != "" || len(r.Undestroyed) > 0 {
				t.Errorf("error %q, undestroyed %v", r.Error, r.Undestroyed)
			}
			for i := range r.Probes {
				if r.Probes[i].Duration <= 0 {
					t.Errorf("probe %s took no time", r.Probes[i].Name)
				}
				r.Probes[i].Duration = 0
				untimed(t, r.Probes[i].Latencies)
				for j := range r.Probes[i].Registrations {
					r.Probes[i].Registrations[j].Duration = 0
				}
			}
			if r.MaxRSS < 1<<20 {
				t.Errorf("%d bytes resident", r.MaxRSS)
			}
			r.MaxRSS = 0
			if len(r.Facts.Identity.Libraries) != 16 {
				t.Errorf("libraries %q", r.Facts.Identity.Libraries)
			}
			r.Facts.Identity.Libraries = ""
			golden.Check(t, filepath.Join("testdata", device+".json"), golden.JSON(t, r))
		})
	}
}

// untimed checks the number of samples and removes the times.
func untimed(t *testing.T, list []state.Latency) {
	t.Helper()
	for i := range list {
		l := &list[i]
		arms := quickSamples
		if l.Mode == state.ModePoll {
			arms = 0
		}
		if len(l.Samples) != quickSamples || len(l.Arms) != arms || l.P50 <= 0 || l.P99 < l.P50 {
			t.Errorf("%s %s: %d samples, %d arms, median %s, p99 %s", l.Path, l.Mode, len(l.Samples), len(l.Arms), l.P50, l.P99)
		}
		l.Samples, l.Arms, l.P50, l.P99 = nil, nil, 0, 0
	}
}

// TestPortStates verifies that package state knows each state of package verbs, and that a
// report with any other name can be read.
func TestPortStates(t *testing.T) {
	var names []string
	for s := verbs.PortNop; s <= verbs.PortActiveDefer; s++ {
		names = append(names, s.String())
	}
	if want := state.PortStates(); !slices.Equal(names, want) {
		t.Errorf("verbs has %q, state %q", names, want)
	}
	var out bytes.Buffer
	w := wire.NewWriter(&out)
	_ = w.Send(wire.Line{Device: &state.Device{
		Transport: verbs.Transport(77).String(),
		Ports:     []state.Port{{Number: 1, State: verbs.PortState(77).String(), LinkLayer: verbs.LinkLayer(77).String()}},
	}})
	_ = w.Send(wire.Line{End: &wire.End{}})
	if err := wire.Read(&out, &state.Run{}); err != nil {
		t.Error(err)
	}
}

// TestInlineSearch verifies that profiles are clamped to the size that the search finds, and
// that it finds none if memory is short.
func TestInlineSearch(t *testing.T) {
	for _, tc := range []struct {
		name, device string
		want         int64 // of each type; negative for nothing
		status       state.Status
	}{
		{"none", "like: sim_ib0, max_inline_data: 0", 0, state.StatusOK},
		{"odd", "like: sim_ib0, max_inline_data: 173", 173, state.StatusOK},
		{"large", "like: sim_ib0, max_inline_data: 16384", 16384, state.StatusOK},
		{"no memory", "like: sim_ib0, faults: [{verb: ibv_create_qp, errno: ENOMEM}]", -1, state.StatusFailed},
		{"no memory from the third QP on", "like: sim_ib0, faults: [{verb: ibv_create_qp, after: 2, errno: ENOMEM}]", -1, state.StatusFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := parse(t, tc.device)
			r := still(t, p, probe.Options{Config: quick()})
			qp := r.Probes[3]
			if qp.Name != "qp" || qp.Status != tc.status {
				t.Fatalf("probe %s is %s: %v", qp.Name, qp.Status, qp.Failures)
			}
			if (tc.want < 0) != (len(qp.Inline) == 0) {
				t.Errorf("found %v", qp.Inline)
			}
			for _, i := range qp.Inline {
				if i.Bytes != tc.want {
					t.Errorf("%s: %d bytes, want %d", i.Type, i.Bytes, tc.want)
				}
			}
			for _, q := range qp.QPs {
				if tc.want >= 0 && q.Requested.InlineBytes > tc.want {
					t.Errorf("%s %s: asked for %d bytes", q.Type, q.Profile, q.Requested.InlineBytes)
				}
			}
		})
	}
}

// TestNamedBeforeCalled verifies that each call directly follows the line with its name.
func TestNamedBeforeCalled(t *testing.T) {
	_, text := probed(t, parse(t, "like: sim_rxe0"), probe.Options{Config: quick()})
	lines := strings.Split(text, "\n")
	calls := 0
	for i, l := range lines {
		var v wire.Line
		if err := json.Unmarshal([]byte(l), &v); err != nil || v.Call == nil {
			continue
		}
		calls++
		if want := fmt.Sprintf(`{"begin":%q}`, v.Call.Verb); lines[i-1] != want {
			t.Errorf("before the call of %s comes %s", v.Call.Verb, lines[i-1])
		}
	}
	if calls < 50 {
		t.Errorf("only %d calls", calls)
	}
}

// faulty returns the report of a device like sim_rxe0 with one fault.
func faulty(t *testing.T, fault string) state.Run {
	t.Helper()
	p := parse(t, "like: sim_rxe0, faults: [{"+fault+"}]")
	return still(t, p, probe.Options{Config: quick()})
}

// TestFaults breaks one verb of one device at a time.
func TestFaults(t *testing.T) {
	try := func(v expected.Verb, fault string, want expected.Run) {
		t.Run(string(v.Verb)+" "+fault, func(t *testing.T) {
			r := faulty(t, fmt.Sprintf("verb: %s, %s", v.Verb, fault))
			if got, want := fmt.Sprintf("%+v", seen(r, want)), fmt.Sprintf("%+v", want); got != want {
				t.Errorf("seen\n%s, want\n%s", got, want)
			}
			if r.Verb != "" {
				t.Errorf("verb %s in flight at the end", r.Verb)
			}
			for _, u := range r.Undestroyed {
				if u.Attempts < 1 {
					t.Errorf("%s after %d attempts", u.Type, u.Attempts)
				}
			}
		})
	}
	for _, v := range expected.Verbs() {
		try(v, "times: 1, errno: EBUSY", v.Once("EBUSY"))
		for _, errno := range []string{"EBUSY", "ENOMEM", "EIO", "EPERM", "EOPNOTSUPP"} {
			try(v, "errno: "+errno, v.Always(errno))
		}
		if v.Short != nil && v.Verb != verbs.CreateQP { // see TestMessages
			try(v, "short: 1", v.Less())
		}
	}
}

// seen returns the results of a complete report, with the skips that a test asks about.
func seen(r state.Run, want expected.Run) expected.Run {
	s := expected.Run{Outcome: "ok", Skipped: make(map[string][]string), SkipReason: want.SkipReason}
	if r.Error != "" || len(r.Undestroyed) > 0 {
		s.Outcome = "failed"
	}
	for _, u := range r.Undestroyed {
		s.Undestroyed = append(s.Undestroyed, expected.Pair(u.Type, u.Errno))
	}
	for _, c := range r.Calls {
		if c.Errno != "" && !c.Expected {
			s.Failures = append(s.Failures, expected.Pair(c.Verb, c.Errno))
		}
	}
	for _, name := range expected.Probes() {
		i := slices.IndexFunc(r.Probes, func(p state.Probe) bool { return p.Name == name })
		if i < 0 || r.Probes[i].Status == state.StatusSkipped {
			s.Unjudged = append(s.Unjudged, name)
		} else if r.Probes[i].Status == state.StatusFailed {
			s.Outcome, s.Failed = "failed", append(s.Failed, name)
		}
		if _, ok := want.Skipped[name]; ok && i >= 0 {
			s.Skipped[name] = []string{}
			for _, skip := range r.Probes[i].Skips {
				if string(skip.Reason) == want.SkipReason {
					s.Skipped[name] = append(s.Skipped[name], skip.Subject.String())
				}
			}
			slices.Sort(s.Skipped[name])
		}
	}
	for _, list := range []*[]string{&s.Failures, &s.Undestroyed} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return s
}

func TestMessages(t *testing.T) {
	for _, tc := range []struct{ fault, err, failure string }{
		{"verb: ibv_open_device, errno: EACCES", fmt.Sprintf("open the device: ibv_open_device on dev: EACCES (permission denied), as uid %d and gid %d", os.Geteuid(), os.Getegid()), ""},
		{"verb: ibv_query_device, errno: EIO", "query the device: ibv_query_device on dev: EIO", ""},
		{"verb: ibv_query_port, errno: EIO", "query port 1: ibv_query_port on dev: EIO", "query port 1"},
		{"verb: ibv_create_cq, errno: ENOMEM", "", "ibv_create_cq on dev: ENOMEM"},
		{"verb: ibv_create_cq, short: 1, times: 1", "", "asked for cqe 16, given 15"},
		{"verb: ibv_create_srq, short: 3", "", "asked for max_wr 16, given 13"},
		{"verb: ibv_create_qp, short: 1", "", "asked for max_send_wr 16, given 15"},
		{"verb: ibv_destroy_cq, errno: EBUSY, times: 2", "", ""},
		{"verb: ibv_destroy_cq, errno: EBUSY", "", "ibv_destroy_cq on dev: EBUSY"},
		{"verb: ibv_dealloc_pd, errno: EBUSY", "protection domain: not destroyed: refused", ""},
		{"verb: ibv_close_device, errno: EIO", "close the device: not destroyed: refused", ""},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			r := faulty(t, tc.fault)
			if tc.err == "" && r.Error != "" || !strings.Contains(r.Error, tc.err) {
				t.Errorf("error %q, want %q in it", r.Error, tc.err)
			}
			if (r.FailedVerb != "") != (tc.err != "") || !strings.Contains(tc.fault, "verb: "+r.FailedVerb) || !strings.Contains(tc.fault, "errno: "+r.Errno) && r.Errno != "" {
				t.Errorf("the run failed by %q with %q", r.FailedVerb, r.Errno)
			}
			all := ""
			for _, p := range r.Probes {
				all += failures(p)
			}
			if !strings.Contains(all, tc.failure) || (tc.failure == "") != (all == "") {
				t.Errorf("failures %q, want %q", all, tc.failure)
			}
		})
	}
}

func TestClamped(t *testing.T) {
	r := still(t, parse(t, "like: sim_rxe0, limits: {max_cqe: 100, max_qp_wr: 64}"), probe.Options{Config: quick()})
	var got []string
	for _, p := range r.Probes {
		if p.Status != state.StatusOK {
			t.Errorf("probe %s is %s: %v", p.Name, p.Status, p.Failures)
		}
		for _, c := range p.Clamps {
			got = append(got, fmt.Sprintf("%s %s %d to %d by %s", c.Attribute, c.Subject, c.Configured, c.Used, c.Limit))
		}
	}
	for _, want := range []string{"cqe medium 256 to 100 by max_cqe", "max_send_wr rc large 1024 to 64 by max_qp_wr"} {
		if !slices.Contains(got, want) {
			t.Errorf("clamps %q, want %q", got, want)
		}
	}
}

// TestEndsEarly verifies that a run whose context ended, or that cannot write its report,
// ends without a complete report.
func TestEndsEarly(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		ctx   context.Context
		bytes int // that can be written
		want  error
	}{
		{canceled, 1 << 20, context.Canceled},
		{t.Context(), 2000, errWrite},
	} {
		w := &failingWriter{left: tc.bytes}
		o := on(parse(t, "like: sim_rxe0"), probe.Options{Config: quick()})
		o.Out = wire.NewWriter(w)
		if err := probe.Run(tc.ctx, o); !errors.Is(err, tc.want) {
			t.Errorf("error %v, want %v", err, tc.want)
		}
		if err := wire.Read(&w.Buffer, &state.Run{}); !errors.Is(err, wire.ErrTruncated) {
			t.Errorf("the report reads with error %v", err)
		}
	}
}

var errWrite = errors.New("the reader is gone")

type failingWriter struct {
	bytes.Buffer
	left int
}

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errWrite
	}
	return w.Buffer.Write(b)
}
