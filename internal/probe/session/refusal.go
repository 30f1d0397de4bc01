package session

import (
	"errors"
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

// RefusedError is the error of a method that the device does not support: it has no such QP,
// or refuses the work request. It is not a device failure.
type RefusedError struct{ Err error }

// Error implements error.
func (r *RefusedError) Error() string { return r.Err.Error() }

// Unwrap returns why.
func (r *RefusedError) Unwrap() error { return r.Err }

// IsRefused reports whether an error is a RefusedError and no object is left.
func IsRefused(err error) bool {
	var r *RefusedError
	return errors.As(err, &r) && !errors.Is(err, ErrUndestroyed)
}

// refusals has the errnos by which providers refuse a state or an argument, in addition to
// those of [verbs.IsNotSupported] and [verbs.NoErrno]. Any other errno is a failure: the
// firmware of mlx5, for example, answers a state that it refuses with EINVAL, and an error of
// its own with EIO (cmd_status_to_err of the kernel).
func refusals() map[verbs.Verb][]syscall.Errno {
	// ENODEV: the GID has no network device, or one that is down
	// (rdma_read_gid_attr_ndev_rcu of the kernel); the rest: the host finds no way to
	// the address (addr_resolve of the kernel, neigh.c of libibverbs). A device that is
	// gone refuses the ways that need no address, too.
	unreachable := []syscall.Errno{
		syscall.ENODEV, syscall.ENXIO, syscall.ENETUNREACH, syscall.EHOSTUNREACH,
		syscall.EADDRNOTAVAIL, syscall.EDESTADDRREQ, syscall.ETIMEDOUT,
	}
	return map[verbs.Verb][]syscall.Errno{
		verbs.CreateAH: append([]syscall.Errno{syscall.EINVAL}, unreachable...),
		verbs.ModifyQP: append([]syscall.Errno{syscall.EINVAL}, unreachable...),
		// EINVAL: mana (mana_post_send), efa (efa_post_send_validate), ocrdma, qedr, hns
		// (check_qp_send), ionic and vmw_pvrdma. The first three take no send in the error
		// state, and the others none before RTS. ENOMEM: mlx5, before RTS
		// (qp_state_max_gs). EIO: erdma, in the error state.
		verbs.PostSend: {syscall.EINVAL, syscall.ENOMEM, syscall.EIO},
	}
}

// Refused returns a *RefusedError if the errno can mean that the device refuses, and any other
// error unchanged. The control is [FlushRecv], where only a missing QP type is a refusal:
// every device takes a QP to INIT, a receive there, and the change to the error state.
func Refused(err error) error {
	var v *verbs.Error
	if !errors.As(err, &v) || errors.Is(err, ErrUndestroyed) {
		return err
	}
	if saysRefused(v.Verb)(v.Errno) {
		return &RefusedError{Err: err}
	}
	return err
}

// saysRefused returns a function that reports whether an error of a verb can be a refusal.
func saysRefused(v verbs.Verb) func(error) bool {
	return func(err error) bool {
		errno, _ := verbs.ErrnoOf(err)
		return verbs.IsNotSupported(err) || errno == verbs.NoErrno || slices.Contains(refusals()[v], errno)
	}
}
