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
	"testing/synctest"
	"time"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/probe/known"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/golden"
	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// quick is the default configuration with fewer samples, all the time for
// them, and no patience for refused destructions.
func quick() probe.Config {
	c := probe.DefaultConfig()
	c.DestroyTimeout = 20 * time.Millisecond
	c.Notification.Samples, c.Notification.Budget = quickSamples, time.Hour
	return c
}

const quickSamples = 10

// run probes one device of a profile and returns its report, and the text of it.
func run(t *testing.T, p *simulated.Profile, device string, c probe.Config) (state.Run, string) {
	t.Helper()
	var out bytes.Buffer
	err := probe.Run(t.Context(), probe.Options{
		Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(p, tr) },
		Device:   device, Driver: driverOf(p, device), Config: c, Out: wire.NewWriter(&out),
	})
	if err != nil {
		t.Fatal(err)
	}
	text := out.String()
	r := state.Run{Device: device}
	if err := wire.Read(&out, &r); err != nil {
		t.Fatalf("the report cannot be read: %v\n%s", err, text)
	}
	return r, text
}

// driverOf returns the driver that a device of a profile is said to have.
func driverOf(p *simulated.Profile, device string) known.Driver {
	i := slices.IndexFunc(p.Devices, func(d simulated.DeviceProfile) bool { return d.Name == device })
	if i < 0 {
		return known.Driver{}
	}
	return known.Driver{Name: p.Devices[i].Driver, Kernel: p.Devices[i].Kernel}
}

// runStill is run while no time passes but that of pauses and waits, so that the
// host, however busy, takes none of what a test is about. Verbs that the profile
// has take no time take none.
func runStill(t *testing.T, p *simulated.Profile, device string, c probe.Config) (r state.Run) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r, _ = run(t, p, device, c) })
	return r
}

func TestDefaultDevices(t *testing.T) {
	for _, device := range simulated.Default().Names() {
		t.Run(device, func(t *testing.T) {
			r, _ := run(t, simulated.Default(), device, quick())
			if r.Error != "" || len(r.Undestroyed) > 0 {
				t.Errorf("error %q, undestroyed %v", r.Error, r.Undestroyed)
			}
			for i := range r.Probes {
				if r.Probes[i].Duration <= 0 {
					t.Errorf("probe %s took no time", r.Probes[i].Name)
				}
				r.Probes[i].Duration = 0
				untimed(t, r.Probes[i].Latencies)
			}
			if r.MaxRSS < 1<<20 {
				t.Errorf("%d bytes resident", r.MaxRSS)
			}
			r.MaxRSS = 0
			if len(r.Facts.Identity.Libraries) != 16 {
				t.Errorf("libraries %q", r.Facts.Identity.Libraries)
			}
			r.Facts.Identity.Libraries = ""
			got, err := json.MarshalIndent(r, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", device+".json"), append(got, '\n'))
		})
	}
}

// untimed takes the times out of measurements, after a look at whether there are
// as many as there should be.
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

// TestPortStates: package report knows each state that package verbs can tell,
// and takes the name of any other.
func TestPortStates(t *testing.T) {
	var names []string
	for s := verbs.PortNop; s <= verbs.PortActiveDefer; s++ {
		names = append(names, s.String())
	}
	if want := state.PortStates(); !slices.Equal(names, want) {
		t.Errorf("verbs has %q, report %q", names, want)
	}
	var out bytes.Buffer
	w := wire.NewWriter(&out)
	_ = w.Device(state.Device{
		Transport: verbs.Transport(77).String(),
		Ports:     []state.Port{{Number: 1, State: verbs.PortState(77).String(), LinkLayer: verbs.LinkLayer(77).String()}},
	})
	_ = w.End(wire.End{})
	if err := wire.Read(&out, &state.Run{}); err != nil {
		t.Error(err)
	}
}

// TestInlineSearch: what the search finds is what the profiles are cut down to,
// and it finds nothing where memory is what is short.
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
			p, err := simulated.ParseProfile([]byte("devices: [{name: dev, " + tc.device + "}]"))
			if err != nil {
				t.Fatal(err)
			}
			r, _ := run(t, p, "dev", quick())
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

// TestNamedBeforeCalled looks at the text itself: each call follows its begin.
func TestNamedBeforeCalled(t *testing.T) {
	_, text := run(t, simulated.Default(), "sim_rxe0", quick())
	begun := ""
	calls := 0
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		var v struct {
			Begin string
			Call  *state.Call
		}
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatal(err)
		}
		switch {
		case v.Begin != "":
			if begun != "" {
				t.Errorf("%s begins within %s", v.Begin, begun)
			}
			begun = v.Begin
		case v.Call != nil:
			if v.Call.Verb != begun {
				t.Errorf("%s ends, %q began", v.Call.Verb, begun)
			}
			begun = ""
			calls++
		}
	}
	if calls < 50 {
		t.Errorf("only %d calls", calls)
	}
}

