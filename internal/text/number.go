// Package text writes sizes, times, parts, counts and words from outside for people. The
// pages, the report in the terminal, the findings and the metrics all use it, so that one
// thing looks the same wherever it is read. Its functions are pure, cope with any value,
// and return one line.
package text

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Number returns a number with its thousands apart, from five digits on: 4096 and 65,536.
func Number[T ~int | ~int64 | ~uint64](n T) string {
	digits, sign := fmt.Sprintf("%d", n), ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	if len(digits) > 4 {
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + "," + digits[i:]
		}
	}
	return sign + digits
}

// Bytes returns a number of bytes with three digits, or with all that it has before the
// point: 1.25 MiB and 1010 KiB. It is rounded down, so that what is below a limit does not
// look as if it had reached it.
func Bytes(n int64) string {
	if n < 1024 {
		return Count(n, "byte", "bytes")
	}
	unit := (bits.Len64(uint64(n)) - 1) / 10
	shift := 10 * unit
	high, low := bits.Mul64(uint64(n), 100)
	return hundredths(high<<(64-shift)|low>>shift) + " " + string("KMGTPE"[unit-1]) + "iB"
}

// hundredths returns so many hundredths with three digits, or with all before the point,
// rounded down.
func hundredths(n uint64) string {
	whole, rest := strconv.FormatUint(n/100, 10), strconv.FormatUint(100+n%100, 10)[1:]
	rest = rest[:min(max(3-len(whole), 0), 2)]
	return strings.TrimRight(strings.TrimRight(whole+"."+rest, "0"), ".")
}

// Percent returns used as a part of limit, with a tenth where there is one. It is rounded
// down, so that 100 % is really all, and nothing is 0 % but nothing. Of a limit of nothing,
// anything is too much.
func Percent(used, limit int64) string {
	const most = 999
	if used <= 0 {
		return "0 %"
	}
	high, low := bits.Mul64(uint64(used), 1000)
	if limit <= 0 || high >= uint64(limit) {
		return ">" + strconv.Itoa(most) + " %"
	}
	tenths, _ := bits.Div64(high, low, uint64(limit))
	switch {
	case tenths == 0:
		return "<0.1 %"
	case tenths > most*10:
		return ">" + strconv.Itoa(most) + " %"
	case tenths%10 == 0:
		return strconv.FormatUint(tenths/10, 10) + " %"
	default:
		return strconv.FormatUint(tenths/10, 10) + "." + strconv.FormatUint(tenths%10, 10) + " %"
	}
}

// Either returns what stands beside a number of things: one word for one, another for any
// other number.
func Either[T ~int | ~int64](n T, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// Count returns a number of things by name.
func Count[T ~int | ~int64](n T, one, more string) string {
	return Number(n) + " " + Either(n, one, more)
}

// Plural is Count of things of which several have an s at the end.
func Plural[T ~int | ~int64](n T, thing string) string { return Count(n, thing, thing+"s") }

// Objects counts RDMA objects of a type, as the kernel calls it, by the name that people
// have for it; of any type if that is empty.
func Objects(n int64, kind string) string {
	name, known := map[string]string{
		"": "object", "pd": "protection domain", "cq": "completion queue", "qp": "queue pair", "cm_id": "CM id",
		"mr": "memory region", "ctx": "opened device", "srq": "shared receive queue", "comp_channel": "completion channel", "ah": "address handle",
	}[kind]
	if !known {
		return Objects(n, "") + " of type " + Truncate(Clean(kind), MaxName)
	}
	return Plural(n, name)
}

// Rate returns a rate in multiples of 1000 of its unit, as links are named by: 400 Gb/s and
// 2.5 GT/s. It is rounded down to three digits, or to all that it has before the point.
func Rate(n int64, unit string) string {
	const multiples = " kMGTPE"
	if n < 1000 {
		return Number(n) + " " + unit
	}
	scale, multiple := int64(1), 0
	for n/scale >= 1000 {
		scale *= 1000
		multiple++
	}
	high, low := bits.Mul64(uint64(n), 100)
	parts, _ := bits.Div64(high, low, uint64(scale))
	return hundredths(parts) + " " + string(multiples[multiple]) + unit
}
