package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"rdma_exporter/internal/state"
)

const endLine = `{"end":{}}` + "\n"

// fullRun is a run with everything in it that a report can carry.
func fullRun() *state.Run {
	limit := int64(1 << 16)
	return &state.Run{
		Error: "so it is", FailedVerb: "ibv_query_port", Errno: "EIO", MaxRSS: 1 << 20,
		Light: &state.Light{Reason: state.LightBusy, Detail: "mpirun (process 7) holds queue pairs\n"},
		Info: &state.Device{
			Transport: "InfiniBand", Firmware: "20.31.1014", VendorID: 0x2c9, VendorPartID: 4123, HWVersion: 1,
			NodeGUID: "5254:00ff:fe12:3456", CompletionVectors: 4,
			Limits: []state.Limit{{Name: "max_qp", Value: 1 << 17}, {Name: "max_mr_size", Value: 1<<63 - 1}},
			Ports:  []state.Port{{Number: 1, State: "active", LinkLayer: "Ethernet", ActiveMTU: 4096}, {Number: 2, State: "down"}},
		},
		Probes: []state.Probe{
			{Name: "cq", Status: state.StatusOK, Duration: time.Millisecond, CQs: []state.CQSize{{Profile: "small", Requested: 16, Actual: 31}, {Profile: "large", Requested: 4096, Actual: 4095}}},
			{Name: "srq", Status: state.StatusSkipped, Skips: []state.Skip{{Reason: state.SkipNotSupported, Detail: "max_srq is 0 <\u2028\">"}}},
			{
				Name: "qp", Status: state.StatusFailed, Duration: time.Second,
				Failures: []state.Failure{{Subject: "rc medium", Verb: "ibv_create_qp", Errno: "ENOMEM", Message: "no room\nat all", Memlock: &limit}},
				Skips:    []state.Skip{{Subject: "raw_packet", Reason: state.SkipNotPermitted, Memlock: new(int64)}},
				Clamps:   []state.Clamp{{Profile: "large", Subject: "qp_rc", Attribute: "max_send_wr", Limit: "max_qp_wr", Configured: 1 << 20, Used: 1 << 14}},
				SRQs:     []state.SRQSize{{Profile: "small", Requested: state.SRQAttr{WorkRequests: 1, ScatterGather: 2}, Actual: state.SRQAttr{WorkRequests: 3, ScatterGather: 4}, Queried: &state.SRQAttr{WorkRequests: 5, ScatterGather: 6}}},
				QPs: []state.QPSize{
					{Type: "rc", Profile: "small", Requested: state.QPCap{SendWorkRequests: 1, RecvWorkRequests: 2, SendScatterGather: 3, RecvScatterGather: 4, InlineBytes: 5}, Actual: state.QPCap{SendWorkRequests: 6, RecvWorkRequests: 7, SendScatterGather: 8, RecvScatterGather: 9, InlineBytes: 10}},
					{Type: "uc", Profile: "small", Requested: state.QPCap{}, Actual: state.QPCap{}},
				},
				Inline: []state.InlineMax{{Type: "rc", Bytes: 828}, {Type: "ud", Bytes: 0}},
				Registrations: []state.Registration{
					{Memory: state.MemoryPage, Bytes: 4096, Result: state.MemoryRegistered, Duration: 9120},
					{Memory: state.MemoryMany, Bytes: 2 << 20, Result: state.MemoryRefused, By: state.RefusedByMemlock, Errno: "ENOMEM", Detail: "no"},
				},
				Memory: []state.Memory{{Object: "qp_rc", Profile: "small", Virtual: 4096, Locked: 8192}, {Object: "comp_channel", Profile: "", Virtual: 0, Locked: -4096}},
			},
			{
				Name: "notification", Status: state.StatusFailed,
				Skips: []state.Skip{{Subject: "port 2", Reason: state.SkipPortDown}, {Subject: "vector 1", Reason: state.SkipBudget}},
				Latencies: []state.Latency{
					{
						Port: 1, Path: state.PathLoopback, Mode: state.ModeAny, Vector: 3, Count: 2, P50: 3000, P99: 4000,
						Samples: []time.Duration{4000, 3000}, Arms: []time.Duration{200, 300},
					},
					{
						Port: 1, Path: state.PathFlush, Mode: state.ModeSolicited, Missed: 1, Spurious: 2, Misdirected: 3, Missing: 4,
						Unsuccessful: []string{"retry_exc_err", "success"}, Stopped: "too many events did not come",
					},
					{Port: 1, Path: state.PathFlush, Mode: state.ModePoll, Count: 1, P50: 1, P99: 1, Samples: []time.Duration{1}},
				},
			},
		},
		Contracts: []state.Contract{
			{Name: "cq_at_least_requested", Severity: state.SeverityCritical, Verdict: state.VerdictHolds, Duration: time.Millisecond},
			{
				Name: "qp_reports_actual", Severity: state.SeverityWarning, Verdict: state.VerdictViolated,
				Asked: "a QP", Expected: "what it is", Observed: "what it is not\n<\u2028>",
				Consequence: "it is believed\n", Remedy: "ask twice <\u2028>",
			},
			{Name: "cq_comp_vector_rejected", Severity: state.SeverityInfo, Verdict: state.VerdictSkipped, Reason: state.SkipTimeout, Observed: "killed"},
			{Name: "notify_any", Severity: state.SeverityCritical, Verdict: state.VerdictSkipped, Reason: state.SkipCrashed},
		},
		Planned: []state.Planned{{Name: "cq_at_least_requested", Severity: state.SeverityCritical}, {Name: "notify_one_shot", Severity: state.SeverityInfo}},
		Judging: "notify_one_shot",
		Presumed: &state.Presumption{Proven: true, Contract: state.Contract{
			Name: "notify_one_shot", Severity: state.SeverityInfo, Verdict: state.VerdictViolated, Observed: "the process came to its end",
		}},
		Calls: []state.Call{
			{Verb: "ibv_open_device", Duration: 1234},
			{Verb: "ibv_create_qp", Duration: 0, Errno: "ENOMEM", Expected: true},
		},
		Undestroyed: []state.Undestroyed{{Type: "cq", Errno: "EBUSY", Attempts: 5}, {Type: "comp_channel", Errno: "errno 4242", Attempts: 1}},
		Events:      []state.Events{{Type: "port_err", Port: 2, Count: 3}, {Type: "device_fatal", Count: 1}},
		Turn:        &state.Turn{Object: "qp_rc", Port: 1, Vector: 3},
		Facts: &state.Facts{
			Identity: state.Identity{
				Kernel: "6.1.0-18-amd64", Firmware: "20.31.1014", VendorID: 0x2c9, VendorPartID: 4123, HWVersion: 1,
				Libraries: "0123abcd",
			},
			Absent: []state.Skip{{Subject: "raw_packet", Reason: state.SkipNotPermitted, Detail: "EPERM <\u2028>"}},
			Inline: []state.InlineMax{{Type: "rc", Bytes: 828}, {Type: "ud", Bytes: 0}},
			Ways:   []state.KnownWay{{Way: state.Way{Port: 1, Path: state.PathLoopback, By: "GID 3 <\u2028>", InsteadOf: "GID 1"}, Among: "0123"}, {Way: state.Way{Port: 1, Path: state.PathFlush, By: "sends", InsteadOf: ""}, Among: "0123"}},
		},
	}
}

