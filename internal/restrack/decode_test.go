package restrack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// collect decodes a message of a dump.
func collect(t Type, data []byte) (objects []Object, err error) {
	var d decoder
	_, err = d.objects(t, data, func(o *Object) error {
		objects = append(objects, *o)
		return nil
	})
	return objects, blame(t.table().command, 0, err)
}

// single decodes the reply to a request for one object.
func single(t Type, data []byte) (Object, error) {
	var d decoder
	err := d.decode(t, data)
	return d.object, err
}

// split returns the attributes that b consists of, each with its padding.
func split(t testing.TB, b []byte) (parts [][]byte) {
	t.Helper()
	for len(b) > 0 {
		_, rest, err := nextAttribute(b)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, b[:len(b)-len(rest)])
		b = rest
	}
	return parts
}

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
		for _, part := range split(t, data) {
			// Padding may be missing at the end.
			length := int(binary.NativeEndian.Uint16(part))
			for i := length; i <= len(part); i++ {
				ends[end+i] = true
			}
			end += len(part)
		}
		for i := range data {
			_, err := collect(kind, data[:i])
			if ends[i] != (err == nil) || err != nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %d of %d bytes: %v", kind, i, len(data), err)
			}
		}
	})
	for _, r := range recordings(t) {
		for _, payload := range r.payloads(t, sectionName(commandSummary, 0)) {
			full, err := summary(payload)
			if err != nil {
				t.Fatal(err)
			}
			for i := range payload {
				if got, err := summary(payload[:i]); err == nil && len(got) == len(full) && i < len(payload)-3 {
					t.Errorf("summary: %d of %d bytes: %v", i, len(payload), err)
				}
			}
		}
	}
}

