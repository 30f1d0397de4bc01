package restrack

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"

	"rdma_exporter/test/running"
)

func collect(t Type, data []byte) (all []Object, err error) {
	err = objects(t, data, func(o *Object) error {
		all = append(all, *o)
		return nil
	})
	return all, err
}

func single(o Object, data []byte) (Object, error) {
	err := attributes(data, func(ad *netlink.AttributeDecoder) { o.decode(o.Type.table().id, ad) })
	return o, err
}

// split returns the attributes in b, each with its padding.
func split(b []byte) (parts [][]byte) {
	for len(b) > 0 {
		n := min((int(binary.NativeEndian.Uint16(b))+3)&^3, len(b))
		parts = append(parts, b[:n])
		b = b[n:]
	}
	return parts
}

func kindOf(part []byte) uint16 { return binary.NativeEndian.Uint16(part[2:]) & 0x3fff }

func dataOf(part []byte) []byte { return part[4:binary.NativeEndian.Uint16(part)] }

// recorded calls check with each message of each dump.
func recorded(t testing.TB, check func(t testing.TB, kind Type, data []byte)) {
	t.Helper()
	for _, r := range recordings(t) {
		for _, kind := range Types() {
			for _, payload := range r.payloads(t, sectionName(kind.table().command, 0)) {
				check(t, kind, payload)
			}
		}
	}
}

