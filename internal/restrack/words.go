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
