package ceiling_test

import (
	"testing"

	"rdma_exporter/internal/ceiling"
)

func TestVerdict(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name     string
		report   ceiling.Report
		progress string
		verdict  string
	}{
		{
			"ceiling",
			ceiling.Report{
				Device: "mlx5_0", Type: ceiling.QP, QPType: "rc", Phase: ceiling.PhaseEnded, Objects: 130763, Limit: "max_qp", Claimed: number(262144), Before: number(2),
				EndedBy: ceiling.EndDevice, Detail: "ibv_create_qp on mlx5_0: ENOMEM (cannot allocate memory)", Seconds: 31.4, MemoryBytes: 700 << 20, GivenBack: ceiling.ByVerbs, GivingBackSeconds: 12,
			},
			"",
			`mlx5_0: 130,763 RC queue pairs, beside 2 that there were before; the device claims 262,144 (max_qp), of which these are 49.8 %
A ceiling: ended by device: ibv_create_qp on mlx5_0: ENOMEM (cannot allocate memory)
It took 31.4 s and 700 MiB. Everything was given back, in 12 s.
`,
		},
		{
			"climbing",
			ceiling.Report{Device: "rxe0", Type: ceiling.AH, Phase: ceiling.PhaseClimbing, Objects: 1, Left: 1, Claimed: number(32767), MemoryBytes: 4096, EndedBy: ceiling.EndInterrupted, Detail: "it was interrupted", Seconds: 1, GivenBack: ceiling.ByKernel},
			"rxe0: created 1 address handle of 32,767 claimed, 4 KiB",
			`rxe0: 1 address handle; the device claims 32,767 (), of which these are <0.1 %
No ceiling was found: ended by interrupted: it was interrupted
It took 1 s and 4 KiB. The kernel took everything back as the process ended.
`,
		},
		{
			"giving back",
			ceiling.Report{Device: "rxe0", Type: ceiling.SRQ, Phase: ceiling.PhaseGivingBack, Objects: 40000, Left: 12345, Limit: "max_srq", Claimed: number(0), Before: number(0), EndedBy: ceiling.EndMappings, Detail: "why", GivenBack: ceiling.ByKernel, LeftDetail: "there was no time to destroy them"},
			"rxe0: 12,345 shared receive queues left to be given back",
			`rxe0: 40,000 shared receive queues; the device claims none (max_srq is 0)
A ceiling: ended by mappings: why
It took 0 s and 0 bytes. The kernel took everything back as the process ended; 12,345 were not destroyed before: there was no time to destroy them.
`,
		},
		{
			"stuck",
			ceiling.Report{Device: "rxe0", Type: ceiling.CQ, Phase: ceiling.PhaseClimbing, EndedBy: ceiling.EndError, Detail: "ibv_create_cq has not returned for 1m0s", GivenBack: ceiling.NotYet, LeftDetail: "process 7 was killed but has not ended for 10m0s"},
			"rxe0: created 0 completion queues, 0 bytes",
			`rxe0: 0 completion queues
No ceiling was found: ended by error: ibv_create_cq has not returned for 1m0s
It took 0 s and 0 bytes. It has not been given back: process 7 was killed but has not ended for 10m0s
`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.report.Progress(); c.progress != "" && got != c.progress {
				t.Errorf("progress %q, want %q", got, c.progress)
			}
			if got := c.report.Verdict(); got != c.verdict {
				t.Errorf("got\n%s\nwant\n%s", got, c.verdict)
			}
		})
	}
}
