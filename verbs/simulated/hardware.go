package simulated

// What can be wrong with the hardware of a device, or with reading it.
// docs/reference/simulator.md describes each. Package internal/hardware/simulated acts them out.
const (
	HardwareHang       = "hang"
	HardwareFail       = "fail"
	HardwareRefused    = "refused"
	HardwareNotNumeric = "not_numeric"
	HardwareSaturated  = "saturated"
	HardwareAllOnes    = "all_ones"
	HardwareReset      = "reset"
	HardwareSlowLink   = "slow_link"
	HardwareSlowPCI    = "slow_pci"
	HardwareFlapping   = "flapping"
)

// HardwareFaults returns every fault of the hardware.
func HardwareFaults() []string {
	return []string{
		HardwareHang, HardwareFail, HardwareRefused, HardwareNotNumeric, HardwareSaturated, HardwareAllOnes,
		HardwareReset, HardwareSlowLink, HardwareSlowPCI, HardwareFlapping,
	}
}
