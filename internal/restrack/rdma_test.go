package restrack

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// rows decodes what rdma -d -j resource show TYPE printed, and keeps the rows
// of one device.
func rows(t *testing.T, kind Type, text []byte, index uint32) []Object {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("rdma resource show %s printed %q: %v", kind, text, err)
	}
	var objects []Object
	for _, row := range all {
		if row["ifindex"] == float64(index) {
			objects = append(objects, fromRow(t, kind, row))
		}
	}
	return objects
}

// fromRow makes of a row of rdma(8) the object that it stands for. It knows
// every key, so that none is left out of the comparison unnoticed.
func fromRow(t *testing.T, kind Type, row map[string]any) Object {
	t.Helper()
	o := Object{Type: kind}
	set := func(value any, number *uint32, has *bool) {
		*number, *has = uint32(value.(float64)), true
	}
	word := func(value any) string { return strings.ToLower(strings.ReplaceAll(value.(string), "-", "_")) }
	id := map[Type]string{PD: "pdn", CQ: "cqn", QP: "lqpn", CMID: "cm-idn", MR: "mrn", CTX: "ctxn", SRQ: "srqn"}[kind]
	var ignored bool
	for key, value := range row {
		switch {
		case key == id:
			set(value, &o.ID, &o.HasID)
		case key == "pdn":
			set(value, &o.PD, &o.HasPD)
		case key == "ctxn":
			set(value, &o.Context, &o.HasContext)
		case key == "cqe":
			set(value, &o.Entries, &o.HasEntries)
		case key == "pid":
			set(value, &o.Thread, &ignored)
		case key == "users":
			o.Users, o.HasUsers = uint64(value.(float64)), true
		case key == "mrlen":
			o.Length = uint64(value.(float64))
		case key == "type" && kind == QP:
			o.QPType = word(value)
		case key == "state" && kind == QP:
			o.QPState = word(value)
		case key == "comm":
			if _, user := row["pid"]; !user {
				o.Kernel = true
			}
		case map[string]bool{
			"ifindex": true, "ifname": true, "rq-psn": true, "sq-psn": true, "path-mig-state": true,
			"rkey": true, "lkey": true, "iova": true, "local_dma_lkey": true, "unsafe_global_rkey": true,
			"adaptive-moderation": true, "rqpn": true, "cqn": true, "lqpn": true, "port": true, "type": true, "state": true,
			"poll-ctx": true, "ps": true, "src-addr": true, "dst-addr": true,
		}[key]:
		default:
			t.Errorf("rdma resource show %s has the unknown key %s: %v", kind, key, value)
		}
	}
	return o
}

// compare compares what we read with what rdma(8) printed.
func compare(t *testing.T, what string, got, want []Object) {
	t.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	for _, list := range [][]Object{got, want} {
		// rdma(8) dumps the QPs of each port, and those of none, one after the other.
		slices.SortStableFunc(list, func(a, b Object) int { return cmp.Compare(a.ID, b.ID) })
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d objects, rdma has %d", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: row %d:\n got %+v\nwant %+v", what, i, got[i], want[i])
		}
	}
}

// compareSummary compares a summary with what rdma -j resource printed.
func compareSummary(t *testing.T, got []Count, text []byte, index uint32) {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("rdma resource printed %q: %v", text, err)
	}
	for _, row := range all {
		if row["ifindex"] != float64(index) {
			continue
		}
		if len(got) != len(row)-2 {
			t.Errorf("summary of device %d: %v, rdma says %v", index, got, row)
		}
		for _, count := range got {
			if row[count.Name] != float64(count.Objects) {
				t.Errorf("summary of device %d: %d %s, rdma says %v", index, count.Objects, count.Name, row[count.Name])
			}
		}
		return
	}
	t.Errorf("rdma resource does not have device %d: %s", index, text)
}
