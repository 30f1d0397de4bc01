package verbstest

import (
	"slices"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

func TestRecorderVerdict(t *testing.T) {
	minusTwentyTwo := -22
	for _, tt := range []struct {
		name  string
		calls func(r *recorder)
		want  []string
	}{
		{
			name: "paired",
			calls: func(r *recorder) {
				r.Begin(verbs.AllocPD)
				r.End(verbs.Call{Verb: verbs.AllocPD, Errno: syscall.ENOMEM})
				r.Begin(verbs.AllocPD)
				r.End(verbs.Call{Verb: verbs.AllocPD, Duration: 1})
			},
		},
		{
			name:  "not ended",
			calls: func(r *recorder) { r.Begin(verbs.PollCQ) },
			want:  []string{"Begin(ibv_poll_cq) without End"},
		},
		{
			name:  "not begun",
			calls: func(r *recorder) { r.End(verbs.Call{Verb: verbs.PollCQ}) },
			want:  []string{"End(ibv_poll_cq) without Begin"},
		},
		{
			name: "another verb's end",
			calls: func(r *recorder) {
				r.Begin(verbs.CreateCQ)
				r.End(verbs.Call{Verb: verbs.CreateQP})
			},
			want: []string{"End(ibv_create_qp) without Begin", "Begin(ibv_create_cq) without End"},
		},
		{
			name: "nested",
			calls: func(r *recorder) {
				r.Begin(verbs.CreateCQ)
				r.Begin(verbs.CreateQP)
				r.End(verbs.Call{Verb: verbs.CreateQP})
				r.End(verbs.Call{Verb: verbs.CreateCQ})
			},
			want: []string{"Begin(ibv_create_qp) inside ibv_create_cq"},
		},
		{
			name: "unknown verb",
			calls: func(r *recorder) {
				r.Begin("ibv_dance")
				r.End(verbs.Call{Verb: "ibv_dance"})
			},
			want: []string{"Begin(ibv_dance): no such verb"},
		},
		{
			name: "negative duration and errno",
			calls: func(r *recorder) {
				r.Begin(verbs.PostRecv)
				r.End(verbs.Call{Verb: verbs.PostRecv, Duration: -1, Errno: syscall.Errno(minusTwentyTwo)})
			},
			want: []string{
				"End(ibv_post_recv): negative duration -1ns",
				"End(ibv_post_recv): -22 is no positive errno",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{}
			tt.calls(r)
			if got := r.verdict(); !slices.Equal(got, tt.want) {
				t.Errorf("verdict = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRecorderSince(t *testing.T) {
	r := &recorder{}
	call := func(v verbs.Verb, errno syscall.Errno) {
		r.Begin(v)
		r.End(verbs.Call{Verb: v, Errno: errno})
	}
	call(verbs.CreateCQ, 0)
	mark := r.mark()
	call(verbs.DestroyCQ, syscall.EBUSY)
	call(verbs.CreateCQ, syscall.ENOMEM)
	got := r.since(mark, verbs.CreateCQ)
	if len(got) != 1 || got[0].Errno != syscall.ENOMEM {
		t.Errorf("since = %v, want the one call that failed with ENOMEM", got)
	}
	if in := r.inside(); in != "no verb" {
		t.Errorf("inside = %q", in)
	}
	r.Begin(verbs.DestroyCQ)
	if in := r.inside(); in != "ibv_destroy_cq" {
		t.Errorf("inside = %q", in)
	}
}
