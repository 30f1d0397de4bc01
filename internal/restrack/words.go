package restrack

// The words for the kernel's numbers: those of rdma(8), in lower case. A number
// that has none yields "", which the caller turns into unknown_<number>.

// qpType names an enum ib_qp_type.
func qpType(number uint8) string {
	names := [...]string{"smi", "gsi", "rc", "uc", "ud", "raw_ipv6", "raw_ethertype", 8: "raw_packet", "xrc_ini", "xrc_tgt"}
	switch {
	case int(number) < len(names):
		return names[number]
	case number == 0xff:
		return "driver"
	}
	return ""
}

// qpState names an enum ib_qp_state.
func qpState(number uint8) string {
	names := [...]string{"reset", "init", "rtr", "rts", "sqd", "sqe", "err"}
	if int(number) < len(names) {
		return names[number]
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
