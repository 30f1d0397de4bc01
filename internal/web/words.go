package web

import (
	"cmp"
	"fmt"
	"html/template"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

func functions() template.FuncMap {
	return template.FuncMap{
		"lastProbes": func(d deviceView) []state.ProbeResult {
			return slices.DeleteFunc(d.Probes(), func(p state.ProbeResult) bool { return p.Status == "" })
		},
		"limits": func(d deviceView) []state.Limit {
			info := cmp.Or(d.Info, new(state.Device))
			return slices.Concat(info.Limits, info.Extended)
		},
		"memoryOf":      collect(func(p state.Probe) []state.Memory { return p.Memory }),
		"methods":       collect(func(p state.Probe) []state.Method { return p.Methods }),
		"registrations": collect(func(p state.Probe) []state.Registration { return p.Registrations }),
		"paths":         func(d deviceView) []api.PathRow { return api.PathRows(d.Name, d.Paths, d.now) },
		"pathColumns":   api.PathColumns,
		"speed":         api.Speed,
		"counts":        api.Counts,
		"event":         api.Event,
		"growth":        api.Growth,
		"inline":        api.Inline,
		"registration":  api.Registration,
		"steadiness":    api.Steadiness,
		"until":         text.Until,
		"wrong":         api.LatencyErrors,
		"badge":         func(word any) template.HTML { return badgeLike(fmt.Sprint(word), fmt.Sprint(word)) },
		"strip":         strip,
		"brief":         brief,
		"class":         func(word any) string { return badgeStyleOf(fmt.Sprint(word)).class },
		"date":          text.Date,
		"distribution":  func(l state.Latency, a axis) template.HTML { return distribution(&l, a) },
		"first":         first,
		"hex":           func(n uint32) string { return fmt.Sprintf("0x%04x", n) },
		"like":          func(word, like any) template.HTML { return badgeLike(fmt.Sprint(word), fmt.Sprint(like)) },
		"memlock":       api.Memlock,
		"method":        api.Method,
		"memory":        func(n *int64) string { return text.Bytes(*n) },
		"more":          func(n int, list any) int { return max(0, reflect.ValueOf(list).Len()-n) },
		"number":        text.NumberOf,
		"percent":       text.Percent,
		"prose":         documents{}.Prose,
		"short":         text.ShortID,
		"size":          text.Bytes,
		"some":          text.Count[int],
		"took":          text.Duration,
		"words":         func(name string) string { return strings.ReplaceAll(name, "_", " ") },
	}
}

func collect[T any](of func(state.Probe) []T) func([]state.Probe) []T {
	return func(probes []state.Probe) []T {
		var all []T
		for _, p := range probes {
			all = append(all, of(p)...)
		}
		return all
	}
}

func first(n int, list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, min(n, v.Len())).Interface()
}

type badgeStyle struct{ class, symbol string }

// badgeStyleOf returns the style of a health, a severity, an outcome, a status, a verdict or
// the state of a port. Any other word is a warning.
func badgeStyleOf(word string) badgeStyle {
	switch word {
	case string(health.OK), string(state.VerdictHolds), "active", "active_defer":
		return badgeStyle{"ok", "✓"}
	case string(health.SeverityInfo):
		return badgeStyle{"info", "i"}
	case string(health.Unknown), string(state.StatusSkipped):
		return badgeStyle{"unknown", "–"}
	case string(health.Critical), string(state.OutcomeFailed), string(state.OutcomeTimeout), string(state.OutcomeCrashed):
		return badgeStyle{"critical", "✕"}
	default:
		return badgeStyle{"warning", "▲"}
	}
}

// badgeLike returns a word about something's state, to be seen at a glance, with the
// look of another word.
func badgeLike(word, like string) template.HTML {
	l := badgeStyleOf(like)
	return template.HTML(`<span class="badge ` + l.class + `"><span aria-hidden="true">` + l.symbol + `</span> ` +
		template.HTMLEscapeString(word) + `</span>`)
}

// documents is the URL that goes before the paths of documents. If it is empty, nothing
// leads to them.
type documents struct{ url string }

// Finding returns the name of a kind of finding.
func (d documents) Finding(kind health.Kind) template.HTML { return d.named("findings", string(kind)) }

// Contract returns the name of a contract.
func (d documents) Contract(name string) template.HTML { return d.named("contracts", name) }

func (d documents) named(page, name string) template.HTML {
	code := "<code>" + template.HTMLEscapeString(name) + "</code>"
	if d.url == "" {
		return template.HTML(code)
	}
	return template.HTML(`<a href="` + template.HTMLEscapeString(d.url+"docs/reference/"+page+".md#"+name) + `">` + code + `</a>`)
}

// Prose returns text with commands, which are in backticks, and with links to the documents
// that it names. A full stop after a link belongs to the sentence.
func (d documents) Prose(s string) template.HTML {
	pattern := "`[^`]*`"
	if d.url != "" {
		pattern += "|" + regexp.QuoteMeta(template.HTMLEscapeString(d.url+"docs/")) + "[a-z/.#_]*[a-z/#_]"
	}
	return template.HTML(regexp.MustCompile(pattern).ReplaceAllStringFunc(template.HTMLEscapeString(s), func(m string) string {
		if strings.HasPrefix(m, "`") {
			return "<code>" + strings.Trim(m, "`") + "</code>"
		}
		return `<a href="` + m + `">` + m + "</a>"
	}))
}

func brief(s string) string { return text.Truncate(s, 240) }

type clock struct{ now time.Time }

// When returns how long ago something was.
func (c clock) When(t time.Time) template.HTML { return stamp(t, text.Ago(c.now, t)) }

// For returns for how long something has been so.
func (c clock) For(t time.Time) template.HTML {
	if t.IsZero() {
		return "for an unknown time"
	}
	return "for " + stamp(t, text.Age(c.now.Sub(t)))
}

// Exactly returns the time that it is.
func (c clock) Exactly() template.HTML { return stamp(c.now, text.Moment(c.now)) }

// stamp returns words about a time with the time itself, if it is known, for those who
// point at them.
func stamp(t time.Time, words string) template.HTML {
	if t.IsZero() {
		return template.HTML(words)
	}
	return template.HTML(`<time datetime="` + t.UTC().Format(time.RFC3339) + `" title="` + text.Moment(t) + `">` + words + `</time>`)
}
