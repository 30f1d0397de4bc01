// Package path tests what passes between two RDMA devices: in one virtual machine, where a
// bridge joins them and faults are made in it, and between two machines. Run make test-path.
package path
