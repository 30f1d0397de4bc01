package web

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed device.html
	deviceHTML string
	//go:embed page.css
	pageCSS string
)

// Bounds of the interval between reloads, in seconds.
const (
	minRefresh = 5
	maxRefresh = 3600
)

func newPage(c Config) http.Handler {
	// The templates take memory only once the page is opened.
	templates := sync.OnceValues(pageTemplates)
	body := rendering(c, "text/html; charset=utf-8", func(w io.Writer, now time.Time) error {
		t, err := templates()
		if err != nil {
			return err
		}
		return t.Execute(w, viewOf(c.Status(now), c.MetricsPath))
	})
	// The policy allows only the page's own style, so that text from a device can do no harm
	// even if it gets past escaping.
	hash := sha256.Sum256([]byte(pageCSS))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		if s, err := strconv.Atoi(r.URL.Query().Get("refresh")); err == nil {
			h.Set("Refresh", strconv.Itoa(min(max(s, minRefresh), maxRefresh)))
		}
		body.ServeHTTP(w, r)
	})
}

func pageTemplates() (*template.Template, error) {
	t, err := template.New("page").Funcs(functions()).Parse(pageHTML)
	if err == nil {
		_, err = t.Parse(deviceHTML)
	}
	if err != nil {
		return nil, fmt.Errorf("template of the status page: %w", err)
	}
	return t, nil
}
