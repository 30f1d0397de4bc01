package counters

import (
	"maps"
	"slices"

	"rdma_exporter/internal/state"
)

// Reasons for which many counters feed no metric.
const (
	rawKind     = "No metric for this."
	rawPart     = "Part of another counter."
	rawLevel    = "A level, or a peak."
	rawDevice   = "Counts for the device; the metrics are for ports."
	rawUnclear  = "Undocumented."
	rawOptional = "Counts only while switched on."
)

// Tables returns all rows: first those for every device, then those of each driver.
func Tables() []Table {
	tables, all := []Table{common()}, drivers()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		tables = append(tables, all[name]())
	}
	return tables
}

// drivers returns by their names the tables of drivers with rows of their own. They are made when they
// are needed.
func drivers() map[string]func() Table {
	return map[string]func() Table{
		"bnxt_re": bnxt,
		"cxgb4":   cxgb4,
		"efa":     efa,
		"erdma":   erdma,
		"hfi1":    hfi1,
		"hns":     hns,
		"ionic":   ionic,
		"irdma":   irdma,
		"mana":    mana,
		"mlx4":    mlx4,
		"mlx5":    mlx5,
		"ocrdma":  ocrdma,
		"qib":     qib,
		"rxe":     rxe,
	}
}

func read(source string, rows ...Row) []Row {
	for i := range rows {
		rows[i].Source = source
	}
	return rows
}

// hw returns a counter of hw_counters that counts the same as a metric, in its unit.
func hw(name, metric string, width int, meaning string) Row {
	return Row{Group: state.GroupHardware, Name: name, Metric: metric, Factor: 1, Width: width, Meaning: meaning}
}

// term returns one of the counters of hw_counters whose sum feeds a metric.
func term(name, metric, meaning string) Row {
	r := hw(name, metric, 64, meaning)
	r.Sum = true
	return r
}

// raw returns a counter of hw_counters that feeds no metric.
func raw(name string, width int, meaning, why string) Row {
	return Row{Group: state.GroupHardware, Name: name, Factor: 1, Width: width, Meaning: meaning, Raw: why}
}

// level returns a gauge or high-water mark in hw_counters.
func level(name, meaning string) Row {
	r := raw(name, 64, meaning, rawLevel)
	r.Level = true
	return r
}

// pma returns a counter of counters/, which stays at all ones once it is full.
func pma(name, metric string, width int, meaning string) Row {
	return Row{Group: state.GroupPort, Name: name, Metric: metric, Factor: 1, Width: width, Saturates: true, Meaning: meaning}
}

// pmaRaw returns a counter of counters/ that feeds no metric.
func pmaRaw(name string, width int, meaning, why string) Row {
	r := pma(name, "", width, meaning)
	r.Raw = why
	return r
}

// never returns a counter that the driver never sets. Its zero means nothing.
func never(name string, width int) Row {
	return pmaRaw(name, width, "Nothing.", "Always 0: the driver never sets it.")
}

// traffic returns a counter of counters/ that has 64 bits, or 32 on older adapters.
func traffic(name, metric string, factor uint64, meaning string) Row {
	r := pma(name, metric, 64, meaning)
	r.Narrow, r.Factor = 32, factor
	return r
}

// wrapping makes a row of counters/ wrap to 0 instead of staying at all ones.
func wrapping(r Row) Row {
	r.Saturates, r.Narrow = false, 0
	return r
}

// net returns a counter of the port's network device.
func net(name, metric, meaning string) Row {
	return Row{Group: state.GroupEthtool, Name: name, Metric: metric, Factor: 1, Width: 64, Meaning: meaning}
}

// netRaw returns one that feeds no metric.
func netRaw(name, meaning, why string) Row {
	r := net(name, "", meaning)
	r.Raw = why
	return r
}

// micro returns a counter of the port's network device in microseconds, whose metric is in seconds.
func micro(name, metric, meaning string) Row {
	r := net(name, metric, meaning)
	r.Divisor = 1e6
	return r
}

// net32 returns a counter of the port's network device of 32 bits.
func net32(name, metric, meaning string) Row {
	r := net(name, metric, meaning)
	r.Width = 32
	return r
}

// only makes a row feed its metric for ports of one link layer, as [Row].LinkLayer.
func only(linkLayer string, r Row) Row {
	r.LinkLayer = linkLayer
	return r
}

