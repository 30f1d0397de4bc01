//go:build prometheus

package prometheus_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// kind is what an expression is for.
type kind string

const (
	kindPanel      kind = "panel"
	kindVariable   kind = "variable"
	kindAnnotation kind = "annotation"
	kindRecording  kind = "recording rule"
	kindRecorded   kind = "recorded series"
	kindAlert      kind = "alert"
)

// expression is one that Prometheus is to answer.
type expression struct {
	// file is the name of the file that it is in, name what it is called there.
	file, name string
	kind       kind
	text       string
	// instant and ranged are how it is asked: at a time, over time, or both.
	instant, ranged bool

	// The rest is there in dashboards only. step is the distance of points of an
	// annotation; legends are texts that are filled with labels.
	dashboard *dashboard
	panel     each
	target    target
	variable  string
	step      string
	legends   []string

	// labels are those that any of its series ever had, nil before it returned any.
	labels map[string]bool
	// found are the series that it returned when it was last asked.
	found []series
}

// id names the expression in lists and messages.
func (e *expression) id() string { return e.file + "/" + e.name }

// proof is what is to be proven: that each expression returns data.
type proof struct {
	api         *api
	dashboards  []*dashboard
	expressions []*expression
	exceptions  exceptions
	// troubled and healthy are the instances on which alerts must and must not find
	// anything. Without any it does not matter where they do.
	troubled, healthy []string
	// patience is how long the expressions may take to return data.
	patience time.Duration
	// stir, if there is any, is called every few minutes while some return none: what
	// happens once may go unseen on a busy host.
	stir func()
}

// newProof collects the expressions of dashboards and rules. Each file must have
// some.
func newProof(t testing.TB, dashboards []*dashboard, rules []ruleFile) *proof {
	t.Helper()
	// All are waited for together, and some only after others.
	p := &proof{dashboards: dashboards, patience: 20 * time.Minute}
	add := func(file string, some []*expression) {
		if len(some) == 0 {
			t.Errorf("%s has no expression", file)
		}
		p.expressions = append(p.expressions, some...)
	}
	for _, d := range dashboards {
		add(d.file, d.expressions(t))
	}
	for _, f := range rules {
		add(f.name, f.expressions(t))
	}
	seen := make(map[string]bool)
	for _, e := range p.expressions {
		if seen[e.id()] {
			t.Errorf("two expressions are called %s", e.id())
		}
		seen[e.id()] = true
		if e.kind != kindVariable && !e.instant && !e.ranged {
			t.Errorf("%s is never asked", e.id())
		}
	}
	return p
}

// prove asks Prometheus until each expression has returned data that is to, and then
// makes sure that those that are not to return none, that alerts find nothing on
// healthy instances, that nothing fails whatever the reader chooses, and, where there
// is trouble, that the labels exist that anything is named after.
func (p *proof) prove(t testing.TB) {
	t.Helper()
	p.exceptions.check(t, p.expressions)
	missing := slices.DeleteFunc(slices.Clone(p.expressions), func(e *expression) bool {
		return reason(p.exceptions.Empty, e)+reason(p.exceptions.Stirred, e)+reason(p.exceptions.Either, e) != ""
	})
	began := time.Now()
	stirred := began
	for deadline := began.Add(p.patience); ; time.Sleep(time.Second) {
		p.api.MustRun(t)
		missing = p.ask(t, missing, time.Now(), false)
		if t.Failed() || len(missing) == 0 || time.Now().After(deadline) {
			break
		}
		if p.stir != nil && time.Since(stirred) > 3*time.Minute {
			p.stir()
			stirred = time.Now()
		}
	}
	for _, e := range missing {
		t.Errorf("%s returns nothing:\n%s", e.id(), e.text)
	}
	if t.Failed() {
		return
	}
	if stirred.Equal(began) {
		maps.Copy(p.exceptions.Empty, p.exceptions.Stirred)
	}

	t.Logf("each expression had returned data after %v", time.Since(began).Round(time.Second))

	began = time.Now()
	now := p.scraped(t)
	empty := p.ask(t, p.expressions, now, true)
	for _, e := range p.expressions {
		if why := reason(p.exceptions.Empty, e); why != "" && !slices.Contains(empty, e) {
			t.Errorf("%s returns data, although it is listed as empty because: %s", e.id(), why)
		}
		p.checkHealthy(t, e, now)
	}
	// Without trouble there are labels that no series has.
	if len(p.troubled) > 0 {
		p.checkNames(t)
	}
	t.Logf("all expressions, with each choice of variables, took %v", time.Since(began).Round(time.Second))
	t.Logf("%d of %d expressions return no data at the end", len(empty), len(p.expressions))
}

