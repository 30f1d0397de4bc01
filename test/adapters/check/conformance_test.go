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
// libhns and its driver clamp inline data, and libirdma 44 computes with 32 bits.
var unbounded = map[string][]string{
	"hns":   {"MaxInlineData"},
	"irdma": {"MaxSendWR", "MaxRecvWR"},
}

// TestConformance runs the suite of all providers on those adapters that carry data.
func TestConformance(t *testing.T) {
	ran := false
	for _, a := range adapters(t) {
		if !carriesData[a.of()] || a.is("limited") || a.is("alone") {
			continue
		}
		ran = true
		t.Run(a.spec, func(t *testing.T) {
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
		t.Fatal("none of the machine's paper adapters carries data")
	}
}
