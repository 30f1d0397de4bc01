package counters

// The names of the metrics.
const (
	receiveBytes         = "rdma_port_receive_bytes_total"
	transmitBytes        = "rdma_port_transmit_bytes_total"
	receivePackets       = "rdma_port_receive_packets_total"
	transmitPackets      = "rdma_port_transmit_packets_total"
	receiveErrors        = "rdma_port_receive_errors_total"
	remotePhysicalErrors = "rdma_port_receive_remote_physical_errors_total"
	receiveDiscards      = "rdma_port_receive_discards_total"
	transmitDiscards     = "rdma_port_transmit_discards_total"
	transmitWait         = "rdma_port_transmit_wait_ticks_total"
	retransmittedPackets = "rdma_port_retransmitted_packets_total"
	retransmitTimeouts   = "rdma_port_retransmit_timeouts_total"
	outOfSequence        = "rdma_port_out_of_sequence_packets_total"
	sequenceNaksReceived = "rdma_port_sequence_naks_received_total"
	rnrNaksReceived      = "rdma_port_rnr_naks_received_total"
	rnrNaksSent          = "rdma_port_rnr_naks_sent_total"
	duplicateRequests    = "rdma_port_duplicate_requests_total"
	impliedNaks          = "rdma_port_implied_naks_total"
	adaptiveRetransmits  = "rdma_port_adaptive_retransmissions_total"
	icrcErrors           = "rdma_port_icrc_errors_total"
	retriesExceeded      = "rdma_port_retries_exceeded_total"
	outOfBuffer          = "rdma_port_out_of_buffer_packets_total"
	cnpsSent             = "rdma_port_cnps_sent_total"
	cnpsReceived         = "rdma_port_cnps_received_total"
	cnpsHandled          = "rdma_port_cnps_handled_total"
	ecnMarked            = "rdma_port_ecn_marked_packets_total"
	symbolErrors         = "rdma_port_symbol_errors_total"
	carrierSymbolErrors  = "rdma_port_carrier_symbol_errors_total"
	linkErrorRecoveries  = "rdma_port_link_error_recoveries_total"
	linkDowned           = "rdma_port_link_downed_total"
	linkIntegrityErrors  = "rdma_port_local_link_integrity_errors_total"
	bufferOverrunErrors  = "rdma_port_buffer_overrun_errors_total"
	pauseFramesReceived  = "rdma_port_pause_frames_received_total"
	pauseFramesSent      = "rdma_port_pause_frames_sent_total"
	pauseStorms          = "rdma_port_pause_storms_total"
	pfcFramesReceived    = "rdma_port_pfc_frames_received_total"
	pfcFramesSent        = "rdma_port_pfc_frames_sent_total"
	pfcPaused            = "rdma_port_pfc_paused_seconds_total"
	pfcPausing           = "rdma_port_pfc_pausing_seconds_total"
	pfcTransitions       = "rdma_port_pfc_transitions_total"
	physicalRxDiscards   = "rdma_port_physical_receive_discards_total"
	physicalTxDiscards   = "rdma_port_physical_transmit_discards_total"
	priorityDiscards     = "rdma_port_priority_discards_total"
	pciStalled           = "rdma_port_pci_stalled_seconds_total"
	fecCorrectedBits     = "rdma_port_fec_corrected_bits_total"
	fecCorrected         = "rdma_port_fec_corrected_blocks_total"
	fecUncorrectable     = "rdma_port_fec_uncorrectable_blocks_total"
)

// always returns a metric that a port has while it has its counter.
func always(name, unit, help string) Metric { return Metric{Name: name, Unit: unit, Help: help} }

// rare returns one that is absent while it is 0 and always was, as on a healthy link.
func rare(name, unit, help string) Metric {
	return Metric{Name: name, Unit: unit, Help: help, Rare: true}
}

// byPriority returns one of those for each priority.
func byPriority(name, unit, help string) Metric {
	return Metric{Name: name, Unit: unit, Help: help, Rare: true, Label: LabelPriority}
}

// ofFunction qualifies the help of the traffic of a port.
const ofFunction = "; with bnxt_re, mana, mlx5 and virtual functions of mlx4, those of this function only"

