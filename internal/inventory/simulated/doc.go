// Package simulated has the kernel's tables of a simulated device, and the processes in them: all
// that an inventory reads, made from the profile of the device.
//
// The tables are those of one moment. Each process that reads them makes them again. They hold what
// the profile declares, and what exited processes leaked, if the profile has leaks. Objects of
// processes that still run are not in them, because nothing connects these with the reader.
//
// Rows have the fields that an inventory reads, where the kernel reports them, too: no protection
// domain of the kernel's own objects, no context of a connection id, and no thread in another PID
// namespace.
package simulated
