package wire_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"rdma_exporter/internal/wire"
)

// TestReadInput verifies that a child keeps its own settings where the input has none, and
// refuses what is no input or out of bounds.
func TestReadInput(t *testing.T) {
	t.Parallel()
	type settings struct{ A, B int }
	in, err := wire.ReadInput(iotest.HalfReader(strings.NewReader(`{"request":{"done":["x"]},"settings":{"B":3}}`)), settings{A: 1, B: 2})
	if want := (wire.Input[settings]{Request: wire.Request{Done: []string{"x"}}, Settings: settings{A: 1, B: 3}}); err != nil || !reflect.DeepEqual(in, want) {
		t.Errorf("%+v, error %v", in, err)
	}
	for text, want := range map[string]string{
		"": "", "\n": "",
		"{":                           "unexpected EOF",
		`{"provider":"simulated"}`:    "unknown field",
		`{"request":{"max_fill":-1}}`: "MaxFill: -1",
		`{"request":{"hardware":{"devices":["a"],"skip":[{"device":"a","port":1,"group":"counters"}]}}}`: "",
		`{"request":{"hardware":{"devices":[` + strings.Repeat(`"x",`, wire.MaxDevices) + `"y"]}}}`:      "too large",
		`{"request":{"facts":{"absent":[{"subject":"\u0000"}]}}}`:                                        "Subject",
	} {
		in, err := wire.ReadInput(strings.NewReader(text), settings{A: 1, B: 2})
		if in.Settings != (settings{A: 1, B: 2}) || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("of %.60q: %+v, error %v, want %q", text, in.Settings, err, want)
		}
	}
}
