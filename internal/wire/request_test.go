package wire_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"rdma_exporter/internal/wire"
)

// A child does what it is told, does the rest as it would by itself, and refuses what
// makes no sense.
func TestReadInput(t *testing.T) {
	t.Parallel()
	type settings struct{ A, B int }
	in, err := wire.ReadInput(strings.NewReader(`{"request":{"judged":["x"]},"settings":{"B":3}}`), settings{A: 1, B: 2})
	if want := (wire.Input[settings]{Request: wire.Request{Judged: []string{"x"}}, Settings: settings{A: 1, B: 3}}); err != nil || !reflect.DeepEqual(in, want) {
		t.Errorf("%+v, error %v", in, err)
	}
	for text, want := range map[string]string{
		"": "", "\n": "",
		"{":                           "unexpected EOF",
		`{"provider":"simulated"}`:    "unknown field",
		`{"request":{"turn":-1}}`:     "makes no sense",
		`{"request":{"max_fill":-1}}`: "makes no sense",
		`{"request":{"hardware":{"devices":["a"],"skip":[{"device":"a","port":1,"group":"counters"}]}}}`: "",
		`{"request":{"hardware":{"devices":[` + strings.Repeat(`"x",`, wire.MaxDevices) + `"y"]}}}`:      "too large",
		`{"request":{"facts":{"absent":[{"subject":"\u0000"}]}}}`:                                        "no type of QP",
		`{"request":{"judged":[` + strings.Repeat(`"x",`, 200) + `"y"]}}`:                                "makes no sense",
	} {
		in, err := wire.ReadInput(strings.NewReader(text), settings{A: 1, B: 2})
		if in.Settings != (settings{A: 1, B: 2}) || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("of %.60q: %+v, error %v, want %q", text, in.Settings, err, want)
		}
	}
	if _, err := wire.ReadInput(strings.NewReader(strings.Repeat(" ", wire.MaxInput+1)), settings{}); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("of more than it may read: %v", err)
	}
}
