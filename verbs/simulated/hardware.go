package simulated

// What can be wrong with the hardware of a simulated device, or with reading it. What is
// read is made from the profile by internal/hardware/simulated.
const (
	// HardwareHang: a reading never returns.
	HardwareHang = "hang"
	// HardwareFail: a reading fails.
	HardwareFail = "fail"
	// HardwareRefused: the driver refuses its counters with EINVAL.
	HardwareRefused = "refused"
	// HardwareNotNumeric: a counter is no number.
	HardwareNotNumeric = "not_numeric"
	// HardwareSaturated: a counter is all ones of its width and stays so.
	HardwareSaturated = "saturated"
	// HardwareAllOnes: a counter is 2^64−1, as when an adapter does not answer.
	HardwareAllOnes = "all_ones"
	// HardwareReset: the counters begin anew every five minutes.
	HardwareReset = "reset"
	// HardwareSlowLink: the ports have one lane of those that they could have.
	HardwareSlowLink = "slow_link"
	// HardwareSlowPCI: the link to the PCI bus has fewer lanes than it could have.
	HardwareSlowPCI = "slow_pci"
	// HardwareFlapping: the ports are down for 20 seconds of each minute.
	HardwareFlapping = "flapping"
)

// HardwareFaults returns every fault of the hardware.
func HardwareFaults() []string {
	return []string{
		HardwareHang, HardwareFail, HardwareRefused, HardwareNotNumeric, HardwareSaturated, HardwareAllOnes,
		HardwareReset, HardwareSlowLink, HardwareSlowPCI, HardwareFlapping,
	}
}
