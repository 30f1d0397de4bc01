//go:build vm

package check

import (
	"testing"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/ibverbs"
	"rdma_exporter/verbs/verbstest"
)

// unsupported are the types of queue pair that a vendor's adapters do not offer.
var unsupported = map[string][]verbs.QPType{
	"bnxt_re": {verbs.UC},
	"efa":     {verbs.RC, verbs.UC},
	"efa_eq":  {verbs.RC, verbs.UC},
	"erdma":   {verbs.UC, verbs.UD},
	"hns":     {verbs.UC},
	"irdma":   {verbs.UC},
	"mana":    {verbs.UC, verbs.UD},
	"qedr":    {verbs.UC, verbs.UD},
}

// unbounded are the sizes of queue pairs that a vendor's adapters take any number for:
// libhns and its driver clamp inline data, and libirdma 44 and libmlx5 compute with 32
// bits.
var unbounded = map[string][]string{
	"hns":   {"MaxInlineData"},
	"irdma": {"MaxSendWR", "MaxRecvWR"},
	"mlx5":  {"MaxInlineData"},
}

// excused are the vendors whose library the suite cannot be run on, each with what it
// does that the suite takes for impossible.
var excused = map[string]string{
	"bnxt_re": "ibv_post_recv on a queue pair with an SRQ ends the process in libbnxt_re",
	"efa":     "ibv_req_notify_cq on a CQ without a channel ends the process in libefa",
	"efa_eq":  "ibv_req_notify_cq on a CQ without a channel ends the process in libefa",
	"erdma":   "without rdma_cm nothing is connected",
	"mana":    "libmana 44 creates no CQ without allocators of its own",
	"qedr":    "what is flushed of a queue pair that was not in RTS never completes",
}

// TestConformance runs the suite of all providers on the adapters.
func TestConformance(t *testing.T) {
	ran := false
	for _, a := range adapters(t) {
		if a.is("limited") || a.is("alone") || a.is("down") {
			continue // the suite takes the first P_Key, and wants a QP that was ready to send
		}
		ran = ran || excused[a.of()] == ""
		t.Run(a.spec, func(t *testing.T) {
			if why := excused[a.of()]; why != "" {
				t.Skip(why)
			}
			verbstest.Run(t, verbstest.Config{
				New:         ibverbs.New,
				Device:      a.name,
				PortActive:  !a.is("down"),
				Unsupported: unsupported[a.of()],
				Unbounded:   unbounded[a.of()],
				// Of Linux 6.1's irdma: see irdma.c.
				SingleUse:       a.of() == "irdma",
				SignalAllUntold: a.of() == "irdma",
			})
		})
	}
	if !ran {
		t.Fatal("the suite can be run on none of the machine's paper adapters")
	}
}
