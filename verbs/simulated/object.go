package simulated

import (
	"fmt"
	"slices"
	"syscall"

	"rdma_exporter/verbs"
)

type kind int

const (
	kindDevice kind = iota
	kindPD
	kindMR
	kindAH
	kindChannel
	kindCQ
	kindSRQ
	kindQP
	kinds
)

func (k kind) String() string {
	return [kinds]string{
		"device", "protection domain", "memory region", "address handle",
		"completion channel", "CQ", "SRQ", "QP",
	}[k]
}

// object is the common part of all objects: the place in the tree of objects, and the end.
type object struct {
	kind    kind
	dev     *device
	closed  bool
	parents []*object
	users   [kinds]int // how many objects of each kind have this one as a parent
}

func (o *object) base() *object { return o }

// use returns an error if an object is closed. Call it before arguments are checked, because
// a closed object is the better reason.
func use(objects ...*object) error {
	for _, o := range objects {
		if o.closed {
			return fmt.Errorf("%s of %s: %w", o.kind, o.dev.name, verbs.ErrClosed)
		}
	}
	return nil
}

func (o *object) use() error { return use(o) }

func (o *object) invalid(v verbs.Verb, format string, args ...any) error {
	return fail(syscall.EINVAL, format, args...).of(v, o.dev.name)
}

func (o *object) call(v verbs.Verb, about Call, effect func(int) *failure) error {
	if err := o.use(); err != nil {
		return err
	}
	return o.dev.hardware.call(v, about, effect)
}

func create[T any](by *object, v verbs.Verb, about Call, made T, effect func(short int) *failure) (result T, err error) {
	if err := by.call(v, about, effect); err != nil {
		return result, err
	}
	return made, nil
}

func query[T any](of *object, v verbs.Verb, about Call, answer func(short int) (T, *failure)) (result T, err error) {
	err = of.call(v, about, func(short int) (f *failure) {
		result, f = answer(short)
		return f
	})
	return result, err
}

func (h *hardware) admit(o *object, entries int, parents ...*object) *failure {
	if f := h.admits(o.kind, h.live[o.kind]); f != nil {
		return f
	}
	h.live[o.kind]++
	for _, p := range parents {
		if !slices.Contains(o.parents, p) {
			o.parents = append(o.parents, p)
			p.users[o.kind]++
		}
	}
	cost := h.cost(o.kind, entries)
	o.dev.spent.Virtual += cost.Virtual
	o.dev.spent.Locked += cost.Locked
	return nil
}

// destroy closes the object with a verb, and then calls gone. If the verb is refused, the
// object does not change.
func (o *object) destroy(v verbs.Verb, gone func()) error {
	if o.closed {
		return nil
	}
	return o.call(v, Call{}, func(int) *failure {
		if f := o.dev.refusesDestroy(o); f != nil {
			return f
		}
		o.closed = true
		o.dev.live[o.kind]--
		for _, p := range o.parents {
			p.users[o.kind]--
		}
		gone()
		return nil
	})
}

// own returns an object as its type, and adds it to those used. It reports whether the object
// is nil or one of the device.
func own[T interface{ base() *object }](d *device, o any, used *[]*object) (result T, ok bool) {
	if o == nil {
		return result, true
	}
	if result, ok = o.(T); !ok || result.base().dev != d {
		return result, false
	}
	*used = append(*used, result.base())
	return result, true
}

type pd struct{ object }

func (d *device) AllocPD() (verbs.PD, error) {
	p := &pd{object{kind: kindPD, dev: d}}
	return create[verbs.PD](&d.object, verbs.AllocPD, Call{}, p, func(int) *failure {
		return d.admit(&p.object, 0, &d.object)
	})
}

func (p *pd) Close() error { return p.destroy(verbs.DeallocPD, func() {}) }

type ah struct {
	object
	attr verbs.AHAttr
}

func (p *pd) CreateAH(attr verbs.AHAttr) (verbs.AH, error) {
	a := &ah{object: object{kind: kindAH, dev: p.dev}, attr: attr}
	return create[verbs.AH](&p.object, verbs.CreateAH, Call{}.by(attr), a, func(int) *failure {
		if p.dev.attr.Limits.MaxAH > 0 { // without address handles, admit refuses
			if f := p.dev.address(attr); f != nil {
				return f
			}
		}
		return p.dev.admit(&a.object, 0, &p.dev.object, &p.object)
	})
}

func (a *ah) Close() error { return a.destroy(verbs.DestroyAH, func() {}) }
