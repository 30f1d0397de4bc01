package simulated

import (
	"syscall"

	"rdma_exporter/verbs"
)

// transition is one that the state machine of a QP allows, with the attributes
// that it needs and those that it takes.
type transition struct {
	required, optional verbs.QPAttrMask
}

// checkTransition decides whether a QP may go from one state to another with the
// attributes of the mask. The masks are those of the InfiniBand specification,
// as ib_modify_qp_is_ok of the Linux kernel has them.
func checkTransition(t verbs.QPType, from, to verbs.QPState, mask verbs.QPAttrMask) *failure {
	tr, ok := transitionOf(t, from, to)
	if !ok {
		return fail(syscall.EINVAL, "a %s queue pair cannot go from %s to %s", t, from, to)
	}
	if missing := tr.required &^ mask; missing != 0 {
		return fail(syscall.EINVAL, "from %s to %s, attributes %#x of the mask are missing", from, to, missing)
	}
	if extra := mask &^ (tr.required | tr.optional | verbs.MaskState); extra != 0 {
		return fail(syscall.EINVAL, "from %s to %s, attributes %#x of the mask are not allowed", from, to, extra)
	}
	return nil
}

// transitionOf returns the transition, and whether it is allowed.
func transitionOf(t verbs.QPType, from, to verbs.QPState) (transition, bool) {
	const (
		pkey   = verbs.MaskPKeyIndex
		port   = verbs.MaskPort
		qkey   = verbs.MaskQKey
		access = verbs.MaskAccess
		path   = verbs.MaskAV | verbs.MaskPathMTU | verbs.MaskDestQPN | verbs.MaskRQPSN
		rnr    = verbs.MaskMinRNRTimer
		retry  = verbs.MaskTimeout | verbs.MaskRetryCount | verbs.MaskRNRRetry | verbs.MaskMaxRdAtomic
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
	if from < verbs.Reset || from > verbs.Err || to < verbs.Reset || to > verbs.Err {
		return transition{}, false
	}
	// What RTS takes, coming from RTR, SQD, SQE or itself.
	ready := of(access|rnr, access, qkey, 0)
	switch [2]verbs.QPState{from, to} {
	case [2]verbs.QPState{verbs.Reset, verbs.Init}:
		return transition{required: of(pkey|port|access, pkey|port|access, pkey|port|qkey, port)}, true
	case [2]verbs.QPState{verbs.Init, verbs.Init}:
		return transition{optional: of(pkey|port|access, pkey|port|access, pkey|port|qkey, 0)}, true
	case [2]verbs.QPState{verbs.Init, verbs.RTR}:
		return transition{
			required: of(path|verbs.MaskMaxDestRdAtomic|rnr, path, 0, 0),
			optional: of(access|pkey, access|pkey, pkey|qkey, 0),
		}, true
	case [2]verbs.QPState{verbs.RTR, verbs.RTS}:
		return transition{
			required: of(retry|verbs.MaskSQPSN, verbs.MaskSQPSN, verbs.MaskSQPSN, 0),
			optional: ready,
		}, true
	case [2]verbs.QPState{verbs.RTS, verbs.RTS}, [2]verbs.QPState{verbs.SQD, verbs.RTS}:
		return transition{optional: ready}, true
	case [2]verbs.QPState{verbs.SQE, verbs.RTS}:
		return transition{optional: ready}, t != verbs.RC
	case [2]verbs.QPState{verbs.RTS, verbs.SQD}:
		return transition{}, t != verbs.RawPacket
	case [2]verbs.QPState{verbs.SQD, verbs.SQD}:
		return transition{optional: of(
			port|verbs.MaskAV|retry|verbs.MaskMaxDestRdAtomic|access|pkey|rnr,
			verbs.MaskAV|access|pkey, pkey|qkey, 0,
		)}, t != verbs.RawPacket
	}
	// From everywhere to RESET and ERR, which take no attributes. RESET to ERR is
	// not in the specification's figure, but every driver allows it.
	return transition{}, to == verbs.Reset || to == verbs.Err
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
	set(&now.Access, a.Access, mask, verbs.MaskAccess)
	set(&now.PKeyIndex, a.PKeyIndex, mask, verbs.MaskPKeyIndex)
	set(&now.Port, a.Port, mask, verbs.MaskPort)
	set(&now.QKey, a.QKey, mask, verbs.MaskQKey)
	set(&now.AH, a.AH, mask, verbs.MaskAV)
	set(&now.PathMTU, a.PathMTU, mask, verbs.MaskPathMTU)
	set(&now.DestQPN, a.DestQPN, mask, verbs.MaskDestQPN)
	set(&now.RNRRetry, a.RNRRetry, mask, verbs.MaskRNRRetry)
	return now // the others have no effect in the simulation
}

func set[T any](field *T, value T, mask, bit verbs.QPAttrMask) {
	if mask&bit != 0 {
		*field = value
	}
}
