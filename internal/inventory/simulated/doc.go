// Package simulated has the kernel's tables of a simulated device, and the processes
// that they name: all that an inventory reads, made from the profile of the device.
//
// The tables are those of one moment. They are made anew by each process that reads
// them, and hold what the profile says is held, and what is left of processes that
// opened the device, if the profile has it leak. What a process that is still there
// has opened and created is not in them: nothing connects it with the one that reads.
//
// Of a row there is what an inventory looks at. It is there where the kernel tells
// it, too: no protection domain of what the kernel itself has, no context of a
// connection id, no thread of what is another pid namespace's.
package simulated
