package verbs_test

import (
	"testing"

	"rdma_exporter/verbs"
)

func TestMemorySince(t *testing.T) {
	for _, test := range []struct {
		name                string
		before, after, want verbs.Memory
	}{
		{
			name:   "nothing",
			before: verbs.Memory{Virtual: 1 << 30, Locked: 4096, Runtime: 1 << 20},
			after:  verbs.Memory{Virtual: 1 << 30, Locked: 4096, Runtime: 1 << 20},
		}, {
			name:   "an object",
			before: verbs.Memory{Virtual: 1 << 30, Runtime: 1 << 20},
			after:  verbs.Memory{Virtual: 1<<30 + 8192, Locked: 4096, Runtime: 1 << 20},
			want:   verbs.Memory{Virtual: 8192, Locked: 4096},
		}, {
			name:   "the runtime alone",
			before: verbs.Memory{Virtual: 1 << 30, Runtime: 1 << 20},
			after:  verbs.Memory{Virtual: 1<<30 + 256<<10, Runtime: 1<<20 + 256<<10},
			want:   verbs.Memory{Runtime: 256 << 10},
		}, {
			name:   "an object and two chunks of the runtime, which fills another besides",
			before: verbs.Memory{Virtual: 1 << 30, Runtime: 1 << 20},
			after:  verbs.Memory{Virtual: 1<<30 + 512<<10 + 8192, Runtime: 1<<20 + 512<<10 + 4096},
			want:   verbs.Memory{Virtual: 8192, Runtime: 512<<10 + 4096},
		}, {
			name:   "less of each",
			before: verbs.Memory{Virtual: 1 << 30, Locked: 8192, Runtime: 1 << 20},
			after:  verbs.Memory{Virtual: 1 << 29, Locked: 4096, Runtime: 1 << 19},
		}, {
			name:   "less than the runtime took: something was given back meanwhile",
			before: verbs.Memory{Virtual: 1 << 30, Runtime: 1 << 20},
			after:  verbs.Memory{Virtual: 1<<30 + 8192, Runtime: 1<<20 + 256<<10},
			want:   verbs.Memory{Runtime: 256 << 10},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.after.Since(test.before); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
