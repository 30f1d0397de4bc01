package simulated

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	kinds
)

// String returns what messages call an object of the kind.
func (k kind) String() string {
	return [kinds]string{
		"device", "protection domain", "memory region", "address handle",
		"completion channel", "CQ", "SRQ", "QP",
	}[k]
}

// object is what all objects have in common: its place in the tree of objects,
// and that its use and its destruction exclude each other.
type object struct {
	kind   kind
	dev    *device
	serial uint64 // in the order of creation

	life   sync.RWMutex
	closed bool // guarded by life

	// The rest is guarded by the lock of the hardware.
	parents []*object
	users   [kinds]int // how many objects of each kind have this one as a parent
	gone    bool       // as closed, for what may still refer to the object
	refused bool       // its destruction, at least once
}

// use keeps the object from being destroyed until done is called. It fails if
// the object is closed; done must not be called then.
func (o *object) use() error {
	o.life.RLock()
	if o.closed {
		o.life.RUnlock()
		return fmt.Errorf("%s of %s: %w", o.kind, o.dev.hw.name, verbs.ErrClosed)
	}
	return nil
}

func (o *object) done() { o.life.RUnlock() }

// alive returns the error of use, without keeping the object from anything. It
// goes before the check of arguments, since a closed object is the better reason.
func (o *object) alive() error {
	err := o.use()
	if err == nil {
		o.done()
	}
	return err
}

// newObject returns an object of a device.
func newObject(k kind, d *device) object {
	return object{kind: k, dev: d, serial: d.hw.serial.Add(1)}
}

// useAll is use for several objects at once. One that is given twice is locked
// once, since a second read lock would wait for ever behind a waiting Close. The
// order of the locks is the same for everybody, for the same reason: of two
// users, each could hold what a Close waits for before which the other waits.
func useAll(objects ...*object) (done func(), err error) {
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b *object) int { return cmp.Compare(a.serial, b.serial) })
	var held []*object
	release := func() {
		for _, o := range held {
			o.done()
		}
	}
	for _, o := range objects {
		if slices.Contains(held, o) {
			continue
		}
		if err := o.use(); err != nil {
			release()
			return nil, err
		}
		held = append(held, o)
	}
	return release, nil
}

// invalid returns the error for an argument that no verb can be called with.
func (o *object) invalid(v verbs.Verb, format string, args ...any) error {
	return fail(syscall.EINVAL, format, args...).of(v, o.dev.hw.name)
}

// admit gives a new object its place in the tree and counts what it costs, but for a
// device, whose cost nobody could ask for,
// unless the device has too many of its kind. The lock of the hardware is held.
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
	if o.kind != kindDevice {
		cost := h.behaviour.cost(o.kind, entries)
		o.dev.spent.Virtual += cost.Virtual
		o.dev.spent.Locked += cost.Locked
	}
	return nil
}

// dismiss takes the object out of the tree. The lock of the hardware is held.
func (h *hardware) dismiss(o *object) {
	o.gone = true
	h.live[o.kind]--
	for _, p := range o.parents {
		p.users[o.kind]--
	}
}

// ending is what is special about the end of an object. Both functions may be
// nil, and are called under the lock of the hardware.
type ending struct {
	// refused decides whether the object cannot be destroyed for another reason
	// than those who use it.
	refused func() *failure
	// gone is called when the object is destroyed.
	gone func()
}

// destroy closes the object with a verb. If the verb is refused, the object
// stays as it was.
func (o *object) destroy(v verbs.Verb, end ending) error {
	o.life.Lock()
	defer o.life.Unlock()
	return o.destroyLocked(v, end)
}

// destroyLocked is destroy for a caller that holds life.
func (o *object) destroyLocked(v verbs.Verb, end ending) error {
	if o.closed {
		return nil
	}
	hw := o.dev.hw
	err := hw.call(v, func(int) *failure {
		if end.refused != nil {
			if f := end.refused(); f != nil {
				return f
			}
		}
		if f := hw.behaviour.refusesDestroy(o); f != nil {
			o.refused = true
			return f
		}
		hw.dismiss(o)
		if end.gone != nil {
			end.gone()
		}
		return nil
	})
	if err != nil {
		return err
	}
	o.closed = true
	return nil
}

// usage says who uses the object; empty if nobody does. The lock of the hardware
// is held.
func (o *object) usage() string {
	var users []string
	for k, n := range o.users {
		if n > 0 {
			users = append(users, fmt.Sprintf("%s: %d", kind(k), n))
		}
	}
	return strings.Join(users, ", ")
}
