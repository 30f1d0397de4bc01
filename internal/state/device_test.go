package state

import "testing"

func TestMaxFill(t *testing.T) {
	t.Parallel()
	d := &Device{Limits: []Limit{{"max_qp", 1 << 40}, {"max_qp_wr", 100}, {"max_srq_wr", 300}}}
	if n := d.MaxFill(); n != 300 {
		t.Errorf("%d completions, want 300", n)
	}
	if n := (*Device)(nil).MaxFill() + new(Device).MaxFill(); n != 0 {
		t.Errorf("of devices of which nothing is known: %d", n)
	}
}
