package simulated

import (
	"fmt"
	"slices"
	"strings"
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

// use returns an error if the object is closed. Call it before arguments are checked, because
// a closed object is the better reason.
func (o *object) use() error {
	if o.closed {
		return fmt.Errorf("%s of %s: %w", o.kind, o.dev.hw.name, verbs.ErrClosed)
	}
	return nil
}

func useAll(objects ...*object) error {
	for _, o := range objects {
		if err := o.use(); err != nil {
			return err
		}
	}
	return nil
}

func (o *object) invalid(v verbs.Verb, format string, args ...any) error {
	return fail(syscall.EINVAL, format, args...).of(v, o.dev.hw.name)
}

// call calls a verb on the object.
func (o *object) call(v verbs.Verb, effect func(int) *failure) error {
	return o.callOn(Call{GID: -1}, v, effect)
}

func (o *object) callOn(about Call, v verbs.Verb, effect func(int) *failure) error {
	if err := o.use(); err != nil {
		return err
	}
	return o.dev.hw.callOn(about, v, effect)
}

// create calls a verb that creates an object. It returns nothing if the verb fails.
func create[T any](by *object, about Call, v verbs.Verb, made T, effect func(short int) *failure) (result T, err error) {
	if err := by.callOn(about, v, effect); err != nil {
		return result, err
	}
	return made, nil
}

// query calls a verb that only returns something.
func query[T any](of *object, about Call, v verbs.Verb, answer func(short int) (T, *failure)) (result T, err error) {
	err = of.callOn(about, v, func(short int) (f *failure) {
		result, f = answer(short)
		return f
	})
	return result, err
}

// admit adds a new object to the tree, unless the device has too many of its kind.
func (h *hardware) admit(o *object, entries int, parents ...*object) *failure {
	if f := h.behaviour.admits(o.kind, h.live[o.kind]); f != nil {
		return f
	}
	h.live[o.kind]++
	for _, p := range parents {
		if !slices.Contains(o.parents, p) {
			o.parents = append(o.parents, p)
			p.users[o.kind]++
		}
	}
	cost := h.behaviour.cost(o.kind, entries)
	o.dev.spent.Virtual += cost.Virtual
	o.dev.spent.Locked += cost.Locked
	return nil
}

func (h *hardware) dismiss(o *object) {
	o.closed = true
	h.live[o.kind]--
	for _, p := range o.parents {
		p.users[o.kind]--
	}
}

// destroy closes the object with a verb, and then calls gone. If the verb is refused, the
// object does not change.
func (o *object) destroy(v verbs.Verb, gone func()) error {
	if o.closed {
		return nil
	}
	hw := o.dev.hw
	return hw.call(v, func(int) *failure {
		if f := hw.behaviour.refusesDestroy(o); f != nil {
			return f
		}
		hw.dismiss(o)
		gone()
		return nil
	})
}

// usage lists the users of the object.
func (o *object) usage() string {
	var users []string
	for k, n := range o.users {
		if n > 0 {
			users = append(users, fmt.Sprintf("%s: %d", kind(k), n))
		}
	}
	return strings.Join(users, ", ")
}

// pd implements verbs.PD (struct ibv_pd).
type pd struct{ object }

func (d *device) AllocPD() (verbs.PD, error) {
	p := &pd{object{kind: kindPD, dev: d}}
	return create[verbs.PD](&d.object, Call{GID: -1}, verbs.AllocPD, p, func(int) *failure {
		return d.hw.admit(&p.object, 0, &d.object)
	})
}

func (p *pd) Close() error { return p.destroy(verbs.DeallocPD, func() {}) }

// ah implements verbs.AH (struct ibv_ah).
type ah struct {
	object
	attr verbs.AHAttr
}

func (p *pd) CreateAH(attr verbs.AHAttr) (verbs.AH, error) {
	hw := p.dev.hw
	a := &ah{object: object{kind: kindAH, dev: p.dev}, attr: attr}
	return create[verbs.AH](&p.object, Call{GID: -1}.by(attr), verbs.CreateAH, a, func(int) *failure {
		if hw.behaviour.attr.Limits.MaxAH > 0 {
			if f := hw.behaviour.address(attr); f != nil {
				return f
			}
		}
		return hw.admit(&a.object, 0, &p.dev.object, &p.object)
	})
}

func (a *ah) Close() error { return a.destroy(verbs.DestroyAH, func() {}) }

// recvQueue is the receive queue of a QP or an SRQ.
type recvQueue struct {
	pd            *pd
	maxWR, maxSGE uint32
	posted        []verbs.RecvWR
}

func (r *recvQueue) post(wr verbs.RecvWR) *failure {
	if len(wr.SGEs) > int(r.maxSGE) {
		return fail(syscall.EINVAL, "%d scatter elements are more than %d", len(wr.SGEs), r.maxSGE)
	}
	if len(r.posted) >= int(r.maxWR) {
		return fail(syscall.ENOMEM, "the receive queue is full (%d)", r.maxWR)
	}
	wr.SGEs = slices.Clone(wr.SGEs) // the caller may use its slice again
	r.posted = append(r.posted, wr)
	return nil
}

// pop takes the oldest work request, which must exist.
func (r *recvQueue) pop() verbs.RecvWR {
	wr := r.posted[0]
	r.posted = r.posted[1:]
	return wr
}
