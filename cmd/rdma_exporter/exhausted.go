package main

import (
	"context"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/state"
	"rdma_exporter/verbs"
)

// exhausted tells whether a verb failed because the device has no more objects of a type to
// give, and how many the kernel counts now. Where anything else can be the reason, or the
// kernel does not count them, it tells nothing.
func exhausted(ctx context.Context, s settings, device string, err *verbs.Error) (state.Refused, bool) {
	kind, counted := ceiling.TypeOf(err.Verb)
	if !counted {
		return state.Refused{}, false
	}
	memory, limits, told := bounds(s, device)
	if told != nil {
		return state.Refused{}, false
	}
	if by, _ := ceiling.Refusal(err, kind, memory, limits); by != ceiling.EndDevice {
		return state.Refused{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	u, done, told := usageOf(s, device)
	if told != nil {
		return state.Refused{}, false
	}
	defer done()
	objects, told := inventory.Count(ctx, u.Tables, device, string(kind))
	if told != nil || objects < 1 {
		return state.Refused{}, false
	}
	return state.Refused{Type: string(kind), Verb: string(err.Verb), Errno: verbs.ErrnoName(err.Errno), Objects: objects}, true
}
