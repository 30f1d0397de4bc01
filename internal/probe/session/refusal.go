package session

import (
	"errors"
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

// RefusedError is the error of a way that the device does not go: it has no such
// QP, or refuses the work request at once. It is no failure of the device.
type RefusedError struct{ Err error }

// Error implements error.
func (r *RefusedError) Error() string { return r.Err.Error() }

// Unwrap returns why.
func (r *RefusedError) Unwrap() error { return r.Err }

// IsRefused reports whether an error is that of a way which the device does not go,
// and nothing is left of it.
func IsRefused(err error) bool {
	var r *RefusedError
	return errors.As(err, &r) && !errors.Is(err, ErrUndestroyed)
}

// refusals are, for each verb that takes a QP on its way, the errnos by which
// providers say that they do not take a state or an argument. Beside them there are
// those of [verbs.IsNotSupported] and [verbs.NoErrno]. Any other errno tells of a
// failure: the firmware of mlx5, for one, answers a state that it does not take with
// EINVAL and an error of its own with EIO (cmd_status_to_err of the kernel).
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
		// (check_qp_send), ionic and vmw_pvrdma, of which the first three take no send in
		// the error state, and the others none before RTS. ENOMEM: mlx5, before RTS
		// (qp_state_max_gs). EIO: erdma, in the error state.
		verbs.PostSend: {syscall.EINVAL, syscall.ENOMEM, syscall.EIO},
	}
}

// Refused makes a *RefusedError of an error whose errno can say that the device does
// not go a way; any other error it returns as it is. What the errno says is believed
// on trust: [FlushRecv], on which nothing counts as a refusal but that there is no
// such QP, is the control. Every device takes a QP to INIT, a receive there, and the
// change to the error state.
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

// saysRefused returns what tells of each error of a verb whether its errno can say that
// the device refuses.
func saysRefused(v verbs.Verb) func(error) bool {
	return func(err error) bool {
		errno, _ := verbs.ErrnoOf(err)
		return verbs.IsNotSupported(err) || errno == verbs.NoErrno || slices.Contains(refusals()[v], errno)
	}
}
