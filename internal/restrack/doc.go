// Package restrack reads the kernel's tables of RDMA resources over netlink
// (NETLINK_RDMA, the RDMA_NLDEV commands of drivers/infiniband/core/nldev.c):
// which devices there are, how many objects of each type a device holds, and
// one row for each object with the thread that created it; and the counters that
// a driver keeps of a port. It needs no
// privilege, opens no device, and changes nothing: every request is one of
// those that rdma(8) makes to show something. Linux only.
//
// What the tables do not promise:
//
//   - A row names the thread that created the object (RES_PID), as a number in
//     the reader's PID namespace. Once that thread has ended the kernel names
//     none, even if its process lives on and holds the object.
//   - A dump takes many steps, and the kernel finds the place to go on at by
//     counting rows from the start of the table. If a row before that place
//     goes away between two steps, a row that stays is skipped. Linux 6.1 does
//     not flag that with NLM_F_DUMP_INTR; [Conn.Dump] reports the flag should a
//     kernel set it. Who must be sure reads twice, or asks for the object by
//     its number ([Conn.Get]).
//   - Rows are not taken at one moment, nor are tables.
//   - A driver may keep objects out of the tables, as mlx5 does with queue pairs for
//     receive side scaling (rdma_restrack_no_track).
//   - Up to Linux 5.4 a reader is shown the objects of its own PID namespace
//     alone, and the kernel's own only in the first one (is_visible_in_pid_ns of
//     nldev.c then). Later kernels show all objects to everybody, and name the
//     threads that the reader's PID namespace has a number for.
//
// The decoders are pure functions of the bytes of one message. Attributes that they
// do not know are ignored, and any may be absent. All else that is wrong is an error
// that matches [ErrMalformed].
package restrack