// TestFaults breaks one verb of one device at a time.
func TestFaults(t *testing.T) {
	type want struct {
		err         string            // part of Run.Error
		status      map[string]string // of probes that are not ok
		failure     string            // part of one failure's message
		undestroyed string            // types and errnos, in order, without repetition
		skip        string            // probe, subject and reason
		unexpected  string            // verb and errno of failures that count
	}
	for _, tc := range []struct {
		name, faults string
		want         want
	}{
		{"open", "{verb: ibv_open_device, errno: EACCES}", want{err: fmt.Sprintf("open the device: ibv_open_device on dev: EACCES (permission denied), as uid %d and gid %d", os.Geteuid(), os.Getegid()), unexpected: "ibv_open_device EACCES"}},
		{"query device", "{verb: ibv_query_device, errno: EIO}", want{err: "query the device: ibv_query_device on dev: EIO", unexpected: "ibv_query_device EIO"}},
		{"query port", "{verb: ibv_query_port, errno: EIO}", want{err: "query port 1: ibv_query_port on dev: EIO", status: map[string]string{"notification": "failed"}, failure: "query port 1", unexpected: "ibv_query_port EIO"}},
		{"create_cq always", "{verb: ibv_create_cq, errno: ENOMEM}", want{status: map[string]string{"cq": "failed", "comp_channel": "failed", "qp": "failed", "notification": "failed"}, failure: "ibv_create_cq on dev: ENOMEM", unexpected: "ibv_create_cq ENOMEM"}},
		{"create_cq once", "{verb: ibv_create_cq, errno: ENOMEM, times: 1}", want{status: map[string]string{"cq": "failed"}, failure: "ENOMEM", unexpected: "ibv_create_cq ENOMEM"}},
		{"short cq", "{verb: ibv_create_cq, short: 1, times: 1}", want{status: map[string]string{"cq": "failed"}, failure: "asked for cqe 16, given 15"}},
		{"comp_channel", "{verb: ibv_create_comp_channel, errno: EMFILE}", want{status: map[string]string{"comp_channel": "failed", "notification": "failed"}, failure: "EMFILE", unexpected: "ibv_create_comp_channel EMFILE"}},
		{"req_notify", "{verb: ibv_req_notify_cq, errno: EIO}", want{status: map[string]string{"comp_channel": "failed", "notification": "failed"}, failure: "ibv_req_notify_cq on dev: EIO", unexpected: "ibv_req_notify_cq EIO"}},
		{"srq not supported", "{verb: ibv_create_srq, errno: EOPNOTSUPP}", want{status: map[string]string{"srq": "skipped"}, skip: "srq small not_supported", unexpected: "ibv_create_srq EOPNOTSUPP"}},
		{"short srq", "{verb: ibv_create_srq, short: 3}", want{status: map[string]string{"srq": "failed"}, failure: "asked for max_wr 16, given 13"}},
		{"query_srq", "{verb: ibv_query_srq, errno: EIO}", want{status: map[string]string{"srq": "failed"}, failure: "ibv_query_srq", unexpected: "ibv_query_srq EIO"}},
		{"pd", "{verb: ibv_alloc_pd, errno: ENOMEM}", want{status: map[string]string{"comp_channel": "failed", "srq": "failed", "qp": "failed", "notification": "failed"}, failure: "ibv_alloc_pd", unexpected: "ibv_alloc_pd ENOMEM"}},
		{"create_qp EINVAL", "{verb: ibv_create_qp, errno: EINVAL}", want{status: map[string]string{"qp": "failed", "notification": "failed"}, failure: "ibv_create_qp on dev: EINVAL", skip: "qp uc not_supported", unexpected: "ibv_create_qp EINVAL"}},
		{"create_qp EPERM", "{verb: ibv_create_qp, errno: EPERM}", want{status: map[string]string{"qp": "failed", "notification": "skipped"}, failure: "ibv_create_qp on dev: EPERM", skip: "qp uc not_permitted", unexpected: "ibv_create_qp EPERM"}},
		{"create_qp EOPNOTSUPP", "{verb: ibv_create_qp, errno: EOPNOTSUPP}", want{status: map[string]string{"qp": "skipped", "notification": "skipped"}, skip: "qp rc not_supported"}},
		{"short qp", "{verb: ibv_create_qp, short: 1}", want{status: map[string]string{"qp": "failed", "notification": "failed"}, failure: "asked for max_send_wr 16, given 15", unexpected: "ibv_post_recv EINVAL"}},
		{"modify_qp", "{verb: ibv_modify_qp, errno: EIO}", want{status: map[string]string{"qp": "failed", "notification": "failed"}, failure: "ibv_modify_qp", unexpected: "ibv_modify_qp EIO"}},
		{"query_qp", "{verb: ibv_query_qp, errno: EIO}", want{status: map[string]string{"qp": "failed"}, failure: "ibv_query_qp", unexpected: "ibv_query_qp EIO"}},
		{"destroy_cq twice", "{verb: ibv_destroy_cq, errno: EBUSY, times: 2}", want{unexpected: "ibv_destroy_cq EBUSY"}},
		{"destroy_cq always", "{verb: ibv_destroy_cq, errno: EBUSY}", want{
			status:  map[string]string{"cq": "failed", "comp_channel": "failed", "qp": "failed", "notification": "failed"},
			failure: "ibv_destroy_cq on dev: EBUSY", undestroyed: "cq EBUSY, comp_channel EBUSY, cq EBUSY, comp_channel EBUSY", unexpected: "ibv_destroy_cq EBUSY",
		}},
		{"destroy_qp always", "{verb: ibv_destroy_qp, errno: EIO}", want{
			status: map[string]string{"qp": "failed", "notification": "failed"}, failure: "ibv_destroy_qp on dev: EIO",
			undestroyed: "qp EIO, cq EBUSY, qp EIO, cq EBUSY, comp_channel EBUSY, pd EBUSY", unexpected: "ibv_destroy_qp EIO",
		}},
		{"destroy_srq always", "{verb: ibv_destroy_srq, errno: EBUSY}", want{status: map[string]string{"srq": "failed"}, failure: "ibv_destroy_srq", undestroyed: "srq EBUSY, pd EBUSY", unexpected: "ibv_destroy_srq EBUSY"}},
		{"destroy channel always", "{verb: ibv_destroy_comp_channel, errno: EBUSY}", want{status: map[string]string{"comp_channel": "failed", "notification": "failed"}, failure: "ibv_destroy_comp_channel", undestroyed: "comp_channel EBUSY", unexpected: "ibv_destroy_comp_channel EBUSY"}},
		{"dealloc_pd always", "{verb: ibv_dealloc_pd, errno: EBUSY}", want{err: "protection domain: not destroyed: refused", undestroyed: "pd EBUSY", unexpected: "ibv_dealloc_pd EBUSY"}},
		{"close", "{verb: ibv_close_device, errno: EIO}", want{err: "close the device: not destroyed: refused", undestroyed: "ctx EIO", unexpected: "ibv_close_device EIO"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := simulated.ParseProfile([]byte("devices: [{name: dev, like: sim_rxe0, faults: [" + tc.faults + "]}]"))
			if err != nil {
				t.Fatal(err)
			}
			r := runStill(t, p, "dev", quick())
			if tc.want.err == "" && r.Error != "" || !strings.Contains(r.Error, tc.want.err) {
				t.Errorf("error %q, want %q in it", r.Error, tc.want.err)
			}
			failed := ""
			if tc.want.err != "" {
				failed = tc.want.unexpected
			}
			if got := strings.TrimSpace(r.FailedVerb + " " + r.Errno); got != failed {
				t.Errorf("the run failed by %q, want %q", got, failed)
			}
			if r.Verb != "" {
				t.Errorf("verb %s in flight at the end", r.Verb)
			}
			var undestroyed, skips, unexpected []string
			for _, u := range r.Undestroyed {
				undestroyed = appendNew(undestroyed, u.Type+" "+u.Errno)
				if u.Attempts < 1 {
					t.Errorf("%s after %d attempts", u.Type, u.Attempts)
				}
			}
			if got := strings.Join(undestroyed, ", "); got != tc.want.undestroyed {
				t.Errorf("undestroyed %q, want %q", got, tc.want.undestroyed)
			}
			failures := ""
			for _, p := range r.Probes {
				want, ok := tc.want.status[p.Name]
				if !ok {
					want = "ok"
				}
				if string(p.Status) != want {
					t.Errorf("probe %s is %s, want %s: %v", p.Name, p.Status, want, p.Failures)
				}
				for _, f := range p.Failures {
					failures += f.Subject + ": " + f.Message + "\n"
				}
				for _, s := range p.Skips {
					skips = append(skips, p.Name+" "+s.Subject+" "+string(s.Reason))
				}
			}
			if !strings.Contains(failures, tc.want.failure) || (tc.want.failure == "") != (failures == "") {
				t.Errorf("failures %q, want %q", failures, tc.want.failure)
			}
			if s := strings.Join(skips, ", "); !strings.Contains(s, tc.want.skip) {
				t.Errorf("skips %q, want %q", s, tc.want.skip)
			}
			for _, c := range r.Calls {
				if c.Errno != "" && !c.Expected {
					unexpected = appendNew(unexpected, c.Verb+" "+c.Errno)
				}
			}
			if got := strings.Join(unexpected, ", "); !strings.HasPrefix(got, tc.want.unexpected) || (got == "") != (tc.want.unexpected == "") {
				t.Errorf("failed calls %q, want %q", got, tc.want.unexpected)
			}
		})
	}
}

