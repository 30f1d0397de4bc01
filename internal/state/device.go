package state

import (
	"cmp"
	"slices"
	"strings"
)

// Device is what a device reports of itself.
type Device struct {
	Driver            string  `json:"driver,omitempty" wire:"word"`
	Transport         string  `json:"transport" wire:"name"`
	Firmware          string  `json:"fw_version" wire:"name"`
	VendorID          uint32  `json:"vendor_id"`
	VendorPartID      uint32  `json:"vendor_part_id"`
	HWVersion         uint32  `json:"hw_version"`
	NodeGUID          string  `json:"node_guid" wire:"name"`
	CompletionVectors int     `json:"completion_vectors"`
	Limits            []Limit `json:"limits" wire:"max=64"`
	// Extended are attributes of struct ibv_device_attr_ex, by their names there.
	Extended []Limit `json:"extended,omitempty" wire:"max=64"`
	Ports    []Port  `json:"ports" wire:"max=256"`
}

// Limit is a limit that a device reports, by its name in struct ibv_device_attr.
type Limit struct {
	Name  string `json:"name" wire:"word,key"`
	Value int64  `json:"value" wire:"any"`
}

// Counted returns the type of object, as rdma(8) names it, whose number l limits. It reports
// false for other limits and for zero, which means that there is no limit or no such type.
func (l Limit) Counted() (kind string, limits bool) {
	kind, found := strings.CutPrefix(l.Name, "max_")
	// Devices report no limit of contexts and connection ids.
	return kind, found && l.Value > 0 && kind != "ctx" && kind != "cm_id" && slices.Contains(ResourceTypes(), kind)
}

// LimitOf returns how many objects of a type the device allows; false if it reports no limit.
func (d *Device) LimitOf(kind string) (limit int64, limited bool) {
	for _, l := range d.Limits {
		if of, limits := l.Counted(); limits && of == kind {
			limit, limited = l.Value, true
		}
	}
	return limit, limited
}

// Port is a port of a device.
type Port struct {
	Number int `json:"number" wire:"key"`
	// State is nop, down, init, armed, active or active_defer.
	State     string `json:"state" wire:"word"`
	LinkLayer string `json:"link_layer" wire:"name"`
	// ActiveMTU is in bytes.
	ActiveMTU int `json:"active_mtu"`
}

// PortStates returns every state that a port can be in.
func PortStates() []string {
	return []string{"nop", "down", "init", "armed", "active", "active_defer"}
}

// IsActive reports whether a port in a state can move data.
func IsActive(portState string) bool { return portState == "active" || portState == "active_defer" }

// PhysicalStates returns the physical states of a port, at their numbers. None has 0.
func PhysicalStates() []string {
	return []string{
		"", "sleep", "polling", "disabled", "port_configuration_training", "link_up", "link_error_recovery", "phy_test",
	}
}

// MaxFill returns the maximum number of outstanding completions of one side of a queue pair.
// Zero means unknown. The device may be nil.
func (d *Device) MaxFill() (n int64) {
	for _, l := range cmp.Or(d, new(Device)).Limits {
		if l.Name == "max_qp_wr" || l.Name == "max_srq_wr" {
			n = max(n, l.Value)
		}
	}
	return n
}
