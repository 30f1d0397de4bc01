package terminal

import (
	"fmt"
	"math"
	"strconv"
)

// duration returns a time in seconds for people, with three digits.
func duration(s float64) string {
	switch {
	case math.IsNaN(s) || math.IsInf(s, 0) || s < 0:
		return "?"
	case s == 0:
		return "0" + tie + "s"
	case s < 999.5e-9:
		return digits(s*1e9) + tie + "ns"
	case s < 999.5e-6:
		return digits(s*1e6) + tie + "µs"
	case s < 0.9995:
		return digits(s*1e3) + tie + "ms"
	default:
		return digits(s) + tie + "s"
	}
}

// digits returns a number with three digits, or with all that it has before the
// point.
func digits(f float64) string {
	switch {
	case f < 9.995:
		return strconv.FormatFloat(f, 'f', 2, 64)
	case f < 99.95:
		return strconv.FormatFloat(f, 'f', 1, 64)
	default:
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
}

// bytes returns a size for people.
func bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d"+tie+"bytes", n)
	}
	size, unit := float64(n), 0
	for size >= 1024 && unit < 6 {
		size /= 1024
		unit++
	}
	// Rounded down, so that what is below a limit does not look like it.
	return strconv.FormatFloat(math.Floor(size*10)/10, 'f', -1, 64) + tie + [...]string{"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[unit]
}

// part returns used as a part of limit; more than all is possible. Nothing of
// nothing is nothing, and something of nothing is all.
func part(used, limit int64) float64 {
	switch {
	case used <= 0:
		return 0
	case limit <= 0:
		return 1
	default:
		return float64(used) / float64(limit)
	}
}

// percent returns a part in per cent, rounded down so that 100 % is really all.
func percent(part float64) string {
	switch p := part * 100; {
	case p == 0:
		return "0" + tie + "%"
	case p < 1:
		return "<1" + tie + "%"
	case p > 999:
		return ">999" + tie + "%"
	default:
		return strconv.FormatFloat(math.Floor(p+1e-6), 'f', 0, 64) + tie + "%"
	}
}

// plural returns a number of things.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
