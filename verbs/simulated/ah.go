package simulated

import "rdma_exporter/verbs"

// ah implements verbs.AH (struct ibv_ah).
type ah struct {
	object
	pd   *pd
	attr verbs.AHAttr
}

// CreateAH implements verbs.PD (ibv_create_ah).
func (p *pd) CreateAH(attr verbs.AHAttr) (verbs.AH, error) {
	if err := p.use(); err != nil {
		return nil, err
	}
	hw := p.dev.hw
	a := &ah{object: object{kind: kindAH, dev: p.dev}, pd: p, attr: attr}
	err := hw.callOn(a.facts(), verbs.CreateAH, func(int) *failure {
		if hw.behaviour.attr.Limits.MaxAH > 0 {
			if f := hw.behaviour.address(attr); f != nil {
				return f
			}
		}
		return hw.admit(&a.object, 0, &p.dev.object, &p.object)
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Close implements verbs.AH (ibv_destroy_ah).
func (a *ah) Close() error { return a.destroy(verbs.DestroyAH, func() {}) }

// facts returns what there is to know of a call on the address handle.
func (a *ah) facts() facts {
	var f facts
	f.by(a.attr)
	return f
}
