package text_test

import (
	"math"
	"testing"

	"rdma_exporter/internal/text"
)

// cases maps inputs of a function to its results.
type cases[T comparable] map[T]string

func (c cases[T]) check(t *testing.T, f func(T) string) {
	t.Helper()
	for in, want := range c {
		if got := f(in); got != want {
			t.Errorf("%v: got %q, want %q", in, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	cases[int64]{
		0: "0", 7: "7", 4096: "4096", -4096: "-4096", 10000: "10,000", 65536: "65,536", -65536: "-65,536", 123456: "123,456",
		1234567: "1,234,567", math.MaxInt64: "9,223,372,036,854,775,807", math.MinInt64: "-9,223,372,036,854,775,808",
	}.check(t, text.Number[int64])
	cases[uint64]{0: "0", math.MaxUint64: "18,446,744,073,709,551,615"}.check(t, text.Number[uint64])
}

func TestBytes(t *testing.T) {
	cases[int64]{
		0: "0 bytes", 1: "1 byte", -1: "-1 bytes", 999: "999 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1025: "1 KiB", 1035: "1.01 KiB",
		1280: "1.25 KiB", 1290: "1.25 KiB", 12800: "12.5 KiB", 65536: "64 KiB", 131000: "127 KiB",
		1034240: "1010 KiB", 1<<20 - 1: "1023 KiB", 1 << 20: "1 MiB", 8 << 20: "8 MiB", 8<<20 - 1: "7.99 MiB", 1<<30 + 1<<29: "1.5 GiB",
		1 << 40: "1 TiB", 1<<50 - 1: "1023 TiB", 1 << 50: "1 PiB", 1 << 60: "1 EiB", math.MaxInt64: "8 EiB", math.MinInt64: "-9,223,372,036,854,775,808 bytes",
	}.check(t, text.Bytes)
}

func TestRate(t *testing.T) {
	cases[int64]{
		0: "0 b/s", -1: "-1 b/s", 999: "999 b/s", 1000: "1 kb/s", 2_500_000_000: "2.5 Gb/s", 53_125_000_000: "53.1 Gb/s", 400_000_000_000: "400 Gb/s",
		999_999_999_999: "999 Gb/s", 1_600_000_000_000: "1.6 Tb/s", 2_300_000_000: "2.3 Gb/s", math.MaxInt64: "9.22 Eb/s",
	}.check(t, func(n int64) string { return text.Rate(n, "b/s") })
}

func TestPercent(t *testing.T) {
	cases[[2]int64]{
		{0, 10}: "0 %", {0, 0}: "0 %", {-1, 10}: "0 %", {1, 0}: ">999 %", {1, -1}: ">999 %",
		{1, 1001}: "<0.1 %", {1, 1000}: "0.1 %", {1, 3}: "33.3 %", {1, 2}: "50 %", {2, 3}: "66.6 %", {80, 100}: "80 %", {29, 100}: "29 %",
		{1<<42 - 1, 1 << 42}: "99.9 %", {math.MaxInt64, math.MaxInt64}: "100 %", {3, 2}: "150 %",
		{999, 100}: "999 %", {9991, 1000}: ">999 %", {math.MaxInt64, 1}: ">999 %", {math.MaxInt64, 499}: ">999 %",
	}.check(t, func(of [2]int64) string { return text.Percent(of[0], of[1]) })
}

func TestCount(t *testing.T) {
	cases[int64]{0: "0 ports", 1: "1 port", 2: "2 ports", -1: "-1 ports", 65536: "65,536 ports"}.
		check(t, func(n int64) string { return text.Plural(n, "port") })
	cases[int]{0: "0 events missed", 1: "1 event missed", 20000: "20,000 events missed"}.
		check(t, func(n int) string { return text.Count(n, "event missed", "events missed") })
	cases[int]{-1: "", 0: "", 1: "1 lost", 20000: "20,000 lost"}.check(t, func(n int) string { return text.Some(n, "lost") })
	cases[int]{0: "have", 1: "has", 2: "have", -1: "have"}.check(t, func(n int) string { return text.Either(n, "has", "have") })
	cases[string]{
		"": "2 objects", "qp": "2 queue pairs", "cm_id": "2 CM ids", "ctx": "2 opened devices", "x\x1by": "2 objects of type x\ufffdy",
	}.check(t, func(kind string) string { return text.Objects(2, kind) })
	cases[string]{"srq": "1 shared receive queue", "new": "1 object of type new"}.
		check(t, func(kind string) string { return text.Objects(1, kind) })
}
