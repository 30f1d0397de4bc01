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
	pfcFramesReceived    = "rdma_port_pfc_frames_received_total"
	pfcFramesSent        = "rdma_port_pfc_frames_sent_total"
	fecCorrected         = "rdma_port_fec_corrected_blocks_total"
	fecUncorrectable     = "rdma_port_fec_uncorrectable_blocks_total"
)

// Metrics returns the metrics that counters feed, in the order in which they are exposed.
func Metrics() []Metric {
	return []Metric{
		{receiveBytes, "bytes", "Bytes that the port received", false},
		{transmitBytes, "bytes", "Bytes that the port transmitted", false},
		{receivePackets, "packets", "Packets that the port received", false},
		{transmitPackets, "packets", "Packets that the port transmitted", false},
		{receiveErrors, "packets", "Packets that the port received with an error", false},
		{remotePhysicalErrors, "packets", "Packets received that a port on the way had marked as bad", false},
		{receiveDiscards, "packets", "Packets that the port received and dropped", false},
		{transmitDiscards, "packets", "Packets that the port dropped instead of transmitting them", false},
		{transmitWait, "ticks", "Ticks of the adapter's clock in which the port had data to send but could not, for lack of credits or arbitration", false},
		{retransmittedPackets, "packets", "Retransmitted packets", false},
		{retransmitTimeouts, "timeouts", "Times that a requester got no acknowledgement in time, and retransmitted", false},
		{outOfSequence, "packets", "Request packets that arrived out of sequence", false},
		{sequenceNaksReceived, "packets", "Sequence error NAKs received by requesters: a packet was lost or overtaken", false},
		{rnrNaksReceived, "packets", "RNR NAKs received by requesters: the other side had no receive posted", false},
		{rnrNaksSent, "packets", "RNR NAKs sent by responders: no receive was posted here", false},
		{duplicateRequests, "packets", "Duplicate requests received by responders", false},
		{outOfBuffer, "packets", "Packets dropped because no receive was posted", false},
		{cnpsSent, "packets", "Congestion notification packets sent in response to ECN marks", false},
		{cnpsReceived, "packets", "Congestion notification packets received", false},
		{cnpsHandled, "packets", "Congestion notification packets received that slowed a sender down", false},
		{ecnMarked, "packets", "Packets received with an ECN mark: a switch on the way was congested", false},
		{symbolErrors, "errors", "Minor link errors on the lanes of the InfiniBand link", false},
		{carrierSymbolErrors, "events", "Carrier events with at least one invalid symbol (IEEE 802.3)", false},
		{linkErrorRecoveries, "recoveries", "Times that the link recovered from an error by itself", false},
		{linkDowned, "events", "Times that the link went down, by the adapter's count", false},
		{linkIntegrityErrors, "events", "Times that link errors exceeded a threshold", false},
		{bufferOverrunErrors, "events", "Times that the port's input buffers overran", false},
		{pauseFramesReceived, "frames", "Pause frames received (IEEE 802.3x), which stop or resume the port; some adapters may include those of PFC", false},
		{pauseFramesSent, "frames", "Pause frames sent (IEEE 802.3x), which stop or resume the other side; some adapters may include those of PFC", false},
		{pfcFramesReceived, "frames", "PFC frames received, which stop one priority", true},
		{pfcFramesSent, "frames", "PFC frames sent, which stop one priority of the other side", true},
		{fecCorrected, "blocks", "Blocks received that forward error correction repaired", false},
		{fecUncorrectable, "blocks", "Blocks received that forward error correction could not repair", false},
	}
}