// appendNew appends s unless it is the last element.
func appendNew(list []string, s string) []string {
	if len(list) > 0 && list[len(list)-1] == s {
		return list
	}
	return append(list, s)
}

func TestClamped(t *testing.T) {
	p, err := simulated.ParseProfile([]byte("devices: [{name: dev, like: sim_rxe0, limits: {max_cqe: 100, max_qp_wr: 64}}]"))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := run(t, p, "dev", quick())
	var got []string
	for _, p := range r.Probes {
		if p.Status != state.StatusOK {
			t.Errorf("probe %s is %s: %v", p.Name, p.Status, p.Failures)
		}
		for _, c := range p.Clamps {
			if c.Used >= c.Configured {
				t.Errorf("%+v is not cut down", c)
			}
			got = append(got, p.Name+" "+c.Profile+" "+c.Attribute+" "+c.Limit)
		}
	}
	const want = "cq medium cqe max_cqe"
	if s := strings.Join(got, ", "); !strings.Contains(s, want) || !strings.Contains(s, "qp large max_send_wr max_qp_wr") {
		t.Errorf("clamps %q", s)
	}
}

// TestContextEnds: a run whose context ended writes no end, so that nobody takes
// its report for a whole one.
func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	err := probe.Run(ctx, probe.Options{
		Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(simulated.Default(), tr) },
		Device:   "sim_rxe0", Config: quick(), Out: wire.NewWriter(&out),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := wire.Read(&out, &state.Run{}); !errors.Is(err, wire.ErrTruncated) {
		t.Errorf("the report reads with error %v", err)
	}
}

// TestWriterFails: with nobody left to report to, the run ends early.
func TestWriterFails(t *testing.T) {
	w := &failingWriter{left: 2000}
	err := probe.Run(t.Context(), probe.Options{
		Provider: func(tr verbs.Tracer) verbs.Provider { return simulated.New(simulated.Default(), tr) },
		Device:   "sim_rxe0", Config: quick(), Out: wire.NewWriter(w),
	})
	if !errors.Is(err, errWrite) {
		t.Errorf("error %v", err)
	}
}

var errWrite = errors.New("nobody reads")

type failingWriter struct{ left int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errWrite
	}
	return len(b), nil
}
