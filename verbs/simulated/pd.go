package simulated

import (
	"rdma_exporter/verbs"
)

// pd implements verbs.PD (struct ibv_pd).
type pd struct {
	object
}

// AllocPD implements verbs.Device (ibv_alloc_pd).
func (d *device) AllocPD() (verbs.PD, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	p := &pd{object{kind: kindPD, dev: d}}
	err := d.hw.call(verbs.AllocPD, func(int) *failure {
		return d.hw.admit(&p.object, 0, &d.object)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Close implements verbs.PD (ibv_dealloc_pd).
func (p *pd) Close() error { return p.destroy(verbs.DeallocPD, func() {}) }
