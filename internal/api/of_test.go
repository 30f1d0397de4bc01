package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
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
	"rdma_exporter/test/golden"
)

func options() api.Options {
	return api.Options{Now: apitest.Now(), Version: "1.2.3", Host: "node-17"}
}

// more is what the JSON of hosts says that the golden files have nothing of. Of the other
// hosts these show everything that there can be.
func more() map[string][]string {
	return map[string][]string{
		"healthy": {`"health":"ok"`, `"findings":[]`},
		"stuck": {
			`"stuck":[{"kind":"probe","pid":81433,"verb":"ibv_destroy_cq","since":"2026-03-01T10:00:10Z"}]`,
			`"kind":"stuck","severity":"critical","harm":"outage","subject":"pid 81433","message":"A process of the exporter`, `"outcome":"timeout"`,
		},
		"contract_violated": {`"kind":"contract_violated","severity":"critical","harm":"failure","subject":"notify_any","message":"The device breaks`},
		"slow_vector":       {`"kind":"slow_vector","severity":"`, `"kind":"notification_failed","severity":"`, `"severity":"info"`},
		"leaks": {
			`"kind":"memlock_near_limit","severity":"critical"`, `"kind":"leaked","severity":"critical"`, `"kind":"near_limit","severity":"warning"`,
			`"kind":"orphaned","severity":"warning"`, `"kind":"qp_error","severity":"warning"`, `{"qp_type":"rc","state":"err","objects":8}`,
		},
		"accepted": {
			`"findings":[{"kind":"acceptance_unused","severity":"info","harm":"note","subject":"port_down on mlx5_1","message":"This acceptance expired on 2026-02-28`,
			`"finding_counts":[{"severity":"critical","count":0,"accepted":2},{"severity":"warning","count":3},`,
			`"since":"2026-03-01T09:00:00Z","last_seen":"2026-03-01T09:00:00Z","accepted":{"reason":"\u003cb\u003efixed\u003c/b\u003e in firmware 29, due in April","until":"2026-04-30T23:59:59Z"}}`,
		},
		"left_alone": {
			`"outcome":"ok","stale":false,"light":{"reason":"busy","detail":"mpirun (process 4711) holds queue pairs"}},"last_success"`,
			`"put_off":{"reason":"busy","detail":"mpirun (process 4711) holds queue pairs"},"holds":4,`,
			`"health":"ok","headline":"No action needed. Left alone for now: the kernel does not tell who holds queue pairs: list the devices: operation not permitted.","findings":[]`,
			`"put_off":{"reason":"unknown","detail":"the kernel does not tell who holds queue pairs: list the devices: operation not permitted"},"holds":0,"violated":0,"known_violated":0,"skipped":0,"verdicts":[]}`,
		},
		"memlock_too_small": {
			`"kind":"probe_failed","severity":"critical","harm":"failure","subject":"cq","message":"The probe cq failed: large: ENOMEM`,
			`"events":[{"type":"port_err","port":1,"count":2},{"type":"device_fatal","count":1}]},"last_success"`,
			`"status":"failed","duration_seconds":0.04,"failures":[{"subject":"large","verb":"ibv_create_cq","errno":"ENOMEM","message":"ibv_create_cq: cannot allocate memory","memlock_limit_bytes":65536}]}`,
			`"status":"skipped","duration_seconds":0,"skips":[{"reason":"not_permitted","detail":"ibv_reg_mr: ENOMEM","memlock_limit_bytes":65536}]}`,
			`"skips":[{"subject":"2MiB","reason":"not_permitted",`, `"result":"refused","refused_by":"memlock","errno":"ENOMEM","detail":"ibv_reg_mr: ENOMEM"}`,
		},
		"simulated": {`"simulated":true`, `"health":"unknown"`},
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
		if says, ok := more()[host.Name]; ok {
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range says {
				if !strings.Contains(string(b), text) {
					t.Errorf("%s: the JSON does not say %s:\n%s", host.Name, text, b)
				}
			}
			continue
		}
		golden.Check(t, filepath.Join("testdata", host.Name+".json"), golden.JSON(t, s))
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
			if f.Accepted == nil {
				found[f.Severity]++
			}
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
	case reflect.Uint64:
		v.SetUint(uint64(numbers[r.IntN(len(numbers))]))
	case reflect.Float64:
		v.SetFloat(float64(max(numbers[r.IntN(len(numbers))], 0)))
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
	for seed := range uint64(25) {
		s := new(state.Snapshot)
		fill(reflect.ValueOf(s).Elem(), rand.New(rand.NewPCG(seed, 0)))
		if err := flaw(api.Of(health.New(health.Default(), health.Past{}).Of(s), options())); err != nil {
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
		if err := flaw(api.Of(health.New(health.Default(), health.Past{}).Of(s), options())); err != nil {
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
	if n := len(api.Of(health.New(health.Default(), health.Past{}).Of(s), options()).Devices); n != most {
		t.Errorf("%d devices", n)
	}
}
