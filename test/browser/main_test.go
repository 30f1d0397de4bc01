//go:build browser

package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"rdma_exporter/test/running"
)

const (
	envExporter = "RDMA_EXPORTER_BINARY"
	envChromium = "RDMA_CHROMIUM"
)

var (
	// exporterFile is the exporter under test.
	exporterFile string
	// chromium is the context of the browser, in which each test has tabs of its own.
	chromium context.Context
	// screenshots is the folder of what the browser showed.
	screenshots string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	end, err := prepare()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer end()
	return m.Run()
}

// prepare finds the exporter and starts the browser. The caller calls end.
func prepare() (end func(), err error) {
	var browserFile string
	for _, f := range []struct {
		env, how string
		file     *string
	}{
		{envExporter, "make build builds it", &exporterFile},
		{envChromium, "tools/packages chromium installs /usr/bin/chromium", &browserFile},
	} {
		*f.file = os.Getenv(f.env)
		if !filepath.IsAbs(*f.file) {
			err = errors.Join(err, fmt.Errorf("%s is %q and must be the absolute path of a program: %s, and make test-browser does it all", f.env, *f.file, f.how))
		} else if _, statErr := os.Stat(*f.file); statErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w: %s", f.env, statErr, f.how))
		}
	}
	if err != nil {
		return nil, err
	}

	if screenshots, err = filepath.Abs(filepath.Join("..", "..", ".cache", "screenshots")); err != nil {
		return nil, err
	}
	// A run of all tests removes the screenshots of earlier ones.
	if flag.Lookup("test.run").Value.String() == "" {
		if err := os.RemoveAll(screenshots); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(screenshots, 0o755); err != nil {
		return nil, err
	}

	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browserFile),
		// Nothing of this host's settings may change what is shown.
		chromedp.Flag("lang", "en-GB"),
		chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("disable-gpu", true),
		chromedp.WSURLReadTimeout(running.Patience),
	)
	allocator, freeAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	browser, closeBrowser := chromedp.NewContext(allocator)
	if err := chromedp.Do(browser); err != nil {
		closeBrowser()
		freeAllocator()
		return nil, fmt.Errorf("start %s: %w", browserFile, err)
	}
	chromium = browser
	return func() {
		closeBrowser()
		freeAllocator()
	}, nil
}
