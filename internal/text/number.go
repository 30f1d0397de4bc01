// Package text formats sizes, times, shares, counts and words from outside for people. Page, report, findings and
// metrics use it, so that a value looks the same everywhere. Its functions are pure, accept any value, and return one
// line.
package text

import (
	"fmt"
	"math"
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
	return scaled(n, 1024) + "iB"
}

// Rate returns a rate in decimal multiples of its unit, as in 400 Gb/s and 2.5 GT/s. It rounds down as Bytes does.
func Rate(n int64, unit string) string {
	if n < 1000 {
		return Number(n) + " " + unit
	}
	return strings.Replace(scaled(n, 1000), "K", "k", 1) + unit
}

// scaled returns n in the largest multiple of base that is not above it, with the letter of the multiple.
func scaled(n, base int64) string {
	unit, letter := base, 0
	for n/unit >= base {
		unit *= base
		letter++
	}
	parts := 100.0
	switch whole := n / unit; {
	case whole >= 100:
		parts = 1
	case whole >= 10:
		parts = 10
	}
	value := math.Floor(parts*float64(n)/float64(unit)) / parts
	return strconv.FormatFloat(value, 'f', -1, 64) + " " + string("KMGTPE"[letter])
}

// Percent returns the share of a limit, with one decimal unless it is 0. It rounds down, so that only the whole limit
// is 100 % and only 0 is 0 %. Any use of a limit of 0 is above 999 %.
func Percent(used, limit int64) string {
	share := math.Floor(1000*float64(used)/float64(limit)) / 10
	switch {
	case used <= 0:
		return "0 %"
	case limit <= 0 || share > 999:
		return ">999 %"
	case share == 0:
		return "<0.1 %"
	default:
		return strconv.FormatFloat(share, 'f', -1, 64) + " %"
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

// Some returns a number with a word. It is empty unless the number is above zero.
func Some[T ~int | ~int64](n T, word string) string {
	if n <= 0 {
		return ""
	}
	return Number(n) + " " + word
}

// Objects returns a number of RDMA objects. The type is the kernel's name. Empty means objects of any type.
func Objects(n int64, kind string) string {
	name, known := map[string]string{
		"": "object", "pd": "protection domain", "cq": "completion queue", "qp": "queue pair", "cm_id": "CM id",
		"mr": "memory region", "ctx": "opened device", "srq": "shared receive queue", "comp_channel": "completion channel", "ah": "address handle",
	}[kind]
	if !known {
		return Objects(n, "") + " of type " + Name(kind)
	}
	return Plural(n, name)
}