// common returns the rows for every device.
func common() Table {
	const linux = "Linux: the attributes of PORT_PMA_ATTR and PORT_PMA_ATTR_EXT in drivers/infiniband/core/sysfs.c, Documentation/ABI/stable/sysfs-class-infiniband; the InfiniBand specification, PortCounters and PortCountersExtended, has them stay at all ones."
	return Table{
		Note: "`counters/` exist with drivers that answer performance management queries (`process_mad`): hfi1, mlx4, mlx5, mthca, ocrdma, qib, and bnxt_re after Linux 6.12; qedr has the files but refuses to read them. The four traffic counters have 32 bits on adapters without PortCountersExtended; 32 ones count as saturated on all adapters. `ethtool` counters belong to the port's network device: `N` is a priority from 0 to 7.",
		Rows: slices.Concat(
			read(linux,
				traffic("port_rcv_data", receiveBytes, 4, "Data received on all virtual lanes, in words of 4 bytes."),
				traffic("port_xmit_data", transmitBytes, 4, "Data transmitted on all virtual lanes, in words of 4 bytes."),
				traffic("port_rcv_packets", receivePackets, 1, "Packets received on all virtual lanes, including those with errors."),
				traffic("port_xmit_packets", transmitPackets, 1, "Packets transmitted on all virtual lanes."),
				pmaRaw("unicast_rcv_packets", 64, "Unicast packets received.", rawPart),
				pmaRaw("unicast_xmit_packets", 64, "Unicast packets transmitted.", rawPart),
				pmaRaw("multicast_rcv_packets", 64, "Multicast packets received.", rawPart),
				pmaRaw("multicast_xmit_packets", 64, "Multicast packets transmitted.", rawPart),
				pma("port_rcv_errors", receiveErrors, 16, "Packets received with an error."),
				pma("port_rcv_remote_physical_errors", remotePhysicalErrors, 16, "Packets received that end with the delimiter of a bad packet (EBP)."),
				pmaRaw("port_rcv_switch_relay_errors", 16, "Packets received that a switch could not forward.", "For switches."),
				pma("port_xmit_discards", transmitDiscards, 16, "Packets dropped before transmission, because the port was down or congested."),
				pmaRaw("port_xmit_constraint_errors", 8, "Packets not transmitted because of a partition, IP version or raw packet check.", "For switch ports."),
				pmaRaw("port_rcv_constraint_errors", 8, "Packets received and dropped because of a partition, IP version or raw packet check.", "For switch ports."),
				pma("port_xmit_wait", transmitWait, 32, "Ticks with data to send and none sent, for lack of credits or arbitration. The length of a tick depends on the adapter."),
				pma("symbol_error", symbolErrors, 16, "Minor link errors on one or more lanes."),
				pma("link_error_recovery", linkErrorRecoveries, 8, "Successful link error recoveries by port training."),
				only("InfiniBand", pma("link_downed", linkDowned, 8, "Failed link error recoveries, which took the link down.")),
				pma("local_link_integrity_errors", linkIntegrityErrors, 4, "Times that local physical errors exceeded the threshold LocalPhyErrors."),
				pma("excessive_buffer_overrun_errors", bufferOverrunErrors, 4, "Times that input buffers overran for longer than the threshold OverrunErrors."),
				pmaRaw("VL15_dropped", 16, "Management packets (virtual lane 15) dropped for lack of buffers.", rawKind),
			),
			read("Linux: struct ethtool_pause_stats in include/linux/ethtool.h.",
				net("rx_pause_frames", pauseFramesReceived, "aPAUSEMACCtrlFramesReceived of IEEE 802.3, 30.3.4.3, as the driver counts it: ice counts XON frames, too."),
				net("tx_pause_storm_events", pauseStorms, "Times that pause frames were sent for so long that the adapter stopped that, of all priorities; Linux from 7.0."),
				net("tx_pause_frames", pauseFramesSent, "aPAUSEMACCtrlFramesTransmitted of IEEE 802.3, 30.3.4.2, as the driver counts it."),
			),
			read("Linux: struct ethtool_link_ext_stats in include/linux/ethtool.h, from 6.2.",
				only("Ethernet", net32("link_down_events", linkDowned, "Times that the link went down at the physical layer.")),
			),
			read("Linux: struct ieee_pfc in include/uapi/linux/dcbnl.h.",
				net("pfc_indications_prioN", pfcFramesReceived, "PFC frames received for priority N."),
				net("pfc_requests_prioN", pfcFramesSent, "PFC frames sent for priority N."),
			),
			read("Linux: struct ethtool_fec_stats in include/linux/ethtool.h.",
				net("fec_corrected_blocks", fecCorrected, "aFECCorrectedBlocks of IEEE 802.3, 30.5.1.1.17, of all lanes."),
				net("fec_corrected_bits", fecCorrectedBits, "corrected_bits, of all lanes."),
				net("fec_uncorrectable_blocks", fecUncorrectable, "aFECUncorrectableBlocks of IEEE 802.3, 30.5.1.1.18, of all lanes."),
			),
			read("Linux: struct ethtool_eth_phy_stats in include/linux/ethtool.h.",
				net("symbol_errors_during_carrier", carrierSymbolErrors, "aSymbolErrorDuringCarrier of IEEE 802.3, 30.3.2.1.5: at most one for each carrier event, so it differs from symbol_error."),
			),
		),
	}
}