// write writes all of a run but its end.
func write(t testing.TB, w *Writer, run *state.Run) {
	t.Helper()
	var errs []error
	for _, c := range run.Calls {
		errs = append(errs, w.Begin(c.Verb), w.Call(c))
	}
	if run.Info != nil {
		errs = append(errs, w.Device(*run.Info))
	}
	for _, p := range run.Probes {
		errs = append(errs, w.Probe(p))
	}
	if run.Light != nil {
		errs = append(errs, w.Light(*run.Light))
	}
	if run.Planned != nil {
		errs = append(errs, w.Plan(run.Planned))
	}
	for _, c := range run.Contracts {
		errs = append(errs, w.Judging(c.Name), w.Contract(c))
	}
	if run.Judging != "" {
		errs = append(errs, w.Judging(run.Judging))
	}
	if run.Presumed != nil {
		errs = append(errs, w.Presume(*run.Presumed))
	}
	for _, u := range run.Undestroyed {
		errs = append(errs, w.Undestroyed(u))
	}
	if run.Events != nil {
		errs = append(errs, w.Events(run.Events))
	}
	for _, h := range run.Hardware {
		errs = append(errs, w.Hardware(h))
	}
	if run.Turn != nil {
		errs = append(errs, w.Turn(*run.Turn))
	}
	if run.Facts != nil {
		errs = append(errs, w.Facts(*run.Facts))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// endOf returns the end of the report of a run.
func endOf(run *state.Run) End {
	return End{Error: run.Error, Verb: run.FailedVerb, Errno: run.Errno, MaxRSS: run.MaxRSS}
}

func fullReport(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	w := NewWriter(&b)
	write(t, w, fullRun())
	if err := w.End(endOf(fullRun())); err != nil || w.Err() != nil {
		t.Fatal(err, w.Err())
	}
	return b.String()
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	text := fullReport(t)
	readers := map[string]io.Reader{
		"at once":       strings.NewReader(text),
		"byte by byte":  iotest.OneByteReader(strings.NewReader(text)),
		"data with EOF": iotest.DataErrReader(strings.NewReader(text)),
		"blank lines":   strings.NewReader(text + "\n \r\n\t"),
		"pipe closed":   io.MultiReader(strings.NewReader(text), iotest.ErrReader(os.ErrClosed)),
		"CR LF":         strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n")),
	}
	for name, r := range readers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got state.Run
			if err := Read(r, &got); err != nil {
				t.Fatal(err)
			}
			if want := fullRun(); !reflect.DeepEqual(&got, want) {
				t.Errorf("got  %s\nwant %s", asJSON(t, got), asJSON(t, want))
			}
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Read adds to a run and leaves the rest of it alone.
func TestReadKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	run := state.Run{Device: "rxe0", Outcome: state.OutcomeOK, Started: time.Unix(1, 0)}
	if err := Read(strings.NewReader(endLine), &run); err != nil {
		t.Fatal(err)
	}
	if want := (state.Run{Device: "rxe0", Outcome: state.OutcomeOK, Started: time.Unix(1, 0)}); !reflect.DeepEqual(run, want) {
		t.Errorf("got %+v", run)
	}
}

// Wherever a report is cut off, the error says so and nothing is made up.
func TestReadTruncatedAnywhere(t *testing.T) {
	t.Parallel()
	text := fullReport(t)
	whole := fullRun()
	for n := range len(text) {
		var run state.Run
		err := Read(strings.NewReader(text[:n]), &run)
		if !errors.Is(err, ErrTruncated) {
			t.Fatalf("cut off at byte %d: %v", n, err)
		}
		if lines := strings.Count(text[:n], "\n"); len(run.Probes) > len(whole.Probes) || len(run.Contracts) > len(whole.Contracts) || lines == 0 && !reflect.DeepEqual(run, state.Run{}) {
			t.Fatalf("cut off at byte %d: %+v", n, run)
		}
	}
}

func TestReadVerbInFlight(t *testing.T) {
	t.Parallel()
	const (
		beginA = `{"begin":"ibv_create_cq"}` + "\n"
		callA  = `{"call":{"verb":"ibv_create_cq","ns":1}}` + "\n"
		beginB = `{"begin":"ibv_destroy_cq"}` + "\n"
	)
	tests := []struct {
		name, text, verb string
		calls            int
	}{
		{"before the first", "", "", 0},
		{"first", beginA, "ibv_create_cq", 0},
		{"between", beginA + callA, "", 1},
		{"second", beginA + callA + beginB, "ibv_destroy_cq", 1},
		{"begun and not yet told whole", beginA + callA + beginB[:9], "", 1},
		{"before garbage", beginA + "Segmentation fault\n", "ibv_create_cq", 0},
		{"other lines between", beginA + `{"device":{}}` + "\n", "ibv_create_cq", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var run state.Run
			if err := Read(strings.NewReader(tt.text), &run); err == nil {
				t.Error("no error for a report without end")
			}
			if run.Verb != tt.verb || len(run.Calls) != tt.calls {
				t.Errorf("verb %q and %d calls, want %q and %d", run.Verb, len(run.Calls), tt.verb, tt.calls)
			}
		})
	}
}

func TestReadJudging(t *testing.T) {
	t.Parallel()
	const (
		judgingA = `{"judging":"notify_any"}` + "\n"
		verdictA = `{"contract":{"name":"notify_any","severity":"critical","verdict":"holds","duration_ns":1}}` + "\n"
		judgingB = `{"judging":"notify_one_shot"}` + "\n"
		presumeA = `{"presumed":{"contract":{"name":"notify_any","severity":"critical","verdict":"violated","duration_ns":1}}}` + "\n"
		begin    = `{"begin":"ibv_create_cq"}` + "\n"
	)
	tests := []struct {
		name, text, judging, verb string
		contracts                 int
		presumed                  bool
	}{
		{"before the first", begin, "", "ibv_create_cq", 0, false},
		{"first", judgingA, "notify_any", "", 0, false},
		{"first, in a verb", judgingA + begin, "notify_any", "ibv_create_cq", 0, false},
		{"between", judgingA + verdictA, "", "", 1, false},
		{"second", judgingA + verdictA + judgingB, "notify_one_shot", "", 1, false},
		{"named and not yet told whole", judgingA + verdictA + judgingB[:9], "", "", 1, false},
		{"presumed", judgingA + presumeA + begin, "notify_any", "ibv_create_cq", 0, true},
		{"presumed and not yet told whole", judgingA + presumeA[:20], "notify_any", "", 0, false},
		{"presumed and judged", judgingA + presumeA + verdictA, "", "", 1, false},
		{"presumed of the one before", judgingA + presumeA + judgingB, "notify_one_shot", "", 0, false},
		{"a verdict out of the blue", verdictA, "", "", 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var run state.Run
			if err := Read(strings.NewReader(tt.text), &run); !errors.Is(err, ErrTruncated) {
				t.Errorf("error %v", err)
			}
			if run.Judging != tt.judging || run.Verb != tt.verb || len(run.Contracts) != tt.contracts {
				t.Errorf("judging %q in %q with %d verdicts, want %q, %q and %d",
					run.Judging, run.Verb, len(run.Contracts), tt.judging, tt.verb, tt.contracts)
			}
			if (run.Presumed != nil) != tt.presumed || run.Presumed != nil && run.Presumed.Contract.Name != run.Judging {
				t.Errorf("presumed is %+v", run.Presumed)
			}
		})
	}
}

