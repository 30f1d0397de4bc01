package collector

import (
	"testing"
	"time"

	"rdma_exporter/internal/report"
)

// What inventories say of the host is built when one of them is new, and at no other
// scrape.
func TestOwnersAreCached(t *testing.T) {
	t.Parallel()
	taken := time.Unix(1e9, 0)
	resources := &report.Resources{Inventory: &report.Inventory{Owners: []report.Owner{{PID: 1, Memlock: new(report.Memlock)}}}, Taken: taken}
	s := &report.Snapshot{Devices: []report.DeviceState{{Name: "a", Present: true, Resources: resources}, {Name: "b", Present: true}}}
	c := New(Options{})

	first := c.ownersBlock(s)
	probed := &report.Snapshot{Devices: []report.DeviceState{{
		Name: "a", Present: true, Last: new(report.Run),
		Resources: &report.Resources{Inventory: resources.Inventory, Taken: taken, Stuck: new(report.Stuck)},
	}, {Name: "b"}}}
	if c.ownersBlock(probed) != first {
		t.Error("built anew although no inventory is")
	}
	audited := &report.Snapshot{Devices: []report.DeviceState{{
		Name: "a", Present: true, Resources: &report.Resources{Inventory: new(report.Inventory), Taken: taken.Add(time.Second)},
	}}}
	second := c.ownersBlock(audited)
	if second == first || len(second[ownerLocked]) != 0 {
		t.Error("not built anew for a new inventory")
	}
	if b := c.ownersBlock(new(report.Snapshot)); len(b[auditPIDVisibility]) != 0 {
		t.Error("what is known outlives the devices")
	}
}
