package restrack

// The words for the kernel's numbers: those of rdma(8), in lower case. A number
// that has none yields "", which the caller turns into unknown_<number>.

// qpType names an enum ib_qp_type.
func qpType(number uint8) string {
	switch number {
	case 0:
		return "smi"
	case 1:
		return "gsi"
	case 2:
		return "rc"
	case 3:
		return "uc"
	case 4:
		return "ud"
	case 5:
		return "raw_ipv6"
	case 6:
		return "raw_ethertype"
	case 8:
		return "raw_packet"
	case 9:
		return "xrc_ini"
	case 10:
		return "xrc_tgt"
	case 0xff:
		return "driver"
	}
	return ""
}

// qpState names an enum ib_qp_state.
func qpState(number uint8) string {
	switch number {
	case 0:
		return "reset"
	case 1:
		return "init"
	case 2:
		return "rtr"
	case 3:
		return "rts"
	case 4:
		return "sqd"
	case 5:
		return "sqe"
	case 6:
		return "err"
	}
	return ""
}

// srqType names an enum ib_srq_type.
func srqType(number uint8) string {
	switch number {
	case 0:
		return "basic"
	case 1:
		return "xrc"
	case 2:
		return "tm"
	}
	return ""
}

// cmState names an enum rdma_cm_state.
func cmState(number uint8) string {
	switch number {
	case 0:
		return "idle"
	case 1:
		return "addr_query"
	case 2:
		return "addr_resolved"
	case 3:
		return "route_query"
	case 4:
		return "route_resolved"
	case 5:
		return "connect"
	case 6:
		return "disconnect"
	case 7:
		return "addr_bound"
	case 8:
		return "listen"
	case 9:
		return "device_removal"
	case 10:
		return "destroying"
	}
	return ""
}

// portSpace names an enum rdma_ucm_port_space.
func portSpace(number uint32) string {
	switch number {
	case 0x0002:
		return "ipoib"
	case 0x0106:
		return "tcp"
	case 0x0111:
		return "udp"
	case 0x013f:
		return "ib"
	}
	return ""
}

// pollContext names an enum ib_poll_context.
func pollContext(number uint8) string {
	switch number {
	case 0:
		return "direct"
	case 1:
		return "softirq"
	case 2:
		return "workqueue"
	case 3:
		return "unbound_workqueue"
	}
	return ""
}

// nodeType names an enum rdma_node_type.
func nodeType(number uint8) string {
	switch number {
	case 1:
		return "ca"
	case 2:
		return "switch"
	case 3:
		return "router"
	case 4:
		return "rnic"
	case 5:
		return "usnic"
	case 6:
		return "usnic_udp"
	case 7:
		return "unspecified"
	}
	return ""
}

// driverName names an enum rdma_driver_id.
func driverName(number uint32) string {
	names := [...]string{
		1: "mlx5", "mlx4", "cxgb3", "cxgb4", "mthca", "bnxt_re", "ocrdma", "nes", "irdma", "vmw_pvrdma", "qedr", "hns", "usnic", "rxe", "hfi1", "qib", "efa", "siw", "erdma", "mana", "ionic",
	}
	if uint64(number) < uint64(len(names)) {
		return names[number]
	}
	return ""
}