func TestTruncated(t *testing.T) {
	recorded(t, func(t testing.TB, kind Type, data []byte) {
		ends := map[int]bool{0: true}
		end := 0
		for _, part := range split(data) {
			// Padding may be missing at the end.
			for i := len(dataOf(part)) + 4; i <= len(part); i++ {
				ends[end+i] = true
			}
			end += len(part)
		}
		for i := range data {
			if _, err := collect(kind, data[:i]); ends[i] != (err == nil) {
				t.Errorf("%s: %d of %d bytes: %v", kind, i, len(data), err)
			}
		}
	})
	for _, r := range recordings(t) {
		for _, payload := range r.payloads(t, sectionName(commandSummary, 0)) {
			full := running.Must(decodeSummary(payload))(t)
			for i := range payload {
				if got, err := decodeSummary(payload[:i]); err == nil && len(got) == len(full) && i < len(payload)-3 {
					t.Errorf("summary: %d of %d bytes: %v", i, len(payload), err)
				}
			}
		}
	}
	row := nest(attrPD, attribute32(attrPDN, 1))
	for name, data := range map[string][]byte{
		"garbage for rows":    nest(attrPDs, []byte{1, 2, 3}),
		"garbage for a row":   nest(attrPDs, row, nest(attrPD, []byte{9, 9, 9, 9, 9})),
		"beyond its own nest": nest(attrPDs, nest(attrPD, []byte{12, 0, 60, 0}), row),
	} {
		if got, err := collect(PD, data); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUnknownAttributes verifies that attributes of a newer kernel are ignored, at any place.
func TestUnknownAttributes(t *testing.T) {
	unknown := slices.Concat(nest(0), nest(4000, []byte{1, 2, 3}), nest(0x8000|4001, []byte{0xff, 0xff, 0xff}), nest(96, make([]byte, 5)))
	insert := func(kind uint16, change func([]byte) []byte) func([]byte) []byte {
		return func(b []byte) (out []byte) {
			for _, part := range split(b) {
				if kindOf(part) == kind {
					part = nest(kind, change(dataOf(part)))
				}
				out = append(out, part...)
			}
			return out
		}
	}
	interleave := func(b []byte) []byte {
		out := slices.Clone(unknown)
		for _, part := range split(b) {
			out = slices.Concat(out, part, unknown)
		}
		return out
	}
	recorded(t, func(t testing.TB, kind Type, data []byte) {
		// Rows grow too large for a table of 64 KiB if there are many.
		if len(data) > 8<<10 {
			return
		}
		want := running.Must(collect(kind, data))(t)
		table := kind.table()
		for place, change := range map[string]func([]byte) []byte{
			"message": interleave,
			"table":   insert(table.rows, interleave),
			"row":     insert(table.rows, insert(table.row, interleave)),
		} {
			if got, err := collect(kind, change(data)); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, in the %s: %v\n got %+v\nwant %+v", kind, place, err, got, want)
			}
		}
	})
}

// TestMissingAttributes verifies that any attribute of a row may be absent. Its value is zero
// then, and the rest is unchanged.
func TestMissingAttributes(t *testing.T) {
	recorded(t, func(t testing.TB, kind Type, data []byte) {
		for _, part := range split(data) {
			if kindOf(part) != kind.table().rows {
				continue
			}
			for _, row := range split(dataOf(part)) {
				parts := split(dataOf(row))
				full := running.Must(single(Object{Type: kind}, dataOf(row)))(t)
				for i, left := range parts {
					less, err := single(Object{Type: kind}, slices.Concat(slices.Delete(slices.Clone(parts), i, i+1)...))
					if err != nil {
						t.Errorf("%s without %x: %v", kind, left, err)
					}
					if got, err := single(less, left); err != nil || got != full {
						t.Errorf("%s: %x is not all that was missing: %v\n got %+v\nwant %+v", kind, left, err, got, full)
					}
				}
			}
		}
	})
}

// TestWrongSizes verifies that each attribute is refused if it has another size.
func TestWrongSizes(t *testing.T) {
	for _, kind := range Types() {
		sizes := map[uint16]int{attrPID: 4, attrCQE: 4, attrUseCount: 8, attrMRLength: 8, attrPDN: 4, attrCTXN: 4}
		sizes[kind.table().id] = 4
		if kind == QP {
			sizes[attrType], sizes[attrState] = 1, 1
		}
		for attribute, size := range sizes {
			for wrong := range 12 {
				row := nest(kind.table().rows, nest(kind.table().row, nest(attribute, make([]byte, wrong))))
				if got, err := collect(kind, row); (wrong == size) != (err == nil) || (err != nil) != (len(got) == 0) {
					t.Errorf("%s: attribute %d of %d bytes: %v, %v", kind, attribute, wrong, got, err)
				}
			}
		}
	}
}

// TestWords compares the words with <rdma/ib_verbs.h> and rdma(8).
func TestWords(t *testing.T) {
	for attribute, want := range map[uint16]string{
		attrType:  "smi gsi rc uc ud raw_ipv6 raw_ethertype unknown_7 raw_packet xrc_ini xrc_tgt unknown_11",
		attrState: "reset init rtr rts sqd sqe err unknown_7",
	} {
		for i, want := range strings.Fields(want) {
			qp, err := single(Object{Type: QP}, nest(attribute, []byte{byte(i)}))
			if err != nil || qp.QPType+qp.QPState != want {
				t.Errorf("%d: %+v, %v, want %s", i, qp, err, want)
			}
		}
	}
	for _, row := range [][]byte{
		nest(attrType, []byte{0xff}),
		slices.Concat(nest(attrType, []byte{0}), text(attrSubtype, "REG_UMR")),
		slices.Concat(text(attrSubtype, "DCI"), nest(attrType, []byte{2})),
	} {
		if qp, err := single(Object{Type: QP}, row); err != nil || qp.QPType != "driver" {
			t.Errorf("%+v, %v, want the type driver", qp, err)
		}
	}
	var names []string
	for _, kind := range append(Types(), 0, SRQ+1) {
		names = append(names, kind.String())
	}
	if got := strings.Join(names, " "); got != "pd cq qp cm_id mr ctx srq type_0 type_8" {
		t.Error(got)
	}
}

func FuzzDecodeObjects(f *testing.F) {
	recorded(f, func(_ testing.TB, kind Type, data []byte) { f.Add(uint8(kind), data) })
	f.Add(uint8(QP), nest(attrQPs, nest(attrQP, nest(attrType, []byte{0xff})), nest(attrQP, text(attrSubtype, "DCT"), nest(attrType, []byte{0}))))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		all, _ := collect(Type(kind), data)
		if len(all) > len(data)/4 {
			t.Errorf("%d rows in %d bytes", len(all), len(data))
		}
		for _, o := range all {
			if o.Type != Type(kind) || !o.HasID && o.ID != 0 {
				t.Errorf("%+v", o)
			}
		}
	})
}
