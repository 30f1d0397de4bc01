package terminal_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/terminal"
)

// line returns the first line of the report of these devices that has some words, in ASCII
// and on a wide screen.
func line(t *testing.T, words string, devices ...api.Device) string {
	t.Helper()
	text := write(t, of(devices...), terminal.Screen{Width: 120})
	for l := range strings.Lines(text) {
		if strings.Contains(l, words) {
			return strings.TrimSpace(l)
		}
	}
	t.Errorf("no line has %q:\n%s", words, text)
	return ""
}

// A bar is as full as what it stands for, but only what is full looks so.
func TestGauge(t *testing.T) {
	t.Parallel()
	for used, want := range map[int64]string{
		0: "..........", 49: "..........", 50: "#.........", 949: "#########.", 950: "#########.", 999: "#########.", 1000: "##########", 2000: "##########",
	} {
		d := healthy("mlx5_0")
		d.Resources.Types = []api.Type{{Type: "pd", Objects: used, User: used, Limit: new(int64(1000))}}
		if got := line(t, "  pd  ", d); !strings.Contains(got, " "+want+" ") {
			t.Errorf("%d of 1000: %q", used, got)
		}
	}
}

// A bar is of the colour of how near the limit is.
func TestGaugeColour(t *testing.T) {
	t.Parallel()
	for used, want := range map[int64]string{0: "\x1b[32m", 799: "\x1b[32m", 800: "\x1b[33m", 949: "\x1b[33m", 950: "\x1b[1;31m"} {
		d := healthy("mlx5_0")
		d.Resources.Types = []api.Type{{Type: "pd", Objects: used, User: used, Limit: new(int64(1000))}}
		text := write(t, of(d), terminal.Screen{Width: 120, Colour: true})
		_, row, _ := strings.Cut(text, "  pd  ")
		row, _, _ = strings.Cut(row, "\n")
		before, _, _ := strings.Cut(row, "#")
		if used == 0 {
			before, _, _ = strings.Cut(row, "..")
		}
		if !strings.HasSuffix(before, want) {
			t.Errorf("%d of 1000: %q", used, row)
		}
	}
}

// The columns of a distribution are as wide as its narrowest bin, and cover it all. What is
// no bin has none.
func TestPicture(t *testing.T) {
	t.Parallel()
	bin := func(from, to float64, samples int) api.Bin { return api.Bin{From: from, To: to, Samples: samples} }
	for want, bins := range map[string][]api.Bin{
		"@":      {bin(2e-6, 2e-6, 5), bin(0, 1e-6, 5), bin(1e-6, 2e-6, 5), bin(2e-6, 4e-6, 0)},
		"@ @":    {bin(1e-6, 2e-6, 5), bin(4e-6, 8e-6, 5)},
		"@=.":    {bin(1e-6, 2e-6, 80), bin(2e-6, 4e-6, 40), bin(4e-6, 8e-6, 1)},
		".@":     {bin(2e-6, 4e-6, 80), bin(1e-6, 2e-6, 1)},
		" @ @":   {bin(1e-6, 4e-6, 5), bin(4e-6, 8e-6, 0), bin(8e-6, 16e-6, 5)},
		"@  @ @": {bin(1e-6, 2e-6, 5), bin(8e-6, 16e-6, 5), bin(16e-6, 64e-6, 5)},
		"":       nil,
	} {
		d := healthy("mlx5_0")
		d.Latencies = []api.Latency{{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Samples: 7, P50: 1e-6, P99: 2e-6, Distribution: bins, Missed: 3}}
		got := line(t, "3 missed", d)
		if picture := strings.TrimSuffix(strings.TrimPrefix(got, "1     flush  any         7  1 us  2 us  "), "3 missed"); strings.TrimRight(picture, " ") != want {
			t.Errorf("%q, want the picture %q", got, want)
		}
	}
}

