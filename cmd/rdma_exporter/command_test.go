package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
)

func testCommands(t *testing.T) *commands {
	t.Helper()
	s := settings{Provider: providerSimulated, Probe: probe.DefaultConfig()}
	c, err := newCommands(s, map[string][]byte{"sim0": []byte("the profile")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func decoded(t *testing.T, stdin []byte) settings {
	t.Helper()
	var s settings
	if err := json.Unmarshal(stdin, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCommands(t *testing.T) {
	t.Parallel()
	c := testCommands(t)
	turn := 7
	facts := &state.Facts{Identity: state.Identity{Firmware: "1"}, Inline: []state.InlineMax{{Type: "rc", Bytes: 64}}}
	got := c.probe("sim0", supervisor.Probing{Facts: facts, Turn: &turn})
	if !slices.Equal(got.Args, []string{"probe", "--device=sim0"}) {
		t.Errorf("arguments %q", got.Args)
	}
	if s := decoded(t, got.Stdin); s.Provider != providerSimulated || string(s.Profile) != "the profile" || s.Judged != nil || !reflect.DeepEqual(s.Probe, c.settings.Probe) ||
		!reflect.DeepEqual(s.Facts, facts) || s.Turn == nil || *s.Turn != turn {
		t.Errorf("settings %+v", s)
	}
	if s := decoded(t, c.probe("sim0", supervisor.Probing{}).Stdin); s.Facts != nil || s.Turn != nil {
		t.Errorf("settings %+v of a run that does everything", s)
	}
	got = c.contract("other", supervisor.LeaveOut{Judged: []string{"x", "y"}, Completions: true})
	if !slices.Equal(got.Args, []string{"contract", "--device=other"}) {
		t.Errorf("arguments %q", got.Args)
	}
	if s := decoded(t, got.Stdin); s.Profile != nil || !slices.Equal(s.Judged, []string{"x", "y"}) || !s.WithoutCompletions {
		t.Errorf("settings %+v", s)
	}
}

// A child of the inventory is told what to look for, and how many completions
// a queue pair of the device can have outstanding.
func TestInventoryCommand(t *testing.T) {
	t.Parallel()
	c := testCommands(t)
	c.settings.Inventory = stocktaking{Budget: time.Second, MaxObjects: 5, Owners: 3, Procfs: "/proc", Cgroup: "/cg"}
	look := []state.Context{{Index: 1, ID: 2}}
	info := &state.Device{Limits: []state.Limit{{Name: "max_qp", Value: 1 << 40}, {Name: "max_qp_wr", Value: 100}, {Name: "max_srq_wr", Value: 300}}}
	got := c.inventory("other", supervisor.Stocktaking{Look: look, Info: info})
	if !slices.Equal(got.Args, []string{"inventory", "--device=other"}) {
		t.Errorf("arguments %q", got.Args)
	}
	want := c.settings.Inventory
	want.Look, want.MaxFill = look, 300
	if s := decoded(t, got.Stdin).Inventory; !reflect.DeepEqual(s, want) {
		t.Errorf("settings %+v, want %+v", s, want)
	}
	if s := decoded(t, c.inventory("other", supervisor.Stocktaking{}).Stdin).Inventory; s.MaxFill != 0 || s.Look != nil {
		t.Errorf("settings %+v of a device of which nothing is known", s)
	}
}

// A child runs on one processor, unless somebody said how many there are to be.
func TestChildEnvironment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ env, want []string }{
		{nil, []string{"GOMAXPROCS=1"}},
		{[]string{"A=GOMAXPROCS=2"}, []string{"A=GOMAXPROCS=2", "GOMAXPROCS=1"}},
		{[]string{"GOMAXPROCS=3", "A=b"}, []string{"GOMAXPROCS=3", "A=b"}},
	} {
		if got := childEnv(tt.env); !slices.Equal(got, tt.want) {
			t.Errorf("the children of a process with %q have %q", tt.env, got)
		}
	}
}
