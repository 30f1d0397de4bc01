package state

import "testing"

func TestMaxFill(t *testing.T) {
	t.Parallel()
	d := &Device{Limits: []Limit{{"max_qp", 1 << 40}, {"max_qp_wr", 100}, {"max_srq_wr", 300}}}
	if n := d.MaxFill(); n != 300 {
		t.Errorf("%d completions, want 300", n)
	}
	if n := (*Device)(nil).MaxFill() + new(Device).MaxFill(); n != 0 {
		t.Errorf("of unknown devices: %d", n)
	}
}

// A limit is one of objects if it is above nothing and the kernel counts them against it.
func TestLimitOf(t *testing.T) {
	t.Parallel()
	d := &Device{Limits: []Limit{{"max_qp", 1}, {"max_cq", 0}, {"max_ctx", 5}, {"max_cm_id", 5}, {"max_qp_wr", 5}, {"mr", 5}, {"max_pd", 7}}}
	for kind, want := range map[string]int64{"qp": 1, "cq": 0, "ctx": 0, "cm_id": 0, "qp_wr": 0, "mr": 0, "pd": 7, "srq": 0} {
		if got, limited := d.LimitOf(kind); got != want || limited != (want > 0) {
			t.Errorf("%s: %d, %t, want %d", kind, got, limited, want)
		}
	}
}
