package wire

import (
	"fmt"
	"slices"

	"rdma_exporter/internal/state"
)

// maxFacts is the most types of QP that there are facts about, and the most ways.
const maxFacts = 16

func validateIdentity(i *state.Identity) error {
	for _, s := range []string{i.Kernel, i.Firmware, i.Libraries} {
		if len(s) > maxLabel {
			return fmt.Errorf("%w: an identity with %d bytes of something", ErrTooLarge, len(s))
		}
	}
	return nil
}

// validate returns why the facts cannot be used; nil if they can.
func validateFacts(f *state.Facts) error {
	if err := validateIdentity(&f.Identity); err != nil {
		return err
	}
	if types := len(f.Absent) + len(f.Inline); max(types, len(f.Ways)) > maxFacts {
		return fmt.Errorf("%w: facts about %d types of QP, and %d ways", ErrTooLarge, types, len(f.Ways))
	}
	seen := make(map[any]bool)
	once := func(typ string) error {
		if !isLabel(typ) || seen[typ] {
			return fmt.Errorf("facts about %.64q, which is no type of QP or is there twice", typ)
		}
		seen[typ] = true
		return nil
	}
	for _, a := range f.Absent {
		if err := once(a.Subject); err != nil {
			return err
		}
		if !isLabel(string(a.Reason)) || a.Memlock != nil {
			return fmt.Errorf("%s is absent for the reason %.64q", a.Subject, a.Reason)
		}
	}
	for _, i := range f.Inline {
		if err := once(i.Type); err != nil {
			return err
		}
		if i.Bytes < 0 {
			return fmt.Errorf("%s takes %d bytes of inline data", i.Type, i.Bytes)
		}
	}
	for _, w := range f.Ways {
		key := state.Way{Path: w.Path, Port: w.Port}
		if err := validateWay(&w.Way); err != nil {
			return err
		}
		if seen[key] || !isLabel(w.Among) {
			return fmt.Errorf("a way on port %d among %.64q, or there twice", w.Port, w.Among)
		}
		seen[key] = true
	}
	return nil
}

// clip cuts the texts of facts down to what a reader keeps of them.
func clipFacts(f *state.Facts) {
	for i := range f.Absent {
		f.Absent[i].Detail = clip(f.Absent[i].Detail)
	}
	for i := range f.Ways {
		clipWay(&f.Ways[i].Way)
	}
}

func validateTurn(t *state.Turn) error {
	if !isLabel(t.Object) || t.Port < 0 || t.Port > maxPorts || t.Vector < 0 || t.Vector > maxVector {
		return fmt.Errorf("the turn of %.64q, port %d and vector %d", t.Object, t.Port, t.Vector)
	}
	return nil
}

func validateLight(l *state.Light) error {
	if !slices.Contains(state.LightReasons(), l.Reason) || l.Detail == "" {
		return fmt.Errorf("a light run with reason %.64q and detail %.64q", l.Reason, l.Detail)
	}
	return nil
}
