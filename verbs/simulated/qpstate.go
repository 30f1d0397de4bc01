package simulated

import (
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

// checkTransition decides whether a QP may go from one state to another with the attributes
// of the mask. The InfiniBand specification requires these masks (ib_modify_qp_is_ok of the
// Linux kernel).
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

// transition returns the attributes that a change of state needs, if it is allowed.
func transition(t verbs.QPType, from, to verbs.QPState) (required verbs.QPAttrMask, ok bool) {
	const (
		index = verbs.MaskPKeyIndex | verbs.MaskPort
		path  = verbs.MaskAV | verbs.MaskPathMTU | verbs.MaskDestQPN | verbs.MaskRQPSN
		retry = verbs.MaskTimeout | verbs.MaskRetryCount | verbs.MaskRNRRetry | verbs.MaskMaxRdAtomic
	)
	// of picks what belongs to the type.
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
	// RESET to ERR is not in the specification's diagram, but every driver allows it.
	return 0, to == verbs.Reset || to == verbs.Err
}

func (q *qp) modify(a verbs.QPAttr, mask verbs.QPAttrMask) *failure {
	if f := checkTransition(q.typ, q.state, a.State, mask); f != nil {
		return f
	}
	has := func(m verbs.QPAttrMask) bool { return mask&m != 0 }
	next := merge(q.attr, a, mask)
	p, ok := q.dev.port(next.Port)
	switch {
	case has(verbs.MaskPort) && !ok:
		return fail(syscall.EINVAL, "there is no port %d", next.Port)
	case has(verbs.MaskPKeyIndex) && int(a.PKeyIndex) >= max(1, p.PKeys):
		return fail(syscall.EINVAL, "port %d has no partition key with index %d", next.Port, a.PKeyIndex)
	case has(verbs.MaskPathMTU) && (a.PathMTU > p.ActiveMTU || !slices.Contains([]int{256, 512, 1024, 2048, 4096}, a.PathMTU)):
		return fail(syscall.EINVAL, "%d bytes are no path MTU of a port with %d", a.PathMTU, p.ActiveMTU)
	}
	if has(verbs.MaskAV) {
		if f := q.dev.address(a.AH); f != nil {
			return f
		}
	}
	q.attr = next
	q.enter(a.State)
	return nil
}

func (q *qp) enter(next verbs.QPState) {
	q.state = next
	switch next {
	case verbs.Reset:
		q.attr = verbs.QPAttr{}
		q.recvs.posted = nil
		q.resets++
	case verbs.Err:
		for len(q.recvs.posted) > 0 {
			q.finishRecv(verbs.WC{ID: q.recvs.pop().ID, Status: verbs.WCWRFlushErr}, false)
		}
	}
}

// merge returns the attributes of a QP after a modification. The other attributes have no
// effect in the simulation.
func merge(now, a verbs.QPAttr, mask verbs.QPAttrMask) verbs.QPAttr {
	set(&now.PKeyIndex, a.PKeyIndex, mask&verbs.MaskPKeyIndex)
	set(&now.Port, a.Port, mask&verbs.MaskPort)
	set(&now.QKey, a.QKey, mask&verbs.MaskQKey)
	set(&now.AH, a.AH, mask&verbs.MaskAV)
	set(&now.DestQPN, a.DestQPN, mask&verbs.MaskDestQPN)
	return now
}

func set[T any](field *T, value T, masked verbs.QPAttrMask) {
	if masked != 0 {
		*field = value
	}
}