func TestReadRejects(t *testing.T) {
	t.Parallel()
	many := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	lines := func(n int, line string) string { return strings.Repeat(line+"\n", n) }
	probes := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`{"probe":{"name":"` + strings.Repeat("p", i+1) + `","status":"ok"}}` + "\n")
		}
		return b.String()
	}
	contracts := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"contract":{"name":"c%d","severity":"info","verdict":"holds"}}`+"\n", i)
		}
		return b.String()
	}
	registrations := func(list string) string {
		return `{"probe":{"name":"mr","status":"ok","registrations":[` + list + "]}}\n"
	}
	// latency is a line with a measurement that is sane but for what is given.
	latency := func(fields string) string {
		all := map[string]any{"port": 1, "path": "flush", "mode": "any"}
		if err := json.Unmarshal([]byte("{"+fields+"}"), &all); err != nil {
			t.Fatal(err)
		}
		b := mustJSON(t, all)
		return `{"probe":{"name":"notification","status":"ok","latencies":[` + string(b) + "]}}\n"
	}
	tests := []struct {
		name, text string
		// line is the line that the error names; 0 for none.
		line int
		// is must be matched by the error, if it is not nil.
		is error
	}{
		{"nothing", "", 0, ErrTruncated},
		{"no newline", "hello", 0, ErrTruncated},
		{"end without newline", `{"end":{}}`, 0, ErrTruncated},
		{"words", "hello\n", 1, nil},
		{"a turn of no word", `{"turn":{"object":"qp\nrc"}}` + "\n", 1, nil},
		{"a turn of nothing", `{"turn":{"port":1}}` + "\n", 1, nil},
		{"a turn of port -1", `{"turn":{"object":"cq","port":-1}}` + "\n", 1, nil},
		{"a turn of a vector that no device has", `{"turn":{"object":"cq","comp_vector":65537}}` + "\n", 1, nil},
		{"a second turn", lines(2, `{"turn":{"object":"cq"}}`), 2, nil},
		{"facts about no word", `{"facts":{"identity":{},"inline":[{"type":""}]}}` + "\n", 1, nil},
		{"facts about a type twice", `{"facts":{"identity":{},"absent":[{"subject":"rc","reason":"x"}],"inline":[{"type":"rc"}]}}` + "\n", 1, nil},
		{"facts without a reason", `{"facts":{"identity":{},"absent":[{"subject":"rc"}]}}` + "\n", 1, nil},
		{"facts with a limit", `{"facts":{"identity":{},"absent":[{"subject":"rc","reason":"x","memlock_limit_bytes":1}]}}` + "\n", 1, nil},
		{"facts with less than nothing", `{"facts":{"identity":{},"inline":[{"type":"rc","bytes":-1}]}}` + "\n", 1, nil},
		{"facts about many types", `{"facts":{"identity":{},"inline":` + many(17, `{"type":"rc"}`) + "}}\n", 1, ErrTooLarge},
		{"facts of a long identity", `{"facts":{"identity":{"libraries":"` + strings.Repeat("x", 129) + "\"}}}\n", 1, ErrTooLarge},
		{"facts about no path", `{"facts":{"identity":{},"ways":[{"path":"x","port":1,"among":"1"}]}}` + "\n", 1, nil},
		{"facts about a way among nothing", `{"facts":{"identity":{},"ways":[{"path":"flush","port":1}]}}` + "\n", 1, nil},
		{"facts about a way twice", `{"facts":{"identity":{},"ways":` + many(2, `{"path":"flush","port":1,"among":"1"}`) + "}}\n", 1, nil},
		{"facts about many ways", `{"facts":{"identity":{},"ways":` + many(17, `{"path":"flush","port":1,"among":"1"}`) + "}}\n", 1, ErrTooLarge},
		{"facts with something else", `{"facts":{"identity":{},"colour":"red"}}` + "\n", 1, nil},
		{"binary", "\x7fELF\x00\xff\n", 1, nil},
		{"empty line", "\n" + endLine, 1, nil},
		{"second line", `{"begin":"ibv_x"}` + "\n{\n", 2, nil},
		{"array", "[]\n", 1, nil},
		{"null", "null\n", 1, nil},
		{"no key", "{}\n", 1, nil},
		{"null key", `{"end":null}` + "\n", 1, nil},
		{"unknown key", `{"start":1}` + "\n", 1, nil},
		{"unknown attribute", `{"device":{"colour":"red"}}` + "\n", 1, nil},
		{"two keys", `{"begin":"ibv_x","end":{}}` + "\n", 1, nil},
		{"two values", `{"end":{}}{"end":{}}` + "\n", 1, nil},
		{"a value and a brace", `{"end":{}}}` + "\n", 1, nil},
		{"a value and a bracket", `{"end":{}}]` + "\n", 1, nil},
		{"wrong type", `{"end":7}` + "\n", 1, nil},
		{"deep", `{"device":` + strings.Repeat("[", 1<<17) + "\n", 1, nil},
		{"text after the end", endLine + "bye\n", 2, nil},
		{"text without newline after the end", endLine + "\nbye", 3, nil},
		{"two ends", endLine + endLine, 2, nil},
		{"light for nothing", `{"light":{}}` + "\n", 1, nil},
		{"light without words", `{"light":{"reason":"busy"}}` + "\n", 1, nil},
		{"light for an unheard-of reason", `{"light":{"reason":"dark","detail":"x"}}` + "\n", 1, nil},
		{"light twice", lines(2, `{"light":{"reason":"busy","detail":"x"}}`), 2, nil},
		{"verb", `{"begin":"rm -rf"}` + "\n", 1, nil},
		{"verb of a call", `{"call":{"verb":"open","ns":1}}` + "\n", 1, nil},
		{"long verb", `{"begin":"ibv_` + strings.Repeat("x", 48) + `"}` + "\n", 1, nil},
		{"negative time", `{"call":{"verb":"ibv_x","ns":-1}}` + "\n", 1, nil},
		{"errno", `{"call":{"verb":"ibv_x","ns":1,"errno":"a\nb"}}` + "\n", 1, nil},
		{"limit without name", `{"device":{"limits":[{"name":"","value":1}]}}` + "\n", 1, nil},
		{"limit twice", `{"device":{"limits":[{"name":"a"},{"name":"a"}]}}` + "\n", 1, nil},
		{"port twice", `{"device":{"ports":[{"number":1},{"number":1}]}}` + "\n", 1, nil},
		{"state of a port", `{"device":{"ports":[{"number":1,"state":"\u0007"}]}}` + "\n", 1, nil},
		{"too many limits", `{"device":{"limits":` + many(maxLimits+1, `{}`) + "}}\n", 1, ErrTooLarge},
		{"too many ports", `{"device":{"ports":` + many(maxPorts+1, `{}`) + "}}\n", 1, ErrTooLarge},
		{"long attribute", `{"device":{"fw_version":"` + strings.Repeat("x", maxLabel+1) + `"}}` + "\n", 1, ErrTooLarge},
		{"probe without name", `{"probe":{"status":"ok"}}` + "\n", 1, nil},
		{"probe without status", `{"probe":{"name":"cq"}}` + "\n", 1, nil},
		{"status", `{"probe":{"name":"cq","status":"fine"}}` + "\n", 1, nil},
		{"probe took less than nothing", `{"probe":{"name":"cq","status":"ok","duration_ns":-1}}` + "\n", 1, nil},
		{"probe twice", lines(2, `{"probe":{"name":"cq","status":"ok"}}`), 2, nil},
		{"too many probes", probes(maxProbes + 1), maxProbes + 1, ErrTooLarge},
		{"too many failures", `{"probe":{"name":"cq","status":"ok","failures":` + many(maxItems+1, `{}`) + "}}\n", 1, ErrTooLarge},
		{"verb of a failure", `{"probe":{"name":"cq","status":"failed","failures":[{"verb":"\""}]}}` + "\n", 1, nil},
		{"reason", `{"probe":{"name":"cq","status":"ok","skips":[{"reason":"\u2603"}]}}` + "\n", 1, nil},
		{"clamp", `{"probe":{"name":"cq","status":"ok","clamps":[{"limit":"{"}]}}` + "\n", 1, nil},
		{"CQ twice", `{"probe":{"name":"cq","status":"ok","cqs":[{"profile":"a"},{"profile":"a"}]}}` + "\n", 1, nil},
		{"SRQ twice", `{"probe":{"name":"cq","status":"ok","srqs":[{"profile":"a"},{"profile":"a"}]}}` + "\n", 1, nil},
		{"QP twice", `{"probe":{"name":"cq","status":"ok","qps":[{"type":"rc","profile":"a"},{"type":"rc","profile":"a"}]}}` + "\n", 1, nil},
		{"inline twice", `{"probe":{"name":"cq","status":"ok","inline":[{"type":"rc"},{"type":"rc"}]}}` + "\n", 1, nil},
		{"memory twice", `{"probe":{"name":"cq","status":"ok","memory":[{"object":"cq"},{"object":"cq"}]}}` + "\n", 1, nil},
		{"registration twice", registrations(`{"memory":"4KiB","bytes":1,"result":"registered"},{"memory":"4KiB","bytes":1,"result":"registered"}`), 1, nil},
		{"registration of what is no memory", registrations(`{"memory":"tape","bytes":1,"result":"registered"}`), 1, nil},
		{"registration of nothing", registrations(`{"memory":"4KiB","result":"registered"}`), 1, nil},
		{"registration without a result", registrations(`{"memory":"4KiB","bytes":1}`), 1, nil},
		{"registration in less than no time", registrations(`{"memory":"4KiB","bytes":1,"result":"registered","ns":-1}`), 1, nil},
		{"registration refused by nobody", registrations(`{"memory":"4KiB","bytes":1,"result":"refused"}`), 1, nil},
		{"registration refused by the weather", registrations(`{"memory":"4KiB","bytes":1,"result":"refused","refused_by":"weather"}`), 1, nil},
		{"registration refused and done", registrations(`{"memory":"4KiB","bytes":1,"result":"registered","refused_by":"device"}`), 1, nil},
		{"registration done with an errno", registrations(`{"memory":"4KiB","bytes":1,"result":"registered","errno":"EIO"}`), 1, nil},
		{"registration with no word for an errno", registrations(`{"memory":"4KiB","bytes":1,"result":"refused","refused_by":"device","errno":"\""}`), 1, nil},
		{"port below zero", latency(`"port":-1`), 1, nil},
		{"port beyond all", latency(`"port":257`), 1, nil},
		{"path", latency(`"path":"wormhole"`), 1, nil},
		{"no path", latency(`"path":""`), 1, nil},
		{"mode", latency(`"mode":"telepathy"`), 1, nil},
		{"no mode", latency(`"mode":""`), 1, nil},
		{"vector below zero", latency(`"comp_vector":-1`), 1, nil},
		{"vector beyond all", latency(`"comp_vector":65537`), 1, nil},
		{"too many samples", latency(`"samples_ns":` + many(maxSamples+1, "1") + `,"count":16385`), 1, ErrTooLarge},
		{"too many arms", latency(`"arms_ns":` + many(maxSamples+1, "1")), 1, ErrTooLarge},
		{"too many statuses", latency(`"unsuccessful":` + many(maxSamples+1, `"success"`)), 1, ErrTooLarge},
		{"fewer samples than counted", latency(`"samples_ns":[1],"count":2`), 1, nil},
		{"more samples than counted", latency(`"samples_ns":[1,2],"count":1`), 1, nil},
		{"count without samples", latency(`"count":1`), 1, nil},
		{"count below zero", latency(`"count":-1`), 1, nil},
		{"missed below zero", latency(`"missed":-1`), 1, nil},
		{"spurious below zero", latency(`"spurious":-1`), 1, nil},
		{"misdirected below zero", latency(`"misdirected":-1`), 1, nil},
		{"missing below zero", latency(`"missing":-1`), 1, nil},
		{"half an event missed", latency(`"missed":0.5`), 1, nil},
		{"sample below zero", latency(`"samples_ns":[1,-1],"count":2`), 1, nil},
		{"arm below zero", latency(`"arms_ns":[-1]`), 1, nil},
		{"median below zero", latency(`"p50_ns":-1`), 1, nil},
		{"99th percentile below zero", latency(`"p99_ns":-1`), 1, nil},
		{"status of a completion", latency(`"unsuccessful":["re\"try"]`), 1, nil},
		{"unknown attribute of a measurement", latency(`"jitter":1`), 1, nil},
		{"measurement twice", `{"probe":{"name":"n","status":"ok","latencies":` + many(2, `{"path":"flush","mode":"any"}`) + "}}\n", 1, nil},
		{"too many measurements", `{"probe":{"name":"n","status":"ok","latencies":` + many(maxItems+1, `{}`) + "}}\n", 1, ErrTooLarge},
		{"judging nothing known", `{"judging":"a\nb"}` + "\n", 1, nil},
		{"judging a long name", `{"judging":"` + strings.Repeat("x", maxLabel+1) + `"}` + "\n", 1, nil},
		{"judging and verdict", `{"judging":"c","contract":{"name":"c","severity":"info","verdict":"holds"}}` + "\n", 1, nil},
		{"plan of no name", `{"planned":[{"name":"","severity":"info"}]}` + "\n", 1, nil},
		{"plan of no severity", `{"planned":[{"name":"a","severity":"grave"}]}` + "\n", 1, nil},
		{"two plans", `{"planned":[{"name":"a","severity":"info"}]}` + "\n" + `{"planned":[{"name":"b","severity":"info"}]}` + "\n", 2, ErrTooLarge},
		{"a plan too long", `{"planned":[` + strings.Repeat(`{"name":"a","severity":"info"},`, 128) + `{"name":"a","severity":"info"}]}` + "\n", 1, ErrTooLarge},
		{"presumed of none", `{"presumed":{"contract":{"name":"c","severity":"info","verdict":"holds"}}}` + "\n", 1, nil},
		{"presumed of another", `{"judging":"a"}` + "\n" + `{"presumed":{"contract":{"name":"b","severity":"info","verdict":"holds"}}}` + "\n", 2, nil},
		{"presumed of the one before", `{"judging":"a"}` + "\n" + `{"contract":{"name":"a","severity":"info","verdict":"holds"}}` + "\n" + `{"presumed":{"contract":{"name":"a","severity":"info","verdict":"holds"}}}` + "\n", 3, nil},
		{"presumed verdict", `{"judging":"a"}` + "\n" + `{"presumed":{"contract":{"name":"a","severity":"info","verdict":"perhaps"}}}` + "\n", 2, nil},
		{"contract without name", `{"contract":{"severity":"info","verdict":"holds"}}` + "\n", 1, nil},
		{"name of a contract", `{"contract":{"name":"{","severity":"info","verdict":"holds"}}` + "\n", 1, nil},
		{"no verdict", `{"contract":{"name":"c","severity":"info"}}` + "\n", 1, nil},
		{"verdict", `{"contract":{"name":"c","severity":"info","verdict":"perhaps"}}` + "\n", 1, nil},
		{"no severity", `{"contract":{"name":"c","verdict":"holds"}}` + "\n", 1, nil},
		{"severity", `{"contract":{"name":"c","severity":"mild","verdict":"holds"}}` + "\n", 1, nil},
		{"skipped without reason", `{"contract":{"name":"c","severity":"info","verdict":"skipped"}}` + "\n", 1, nil},
		{"held for a reason", `{"contract":{"name":"c","severity":"info","verdict":"holds","reason":"budget"}}` + "\n", 1, nil},
		{"violated for a reason", `{"contract":{"name":"c","severity":"info","verdict":"violated","reason":"budget"}}` + "\n", 1, nil},
		{"reason of a contract", `{"contract":{"name":"c","severity":"info","verdict":"skipped","reason":"\""}}` + "\n", 1, nil},
		{"known without a fact", `{"contract":{"name":"c","severity":"info","verdict":"violated","known":true,"source":"s"}}` + "\n", 1, nil},
		{"known without a source", `{"contract":{"name":"c","severity":"info","verdict":"holds","known":true,"fact":"f"}}` + "\n", 1, nil},
		{"a fact that is not known", `{"contract":{"name":"c","severity":"info","verdict":"violated","fact":"f","source":"s"}}` + "\n", 1, nil},
		{"known and skipped", `{"contract":{"name":"c","severity":"info","verdict":"skipped","reason":"budget","known":true,"fact":"f","source":"s"}}` + "\n", 1, nil},
		{"name of a driver", `{"device":{"driver":"a\nb"}}` + "\n", 1, nil},
		{"shortfall of no contract", `{"probe":{"name":"cq","status":"ok","known":[{"fact":"f","source":"s"}]}}` + "\n", 1, nil},
		{"shortfall without a fact", `{"probe":{"name":"cq","status":"ok","known":[{"contract":"c","source":"s"}]}}` + "\n", 1, nil},
		{"shortfall of a contract with a strange name", `{"probe":{"name":"cq","status":"ok","known":[{"contract":"{","fact":"f","source":"s"}]}}` + "\n", 1, nil},
		{"contract took less than nothing", `{"contract":{"name":"c","severity":"info","verdict":"holds","duration_ns":-1}}` + "\n", 1, nil},
		{"contract twice", lines(2, `{"contract":{"name":"c","severity":"info","verdict":"holds"}}`), 2, nil},
		{"too many contracts", contracts(maxContracts + 1), maxContracts + 1, ErrTooLarge},
		{"locked memory of a failure", `{"probe":{"name":"n","status":"failed","failures":[{"subject":"s","message":"m","memlock_limit_bytes":-1}]}}` + "\n", 1, nil},
		{"locked memory of a skip", `{"probe":{"name":"n","status":"skipped","skips":[{"reason":"budget","memlock_limit_bytes":-1}]}}` + "\n", 1, nil},
		{"end with less than no memory", `{"end":{"max_rss_bytes":-1}}` + "\n", 1, nil},
		{"end with no verb", `{"end":{"error":"e","verb":"open"}}` + "\n", 1, nil},
		{"end with no errno", `{"end":{"error":"e","verb":"ibv_open_device","errno":"\n"}}` + "\n", 1, nil},
		{"undestroyed", `{"undestroyed":{"type":"","errno":"EBUSY"}}` + "\n", 1, nil},
		{"events of no type", `{"events":[{"type":"","count":1}]}` + "\n", 1, nil},
		{"no events", `{"events":[{"type":"port_err","count":0}]}` + "\n", 1, nil},
		{"events of no port", `{"events":[{"type":"port_err","port":-1,"count":1}]}` + "\n", 1, nil},
		{"too many events", lines(maxItems+1, `{"events":[{"type":"port_err","count":1}]}`), maxItems + 1, ErrTooLarge},
		{"too many undestroyed", lines(maxItems+1, `{"undestroyed":{"type":"cq","errno":"EBUSY"}}`), maxItems + 1, ErrTooLarge},
		{"refused, of a type that there is not", `{"refused":{"type":"ah","verb":"ibv_create_ah","errno":"ENOMEM","objects":1}}` + "\n", 1, nil},
		{"refused by no verb", `{"refused":{"type":"qp","verb":"create","errno":"ENOMEM","objects":1}}` + "\n", 1, nil},
		{"refused with no errno", `{"refused":{"type":"qp","verb":"ibv_create_qp","errno":"","objects":1}}` + "\n", 1, nil},
		{"refused at nothing", `{"refused":{"type":"qp","verb":"ibv_create_qp","errno":"ENOMEM"}}` + "\n", 1, nil},
		{"refused twice", lines(2, `{"refused":{"type":"qp","verb":"ibv_create_qp","errno":"ENOMEM","objects":1}}`), 2, nil},
		{"too many orphans", `{"inventory":{"orphans":[` + strings.Repeat(`{},`, state.MaxOrphans) + `{"context":1}]}}` + "\n", 1, ErrTooLarge},
		{"an orphan twice", `{"inventory":{"orphans":[{"context":1},{"context":1}]}}` + "\n", 1, nil},
		{"less than no orphan", `{"inventory":{"orphans":[{"objects":[{"type":"qp","objects":-1}]}]}}` + "\n", 1, nil},
		{"too many contexts", `{"inventory":{"owners":[{"pid":1,"contexts":[` + strings.Repeat(`1,`, state.MaxContexts) + `1]}]}}` + "\n", 1, ErrTooLarge},
		{"long line without newline", strings.Repeat("x", MaxLine+1), 0, ErrTooLarge},
		{"long line", strings.Repeat("x", MaxLine+1) + "\n", 0, ErrTooLarge},
		{"long line after the end", endLine + strings.Repeat(" ", MaxLine+1) + "\n", 0, ErrTooLarge},
		{"large", lines(MaxReport>>16+1, `{"begin":"ibv_xyz"`+strings.Repeat(" ", 1<<16)+"}"), 0, ErrTooLarge},
		{"large after the end", endLine + lines(MaxReport>>16, strings.Repeat(" ", 1<<16)), 0, ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var run state.Run
			err := Read(strings.NewReader(tt.text), &run)
			if err == nil {
				t.Fatal("no error")
			}
			var line *LineError
			if errors.As(err, &line) != (tt.line != 0) || line != nil && line.Line != tt.line {
				t.Errorf("error %q, want one for line %d", err, tt.line)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %q does not match %q", err, tt.is)
			}
			if errors.Is(err, ErrTruncated) && !errors.Is(tt.is, ErrTruncated) {
				t.Errorf("error %q says that the report is truncated", err)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
		})
	}
}

// A long line that comes in small pieces takes no longer than one in one piece.
func TestReadDripped(t *testing.T) {
	t.Parallel()
	text := `{"end":{}` + strings.Repeat(" ", MaxLine-len(endLine)) + "}\n"
	var run state.Run
	if err := Read(iotest.OneByteReader(strings.NewReader(text)), &run); err != nil {
		t.Error(err)
	}
}

// A report may be just as large as the bounds say.
func TestReadAtTheBounds(t *testing.T) {
	t.Parallel()
	pad := func(n int) string { return `{"end":{}` + strings.Repeat(" ", n-len(endLine)) + "}\n" }
	begin := `{"begin":"ibv_xyz"` + strings.Repeat(" ", 1<<16) + "}\n"
	begins := strings.Repeat(begin, (MaxReport-MaxLine)/len(begin))
	text := begins + pad(MaxLine)
	text += strings.Repeat("\n", MaxReport-len(text))
	if len(text) != MaxReport {
		t.Fatalf("the test's report has %d bytes", len(text))
	}
	var run state.Run
	if err := Read(strings.NewReader(text), &run); err != nil {
		t.Error(err)
	}
	if err := Read(strings.NewReader(text+"\n"), &run); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
}

// The most that is taken is taken.
func TestReadTakesTheMost(t *testing.T) {
	t.Parallel()
	most := state.Latency{
		Port: maxPorts, Path: state.PathLoopback, Mode: state.ModeAny, Vector: maxVector,
		Samples: make([]time.Duration, maxSamples), Arms: make([]time.Duration, maxSamples),
		Unsuccessful: slices.Repeat([]string{"success"}, maxSamples),
	}
	most.Summarise()
	p := state.Probe{Name: "notification", Status: state.StatusFailed, Latencies: []state.Latency{most}}
	for vector := range maxItems - 1 {
		p.Latencies = append(p.Latencies, state.Latency{Path: state.PathFlush, Mode: state.ModePoll, Vector: vector})
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	errs := []error{w.Probe(p)}
	for i := range maxContracts {
		errs = append(errs, w.Contract(state.Contract{Name: fmt.Sprint("c", i), Severity: state.SeverityInfo, Verdict: state.VerdictHolds}))
	}
	if err := errors.Join(append(errs, w.End(End{}))...); err != nil {
		t.Fatal(err)
	}
	var run state.Run
	if err := Read(&b, &run); err != nil {
		t.Fatal(err)
	}
	if len(run.Contracts) != maxContracts || len(run.Probes) != 1 || !reflect.DeepEqual(run.Probes[0], p) {
		t.Errorf("%d contracts, %d probes", len(run.Contracts), len(run.Probes))
	}
}

// One vector may be measured by several paths, modes and ports.
func TestReadMeasurementsOfOneVector(t *testing.T) {
	t.Parallel()
	p := state.Probe{Name: "notification", Status: state.StatusOK}
	for _, path := range state.LatencyPaths() {
		for _, mode := range state.LatencyModes() {
			for port := range 2 {
				p.Latencies = append(p.Latencies, state.Latency{Port: port, Path: path, Mode: mode})
			}
		}
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := errors.Join(w.Probe(p), w.End(End{})); err != nil {
		t.Fatal(err)
	}
	var run state.Run
	if err := Read(&b, &run); err != nil {
		t.Error(err)
	}
}

func TestReadClipsTexts(t *testing.T) {
	t.Parallel()
	long := "x" + strings.Repeat("é", maxText)
	var b bytes.Buffer
	w := NewWriter(&b)
	p := state.Probe{
		Name: "cq", Status: state.StatusFailed,
		Failures:  []state.Failure{{Subject: long, Message: long}},
		Skips:     []state.Skip{{Reason: state.SkipNeeds, Detail: long}},
		Latencies: []state.Latency{{Path: state.PathFlush, Mode: state.ModeAny, Stopped: long}},
	}
	c := state.Contract{Name: "c", Severity: state.SeverityInfo, Verdict: state.VerdictViolated, Asked: long, Expected: long, Observed: long}
	if err := errors.Join(w.Probe(p), w.Contract(c), w.Judging(c.Name), w.Presume(state.Presumption{Contract: c}), w.End(End{Error: long})); err != nil {
		t.Fatal(err)
	}
	var run state.Run
	if err := Read(&b, &run); err != nil {
		t.Fatal(err)
	}
	got, verdict := run.Probes[0], run.Contracts[0]
	for _, s := range []string{
		run.Error, got.Failures[0].Subject, got.Failures[0].Message, got.Skips[0].Detail, got.Latencies[0].Stopped,
		verdict.Asked, verdict.Expected, verdict.Observed, run.Presumed.Contract.Asked, run.Presumed.Contract.Expected, run.Presumed.Contract.Observed,
	} {
		if len(s) != maxText-1 || !utf8.ValidString(s) {
			t.Errorf("a text of %d bytes", len(s))
		}
	}
}

// TestReadCleansNames makes sure that what a child reports becomes no label with
// characters that steer a terminal or break a line.
func TestReadCleansNames(t *testing.T) {
	const odd, clean = "a\x1b[31m\n\u202e\u009b\x00b", "a\ufffd[31m \ufffd\ufffd\ufffdb"
	const path, cleanPath = "a\x1b[31m\n\u202e\u009bb", "a\ufffd[31m \ufffd\ufffdb" // which has no zero byte
	var report bytes.Buffer
	w := NewWriter(&report)
	err := errors.Join(
		w.Device(state.Device{Transport: odd, Firmware: odd, NodeGUID: odd, Ports: []state.Port{{Number: 1, LinkLayer: odd}}}),
		w.Inventory(state.Inventory{
			Owners: []state.Owner{{PID: 7, Comm: path, Cgroup: path, ContainerID: path, PodUID: path}},
			// Two that differ before are no reason to refuse the inventory.
			Cgroups: []state.CgroupUse{
				{Cgroup: path, ContainerID: path, PodUID: path, Resource: "hca_handle", Limit: -1},
				{Cgroup: cleanPath, Resource: "hca_handle", Limit: -1},
			},
		}),
		w.End(End{}),
	)
	if err != nil {
		t.Fatal(err)
	}
	var run state.Run
	if err := Read(&report, &run); err != nil {
		t.Fatal(err)
	}
	d := run.Info
	for _, got := range []string{d.Transport, d.Firmware, d.NodeGUID, d.Ports[0].LinkLayer} {
		if got != clean {
			t.Errorf("of the device: got %q, want %q", got, clean)
		}
	}
	o, g := run.Inventory.Owners[0], run.Inventory.Cgroups[0]
	for _, got := range []string{o.Comm, o.Cgroup, o.ContainerID, o.PodUID, g.Cgroup, g.ContainerID, g.PodUID} {
		if got != cleanPath {
			t.Errorf("of the inventory: got %q, want %q", got, cleanPath)
		}
	}
}

func TestReadError(t *testing.T) {
	t.Parallel()
	var run state.Run
	r := io.MultiReader(strings.NewReader(`{"begin":"ibv_x"}`+"\n"), iotest.ErrReader(os.ErrClosed))
	if err := Read(r, &run); !errors.Is(err, ErrTruncated) || !errors.Is(err, os.ErrClosed) {
		t.Errorf("error %v", err)
	}
	if run.Verb != "ibv_x" {
		t.Errorf("verb %q", run.Verb)
	}
}

func TestLineError(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	err := &LineError{Line: 3, Err: cause}
	if !errors.Is(err, cause) || err.Error() != "line 3 of the report: cause" {
		t.Errorf("%v", err)
	}
}

// failing fails at its third write.
type failing struct{ n int }

var errFull = errors.New("full")

func (f *failing) Write(b []byte) (int, error) {
	if f.n++; f.n == 3 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriterKeepsItsError(t *testing.T) {
	t.Parallel()
	f := &failing{}
	w := NewWriter(f)
	for i := range 5 {
		if err := w.Begin("ibv_x"); errors.Is(err, errFull) != (i >= 2) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if f.n != 3 || !errors.Is(w.Err(), errFull) {
		t.Errorf("%d writes, error %v", f.n, w.Err())
	}
}

// Each line reaches the reader with one write.
func TestWriterWritesLines(t *testing.T) {
	t.Parallel()
	r, pipe := io.Pipe()
	w := NewWriter(pipe)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				_ = w.Call(state.Call{Verb: "ibv_poll_cq", Duration: 1})
			}
		})
	}
	go func() {
		wg.Wait()
		_ = w.End(End{})
		_ = pipe.Close()
	}()
	var run state.Run
	if err := Read(r, &run); err != nil || len(run.Calls) != 800 {
		t.Errorf("%d calls, error %v", len(run.Calls), err)
	}
}

func FuzzRead(f *testing.F) {
	full := fullReport(f)
	f.Add([]byte(full))
	f.Add([]byte(full + full))
	f.Add([]byte(full[:len(full)/2]))
	for line := range strings.Lines(full) {
		f.Add([]byte(line))
		f.Add([]byte(line + endLine))
	}
	for _, s := range []string{
		"", "\n", "{}\n", "null\n", "[", "\xff\xfe\n", "{\"end\":{}}}\n", "{\"begin\":\"ibv_\"}\n",
		`{"call":{"verb":"ibv_x","ns":1e99}}` + "\n", `{"call":{"verb":"ibv_x","ns":9223372036854775807}}` + "\n",
		`{"device":{"ports":[{"number":-1,"state":"active"}]}}` + "\n", `{"BEGIN":"ibv_x"}` + "\n",
		`{"light":{"reason":"unknown","detail":"x"}}` + "\n" + `{"light":{"reason":"busy","detail":"x"}}` + "\n",
		`{"judging":""}` + "\n", `{"judging":"notify_any"}` + "\n" + `{"judging":"notify_one_shot"}` + "\n",
		`{"contract":{"name":"c","severity":"info","verdict":"skipped","reason":"x","judged":"2026-03-01T12:00:00Z"}}` + "\n",
		`{"probe":{"name":"n","status":"ok","latencies":[{"path":"flush","mode":"any","samples_ns":[],"arms_ns":null}]}}` + "\n",
		`{"probe":{"name":"n","status":"ok","latencies":[{"path":"flush","mode":"any","missed":9223372036854775807}]}}` + "\n",
		`{"turn":{"object":"qp_rc","port":1,"comp_vector":3}}` + "\n" + `{"turn":{}}` + "\n",
		`{"facts":{"identity":{"fw_version":"\u0000"},"absent":[{"subject":"uc","reason":"not_supported"}]}}` + "\n",
		`{"facts":{"ways":[{"path":"loopback","port":256,"by":"\ud800","among":"x"}]}}` + "\n",
		`{"facts":{"inline":[{"type":"rc","bytes":9223372036854775807}]}}` + "\n" + `{"facts":{}}` + "\n",
		`{"hardware":{"device":"mlx5_0","failure":"\ud800","ports":[{"port":1,"gids":[{"index":0,"gid":"fe80::1","type":"ib","family":"ipv6","netdev":"\u0000"}]}]}}` + "\n",
		`{"hardware":{"device":"a","identity":{"numa_node":-1,"pci_address":"0000:3b:00.0","pci_link":{"width_lanes":16}},"interrupts":[{"comp_vector":1,"cpus":"0-3,8"}]}}` + "\n",
		`{"hardware":{"device":"a","counters":[{"group":"hw_counters","name":"x y","value":18446744073709551615}],"refused":[{"group":"counters","errno":"EINVAL"}]}}` + "\n" + `{"hardware":{"device":"a"}}` + "\n",
		`{"end":{"error":"\ud800"}}` + "\n", "panic: runtime error\n\ngoroutine 1 [running]:\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var run, slow state.Run
		err := Read(bytes.NewReader(b), &run)
		slowErr := Read(iotest.OneByteReader(bytes.NewReader(b)), &slow)
		if (err == nil) != (slowErr == nil) || !reflect.DeepEqual(run, slow) {
			t.Fatalf("the result depends on how the bytes arrive: %v, %v", err, slowErr)
		}
		var line *LineError
		if err != nil && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrTooLarge) && !errors.As(err, &line) {
			t.Fatalf("error %v", err)
		}
		check(t, &run)
		if err != nil {
			return
		}
		// What was read can be written, and is then read as the same.
		var text strings.Builder
		w := NewWriter(&text)
		write(t, w, &run)
		if err := w.End(endOf(&run)); err != nil {
			t.Fatal(err)
		}
		again := state.Run{Verb: run.Verb}
		if err := Read(strings.NewReader(text.String()), &again); err != nil {
			t.Fatalf("%v in %s", err, text.String())
		}
		again.Verb = run.Verb
		if !bytes.Equal(mustJSON(t, again), mustJSON(t, run)) || !slices.Equal(again.Calls, run.Calls) {
			t.Fatalf("got %+v, want %+v", again, run)
		}
	})
}

// check makes sure of what the reader of a run relies on.
func check(t *testing.T, run *state.Run) {
	t.Helper()
	if run.Verb != "" && !isVerb(run.Verb) || len(run.Error) > maxText || len(run.Probes) > maxProbes || len(run.Undestroyed) > maxItems {
		t.Fatalf("run %+v", run)
	}
	if run.FailedVerb != "" && !isVerb(run.FailedVerb) || run.Errno != "" && !isLabel(run.Errno) || run.MaxRSS < 0 {
		t.Fatalf("run %+v", run)
	}
	if !utf8.Valid(mustJSON(t, run)) {
		t.Fatal("not UTF-8")
	}
	for _, c := range run.Calls {
		if !isVerb(c.Verb) || c.Duration < 0 || c.Errno != "" && !isLabel(c.Errno) {
			t.Fatalf("call %+v", c)
		}
	}
	names := make(map[string]bool)
	for _, p := range run.Probes {
		if !isLabel(p.Name) || names[p.Name] {
			t.Fatalf("probe %+v", p)
		}
		names[p.Name] = true
		for _, l := range p.Latencies {
			checkLatency(t, &l)
		}
	}
	if run.Judging != "" && !isLabel(run.Judging) || len(run.Contracts) > maxContracts {
		t.Fatalf("judging %q after %d contracts", run.Judging, len(run.Contracts))
	}
	checkContracts(t, run.Contracts)
	if run.Presumed != nil {
		checkContracts(t, []state.Contract{run.Presumed.Contract})
		if run.Presumed.Contract.Name != run.Judging {
			t.Fatalf("judging %q, presumed %+v", run.Judging, run.Presumed)
		}
	}
}

func checkContracts(t *testing.T, contracts []state.Contract) {
	t.Helper()
	judged := make(map[string]bool)
	for _, c := range contracts {
		if !isLabel(c.Name) || judged[c.Name] || !slices.Contains(state.Verdicts(), c.Verdict) || !slices.Contains(state.Severities(), c.Severity) {
			t.Fatalf("contract %+v", c)
		}
		if (c.Verdict == state.VerdictSkipped) != isLabel(string(c.Reason)) || c.Duration < 0 {
			t.Fatalf("contract %+v", c)
		}
		judged[c.Name] = true
	}
}

func checkLatency(t *testing.T, l *state.Latency) {
	t.Helper()
	if !slices.Contains(state.LatencyPaths(), l.Path) || !slices.Contains(state.LatencyModes(), l.Mode) || l.Port < 0 || l.Vector < 0 {
		t.Fatalf("measurement %+v", l)
	}
	if l.Count != len(l.Samples) || min(l.Missed, l.Spurious, l.Misdirected, l.Missing) < 0 {
		t.Fatalf("measurement %+v", l)
	}
	for _, d := range slices.Concat(l.Samples, l.Arms, []time.Duration{l.P50, l.P99}) {
		if d < 0 {
			t.Fatalf("measurement %+v", l)
		}
	}
	for _, s := range l.Unsuccessful {
		if s != "" && !isLabel(s) {
			t.Fatalf("measurement %+v", l)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
