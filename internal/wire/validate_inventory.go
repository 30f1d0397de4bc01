package wire

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// maxCount is more than there can be of anything, and small enough for sums.
const maxCount = 1 << 48

// maxPath is the longest path that the kernel takes, in bytes.
const maxPath = 4096

func validateInventory(i *state.Inventory) error {
	for _, n := range []int{
		len(i.Objects), len(i.QueuePairs), len(i.CQEntries), len(i.MRBytes), len(i.Owners),
		len(i.Left), len(i.Cgroups), len(i.Incomplete),
	} {
		if n > maxItems {
			return fmt.Errorf("%w: an inventory has a list of %d", ErrTooLarge, n)
		}
	}
	for _, list := range [][]state.TypeCount{i.Others, i.Ownerless, i.Untraced} {
		if err := validateTypes(list); err != nil {
			return err
		}
	}
	c := checked{seen: make(map[any]bool)}
	for _, o := range i.Objects {
		c.word(o.Type, slices.Contains(state.ResourceTypes(), o.Type))
		c.word(string(o.Owner), slices.Contains(state.OwnerKinds(), o.Owner))
		c.count(o.Objects)
		c.once([3]string{"objects", o.Type, string(o.Owner)})
	}
	for _, q := range i.QueuePairs {
		c.word(q.Type, isLabel(q.Type))
		c.word(q.State, isLabel(q.State))
		c.count(q.Objects)
		c.once([3]string{"queue pairs", q.Type, q.State})
	}
	c.count(i.PassingErrors)
	for name, sums := range map[string][]state.OwnerSum{"cq_entries": i.CQEntries, "mr_bytes": i.MRBytes} {
		for _, s := range sums {
			c.word(string(s.Owner), slices.Contains(state.OwnerKinds(), s.Owner))
			c.bytes(s.Sum)
			c.once([2]string{name, string(s.Owner)})
		}
	}
	if u := i.UnfillableCQs; u != nil {
		c.count(u.Objects, u.Entries, u.Largest, int64(u.PID))
	}
	for _, o := range i.Owners {
		c.err(validateOwner(&o))
		c.once(o.PID)
	}
	if len(i.Orphans) > state.MaxOrphans {
		return fmt.Errorf("%w: an inventory has %d orphans", ErrTooLarge, len(i.Orphans))
	}
	for _, o := range i.Orphans {
		c.err(validateTypes(o.Objects))
		c.once([2]any{"orphan", o.Context})
	}
	for _, l := range i.Left {
		c.word(l.Type, slices.Contains(state.ResourceTypes(), l.Type))
		c.count(l.Objects)
		c.once(state.Left{Context: l.Context, Type: l.Type})
	}
	for _, g := range i.Cgroups {
		c.word(g.Resource, isLabel(g.Resource))
		c.names(g.Cgroup, g.ContainerID, g.PodUID)
		c.count(g.Current)
		c.limit(g.Limit)
		c.once([3]string{"cgroups", g.Cgroup, g.Resource})
	}
	for _, n := range i.Incomplete {
		c.word(n.Type, slices.Contains(state.ResourceTypes(), n.Type))
		c.word(string(n.Reason), slices.Contains(state.IncompleteReasons(), n.Reason))
		c.once([2]string{"incomplete", n.Type})
	}
	if c.first != nil {
		return fmt.Errorf("the inventory: %w", c.first)
	}
	return nil
}

func validateOwner(o *state.Owner) error {
	c := checked{seen: make(map[any]bool)}
	if o.PID <= 0 {
		c.err(fmt.Errorf("an owner with pid %d", o.PID))
	}
	if len(o.Contexts) > state.MaxContexts {
		c.err(fmt.Errorf("%w: an owner has %d contexts", ErrTooLarge, len(o.Contexts)))
	}
	c.names(o.Comm, o.Cgroup, o.ContainerID, o.PodUID)
	c.err(validateTypes(o.Objects))
	if m := o.Memlock; m != nil {
		c.bytes(m.Pinned, m.Locked)
		c.limit(m.Limit)
	}
	return c.first
}

// validateTypes checks a list that has each type at most once.
func validateTypes(list []state.TypeCount) error {
	if len(list) > maxItems {
		return fmt.Errorf("%w: %d types of object", ErrTooLarge, len(list))
	}
	c := checked{seen: make(map[any]bool)}
	for _, t := range list {
		c.word(t.Type, isLabel(t.Type))
		c.count(t.Objects)
		c.once(t.Type)
	}
	return c.first
}

// clipInventory cuts the texts of an inventory down to what a reader keeps of them, and
// makes names fit for a label: whoever starts a process or makes a cgroup names it.
func clipInventory(i *state.Inventory) {
	for n := range i.Owners {
		o := &i.Owners[n]
		for _, s := range []*string{&o.Comm, &o.Cgroup, &o.ContainerID, &o.PodUID} {
			*s = text.Clean(*s)
		}
	}
	for n := range i.Cgroups {
		g := &i.Cgroups[n]
		for _, s := range []*string{&g.Cgroup, &g.ContainerID, &g.PodUID} {
			*s = text.Clean(*s)
		}
	}
	for n := range i.Incomplete {
		i.Incomplete[n].Detail = clip(i.Incomplete[n].Detail)
	}
}

// checked keeps the first error of many checks.
type checked struct {
	first error
	seen  map[any]bool
}

func (c *checked) err(err error) {
	if c.first == nil {
		c.first = err
	}
}

func (c *checked) word(w string, ok bool) {
	if !ok {
		c.err(fmt.Errorf("%.64q is not a word for it", w))
	}
}

func (c *checked) count(counts ...int64) {
	for _, n := range counts {
		if n < 0 || n > maxCount {
			c.err(fmt.Errorf("a count of %d", n))
		}
	}
}

// bytes is count for what may be any size.
func (c *checked) bytes(sizes ...int64) {
	for _, n := range sizes {
		if n < 0 {
			c.err(fmt.Errorf("a size of %d", n))
		}
	}
}

// limit checks a limit, of which −1 stands for none.
func (c *checked) limit(n int64) {
	if n < -1 {
		c.err(fmt.Errorf("a limit of %d", n))
	}
}

// names checks names that come from outside, which may have any characters until they are
// cleaned.
func (c *checked) names(names ...string) {
	for _, n := range names {
		if len(n) > maxPath || strings.ContainsRune(n, 0) {
			c.err(fmt.Errorf("a name of %d bytes, or with a zero byte", len(n)))
		}
	}
}

func (c *checked) once(key any) {
	if c.seen[key] {
		c.err(fmt.Errorf("%v is there twice", key))
	}
	c.seen[key] = true
}
