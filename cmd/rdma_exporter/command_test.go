package main

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	"rdma_exporter/verbs/simulated"
)

func testCommands(t *testing.T) *commands {
	t.Helper()
	return newCommands(settings{
		Provider: providerSimulated, parsed: simulated.Default(), Probe: probe.DefaultConfig(), Inventory: inventory.DefaultConfig(),
	})
}

func decoded(t *testing.T, stdin []byte) wire.Input[settings] {
	t.Helper()
	in := running.Must(wire.ReadInput(bytes.NewReader(stdin), settings{}))(t)
	return in
}

func TestCommands(t *testing.T) {
	t.Parallel()
	c := testCommands(t)
	for _, tc := range []struct {
		kind    state.Kind
		device  string
		args    []string
		devices []string
		request wire.Request
	}{
		{state.KindProbe, "sim_ib0", []string{"probe", "--device=sim_ib0"}, []string{"sim_ib0"}, wire.Request{
			Facts: &state.Facts{Identity: state.Identity{Firmware: "1"}, Inline: []state.InlineMax{{Type: "rc", Bytes: 64}}}, Short: true,
		}},
		{state.KindProbe, "sim_ib0", []string{"probe", "--device=sim_ib0"}, []string{"sim_ib0"}, wire.Request{}},
		{state.KindContract, "other", []string{"contract", "--device=other"}, nil, wire.Request{Done: []string{"x", "y"}, WithoutCompletions: true}},
		{state.KindInventory, "other", []string{"inventory", "--device=other"}, nil, wire.Request{LeakCandidates: []state.Context{{Index: 1, ID: 2}}, MaxFill: 300}},
		{state.KindHardware, "", []string{"hardware"}, simulated.Default().Names(), wire.Request{Hardware: &wire.HardwareRequest{Devices: []string{"sim_ib0", "other"}}}},
	} {
		got := c.start(tc.kind, tc.device, tc.request)
		if !slices.Equal(got.Args, tc.args) {
			t.Errorf("arguments %q, want %q", got.Args, tc.args)
		}
		want := wire.Input[settings]{Request: tc.request, Settings: *c.settings.Load()}
		in := decoded(t, got.Stdin)
		var devices []string
		if p := in.Settings.Profile; p != nil {
			running.Check(t, in.Settings.parse())
			devices, in.Settings.Profile, in.Settings.parsed = in.Settings.parsed.Names(), nil, want.Settings.parsed
		}
		if !reflect.DeepEqual(in, want) || !slices.Equal(devices, tc.devices) {
			t.Errorf("%q is told %+v of %q, want %+v of %q", tc.args, in, devices, want, tc.devices)
		}
	}
}

func TestChildEnvironment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ env, want []string }{
		{nil, []string{"GOMAXPROCS=1"}},
		{[]string{"A=GOMAXPROCS=2", "SECRET_TOKEN=s", "GOOGLE_APPLICATION_CREDENTIALS=g", "PATH=/bin"}, []string{"GOMAXPROCS=1"}},
		{[]string{"GOMAXPROCS=3", "A=b"}, []string{"GOMAXPROCS=1", "GOMAXPROCS=3"}}, // The last one counts.
		{[]string{"MLX5_SCATTER_TO_CQE=0", "LD_LIBRARY_PATH=/lib", "IBV_SHOW_WARNINGS="}, []string{
			"GOMAXPROCS=1", "MLX5_SCATTER_TO_CQE=0", "LD_LIBRARY_PATH=/lib", "IBV_SHOW_WARNINGS=",
		}},
	} {
		if got := childEnv(tt.env); !slices.Equal(got, tt.want) {
			t.Errorf("the children of a process with %q have %q", tt.env, got)
		}
	}
}
