package web

import (
	"fmt"
	"html/template"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
)

// functions returns the functions that the template uses.
func functions() template.FuncMap {
	return template.FuncMap{
		"badge":        func(word any) template.HTML { return badgeLike(fmt.Sprint(word), fmt.Sprint(word)) },
		"brief":        brief,
		"class":        func(word any) string { return lookOf(fmt.Sprint(word)).class },
		"deref":        func(n *int64) int64 { return *n },
		"distribution": func(l api.Latency, a axis) template.HTML { return distribution(&l, a) },
		"first":        first,
		"hex":          hex,
		"like":         func(word, like any) template.HTML { return badgeLike(fmt.Sprint(word), fmt.Sprint(like)) },
		"memory":       func(n *int64) string { return size(*n) },
		"more":         more,
		"number":       anyNumber,
		"percent":      percent,
		"prose":        prose,
		"short":        short,
		"size":         size,
		"some":         some,
		"times":        func(v api.Vector) string { return times(&v) },
		"took":         took,
		"words":        func(name string) string { return strings.ReplaceAll(name, "_", " ") },
	}
}

// first returns the first items of a list, no more than n.
func first(n int, list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, min(n, v.Len())).Interface()
}

// more returns how many items a list has beyond n.
func more(n int, list any) int { return max(0, reflect.ValueOf(list).Len()-n) }

// anyNumber is number for a template, which hands on pointers, too.
func anyNumber(n any) string {
	v := reflect.Indirect(reflect.ValueOf(n))
	if v.CanUint() {
		return strconv.FormatUint(v.Uint(), 10)
	}
	return number(v.Int())
}

// look is how a word about something's state is shown. Neither the colour of the
// class nor the symbol is the only thing that tells.
type look struct{ class, symbol string }

// lookOf returns the look of a word: a health, a severity, an outcome, a status, a
// verdict or the state of a port. Any other word looks like trouble.
func lookOf(word string) look {
	switch word {
	case string(api.HealthOK), string(state.VerdictHolds), "active", "active_defer":
		return look{"ok", "✓"}
	case string(api.SeverityInfo):
		return look{"info", "i"}
	case string(api.HealthUnknown), string(state.StatusSkipped):
		return look{"unknown", "–"}
	case string(api.HealthCritical), string(state.OutcomeFailed), string(state.OutcomeTimeout), string(state.OutcomeCrashed):
		return look{"critical", "✕"}
	default:
		return look{"warning", "▲"}
	}
}

// badgeLike returns a word about something's state, to be seen at a glance, with the
// look of another word.
func badgeLike(word, like string) template.HTML {
	l := lookOf(like)
	return template.HTML(`<span class="badge ` + l.class + `"><span aria-hidden="true">` + l.symbol + `</span> ` +
		template.HTMLEscapeString(word) + `</span>`)
}

// prose returns text in which commands are in backticks.
func prose(s string) template.HTML {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "`")
		command, after, closed := strings.Cut(rest, "`")
		if !found || !closed {
			b.WriteString(template.HTMLEscapeString(s))
			return template.HTML(b.String())
		}
		b.WriteString(template.HTMLEscapeString(before))
		b.WriteString("<code>")
		b.WriteString(template.HTMLEscapeString(command))
		b.WriteString("</code>")
		s = after
	}
}

// brief returns as much of a text as can be read at a glance.
func brief(s string) string {
	const most = 240
	n := 0
	for i := range s {
		if n == most {
			if space := strings.LastIndexByte(s[:i], ' '); space > i/2 {
				i = space
			}
			return s[:i] + " …"
		}
		n++
	}
	return s
}

// took returns a time that something took, with three digits.
func took(seconds float64) string {
	switch {
	case seconds <= 0:
		return "0 s"
	case seconds < 0.9995e-6:
		return digits(seconds*1e9) + " ns"
	case seconds < 0.9995e-3:
		return digits(seconds*1e6) + " µs"
	case seconds < 0.9995:
		return digits(seconds*1e3) + " ms"
	default:
		return digits(seconds) + " s"
	}
}

// digits returns a positive number with three digits, or with those before the point
// if there are more.
func digits(f float64) string {
	after := 2 - int(math.Floor(math.Log10(f)+0.0005))
	s := strconv.FormatFloat(f, 'f', min(max(after, 0), 2), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// number returns a number with its thousands apart.
func number[T ~int | ~int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// size returns a number of bytes in words.
func size(n int64) string {
	f := float64(n)
	for _, unit := range []string{"bytes", "KiB", "MiB", "GiB", "TiB"} {
		if f < 1000 || unit == "TiB" {
			return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + " " + unit
		}
		f /= 1024
	}
	return ""
}

// percent returns how much of a limit is used up.
func percent(n, limit int64) string {
	p := 100 * float64(n) / float64(limit)
	switch {
	case limit <= 0:
		return ""
	case n > 0 && p < 1:
		return "<1 %"
	default:
		return strconv.FormatFloat(math.Floor(p), 'f', 0, 64) + " %"
	}
}

// some returns a number of things by name.
func some(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + more
}

// hex returns a number as ids of vendors and parts are written.
func hex(n uint32) string { return fmt.Sprintf("0x%04x", n) }

// short returns as much of a container's id as its runtime prints.
func short(id string) string {
	const printed = 12
	n := 0
	for i := range id {
		if n == printed {
			return id[:i]
		}
		n++
	}
	return id
}

// clock tells when something was.
type clock struct{ now time.Time }

// When returns how long ago something was.
func (c clock) When(t time.Time) template.HTML {
	if t.IsZero() {
		return "at no known time"
	}
	return c.stamp(t, api.Age(c.now.Sub(t))+" ago")
}

// For returns for how long something has been so.
func (c clock) For(t time.Time) template.HTML {
	if t.IsZero() {
		return "for an unknown time"
	}
	return "for " + c.stamp(t, api.Age(c.now.Sub(t)))
}

// Exactly returns the time that it is.
func (c clock) Exactly() template.HTML {
	return c.stamp(c.now, c.now.UTC().Format("2006-01-02 15:04:05 UTC"))
}

func (c clock) stamp(t time.Time, words string) template.HTML {
	exact := t.UTC().Format("2006-01-02T15:04:05Z")
	return template.HTML(`<time datetime="` + exact + `" title="` + exact + `">` + words + `</time>`)
}
