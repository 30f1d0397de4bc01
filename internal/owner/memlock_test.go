package owner_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"rdma_exporter/internal/owner"
)

func TestMemlock(t *testing.T) {
	status, limits := fixture(t, "proc/status"), fixture(t, "proc/limits")
	limit := func(soft string) string {
		const line = "Max locked memory         1073741824           unlimited            bytes     \n"
		if !strings.Contains(limits, line) {
			t.Fatal("the fixture has another limit")
		}
		return strings.Replace(limits, "1073741824", soft, 1)
	}
	both := owner.Memlock{Pinned: 262148 << 10, Locked: 64 << 10, Limit: 1 << 30}
	limited := func(limit int64) owner.Memlock {
		m := both
		m.Limit = limit
		return m
	}
	tests := []struct {
		name           string
		status, limits string
		threads        map[string]string
		want           owner.Memlock
	}{
		{"pinned and locked", status, limits, nil, both},
		{"unlimited", status, fixture(t, "proc/limits-unlimited"), nil, limited(-1)},
		{"nothing allowed", status, limit("0"), nil, limited(0)},
		{"more than fits", status, limit("18446744073709551614"), nil, limited(math.MaxInt64)},
		{
			"thread of the kernel", fixture(t, "proc/status-kernel"), limits,
			map[string]string{"task/88/status": fixture(t, "proc/status-kernel")},
			owner.Memlock{Limit: 1 << 30},
		},
		{
			"first thread has ended", fixture(t, "proc/status-zombie"), limits,
			map[string]string{
				"task/4242/status": fixture(t, "proc/status-zombie"), "task/4243/stat": "gone meanwhile",
				"task/4245/status": fixture(t, "proc/status-thread"),
			},
			both,
		},
		{"all threads end", fixture(t, "proc/status-zombie"), limits, map[string]string{"task/4242/stat": "removed"}, owner.Memlock{Limit: 1 << 30}},
		{"a name that looks like a line", strings.Replace(status, "ib_write_bw", `x\nVmPin:\t9 kB`, 1), limits, nil, both},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			h.process(4242, map[string]string{"status": tt.status, "limits": tt.limits})
			h.process(4242, tt.threads)
			got, err := h.reader().Memlock(4242)
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestMemlockRefuses(t *testing.T) {
	status, limits := fixture(t, "proc/status"), fixture(t, "proc/limits")
	change := func(s, from, to string) string {
		if !strings.Contains(s, from) {
			t.Fatalf("the fixture has no %q", from)
		}
		return strings.Replace(s, from, to, 1)
	}
	for _, tt := range []struct{ name, status, limits, says string }{
		{"no VmPin", change(status, "VmPin:	  262148 kB\n", ""), limits, "only one"},
		{"no VmLck", change(status, "VmLck:	      64 kB\n", ""), limits, "only one"},
		{"no number", change(status, "262148", "many"), limits, "VmPin"},
		{"negative", change(status, "262148", "-1"), limits, "VmPin"},
		{"too large", change(status, "262148", "9007199254740992"), limits, "VmPin"},
		{"other unit", change(status, "262148 kB", "262148 MB"), limits, "VmPin"},
		{"no unit", change(status, "64 kB", "64"), limits, "VmLck"},
		{"twice", status + "VmPin:	9 kB\n", limits, "two lines VmPin"},
		{"empty status", "", limits, "empty"},
		{"too long", status + strings.Repeat("x", 1<<20), limits, "longer"},
		{"no limit", status, change(limits, "Max locked memory", "Max unlocked memory"), "no limit"},
		{"cut off limit", status, limits[:strings.Index(limits, "Max locked memory")+30], "Max locked memory"},
		{"limit in other units", status, change(limits, "1073741824           unlimited            bytes", "1073741824           unlimited            pages"), "bytes"},
		{"limit no number", status, change(limits, "1073741824", "1e9"), "1e9"},
		{"empty limits", status, "", "empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			h.process(4242, map[string]string{"status": tt.status, "limits": tt.limits})
			got, err := h.reader().Memlock(4242)
			if err == nil || !strings.Contains(err.Error(), tt.says) || errors.Is(err, owner.ErrGone) || got != (owner.Memlock{}) {
				t.Errorf("got %+v, %v, want an error that says %q", got, err, tt.says)
			}
		})
	}
}
