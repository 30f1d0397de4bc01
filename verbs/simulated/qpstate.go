package simulated

import (
	"syscall"

	"rdma_exporter/verbs"
)

// checkTransition decides whether a QP may go from one state to another with the
// attributes of the mask. The masks are those that the InfiniBand specification
// requires, as ib_modify_qp_is_ok of the Linux kernel has them.
func checkTransition(t verbs.QPType, from, to verbs.QPState, mask verbs.QPAttrMask) *failure {
	required, ok := transition(t, from, to)
	if !ok {
		return fail(syscall.EINVAL, "a %s queue pair cannot go from %s to %s", t, from, to)
	}
	required |= verbs.MaskState
	if missing := required &^ mask; missing != 0 {
		return fail(syscall.EINVAL, "from %s to %s, attributes %#x of the mask are missing", from, to, missing)
	}
	if extra := mask &^ required; extra != 0 {
		return fail(syscall.EINVAL, "from %s to %s, attributes %#x of the mask are not allowed", from, to, extra)
	}
	return nil
}

// transition returns the attributes that a change of state needs, and whether it is
// allowed. Of those that are, there are the ones from RESET to RTS, and to RESET and ERR.
func transition(t verbs.QPType, from, to verbs.QPState) (required verbs.QPAttrMask, ok bool) {
	const (
		index = verbs.MaskPKeyIndex | verbs.MaskPort
		path  = verbs.MaskAV | verbs.MaskPathMTU | verbs.MaskDestQPN | verbs.MaskRQPSN
		retry = verbs.MaskTimeout | verbs.MaskRetryCount | verbs.MaskRNRRetry | verbs.MaskMaxRdAtomic
	)
	// of picks what belongs to the type; a raw packet QP has hardly anything.
	of := func(rc, uc, ud, raw verbs.QPAttrMask) verbs.QPAttrMask {
		switch t {
		case verbs.RC:
			return rc
		case verbs.UC:
			return uc
		case verbs.UD, verbs.SRD:
			return ud
		default:
			return raw
		}
	}
	switch [2]verbs.QPState{from, to} {
	case [2]verbs.QPState{verbs.Reset, verbs.Init}:
		return of(index|verbs.MaskAccess, index|verbs.MaskAccess, index|verbs.MaskQKey, verbs.MaskPort), true
	case [2]verbs.QPState{verbs.Init, verbs.RTR}:
		return of(path|verbs.MaskMaxDestRdAtomic|verbs.MaskMinRNRTimer, path, 0, 0), true
	case [2]verbs.QPState{verbs.RTR, verbs.RTS}:
		return of(retry|verbs.MaskSQPSN, verbs.MaskSQPSN, verbs.MaskSQPSN, 0), true
	}
	// RESET to ERR is not in the specification's figure, but every driver allows it.
	return 0, to == verbs.Reset || to == verbs.Err
}

// qpAttr checks the values of the attributes that the mask names.
func (b *behaviour) qpAttr(q *qp, a verbs.QPAttr, mask verbs.QPAttrMask) *failure {
	has := func(m verbs.QPAttrMask) bool { return mask&m != 0 }
	number := q.attr.Port
	if has(verbs.MaskPort) {
		number = a.Port
	}
	p, ok := b.port(number)
	if has(verbs.MaskPort) && !ok {
		return fail(syscall.EINVAL, "there is no port %d", number)
	}
	if has(verbs.MaskPKeyIndex) && int(a.PKeyIndex) >= max(1, p.attr.PKeys) {
		return fail(syscall.EINVAL, "port %d has no partition key with index %d", number, a.PKeyIndex)
	}
	if has(verbs.MaskAV) {
		if f := b.address(a.AH); f != nil {
			return f
		}
	}
	if has(verbs.MaskPathMTU) && (!validMTU(a.PathMTU) || a.PathMTU > p.attr.ActiveMTU) {
		return fail(syscall.EINVAL, "%d bytes are no path MTU of a port with %d", a.PathMTU, p.attr.ActiveMTU)
	}
	const bits24, bits5, bits3 = 1<<24 - 1, 1<<5 - 1, 1<<3 - 1
	for _, field := range []struct {
		mask  verbs.QPAttrMask
		name  string
		value int64
		limit int
	}{
		{verbs.MaskDestQPN, "dest_qp_num", int64(a.DestQPN), bits24},
		{verbs.MaskRQPSN, "rq_psn", int64(a.RQPSN), bits24},
		{verbs.MaskSQPSN, "sq_psn", int64(a.SQPSN), bits24},
		{verbs.MaskTimeout, "timeout", int64(a.Timeout), bits5},
		{verbs.MaskMinRNRTimer, "min_rnr_timer", int64(a.MinRNRTimer), bits5},
		{verbs.MaskRetryCount, "retry_cnt", int64(a.RetryCount), bits3},
		{verbs.MaskRNRRetry, "rnr_retry", int64(a.RNRRetry), bits3},
		{verbs.MaskMaxRdAtomic, "max_rd_atomic", int64(a.MaxRdAtomic), b.attr.Limits.MaxQPInitRdAtom},
		{verbs.MaskMaxDestRdAtomic, "max_dest_rd_atomic", int64(a.MaxDestRdAtomic), b.attr.Limits.MaxQPRdAtom},
	} {
		if has(field.mask) {
			if f := above(field.name, field.value, field.limit); f != nil {
				return f
			}
		}
	}
	return nil
}

// merge returns the attributes of a QP after a modification.
func merge(now, a verbs.QPAttr, mask verbs.QPAttrMask) verbs.QPAttr {
	set(&now.PKeyIndex, a.PKeyIndex, mask, verbs.MaskPKeyIndex)
	set(&now.Port, a.Port, mask, verbs.MaskPort)
	set(&now.QKey, a.QKey, mask, verbs.MaskQKey)
	set(&now.AH, a.AH, mask, verbs.MaskAV)
	set(&now.PathMTU, a.PathMTU, mask, verbs.MaskPathMTU)
	set(&now.DestQPN, a.DestQPN, mask, verbs.MaskDestQPN)
	return now // the others have no effect in the simulation
}

func set[T any](field *T, value T, mask, bit verbs.QPAttrMask) {
	if mask&bit != 0 {
		*field = value
	}
}