// Whatever a newer kernel adds, at any place and even if it looks like nothing
// known, is passed over.
func TestUnknownAttributes(t *testing.T) {
	unknown := slices.Concat(nest(0), nest(4000, []byte{1, 2, 3}), nest(0x8000|4001, []byte{0xff, 0xff, 0xff}), nest(96, make([]byte, 5)))
	recorded(t, func(t testing.TB, kind Type, data []byte) {
		want, err := collect(kind, data)
		if err != nil {
			t.Fatal(err)
		}
		table := kind.table()
		insert := func(kind uint16, change func([]byte) []byte) func([]byte) []byte {
			return func(b []byte) []byte {
				var out []byte
				for _, part := range split(t, b) {
					if a, _, _ := nextAttribute(part); a.kind == kind {
						part = nest(kind, change(a.data))
					}
					out = append(out, part...)
				}
				return out
			}
		}
		interleave := func(b []byte) []byte {
			out := slices.Clone(unknown)
			for _, part := range split(t, b) {
				out = slices.Concat(out, part, unknown)
			}
			return out
		}
		// Rows grow too large for a table of 64 KiB if there are many.
		if len(data) > 8<<10 {
			return
		}
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

// Any attribute of a row may be absent: what it tells is zero then, and the
// rest is as it was.
func TestMissingAttributes(t *testing.T) {
	recorded(t, func(t testing.TB, kind Type, data []byte) {
		table := kind.table()
		for _, part := range split(t, data) {
			rows, _, _ := nextAttribute(part)
			if rows.kind != table.rows {
				continue
			}
			for _, part := range split(t, rows.data) {
				row, _, _ := nextAttribute(part)
				attributes := split(t, row.data)
				full, err := single(kind, row.data)
				if err != nil {
					t.Fatal(err)
				}
				for i, left := range attributes {
					without := slices.Concat(slices.Delete(slices.Clone(attributes), i, i+1)...)
					less, err := single(kind, without)
					if err != nil {
						t.Errorf("%s without %x: %v", kind, left, err)
					}
					var d decoder
					d.object = less
					a, _, _ := nextAttribute(left)
					if err := d.attribute(kind, table.id, a); err != nil || d.object != full {
						t.Errorf("%s: %x is not all that was missing: %v\n got %+v\nwant %+v", kind, left, err, d.object, full)
					}
				}
			}
		}
	})
}

// Every attribute that is read is refused if it has another size.
func TestWrongSizes(t *testing.T) {
	for _, kind := range Types() {
		sizes := map[uint16]int{attrPID: 4, attrCQE: 4, attrUseCount: 8, attrMRLength: 8, attrPDN: 4, attrCTXN: 4}
		sizes[kind.table().id] = 4
		if kind == QP {
			sizes[attrType], sizes[attrState] = 1, 1
		}
		for attribute, size := range sizes {
			for wrong := range 12 {
				data := nest(attribute, make([]byte, wrong))
				o, err := single(kind, data)
				want := fmt.Sprintf("attribute %s: %d bytes, not %d", attributeName(attribute), wrong, size)
				switch {
				case wrong == size:
					if err != nil {
						t.Errorf("%s: %v", kind, err)
					}
				case err == nil || err.Error() != want:
					t.Errorf("%s: %v, want %s", kind, err, want)
				case o != (Object{Type: kind}):
					t.Errorf("%s: %+v with an error", kind, o)
				}
			}
		}
	}
}

func TestWrongLengths(t *testing.T) {
	row := nest(attrPD, attribute32(attrPDN, 1))
	for name, test := range map[string]struct {
		data []byte
		says string
	}{
		"no length":           {[]byte{0, 0, 46, 0}, "attribute RES_PD: its length is 0, but there are 4 bytes"},
		"too short a length":  {[]byte{3, 0, 46, 0}, "attribute RES_PD: its length is 3, but there are 4 bytes"},
		"too long a length":   {[]byte{5, 0, 46, 0}, "attribute RES_PD: its length is 5, but there are 4 bytes"},
		"half a header":       {[]byte{4, 0}, "2 bytes are no attribute"},
		"garbage for rows":    {nest(attrPDs, []byte{1, 2, 3}), "attribute RES_PD: 3 bytes are no attribute"},
		"garbage for a row":   {nest(attrPDs, row, nest(attrPD, []byte{9, 9, 9, 9, 9})), "attribute RES_PD_ENTRY: attribute 2313: its length is 2313, but there are 5 bytes"},
		"beyond its own nest": {nest(attrPDs, nest(attrPD, []byte{12, 0, 60, 0}), row), "attribute RES_PD_ENTRY: attribute RES_PDN: its length is 12, but there are 4 bytes"},
	} {
		_, err := collect(PD, test.data)
		var e *MessageError
		if !errors.As(err, &e) || e.Command != "RES_PD_GET" || e.Message != 0 || e.Err.Error() != test.says {
			t.Errorf("%s: %v, want %s", name, err, test.says)
		}
	}
}

// What <rdma/ib_verbs.h> and rdma(8) call the numbers.
func TestWords(t *testing.T) {
	words := func(name func(uint8) string) (list []string) {
		for i := range 16 {
			list = append(list, name(uint8(i)))
		}
		return list
	}
	for i, test := range []struct {
		name func(uint8) string
		want string
	}{
		{qpType, "smi gsi rc uc ud raw_ipv6 raw_ethertype - raw_packet xrc_ini xrc_tgt - - - - -"},
		{qpState, "reset init rtr rts sqd sqe err - - - - - - - - -"},
	} {
		want := strings.Split(strings.ReplaceAll(test.want, "-", ""), " ")
		if got := words(test.name); !slices.Equal(got, want) {
			t.Errorf("%d: %q, want %q", i, got, want)
		}
	}
	if qpType(0xff) != "driver" {
		t.Error("0xff is no driver's type")
	}
	qp, err := single(QP, slices.Concat(nest(attrType, []byte{77}), nest(attrState, []byte{255})))
	if err != nil || qp.QPType != "unknown_77" || qp.QPState != "unknown_255" {
		t.Errorf("%+v, %v", qp, err)
	}
	for _, row := range [][]byte{
		nest(attrType, []byte{0xff}),
		slices.Concat(nest(attrType, []byte{0}), text(attrSubtype, "REG_UMR")),
		slices.Concat(text(attrSubtype, "DCI"), nest(attrType, []byte{2})),
	} {
		if qp, err := single(QP, row); err != nil || qp.QPType != "driver" {
			t.Errorf("%+v, %v, want the type driver", qp, err)
		}
	}
}

func TestTypes(t *testing.T) {
	var names []string
	for _, kind := range Types() {
		names = append(names, kind.String())
	}
	if got := strings.Join(names, " "); got != "pd cq qp cm_id mr ctx srq" {
		t.Error(got)
	}
	if Type(0).String() != "type_0" || Type(8).String() != "type_8" {
		t.Error(Type(0), Type(8))
	}
}

func TestDecodeDevice(t *testing.T) {
	data := slices.Concat(attribute32(attrDeviceIndex, 7), text(attrDeviceName, "mlx5_0"), attribute32(attrPort, 2), nest(4000))
	if got, err := decodeDevice(data); err != nil || got != (Device{7, "mlx5_0"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := decodeDevice(nest(attrDeviceIndex, make([]byte, 3))); err == nil || got != (Device{}) {
		t.Errorf("an index of 3 bytes: %+v, %v", got, err)
	}
}

func TestDecodeSummary(t *testing.T) {
	entry := func(name string, count uint64) []byte {
		return nest(attrSummaryEntry, text(attrSummaryName, name),
			nest(attrSummaryCurrent, binary.NativeEndian.AppendUint64(nil, count)), nest(4000))
	}
	data := nest(attrSummary, entry("qp", 3), entry("dmah", 1<<40), nest(4000, text(attrSummaryName, "no")), nest(attrSummaryEntry))
	want := []Count{{"qp", 3}, {"dmah", 1 << 40}}
	if got, err := summary(data); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	bad := nest(attrSummary, nest(attrSummaryEntry, nest(attrSummaryCurrent, make([]byte, 4))))
	if got, err := summary(bad); err == nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestDecodingDoesNotAllocate(t *testing.T) {
	var d decoder
	recorded(t, func(t testing.TB, kind Type, data []byte) {
		visit := func(*Object) error { return nil }
		if allocations := testing.AllocsPerRun(10, func() { _, _ = d.objects(kind, data, visit) }); allocations != 0 {
			t.Errorf("%s: %v allocations", kind, allocations)
		}
	})
	data := nest(attrQPs, nest(attrQP, nest(attrType, []byte{99}), nest(attrState, []byte{98})))
	if allocations := testing.AllocsPerRun(10, func() { _, _ = d.objects(QP, data, func(*Object) error { return nil }) }); allocations != 0 {
		t.Errorf("words: %v allocations", allocations)
	}
}

func FuzzDecodeObjects(f *testing.F) {
	recorded(f, func(_ testing.TB, kind Type, data []byte) { f.Add(uint8(kind), data) })
	f.Add(uint8(QP), nest(attrQPs, nest(attrQP, nest(attrType, []byte{0xff})), nest(attrQP, text(attrSubtype, "DCT"), nest(attrType, []byte{0}))))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		visits := 0
		var d decoder
		_, _ = d.objects(Type(kind), data, func(o *Object) error {
			visits++
			if o.Type != Type(kind) || !o.HasID && o.ID != 0 {
				t.Errorf("%+v", o)
			}
			return nil
		})
		if visits > len(data)/attributeHeader {
			t.Errorf("%d rows in %d bytes", visits, len(data))
		}
		_ = d.decode(Type(kind), data)
	})
}

func FuzzDecodeSummary(f *testing.F) {
	for _, r := range recordings(f) {
		for _, payload := range r.payloads(f, sectionName(commandSummary, 0)) {
			f.Add(payload)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if counts, err := summary(data); err != nil && counts != nil {
			t.Errorf("%v, %v", counts, err)
		}
	})
}

func FuzzDecodeDevice(f *testing.F) {
	for _, r := range recordings(f) {
		for _, payload := range r.payloads(f, sectionName(commandDevice, 0)) {
			f.Add(payload)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if device, err := decodeDevice(data); err != nil && device != (Device{}) {
			t.Errorf("%+v, %v", device, err)
		}
	})
}
