package owner

import (
	"math"
	"strings"
	"testing"
)

func TestMemlock(t *testing.T) {
	status, limits, zombie := fixture(t, "proc/status"), fixture(t, "proc/limits"), fixture(t, "proc/status-zombie")
	limit := func(soft string) string {
		const rest = "           unlimited            bytes     \n"
		return change(t, limits, "Max locked memory         1073741824"+rest, "Max locked memory         "+soft+rest)
	}
	both := func(limit int64) Memlock { return Memlock{Pinned: 262148 << 10, Locked: 64 << 10, Limit: limit} }
	for name, tt := range map[string]struct {
		status, limits string
		threads        map[string]string
		want           Memlock
	}{
		"pinned and locked": {status, limits, nil, both(1 << 30)},
		"unlimited":         {status, fixture(t, "proc/limits-unlimited"), nil, both(-1)},
		"nothing allowed":   {status, limit("0"), nil, both(0)},
		"more than fits":    {status, limit("18446744073709551614"), nil, both(math.MaxInt64)},
		"thread of the kernel": {
			fixture(t, "proc/status-kernel"), limits,
			map[string]string{"task/88/status": fixture(t, "proc/status-kernel")},
			Memlock{Limit: 1 << 30},
		},
		"first thread has ended": {
			zombie, limits,
			map[string]string{
				"task/4242/status": zombie, "task/4243/stat": "gone meanwhile",
				"task/4245/status": fixture(t, "proc/status-thread"),
			},
			both(1 << 30),
		},
		"all threads end": {
			zombie, limits, map[string]string{"task/4242/stat": "removed"}, Memlock{Limit: 1 << 30},
		},
		"a name that looks like a line": {change(t, status, "ib_write_bw", `x\nVmPin:\t9 kB`), limits, nil, both(1 << 30)},
	} {
		h := newHost(t)
		h.process(4242, map[string]string{"status": tt.status, "limits": tt.limits})
		h.process(4242, tt.threads)
		gives(t, name, tt.want)(h.reader().Memlock(4242))
	}
}

func TestMemlockRefuses(t *testing.T) {
	status, limits := fixture(t, "proc/status"), fixture(t, "proc/limits")
	for _, tt := range []struct{ status, limits, says string }{
		{change(t, status, "VmPin:	  262148 kB\n", ""), limits, "only one"},
		{change(t, status, "VmLck:	      64 kB\n", ""), limits, "only one"},
		{change(t, status, "262148", "many"), limits, "VmPin"},
		{change(t, status, "262148", "-1"), limits, "VmPin"},
		{change(t, status, "262148", "9007199254740992"), limits, "VmPin"},
		{change(t, status, "262148 kB", "262148 MB"), limits, "VmPin"},
		{change(t, status, "64 kB", "64"), limits, "VmLck"},
		{status + "VmPin:	9 kB\n", limits, "two lines VmPin"},
		{"", limits, "empty"},
		{status + strings.Repeat("x", 1<<20), limits, "longer"},
		{status, change(t, limits, "Max locked memory", "Max unlocked memory"), "no limit"},
		{status, limits[:strings.Index(limits, "Max locked memory")+30], "Max locked memory"},
		{status, change(t, limits, "1073741824           unlimited            bytes", "1073741824 unlimited pages"), "bytes"},
		{status, change(t, limits, "1073741824", "1e9"), "1e9"},
		{status, "", "empty"},
	} {
		h := newHost(t)
		h.process(4242, map[string]string{"status": tt.status, "limits": tt.limits})
		refuses[Memlock](t, tt.says, tt.says)(h.reader().Memlock(4242))
	}
}
