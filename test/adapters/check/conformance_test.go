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
			})
		})
	}
	if !ran {
		t.Fatal("none of the machine's paper adapters carries data")
	}
}
