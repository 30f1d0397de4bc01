package simulated_test

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/inventory/simulated"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
	profile "rdma_exporter/verbs/simulated"
)

// noon is when nothing has grown.
func noon() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// parse returns the profile of one device, sim0, like the software device but with these resources,
// which are lines of YAML.
func parse(t testing.TB, resources string) *profile.Profile {
	t.Helper()
	text := "devices:\n  - name: sim0\n    like: sim_rxe0\n    resources:\n"
	for line := range strings.Lines(cmp.Or(resources, "holders: []")) {
		text += "      " + line
	}
	p, err := profile.ParseProfile("profile", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return p
}

// take returns the run that an inventory of a host's device reports. Only waits spend its budget.
func take(t *testing.T, h *simulated.Host, device string, change func(*inventory.Options)) *state.Run {
	t.Helper()
	var out strings.Builder
	o := inventory.Options{
		Tables: h, People: h, Device: device, Config: inventory.Config{Budget: time.Minute, MaxObjects: 20000, Owners: 10},
		Out: wire.NewWriter(&out),
	}
	if change != nil {
		change(&o)
	}
	synctest.Test(t, func(t *testing.T) {
		running.Check(t, inventory.Run(t.Context(), o))
	})
	run := new(state.Run)
	if err := wire.Read(strings.NewReader(out.String()), run); err != nil {
		t.Fatalf("the report cannot be read: %v\n%s", err, out.String())
	}
	return run
}

// inventoryOf is take, of the device sim0 at noon.
func inventoryOf(t *testing.T, resources string, look ...state.Context) *state.Inventory {
	t.Helper()
	h := simulated.New(parse(t, resources), "sim0", noon(), look)
	run := take(t, h, "sim0", func(o *inventory.Options) { o.LeakCandidates = look })
	if run.Error != "" || run.Inventory == nil {
		t.Fatalf("error %q, inventory %v", run.Error, run.Inventory)
	}
	return run.Inventory
}

// objects returns the number of objects of a type, of any owner.
func objects(i *state.Inventory, typ string) (n int64) {
	for _, o := range i.Objects {
		if o.Type == typ {
			n += o.Objects
		}
	}
	return n
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// wantList compares a list with its items, as fmt prints them.
func wantList(t *testing.T, what string, list any, want string) {
	t.Helper()
	got := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(list), "["), "]")
	if got != strings.Join(strings.Fields(want), " ") {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}
