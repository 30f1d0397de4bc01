package state

import (
	"reflect"
	"slices"
	"testing"
)

func TestFactsOf(t *testing.T) {
	t.Parallel()
	known := &Facts{
		Identity: Identity{
			Kernel: "6.1.0-18-amd64", Firmware: "20.31.1014", VendorID: 0x2c9, VendorPartID: 4123, HWVersion: 1,
			Libraries: "0123abcd",
		},
		Absent:  []Skip{{Subject: Subject{Object: "qp", QPType: "raw_packet"}, Reason: SkipNotPermitted}},
		Inline:  []InlineMax{{"rc", 828}, {"ud", 0}},
		Methods: []KnownMethod{{Method{1, PathFlush, "sends", ""}, "0123"}},
	}
	got, ok := known.Of(known.Identity)
	if !ok || !reflect.DeepEqual(got, *known) {
		t.Errorf("of the same identity: %+v, %t", got, ok)
	}
	got.Inline[0].Bytes++
	if known.Inline[0].Bytes == got.Inline[0].Bytes {
		t.Error("the facts that were known have changed")
	}
	identity := reflect.TypeFor[Identity]()
	for i := range identity.NumField() {
		other := known.Identity
		switch v := reflect.ValueOf(&other).Elem().Field(i); v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		default:
			v.SetUint(v.Uint() + 1)
		}
		got, ok := known.Of(other)
		if ok || got.Absent != nil || got.Inline != nil || got.Identity != other {
			t.Errorf("with another %s: %+v, %t", identity.Field(i).Name, got, ok)
		}
		if changes := known.Identity.Changes(other); len(changes) != 1 {
			t.Errorf("with another %s: changes %q", identity.Field(i).Name, changes)
		}
	}
	if got, ok := (*Facts)(nil).Of(known.Identity); ok || got.Identity != known.Identity {
		t.Errorf("without facts: %+v, %t", got, ok)
	}
	other := known.Identity
	other.Firmware, other.Kernel = "21", ""
	want := []string{"kernel , before 6.1.0-18-amd64", "firmware 21, before 20.31.1014"}
	if changes := known.Identity.Changes(other); !slices.Equal(changes, want) {
		t.Errorf("changes %q, want %q", changes, want)
	}
}
