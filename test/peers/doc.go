// Package peers measures the built exporter beside the programs that a person
// would use in its place: node_exporter with only its infiniband collector,
// rdma(8), and ibv_devinfo with ib_send_lat. It asserts nothing of what it
// measures, and prints it as tables in Markdown:
//
//	make bench-peers
//
// TestRealDevices runs in the virtual machine that test/vm/run boots, on
// Soft-RoCE devices of which it adds as many as it needs; TestSimulatedDevices
// and TestRounds run on this machine. What they lack is a
// failure, never a skip.
package peers