// Metrics returns the metrics that counters feed, in the order in which they are exposed.
func Metrics() []Metric {
	return []Metric{
		always(receiveBytes, "bytes", "Bytes that the port received"+ofFunction),
		always(transmitBytes, "bytes", "Bytes that the port transmitted"+ofFunction),
		always(receivePackets, "packets", "Packets that the port received"+ofFunction),
		always(transmitPackets, "packets", "Packets that the port transmitted"+ofFunction),
		always(receiveErrors, "packets", "Packets that the port received with an error"),
		rare(remotePhysicalErrors, "packets", "Packets received that a port on the way had marked as bad"),
		always(receiveDiscards, "packets", "Packets that the port received and dropped"),
		always(transmitDiscards, "packets", "Packets that the port dropped instead of transmitting them"),
		always(transmitWait, "ticks", "Ticks of the adapter's clock in which the port had data to send but could not, for lack of credits or arbitration"),
		always(retransmittedPackets, "packets", "Retransmitted packets"),
		always(retransmitTimeouts, "timeouts", "Times that a requester got no acknowledgement in time, and retransmitted"),
		always(outOfSequence, "packets", "Request packets that arrived out of sequence"),
		always(sequenceNaksReceived, "packets", "Sequence error NAKs received by requesters: a packet was lost or overtaken"),
		always(rnrNaksReceived, "packets", "RNR NAKs received by requesters: the other side had no receive posted"),
		always(rnrNaksSent, "packets", "RNR NAKs sent by responders: no receive was posted here"),
		always(duplicateRequests, "packets", "Duplicate requests received by responders"),
		rare(impliedNaks, "packets", "Implied NAKs of requesters: a response arrived ahead of one that was lost"),
		rare(adaptiveRetransmits, "retransmissions", "Retransmissions that the adapter started by itself, before a timeout (adaptive retransmission)"),
		rare(icrcErrors, "packets", "Packets received with a wrong ICRC, the checksum of RoCE from end to end"),
		always(retriesExceeded, "requests", "Requests that failed because all retries were used up, after timeouts or RNR NAKs: their queue pair is in error"),
		always(outOfBuffer, "packets", "Packets dropped because no receive was posted"),
		always(cnpsSent, "packets", "Congestion notification packets sent in response to ECN marks"),
		always(cnpsReceived, "packets", "Congestion notification packets received"),
		always(cnpsHandled, "packets", "Congestion notification packets received that slowed a sender down"),
		always(ecnMarked, "packets", "Packets received with an ECN mark: a switch on the way was congested"),
		always(symbolErrors, "errors", "Minor link errors on the lanes of the InfiniBand link"),
		rare(carrierSymbolErrors, "events", "Carrier events with at least one invalid symbol (IEEE 802.3)"),
		rare(linkErrorRecoveries, "recoveries", "Times that the link recovered from an error by itself"),
		always(linkDowned, "events", "Times that the link went down, by the adapter's count"),
		rare(linkIntegrityErrors, "events", "Times that link errors exceeded a threshold"),
		rare(bufferOverrunErrors, "events", "Times that the port's input buffers overran"),
		always(pauseFramesReceived, "frames", "Pause frames received (IEEE 802.3x), which stop or resume the port; some adapters may include those of PFC"),
		always(pauseFramesSent, "frames", "Pause frames sent (IEEE 802.3x), which stop or resume the other side; some adapters may include those of PFC"),
		rare(pauseStorms, "storms", "Times that the port sent pause frames for so long that the adapter stopped that"),
		byPriority(pfcFramesReceived, "frames", "PFC frames received, which stop one priority"),
		byPriority(pfcFramesSent, "frames", "PFC frames sent, which stop one priority of the other side"),
		byPriority(pfcPaused, "seconds", "Time for which the port did not send a priority, because of PFC frames received"),
		byPriority(pfcPausing, "seconds", "Time for which the port kept the other side from sending a priority, by PFC frames"),
		byPriority(pfcTransitions, "transitions", "Times that PFC frames received let a stopped priority go on"),
		rare(physicalRxDiscards, "packets", "Packets of all traffic of the physical port that were received and dropped for lack of buffers"),
		rare(physicalTxDiscards, "packets", "Packets of all traffic of the physical port that were dropped instead of transmitted"),
		byPriority(priorityDiscards, "packets", "Packets of all traffic of the physical port that were received and dropped for lack of buffers"),
		{pciStalled, "seconds", "Seconds in which the adapter could not use the PCI bus for more than 30 % of the time, for lack of credits", LabelDirection, true},
		rare(fecCorrectedBits, "bits", "Bits received that forward error correction repaired"),
		always(fecCorrected, "blocks", "Blocks received that forward error correction repaired"),
		rare(fecUncorrectable, "blocks", "Blocks received that forward error correction could not repair"),
	}
}
