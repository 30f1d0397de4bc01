package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

var update = flag.Bool("update", false, "rewrite the golden files and docs/status-page.md")

func options() api.Options {
	return api.Options{Now: apitest.Now(), Version: "1.2.3", Host: "node-17"}
}

// golden compares got with a file, or writes it.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; if it should, rewrite it with -update", file)
	}
}

// TestJSON makes sure that the JSON of a host in each state stays as it was: others
// rely on it.
func TestJSON(t *testing.T) {
	for _, host := range apitest.Hosts() {
		s := api.Of(host.Judged(), options())
		if err := flaw(s); err != nil {
			t.Errorf("%s: %v", host.Name, err)
		}
		b, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", host.Name+".json"), append(b, '\n'))
	}
}

// TestUntouched makes sure that a snapshot is as it was, and that a status has nothing
// of it.
func TestUntouched(t *testing.T) {
	want := apitest.Hosts()
	for i, host := range apitest.Hosts() {
		s := api.Of(host.Judged(), options())
		if !reflect.DeepEqual(host.Snapshot, want[i].Snapshot) {
			t.Errorf("%s: the snapshot was changed", host.Name)
		}
		before, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if host.Snapshot != nil {
			fill(reflect.ValueOf(host.Snapshot), rand.New(rand.NewPCG(1, 2)))
		}
		if after, err := json.Marshal(s); err != nil || string(after) != string(before) {
			t.Errorf("%s: the status changes with the snapshot: %v", host.Name, err)
		}
	}
}

// flaw returns what is wrong with a status, whatever it was made of.
func flaw(s *api.Status) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	var again api.Status
	if err := json.Unmarshal(b, &again); err != nil {
		return fmt.Errorf("cannot be read back: %w", err)
	}
	if s.Devices == nil || len(s.FindingCounts) != len(api.Severities()) {
		return fmt.Errorf("devices %v, findings %v", s.Devices, s.FindingCounts)
	}
	found := make(map[api.Severity]int)
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Headline == "" && len(d.Findings) == 0 || d.Findings == nil {
			return fmt.Errorf("device %q says nothing of itself", d.Name)
		}
		for _, f := range d.Findings {
			found[f.Severity]++
		}
		for _, v := range []api.Health{d.Health, s.Health} {
			if !contains(api.Healths(), v) {
				return fmt.Errorf("health %q", v)
			}
		}
	}
	for _, t := range s.Troubles {
		for _, p := range t.Places {
			if p.Device < 0 || p.Device >= len(s.Devices) || p.Finding < -1 || p.Finding >= len(s.Devices[p.Device].Findings) {
				return fmt.Errorf("trouble where there is nothing: %+v", p)
			}
			if p.Finding >= 0 && s.Devices[p.Device].Findings[p.Finding].Kind != t.Kind {
				return fmt.Errorf("%s is told as %s", s.Devices[p.Device].Findings[p.Finding].Kind, t.Kind)
			}
		}
	}
	for _, c := range s.FindingCounts {
		if found[c.Severity] != c.Count {
			return fmt.Errorf("%d findings of severity %s, want %d", c.Count, c.Severity, found[c.Severity])
		}
	}
	return walk(reflect.ValueOf(*s), "status")
}

func contains[T comparable](list []T, v T) bool {
	for _, one := range list {
		if one == v {
			return true
		}
	}
	return false
}

// walk returns what is wrong with any text, list or duration within a value.
func walk(v reflect.Value, path string) error {
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if !utf8.ValidString(s) || len(s) > 4096+512 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("%s is %.60q, %d bytes", path, s, len(s))
		}
	case reflect.Float64:
		if v.Float() < 0 {
			return fmt.Errorf("%s is %g", path, v.Float())
		}
	case reflect.Slice:
		if v.Len() > 4096 {
			return fmt.Errorf("%s has %d items", path, v.Len())
		}
		for i := range v.Len() {
			if err := walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return walk(v.Elem(), path)
		}
	case reflect.Struct:
		if _, is := v.Interface().(time.Time); is {
			return nil
		}
		for f, field := range v.Fields() {
			if err := walk(field, path+"."+f.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill sets everything in a value to something that may be anything.
func fill(v reflect.Value, r *rand.Rand) {
	words := []string{
		"", "ok", "failed", "qp", "rc", "any", "poll", "loopback", "critical", "violated", "skipped", "simulated", "max_qp", "user",
		"\xff", "a\nb\x1b[0m", "<b>", strings.Repeat("\xe2\x82", 5000), strings.Repeat("ä", 3000), "\u202e",
	}
	numbers := []int64{0, 1, -1, 7, 1000, 1 << 40, 1<<63 - 1, -1 << 63}
	switch v.Kind() {
	case reflect.String:
		v.SetString(words[r.IntN(len(words))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(numbers[r.IntN(len(numbers))])
	case reflect.Uint32:
		v.SetUint(uint64(r.Uint32()))
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), r)
		}
		if v.CanSet() {
			v.SetZero()
			if r.IntN(4) > 0 {
				v.Set(reflect.New(v.Type().Elem()))
				fill(v.Elem(), r)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), r) // what others have of it, too
		}
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 8))
		for i := range v.Len() {
			fill(v.Index(i), r)
		}
	case reflect.Struct:
		if _, is := v.Interface().(time.Time); is {
			v.Set(reflect.ValueOf(time.Unix(numbers[r.IntN(len(numbers))], 0)))
			return
		}
		for _, field := range v.Fields() {
			fill(field, r)
		}
	}
}

