package dashboards

import (
	"regexp"
	"strings"
)

// classic finds what is asked of the classic form of those metrics that are histograms.
func classic() (buckets, parts *regexp.Regexp) {
	const (
		name = `(rdma_notification_latency_seconds|rdma_verbs_call_latency_seconds)`
		rest = `((?:\{[^}]*\})?\[[^\]]*\])`
	)
	return regexp.MustCompile(name + `_bucket\b`), regexp.MustCompile(`\b(rate|increase)\(` + name + `_(sum|count)` + rest + `\)`)
}

// NativeExpression rewrites an expression, or a text with some, for a Prometheus that
// keeps native histograms in place of classic ones.
func NativeExpression(text string) string {
	buckets, parts := classic()
	text = parts.ReplaceAllString(text, "histogram_$3($1($2$4))")
	if !buckets.MatchString(text) {
		return text
	}
	text = buckets.ReplaceAllString(text, "$1")
	return strings.NewReplacer(", le)", ")", " by (le) (", "(").Replace(text)
}

// Native returns those of the dashboards that are others for native histograms. They have
// the uids of those whose place they take.
func Native() []Dashboard {
	var changed []Dashboard
	for _, d := range All() {
		same := true
		rewrite := func(p *Panel) {
			for i, t := range p.Targets {
				p.Targets[i].Expr = NativeExpression(t.Expr)
				same = same && p.Targets[i].Expr == t.Expr
			}
		}
		for i, e := range d.Panels {
			switch e := e.(type) {
			case Row:
				for j := range e.Panels {
					rewrite(&e.Panels[j])
				}
			case Panel:
				rewrite(&e)
				d.Panels[i] = e
			}
		}
		if !same {
			changed = append(changed, d)
		}
	}
	return changed
}
