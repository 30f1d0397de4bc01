package simulated

import (
	"math/bits"

	"rdma_exporter/verbs"
)

// The ways in which a device rounds sizes.
const (
	// RoundingExact gives every size as requested.
	RoundingExact = "exact"
	// RoundingRXE is that of Soft-RoCE: queues of a power of two less one, which only a
	// query reports of SRQs and QPs. Send elements and inline data share their space.
	RoundingRXE = "rxe"
	// RoundingIB is that of an InfiniBand adapter: queues of a power of two, less one for
	// CQs and SRQs, and inline data in multiples of 16 bytes.
	RoundingIB = "ib"
)

// rounding holds the rules of a device. Nil is exact.
type rounding struct {
	queue, qpQueue, inline func(uint32) uint32
	// queried is true if creation reports SRQs and QPs as requested.
	queried bool
	// shared is true if the send elements of a QP, of 16 bytes each, and its inline data
	// share their space, so that both fill the larger of the two.
	shared bool
}

func roundingOf(name string) rounding {
	powerOfTwo := func(n uint32) uint32 { return 1 << bits.Len32(n-1) }
	lessOne := func(n uint32) uint32 { return 1<<bits.Len32(n) - 1 }
	sixteens := func(n uint32) uint32 { return (n + 15) / 16 * 16 }
	switch name {
	case RoundingRXE:
		return rounding{queue: lessOne, qpQueue: lessOne, queried: true, shared: true}
	case RoundingIB:
		return rounding{queue: lessOne, qpQueue: powerOfTwo, inline: sixteens}
	default:
		return rounding{}
	}
}

// size is what creation and queries report about a size, and what it really is.
type size struct{ created, queried, real uint32 }

// round rounds a requested size up to the limit at most. Zero stays zero. If queried,
// creation reports the size as requested.
func round(rule func(uint32) uint32, requested uint32, limit int, queried bool) size {
	n := requested
	if rule != nil && n > 0 {
		n = min(rule(n), max(n, uint32(limit)))
	}
	if queried {
		return size{created: requested, queried: n, real: n}
	}
	return size{created: n, queried: n, real: n}
}

// misreport makes the reports about a size wrong if the device breaks a contract about it.
// The real size stays. Whether creation and query agree does not depend on the size.
func (b *behaviour) misreport(s *size, requested uint32, atLeastRequested, reportsActual string) {
	if requested == 0 {
		return
	}
	same := s.queried == s.created
	if b.breaks(atLeastRequested) {
		s.created = requested - 1
		if same {
			s.queried = s.created
		}
	}
	if b.breaks(reportsActual) && same {
		s.queried = max(requested, s.created) + 1
	}
}

// sizes are what creation and queries report about an object's sizes, and what they are.
type sizes[T any] struct{ created, queried, real T }

// qpSizes puts the sizes of a QP together.
func qpSizes(sendWR, recvWR, sendSGE, recvSGE, inline size) sizes[verbs.QPCap] {
	pick := func(of func(size) uint32) verbs.QPCap {
		return verbs.QPCap{
			MaxSendWR: of(sendWR), MaxRecvWR: of(recvWR), MaxSendSGE: of(sendSGE), MaxRecvSGE: of(recvSGE), MaxInlineData: of(inline),
		}
	}
	return sizes[verbs.QPCap]{
		created: pick(func(s size) uint32 { return s.created }),
		queried: pick(func(s size) uint32 { return s.queried }),
		real:    pick(func(s size) uint32 { return s.real }),
	}
}