// What is not known is left out, and what is known is not.
func TestOverview(t *testing.T) {
	t.Parallel()
	d := healthy("mlx5_0")
	d.Ports = []api.Port{{Number: 1, State: "active"}, {Number: 2, State: "down"}, {Number: 3, State: "active"}}
	d.Latencies = []api.Latency{
		{Port: 1, Path: state.PathLoopback, Mode: state.ModeAny},
		{Port: 1, Path: state.PathLoopback, Mode: state.ModePoll, Samples: 5, P50: 1e-6},
		{Port: 1, Path: state.PathFlush, Mode: state.ModeAny, Samples: 5, P50: 7e-6},
	}
	got := line(t, "2 active, 1 down", d, healthy("mlx5_1"))
	if !strings.Contains(got, "7 us") {
		t.Errorf("got %q", got)
	}
}

// A way is told with what it stands in for, and none is, too.
func TestWays(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]api.Way{
		"flush port 1: sends":                           {Port: 1, Path: state.PathFlush, By: "sends"},
		"flush port 1: sends, not receives":             {Port: 1, Path: state.PathFlush, By: "sends", InsteadOf: "receives"},
		"loopback port 2: no way found, not an address": {Port: 2, Path: state.PathLoopback, InsteadOf: "an address"},
	} {
		d := healthy("mlx5_0")
		d.Ways = []api.Way{w}
		if got := line(t, fmt.Sprintf("%s port %d", w.Path, w.Port), d); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Asynchronous events are told with the run in which they came.
func TestEvents(t *testing.T) {
	t.Parallel()
	d := healthy("mlx5_0")
	run := *d.Run
	run.Events = []api.Events{{Type: "port_err", Port: 1, Count: 2}, {Type: "device_fatal", Count: 1}}
	d.Run = &run
	if got := line(t, "; event:", d); !strings.Contains(got, "; event: 2 x port_err of port 1; event: 1 x device_fatal") {
		t.Errorf("got %q", got)
	}
}

// Of how many vectors those that were measured are is told if it is known and they are
// not all. Each line of bars begins with the number of its first.
func TestVectorLines(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		measured, vectors int
		want              string
		lines             []int
	}{
		{8, 8, " 8 measured, ", []int{0}},
		{8, 9, " 8 measured of 9, ", []int{0}},
		{8, -1, " 8 measured, ", []int{0}},
		{60, 60, " 60 measured, ", []int{0}},
		{61, 61, " 61 measured, ", []int{0, 60}},
		{130, 130, " 130 measured, ", []int{0, 60, 120}},
	} {
		d := healthy("mlx5_0")
		d.Vectors, d.Identity.CompletionVectors = vectors(tc.measured, 5e-6), tc.vectors
		if tc.vectors < 0 {
			d.Identity = nil
		}
		text := write(t, of(d), terminal.Screen{Width: 72})
		_, text, found := strings.Cut(text, "Completion vectors:"+tc.want)
		if !found {
			t.Errorf("%d of %d: not told", tc.measured, tc.vectors)
		}
		var lines []int
		for l := range strings.Lines(text) {
			if first, bars, _ := strings.Cut(strings.TrimSpace(l), " "); bars != "" && strings.Trim(bars, "*#@") == "" {
				n, err := strconv.Atoi(first)
				if err != nil {
					t.Error(err)
				}
				lines = append(lines, n)
			}
		}
		if !slices.Equal(lines, tc.lines) {
			t.Errorf("%d of %d: lines from %v, want %v", tc.measured, tc.vectors, lines, tc.lines)
		}
	}
}

// What a driver is known for is in a document, which is named by its URL where that is known.
func TestDocument(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "https://git.example/"} {
		s := of(knowing(), knowing())
		s.DocsURL = url
		if got, want := strings.Join(strings.Fields(write(t, s, terminal.Screen{})), " "), "known to ("+url+"docs/reference/contracts.md)"; !strings.Contains(got, want) {
			t.Errorf("no %q:\n%s", want, got)
		}
	}
}
