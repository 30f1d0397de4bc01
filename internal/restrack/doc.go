// Package restrack reads the kernel's tables of RDMA resources over netlink (NETLINK_RDMA, the
// RDMA_NLDEV commands of drivers/infiniband/core/nldev.c): the devices, the number of objects
// of each type on a device, one row per object with the thread that created it, and the
// counters that a driver keeps of a port. It needs no privilege, opens no device and changes
// nothing: every request is one that rdma(8) makes to show something. Linux only.
//
// The tables have limits:
//
//   - A row names the thread that created the object (RES_PID), as a number in the reader's
//     PID namespace. Once that thread has ended the kernel names none, even if its process
//     lives on and holds the object.
//   - A dump takes many steps, and the kernel finds the place to continue by counting rows from
//     the start of the table. If a row before that place is removed between two steps, a row
//     that stays is skipped. Linux 6.1 does not flag that with NLM_F_DUMP_INTR; [Conn.Dump]
//     reports the flag if a kernel sets it. To be sure, read twice, or ask for the object by
//     its number ([Conn.Get]).
//   - Neither the rows of a table nor the tables are read at one moment.
//   - A driver may keep objects out of the tables, as mlx5 does with queue pairs for receive
//     side scaling (rdma_restrack_no_track).
//   - Up to Linux 5.4 a reader sees only the objects of its own PID namespace, and the kernel's
//     own only in the first one (is_visible_in_pid_ns of nldev.c). Later kernels show all
//     objects to everyone, and name the threads that have a number in the reader's PID
//     namespace. [ListsAllObjects] reports which applies.
//
// The decoders are pure functions of the bytes of one message. They ignore attributes that they
// do not know, and any attribute may be absent. Anything else that is wrong is an error that
// matches [ErrMalformed].
package restrack
