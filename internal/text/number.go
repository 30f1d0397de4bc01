// Package text formats sizes, times, shares, counts and words from outside for people. Page, report, findings and
// metrics use it, so that a value looks the same everywhere. Its functions are pure, accept any value, and return one
// line.
package text

import (
	"fmt"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
)

// Number separates thousands if a number has five digits or more, as in 4096 and 65,536.
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

// NumberOf is Number for templates. It takes any integer, or a pointer to one.
func NumberOf(n any) string {
	v := reflect.Indirect(reflect.ValueOf(n))
	if v.CanUint() {
		return Number(v.Uint())
	}
	return Number(v.Int())
}

// Bytes returns a number of bytes with three digits, or with all before the point, as in 1.25 MiB and 1010 KiB. It
// rounds down, so that a value below a limit does not look like the limit.
func Bytes(n int64) string {
	if n < 1024 {
		return Count(n, "byte", "bytes")
	}
	unit := (bits.Len64(uint64(n)) - 1) / 10
	shift := 10 * unit
	high, low := bits.Mul64(uint64(n), 100)
	return hundredths(high<<(64-shift)|low>>shift) + " " + string("KMGTPE"[unit-1]) + "iB"
}

// hundredths returns n/100 with three digits, or with all before the point, rounded down.
func hundredths(n uint64) string {
	whole, rest := strconv.FormatUint(n/100, 10), strconv.FormatUint(100+n%100, 10)[1:]
	rest = rest[:min(max(3-len(whole), 0), 2)]
	return strings.TrimRight(strings.TrimRight(whole+"."+rest, "0"), ".")
}

// Percent returns the share of a limit, with one decimal unless it is 0. It rounds down, so that only the whole limit
// is 100 % and only 0 is 0 %. Any use of a limit of 0 is above 999 %.
func Percent(used, limit int64) string {
	const highest = 999
	if used <= 0 {
		return "0 %"
	}
	high, low := bits.Mul64(uint64(used), 1000)
	if limit <= 0 || high >= uint64(limit) {
		return ">" + strconv.Itoa(highest) + " %"
	}
	tenths, _ := bits.Div64(high, low, uint64(limit))
	switch {
	case tenths == 0:
		return "<0.1 %"
	case tenths > highest*10:
		return ">" + strconv.Itoa(highest) + " %"
	case tenths%10 == 0:
		return strconv.FormatUint(tenths/10, 10) + " %"
	default:
		return strconv.FormatUint(tenths/10, 10) + "." + strconv.FormatUint(tenths%10, 10) + " %"
	}
}

// Either returns the word for one thing, or the word for any other number of things.
func Either[T ~int | ~int64](n T, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// Count returns a number of things with their name.
func Count[T ~int | ~int64](n T, one, more string) string {
	return Number(n) + " " + Either(n, one, more)
}

// Plural is Count for a regular plural.
func Plural[T ~int | ~int64](n T, thing string) string { return Count(n, thing, thing+"s") }

// Objects returns a number of RDMA objects. The type is the kernel's name. Empty means objects of any type.
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

// Rate returns a rate in decimal multiples of its unit, as in 400 Gb/s and 2.5 GT/s. It rounds down to three digits, or
// to all before the point.
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
