package collector

import (
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/state"
)

// What inventories say of the host is built when one of them is new, and at no other
// scrape.
func TestOwnersAreCached(t *testing.T) {
	t.Parallel()
	taken := time.Unix(1e9, 0)
	resources := &state.Resources{Inventory: &state.Inventory{Owners: []state.Owner{{PID: 1, Memlock: new(state.Memlock)}}}, Taken: taken}
	s := &state.Snapshot{Devices: []state.DeviceState{{Name: "a", Present: true, Resources: resources}, {Name: "b", Present: true}}}
	c := New(Options{})

	first := c.ownersBlock(s)
	probed := &state.Snapshot{Devices: []state.DeviceState{{
		Name: "a", Present: true, Last: new(state.Run),
		Resources: &state.Resources{Inventory: resources.Inventory, Taken: taken, Stuck: new(state.Stuck)},
	}, {Name: "b"}}}
	if &c.ownersBlock(probed)[0] != &first[0] {
		t.Error("built anew although no inventory is")
	}
	looked := &state.Snapshot{Devices: []state.DeviceState{{
		Name: "a", Present: true, Resources: &state.Resources{Inventory: new(state.Inventory), Taken: taken.Add(time.Second)},
	}}}
	second := c.ownersBlock(looked)
	if slices.ContainsFunc(second, func(s series) bool { return s.family == c.ownerLocked }) {
		t.Error("not built anew for a new inventory")
	}
	if len(c.ownersBlock(new(state.Snapshot))) != 0 {
		t.Error("what is known outlives the devices")
	}
}
