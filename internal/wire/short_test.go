package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/state"
)

// What is written without encoding/json is what that would write.
func TestShortLines(t *testing.T) {
	for _, verb := range []string{"ibv_open_device", "ibv_req_notify_cq", "", "open", "ibv_\"x", "ibv_é", "ibv_<", "ibv_" + strings.Repeat("x", 60)} {
		for _, c := range []state.Call{
			{Verb: verb},
			{Verb: verb, Duration: 8851781},
			{Verb: verb, Duration: -1},
			{Verb: verb, Duration: 1<<63 - 1},
			{Verb: verb, Duration: time.Second, Errno: "EBUSY", Expected: true},
			{Verb: verb, Duration: time.Second, Errno: "EBUSY"},
			{Verb: verb, Expected: true},
		} {
			var got bytes.Buffer
			w := NewWriter(&got)
			if err := w.Begin(verb); err != nil {
				t.Fatal(err)
			}
			if err := w.Call(c); err != nil {
				t.Fatal(err)
			}
			var want bytes.Buffer
			enc := json.NewEncoder(&want)
			enc.SetEscapeHTML(false)
			for _, l := range []map[string]any{{"begin": verb}, {"call": &c}} {
				if err := enc.Encode(l); err != nil {
					t.Fatal(err)
				}
			}
			if got.String() != want.String() {
				t.Errorf("wrote %s, and encoding/json writes %s", got.String(), want.String())
			}
		}
	}
}

// What is written without encoding/json is read without it, too.
func TestShortLinesAreRead(t *testing.T) {
	for _, ns := range []time.Duration{0, 1, 9, 10, 90, 123456789, 999999999999999999} {
		want := state.Call{Verb: "ibv_poll_cq", Duration: ns}
		b, ok := appendCall(nil, &want)
		if !ok {
			t.Fatalf("%+v has to be encoded", want)
		}
		var run state.Run
		if !foldShort(bytes.TrimSuffix(b, []byte("\n")), &run) || len(run.Calls) != 1 || run.Calls[0] != want {
			t.Errorf("%s is read as %+v", b, run.Calls)
		}
	}
}

// FuzzShortLines holds that a line which is read without encoding/json means what it
// means to that.
func FuzzShortLines(f *testing.F) {
	for _, line := range []string{
		`{"begin":"ibv_open_device"}`, `{"begin":"open"}`, `{"begin":""}`, `{"begin":"ibv_a","begin":"ibv_b"}`, `{"begin":"ibv_\u0061"}`,
		`{"call":{"verb":"ibv_open_device","ns":8851781}}`, `{"call":{"verb":"ibv_close_device","ns":0}}`, `{"call":{"verb":"ibv_x","ns":01}}`,
		`{"call":{"verb":"ibv_x","ns":-1}}`, `{"call":{"verb":"ibv_x","ns":1e3}}`, `{"call":{"verb":"ibv_x","ns":9223372036854775808}}`,
		`{"call":{"verb":"ibv_x","ns":1,"errno":"EBUSY"}}`, `{"call":{"verb":"x","ns":1}}`, `{"call":{"verb":"ibv_x","ns":}}`, `{"end":{}}`,
		`{"call":{"verb":"ibv_x"}}`, `{"call":{"verb":"ibv_x","ns":1}} `, `{"begin":"ibv_x"}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := state.Run{Verb: "ibv_open_device"}
		if !foldShort(b, &got) {
			if !reflect.DeepEqual(got, state.Run{Verb: "ibv_open_device"}) {
				t.Fatalf("%q was left to encoding/json and changed the run: %+v", b, got)
			}
			return
		}
		want := state.Run{Verb: "ibv_open_device"}
		end, err := foldJSON(b, &want)
		if err != nil || end {
			t.Fatalf("%q was taken, and to encoding/json it is: %v, %v", b, err, end)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q means %+v, and to encoding/json %+v", b, got, want)
		}
	})
}

// BenchmarkRead measures the reading of the lines of verbs of one run.
func BenchmarkRead(b *testing.B) {
	var text bytes.Buffer
	w := NewWriter(&text)
	for range 200 {
		_ = w.Begin("ibv_create_qp")
		_ = w.Call(state.Call{Verb: "ibv_create_qp", Duration: 123456})
	}
	_ = w.End(End{})
	b.ReportAllocs()
	for b.Loop() {
		if err := Read(bytes.NewReader(text.Bytes()), new(state.Run)); err != nil {
			b.Fatal(err)
		}
	}
}
