//go:build browser

package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"rdma_exporter/test/running"
)

// view is how the page is looked at.
type view struct {
	width, height int64
	// phone is one with a touch screen, which lays pages out for its width.
	phone, dark bool
}

func (v view) String() string { return fmt.Sprintf("%d-%s", v.width, v.scheme()) }

func (v view) scheme() string {
	if v.dark {
		return "dark"
	}
	return "light"
}

// views returns the views of every state. 320 pixels is the width of small phones, and of a
// desktop at a zoom of 400 %.
func views() []view {
	return []view{
		{width: 320, height: 640, phone: true},
		{width: 390, height: 844, phone: true},
		{width: 1280, height: 900},
		{width: 1280, height: 900, dark: true},
	}
}

type tab struct {
	ctx  context.Context
	view view

	// answering waits for alerts to be answered.
	answering sync.WaitGroup

	mu sync.Mutex
	// requests are the requested addresses, noise the complaints of the browser.
	requests, noise []string
}

// open opens a page in a tab, which is closed when the test ends.
func open(t *testing.T, url string, v view, before ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(chromium)
	t.Cleanup(closeTab)
	// The first use opens the tab, and must not be bound to a deadline.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, running.Patience)
	t.Cleanup(cancel)
	b := &tab{ctx: ctx, view: v}
	t.Cleanup(b.answering.Wait)
	running.Check(t, chromedp.Listen(ctx, b.note))
	steps := []chromedp.Action[chromedp.Void]{
		call(log.Enable, cdp.Empty{}),
		call(audits.Enable, cdp.Empty{}),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme()}},
		}),
		chromedp.EmulateViewport(v.width, v.height, v.emulate()...),
	}
	steps = append(append(steps, before...), chromedp.Navigate(url))
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	return b
}

func (v view) emulate() []chromedp.EmulateViewportOption {
	if !v.phone {
		return nil
	}
	return []chromedp.EmulateViewportOption{chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait, chromedp.EmulateScale(v.scale())}
}

// scale is the number of pixels for one of CSS.
func (v view) scale() float64 {
	if v.phone {
		return 2
	}
	return 1
}

// call returns a command of DevTools whose result does not matter.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func bypassPolicy() chromedp.Action[chromedp.Void] {
	return call(page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true})
}

func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	complain := func(format string, args ...any) { b.noise = append(b.noise, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			complain("%s was answered %d", e.Response.URL, e.Response.Status)
		}
	case *network.EventLoadingFailed:
		complain("a request failed: %s %s", e.ErrorText, e.BlockedReason)
	case *log.EventEntryAdded:
		complain("%s of %s: %s %s", e.Entry.Level, e.Entry.Source, e.Entry.Text, e.Entry.URL)
	case *audits.EventIssueAdded:
		complain("issue: %s", e.Issue.Code)
	case *runtime.EventConsoleAPICalled:
		complain("a script wrote to the console: %s", e.Type)
	case *runtime.EventExceptionThrown:
		complain("a script threw: %s", e.ExceptionDetails.Text)
	case *page.EventJavascriptDialogOpening:
		complain("a dialog opened: %s", e.Message)
		// Until it is closed, the page does nothing else. This function must not wait.
		b.answering.Go(func() {
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		})
	}
}

func (b *tab) noted() (requests, noise []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests), slices.Clone(b.noise)
}

func evaluate[T any](t *testing.T, b *tab, script string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatalf("evaluate %.60s…: %v", strings.TrimSpace(script), err)
	}
	return v
}

// maxShot limits the height of a screenshot, in pixels. The browser cannot draw more at once.
const maxShot = 7000

// shoot stores what is in the window, or the whole page, as NAME.png.
func (b *tab) shoot(t *testing.T, name string, whole bool) {
	t.Helper()
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
	if whole {
		height := min(evaluate[float64](t, b, "document.documentElement.scrollHeight"), maxShot)
		beyond := true
		params.CaptureBeyondViewport = &beyond
		// One pixel for each of CSS is enough, and quicker by far.
		params.Clip = &page.Viewport{Width: float64(b.view.width), Height: height, Scale: 1 / b.view.scale()}
	}
	result, err := chromedp.Call(b.ctx, page.CaptureScreenshot, params)
	if err != nil {
		t.Errorf("screenshot %s: %v", name, err)
		return
	}
	file := filepath.Join(screenshots, name+".png")
	if err := os.WriteFile(file, result.Data, 0o644); err != nil {
		t.Error(err)
		return
	}
	t.Logf("screenshot: %s", file)
}