// scraped returns a time before which the last scrape of each healthy instance had
// succeeded: where all stands still for some seconds, now and then one fails.
func (p *proof) scraped(t testing.TB) time.Time {
	t.Helper()
	var now time.Time
	running.Eventually(t, fmt.Sprintf("scrapes of %v succeed", p.healthy), func() bool {
		now = time.Now()
		running.Eventually(t, fmt.Sprintf("more scrapes of %v", p.healthy), func() bool {
			// What comes of a scrape is told when it ends, as of its begin: with this one
			// all is known of the time before it.
			last := p.api.byInstance(t, "timestamp(up)", time.Now())
			return !slices.ContainsFunc(p.healthy, func(instance string) bool { return last[instance] <= float64(now.UnixMilli())/1000 })
		})
		up := p.api.byInstance(t, "up", now)
		return !slices.ContainsFunc(p.healthy, func(instance string) bool { return up[instance] != 1 })
	})
	return now
}

// ask evaluates expressions at a time, and returns those that returned no data.
// Thorough, it evaluates them with each choice that the reader of a dashboard has.
func (p *proof) ask(t testing.TB, some []*expression, now time.Time, thorough bool) (empty []*expression) {
	t.Helper()
	g := grafana{api: p.api, now: now}
	choices := make(map[*dashboard][]scope)
	for _, d := range p.dashboards {
		all, err := g.situations(d)
		if err != nil {
			t.Error(err)
			return nil
		}
		choices[d] = all
	}
	var askers sync.WaitGroup
	room := make(chan struct{}, 4)
	for _, e := range some {
		situations := choices[e.dashboard]
		if e.dashboard == nil {
			situations = []scope{{}}
		}
		room <- struct{}{}
		askers.Go(func() {
			defer func() { <-room }()
			if err := p.askOne(g, e, situations, thorough); err != nil {
				t.Errorf("%s: %v", e.id(), err)
			}
		})
	}
	askers.Wait()
	return slices.DeleteFunc(slices.Clone(some), func(e *expression) bool { return p.has(e) })
}

// askOne evaluates an expression in situations, until it returns data or, thorough,
// in each.
func (p *proof) askOne(g grafana, e *expression, situations []scope, thorough bool) error {
	e.found = nil
	// What fails with one choice of the reader does so at any time.
	once := thorough && reason(p.exceptions.Empty, e) == ""
	for i, s := range situations {
		found, err := p.evaluate(g, e, s, once)
		if err == nil && thorough && i == 0 && e.dashboard != nil {
			_, err = p.evaluate(g, e, s.single(), once)
		}
		if err != nil {
			return err
		}
		e.remember(found)
		if !thorough && p.has(e) {
			break
		}
	}
	return nil
}

func (p *proof) evaluate(g grafana, e *expression, s scope, once bool) ([]series, error) {
	if e.dashboard != nil {
		return g.evaluate(e, s, once)
	}
	return p.api.query(e.text, g.now)
}

// has reports whether the expression found what it is to find: an alert is to find
// trouble where it is.
func (p *proof) has(e *expression) bool {
	return slices.ContainsFunc(e.found, func(s series) bool {
		instance := s.labels["instance"]
		return s.hasNumber() && (e.kind != kindAlert || instance == "" || len(p.troubled) == 0 || slices.Contains(p.troubled, instance))
	})
}

func (e *expression) remember(found []series) {
	e.found = append(e.found, found...)
	for _, s := range found {
		if e.labels == nil {
			e.labels = make(map[string]bool)
		}
		for name := range s.labels {
			e.labels[name] = true
		}
	}
}

// checkHealthy makes sure that an alert, asked at a time, found nothing on healthy
// instances.
func (p *proof) checkHealthy(t testing.TB, e *expression, now time.Time) {
	t.Helper()
	if e.kind != kindAlert {
		return
	}
	why, fires := reason(p.exceptions.Healthy, e), false
	for _, s := range e.found {
		instance := s.labels["instance"]
		if !slices.Contains(p.healthy, instance) {
			continue
		}
		fires = true
		if why == "" && (reason(p.exceptions.Unscraped, e) == "" || p.alwaysUp(t, instance, now)) {
			t.Errorf("%s finds something on a healthy instance: %v", e.id(), s.labels)
		}
	}
	if why != "" && !fires {
		t.Errorf("%s finds nothing on healthy instances, although it is listed as finding something because: %s", e.id(), why)
	}
}

// alwaysUp reports whether no scrape of an instance had failed at a time.
func (p *proof) alwaysUp(t testing.TB, instance string, now time.Time) bool {
	t.Helper()
	found := running.Must(p.api.query(fmt.Sprintf("min_over_time(up{instance=%q}[1h]) == 1", instance), now))(t)
	return len(found) > 0
}
