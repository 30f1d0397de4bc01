package simulated

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"rdma_exporter/verbs"
)

// kind is the kind of an object.
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
	kindXRCD
	kinds
)

// String returns what messages call an object of the kind.
func (k kind) String() string {
	return [kinds]string{
		"device", "protection domain", "memory region", "address handle",
		"completion channel", "CQ", "SRQ", "QP", "XRC domain",
	}[k]
}

// object is what all objects have in common: its place in the tree of objects, and
// its end.
type object struct {
	kind    kind
	dev     *device
	closed  bool
	parents []*object
	users   [kinds]int // how many objects of each kind have this one as a parent
	groups  []group    // multicast groups that it is attached to, if it is a QP
	refused bool       // its destruction, at least once
}

// use returns an error if the object is closed. It goes before the check of
// arguments, since a closed object is the better reason.
func (o *object) use() error {
	if o.closed {
		return fmt.Errorf("%s of %s: %w", o.kind, o.dev.hw.name, verbs.ErrClosed)
	}
	return nil
}

// useAll is use for several objects at once.
func useAll(objects ...*object) error {
	for _, o := range objects {
		if err := o.use(); err != nil {
			return err
		}
	}
	return nil
}

// invalid returns the error for an argument that no verb can be called with.
func (o *object) invalid(v verbs.Verb, format string, args ...any) error {
	return fail(syscall.EINVAL, format, args...).of(v, o.dev.hw.name)
}

// admit gives a new object its place in the tree, unless the device has too many of its
// kind, and counts what it costs.
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

// dismiss takes the object out of the tree.
func (h *hardware) dismiss(o *object) {
	o.closed = true
	h.live[o.kind]--
	for _, p := range o.parents {
		p.users[o.kind]--
	}
}

// destroy closes the object with a verb, and then calls gone. If the verb is refused,
// the object stays as it was.
func (o *object) destroy(v verbs.Verb, gone func()) error {
	if o.closed {
		return nil
	}
	hw := o.dev.hw
	return hw.call(v, func(int) *failure {
		if f := hw.behaviour.refusesDestroy(o); f != nil {
			o.refused = true
			return f
		}
		hw.dismiss(o)
		gone()
		return nil
	})
}

// usage says who uses the object; empty if nobody does.
func (o *object) usage() string {
	var users []string
	for k, n := range o.users {
		if n > 0 {
			users = append(users, fmt.Sprintf("%s: %d", kind(k), n))
		}
	}
	return strings.Join(users, ", ")
}
