package health_test

import (
	"fmt"
	"slices"
	"testing"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
)

// BenchmarkJudge measures the judgement of a host with 64 devices: of a snapshot that was
// judged before, of one in which one device has changed, and of one in which all have.
func BenchmarkJudge(b *testing.B) {
	for _, changed := range []int{0, 1, 64} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			j := health.New(health.Default(), health.History{})
			s := apitest.Many(64, 64).Snapshot
			j.Evaluate(s)
			b.ReportAllocs()
			for b.Loop() {
				if changed > 0 {
					s = &state.Snapshot{Provider: s.Provider, Ready: true, Devices: slices.Clone(s.Devices)}
					for i := range changed {
						s.Devices[i].Failures++
					}
				}
				j.Evaluate(s)
			}
		})
	}
}