// TestAnything makes sure that there is a sound status of any snapshot.
func TestAnything(t *testing.T) {
	for seed := range uint64(100) {
		s := new(state.Snapshot)
		fill(reflect.ValueOf(s).Elem(), rand.New(rand.NewPCG(seed, 0)))
		if err := flaw(api.Of(health.New(health.Default()).Of(s), options())); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// FuzzOf makes sure that there is a sound status of whatever a snapshot can be read
// from.
func FuzzOf(f *testing.F) {
	for _, host := range apitest.Hosts() {
		b, err := json.Marshal(host.Snapshot)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"devices":[{"last":{"probes":[{}]},"notification":{"vectors":[{}]},"contracts":{},"resources":{"inventory":{}}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := new(state.Snapshot)
		if json.Unmarshal(b, s) != nil {
			return
		}
		if err := flaw(api.Of(health.New(health.Default()).Of(s), options())); err != nil {
			t.Fatal(err)
		}
	})
}

// TestBounds makes sure that no list grows beyond what was promised.
func TestBounds(t *testing.T) {
	const most, many = 4096, 5000
	d := apitest.Device("mlx5_0", 4)
	p := &d.Last.Probes[0]
	var latencies []state.Latency
	var found []health.Finding
	for i := range many {
		p.CQs = append(p.CQs, state.CQSize{Profile: fmt.Sprint(i)})
		p.Memory = append(p.Memory, state.Memory{Object: fmt.Sprint(i)})
		p.Inline = append(p.Inline, state.InlineMax{Type: fmt.Sprint(i)})
		p.Failures = append(p.Failures, state.Failure{})
		latencies = append(latencies, state.Latency{Port: i, Path: state.PathFlush, Mode: state.ModeAny})
		d.Notification.Vectors = append(d.Notification.Vectors, state.VectorLatency{})
		found = append(found, health.Finding{Severity: health.SeverityInfo, Message: "x"})
		d.Info.Ports = append(d.Info.Ports, state.Port{})
		d.Contracts.Verdicts = append(d.Contracts.Verdicts, state.Contract{Verdict: state.VerdictHolds})
		d.Resources.Inventory.Owners = append(d.Resources.Inventory.Owners, state.Owner{PID: i})
	}
	p.Latencies = latencies
	s := &state.Snapshot{Devices: []state.DeviceState{d}}
	if err := flaw(api.Of(apitest.Host{Snapshot: s, Found: map[string][]health.Finding{d.Name: found}}.Judged(), options())); err != nil {
		t.Error(err)
	}
	for len(s.Devices) < many {
		s.Devices = append(s.Devices, state.DeviceState{})
	}
	if n := len(api.Of(health.New(health.Default()).Of(s), options()).Devices); n != most {
		t.Errorf("%d devices", n)
	}
}

func TestClean(t *testing.T) {
	long := strings.Repeat("ä", 4000)
	for text, want := range map[string]string{
		"":                        "",
		"mlx5_0":                  "mlx5_0",
		"a\nb\tc\u2028d\u00a0e":   "a b c d e",
		"\xff\x00\x1b[31m\u202ex": "\ufffd\ufffd\ufffd[31m\ufffdx",
		"<b>\"'":                  "<b>\"'",
		long:                      long[:4096] + "…",
		"x" + long:                "x" + long[:4094] + "…",
		strings.Repeat("\x80", 5): strings.Repeat("\ufffd", 5),
	} {
		if got := api.Clean(text); got != want {
			t.Errorf("%.20q: got %.40q of %d bytes, want %.40q of %d", text, got, len(got), want, len(want))
		}
	}
	if got := api.Clean(strings.Repeat("\x80", 9000)); utf8.RuneCountInString(got) > 4097 {
		t.Errorf("%d characters", utf8.RuneCountInString(got))
	}
	for _, grows := range []string{"\x01", "\x80", "\u202e", "a\x01"} {
		for _, n := range []int{1366, 2048, 4096, 9000} {
			if got := api.Clean(strings.Repeat(grows, n)); len(got) > 4096+len("…") || !utf8.ValidString(got) {
				t.Errorf("%q %d times: %d bytes", grows, n, len(got))
			}
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0 s", 0: "0 s", 59999 * time.Millisecond: "59 s", time.Minute: "1 min", time.Hour - 1: "59 min",
		time.Hour: "1 h", 48*time.Hour - 1: "47 h", 48 * time.Hour: "2 days", 1000 * time.Hour: "41 days",
	} {
		if got := api.Age(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
