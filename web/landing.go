package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/report"
)

//go:embed landing.html
var landingHTML string

//go:embed landing.css
var landingCSS string

// simulatedProvider is the provider whose devices exist only to try the exporter.
const simulatedProvider = "simulated"

// landing is the page for people: which devices there are, how they did, and
// where to find more.
type landing struct {
	config   Config
	template *template.Template
	// policy is the Content-Security-Policy. It allows nothing but the page's own
	// style: text from a device could not do harm even if it got past escaping.
	policy string
}

// view is what the template shows.
type view struct {
	Style          template.CSS
	Version        string
	Simulated      bool
	Known          bool
	DiscoveryError string
	Devices        []deviceView
	MetricsPath    string
	HealthyPath    string
	ReadyPath      string
}

// deviceView is a row of the table of devices.
type deviceView struct {
	Name    string
	Ports   string
	Outcome string
	Age     string
	Error   string
	Stuck   string
}

func newLanding(c Config) (*landing, error) {
	t, err := template.New("landing").Parse(landingHTML)
	if err != nil {
		return nil, fmt.Errorf("template of the landing page: %w", err)
	}
	hash := sha256.Sum256([]byte(landingCSS))
	return &landing{
		config:   c,
		template: t,
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}, nil
}

// ServeHTTP implements http.Handler.
func (l *landing) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var page bytes.Buffer
	if err := l.template.Execute(&page, l.view()); err != nil {
		l.config.Logger.Error("Cannot make the landing page", "err", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", l.policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	// An error means that the client is gone, and there is nobody to tell.
	_, _ = page.WriteTo(w)
}

func (l *landing) view() view {
	v := view{
		Style:       template.CSS(landingCSS), //nolint:gosec // It is a file of the module.
		Version:     printable(l.config.Version),
		MetricsPath: l.config.MetricsPath,
		HealthyPath: healthyPath,
		ReadyPath:   readyPath,
	}
	s := l.config.Snapshot()
	if s == nil {
		return v
	}
	v.Known = true
	v.Simulated = s.Provider == simulatedProvider
	v.DiscoveryError = printable(s.DiscoveryError)
	now := l.config.Now()
	for i := range s.Devices {
		v.Devices = append(v.Devices, viewOf(&s.Devices[i], now))
	}
	return v
}

func viewOf(d *report.DeviceState, now time.Time) deviceView {
	v := deviceView{Name: printable(d.Name), Outcome: "not probed yet"}
	if d.Info != nil {
		var ports []string
		for _, p := range d.Info.Ports {
			ports = append(ports, strconv.Itoa(p.Number)+": "+printable(p.State))
		}
		v.Ports = strings.Join(ports, ", ")
	}
	if d.Last != nil {
		v.Outcome = printable(string(d.Last.Outcome))
		v.Age = age(now.Sub(d.Last.Started)) + " ago"
		v.Error = printable(d.Last.Error)
	}
	if d.Stuck != nil {
		v.Stuck = fmt.Sprintf("process %d, which was killed, has not ended for %s", d.Stuck.PID, age(now.Sub(d.Stuck.Since)))
		if d.Stuck.Verb != "" {
			v.Stuck += "; it is in " + printable(d.Stuck.Verb)
		}
	}
	if !d.Present {
		v.Outcome = "gone"
	}
	return v
}

// age rounds a duration to what is of use to a reader. A clock that was set back
// makes none negative.
func age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	default:
		return strconv.Itoa(int(d/(24*time.Hour))) + " days"
	}
}
