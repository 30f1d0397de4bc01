package terminal_test

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/test/golden"
)

func write(t testing.TB, s *api.Status, screen terminal.Screen) string {
	t.Helper()
	var b bytes.Buffer
	if err := terminal.Write(&b, s, end(s), screen); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// end is how an audit ends that found a status.
func end(s *api.Status) terminal.End {
	e := terminal.End{Status: 1, FailOn: "warning"}
	if s.Health == api.HealthOK {
		e.Status = 0
	}
	return e
}

// cases are the statuses that the tests look at.
func cases() map[string]*api.Status {
	info := ill(healthy("mlx5_0"), api.Finding{
		Kind: health.FindingPortDown, Severity: api.SeverityInfo, Subject: "port 2", Message: "1 of 2 ports active: port 2 is down.", Action: "See `rdma link show`.",
	})
	gone := ill(healthy("mlx5_0"), api.Finding{
		Kind: health.FindingUnusable, Severity: api.SeverityCritical, Subject: "the device", Message: "The device had vanished.", Action: "Look at `dmesg`.",
	})
	gone.Present = false
	accepted := violated()
	for i := range accepted.Findings {
		accepted.Findings[i].Accepted = &api.Acceptance{Reason: "fixed in firmware 29, due in April", Until: began().AddDate(0, 2, 0)}
	}
	accepted.Health, accepted.Headline = api.HealthOK, "No action needed. Accepted: 1 finding."
	accepting := of(healthy("mlx5_1"), accepted)
	accepting.FindingCounts = []api.SeverityCount{{Severity: api.SeverityCritical, Accepted: len(accepted.Findings)}}
	accepting.Troubles = nil
	accepting.Findings = []api.Finding{{
		Kind: health.FindingAcceptanceUnused, Severity: api.SeverityInfo, Subject: "leaked on mlx4_.*",
		Message: "No finding of any device matches this acceptance. Its reason is: ticket 4711", Action: "Remove the item.",
	}}
	down := ill(healthy("mlx5_0"), api.Finding{
		Kind: health.FindingPortDown, Severity: api.SeverityWarning, Subject: "port 2", Message: "1 of 2 ports active: port 2 is down.", Action: "See `rdma link show`.",
	})
	since := of(down)
	since.Devices[0].Findings[0].Since = since.Generated.Add(-3 * time.Hour)
	simulated := of(healthy("sim_ib0"), violated())
	simulated.Simulated, simulated.Host = true, ""
	return map[string]*api.Status{
		"healthy": of(healthy("mlx5_0")), "accepted": accepting, "since": since, "info": of(info), "stuck": of(stuck(), healthy("mlx5_1")), "violated": of(violated()), "known": of(knowing()),
		"worn": of(worn()), "leaks": of(leaking()), "none": nobody(), "denied": of(denied()), "memlock": of(memlock()), "gone": of(gone, healthy("mlx5_1")),
		"hostile": of(hostile()), "fleet": fleet(), "simulated": simulated,
		"left_alone": of(leftAlone(true), leftAlone(false)),
		"unknown":    of(api.Device{Name: "mlx5_0", Present: true, Health: api.HealthUnknown, Headline: "Not probed yet."}),
	}
}

// more is what the reports of devices say that are healthy otherwise.
func more() map[string][]string {
	return map[string][]string{
		"info": {
			"RDMA devices of node17: OK\n1 device (1 ok), 1 finding (1 info).\n",
			"\nINFO      mlx5_0: port 2 (port_down)\n          1 of 2 ports active: port 2 is down.\n          To do: See `rdma link show`.\n\n══ mlx5_0: ok ═",
		},
		"since": {
			"RDMA devices of node17: WARNING\n1 device (1 warning), 1 finding (1 warning).\n",
			"\nWARNING   mlx5_0: port 2 (port_down), for 3 h\n          1 of 2 ports active: port 2 is down.\n", "\n══ mlx5_0: warning ═",
			"\nVerdict: WARNING, 1 device: 1 warning; exit status 1 (--fail-on=warning).\n",
		},
		"known": {
			"\n══ hns_0: ok ═", "\n  Device     driver hns, InfiniBand, firmware 20.31.1014, vendor 0x02c9, part\n             4123, hardware 0x0,",
			"\n  Contracts  ok in 2.31 s; 21 hold, 0 violated, 1 violated as the driver is\n             known to, 1 skipped\n",
			"\n  Known      cq_at_least_requested: cqe is the index of the last entry: one less\n             than the queue has. Ask for more entries than are needed.\n",
			"             qp_recv_caps_ignored_with_srq: kept here, although the driver is\n             known to break it: The sizes of the receive queue are held against\n             the limits.\n",
		},
		"memlock": {
			"\nWARNING   rxe0: notification (probe_failed)\n          Memory could not be registered: the limit on locked memory,\n          RLIMIT_MEMLOCK, is 0 bytes.\n          To do: Raise",
			"\n  Probes     failed in 413 ms: notification: loopback any: no memory region; cq\n             ok, comp_channel ok, srq ok, qp ok, notification failed\n",
			"             failed: notification: loopback any: no memory region for the\n             messages (ibv_reg_mr ENOMEM)\n",
		},
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	const ascii, utf8 = false, true
	for name, s := range cases() {
		for suffix, screen := range map[string]terminal.Screen{
			"":        {Unicode: utf8},
			".ascii":  {Unicode: ascii, Width: 100},
			".narrow": {Unicode: utf8, Width: 44},
			".colour": {Unicode: utf8, Width: 120, Colour: true},
		} {
			if suffix != "" && name != "leaks" && name+suffix != "hostile.ascii" {
				continue
			}
			t.Run(name+suffix, func(t *testing.T) {
				t.Parallel()
				report := write(t, s, screen)
				says, ok := more()[name]
				if !ok {
					golden.Check(t, filepath.Join("testdata", name+suffix+".txt"), report)
				}
				for _, text := range says {
					if !strings.Contains(report, text) {
						t.Errorf("it does not say %q:\n%s", text, report)
					}
				}
			})
		}
	}
}

// A healthy device takes at most four lines more for what the kernel tells of it.
func TestHardwareIsShort(t *testing.T) {
	t.Parallel()
	without := healthy("mlx5_0")
	without.Hardware = nil
	lines := func(d api.Device) int { return strings.Count(write(t, of(d), terminal.Screen{Unicode: true}), "\n") }
	if more := lines(healthy("mlx5_0")) - lines(without); more < 1 || more > 4 {
		t.Errorf("%d lines more", more)
	}
}

// In a log, the line of a device that hangs says in which verb.
func TestBriefNamesTheVerb(t *testing.T) {
	t.Parallel()
	d := healthy("rocep132s0f0")
	d.Health = api.HealthCritical
	d.Headline = "The last run of the probes, started at 2026-03-14 15:09:21 UTC, was killed at its deadline: timed out after 10s in ibv_destroy_comp_channel."
	s := of(d)
	var b bytes.Buffer
	if err := terminal.WriteBrief(&b, s, end(s), terminal.Screen{Unicode: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), d.Headline+"\n") {
		t.Error(b.String())
	}
}

// A line a device, whatever there is to say of it, and the verdict last.
func TestBrief(t *testing.T) {
	t.Parallel()
	for name, s := range cases() {
		brief := func(screen terminal.Screen) string {
			var b bytes.Buffer
			if err := terminal.WriteBrief(&b, s, end(s), screen); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		if name == "stuck" || name == "fleet" || name == "none" || name == "left_alone" {
			golden.Check(t, filepath.Join("testdata", name+".brief.txt"), brief(terminal.Screen{Unicode: true}))
		}
		for _, screen := range screens() {
			text := brief(screen)
			harmless(t, text, screen)
			lines := len(s.Devices) + 1
			if s.Problem != nil {
				lines++
			}
			if n := strings.Count(text, "\n"); n != lines {
				t.Errorf("%s: %d lines, want %d:\n%s", name, n, lines, text)
			}
		}
	}
}

// escapes are what a report with colours may contain of them.
var escapes = regexp.MustCompile("\x1b\\[(0|1|2|32|33|1;31)m")

// harmless makes sure that text steers no terminal.
func harmless(t *testing.T, text string, screen terminal.Screen) {
	t.Helper()
	if screen.Colour {
		text = escapes.ReplaceAllString(text, "")
	}
	if !utf8.ValidString(text) {
		t.Error("the report is not UTF-8")
	}
	for _, r := range text {
		if r != '\n' && (!unicode.IsPrint(r) || !screen.Unicode && r >= utf8.RuneSelf) {
			t.Fatalf("the report has %q: %.80q", r, text[max(strings.IndexRune(text, r)-40, 0):])
		}
	}
}

// screens are all that a report may go to.
func screens() []terminal.Screen {
	var all []terminal.Screen
	for _, width := range []int{-1, 0, 72, 1 << 30} {
		for i := range 4 {
			all = append(all, terminal.Screen{Width: width, Unicode: i&1 != 0, Colour: i&2 != 0})
		}
	}
	return all
}

// However wide the screen is: no line is longer, unless it is a single word, and
// nothing steers the terminal.
func TestReportFits(t *testing.T) {
	t.Parallel()
	for name, s := range cases() {
		for _, screen := range screens() {
			text := write(t, s, screen)
			harmless(t, text, screen)
			if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") {
				t.Errorf("%s ends in %q", name, text[len(text)-3:])
			}
			most := min(max(screen.Width, 40), 120)
			if screen.Width == 0 {
				most = terminal.DefaultWidth
			}
			for line := range strings.Lines(escapes.ReplaceAllString(text, "")) {
				line = strings.TrimSuffix(line, "\n")
				if strings.HasPrefix(line, "Verdict: ") {
					continue // It is one line, however long.
				}
				if line != strings.TrimRight(line, " ") {
					t.Errorf("%s, %+v: a space at the end of %q", name, screen, line)
				}
				// A path or name is not broken, even if it is too long.
				last := strings.LastIndexByte(line, ' ')
				if before := strings.TrimSpace(line[:last+1]); utf8.RuneCountInString(line) > most && strings.Contains(before, " ") && name != "hostile" {
					t.Errorf("%s, %+v: %d columns: %q", name, screen, utf8.RuneCountInString(line), line)
				}
			}
		}
	}
}

// What is told does not depend on the screen.
func TestColourIsNoText(t *testing.T) {
	t.Parallel()
	for name, s := range cases() {
		without := write(t, s, terminal.Screen{Unicode: true})
		with := write(t, s, terminal.Screen{Unicode: true, Colour: true})
		if with == without || escapes.ReplaceAllString(with, "") != without {
			t.Errorf("%s: with colours another text:\n%s", name, with)
		}
	}
}

// Numbers that make no sense make no panic.
func TestReportCopesWithAnything(t *testing.T) {
	t.Parallel()
	odd := []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-6}
	for _, from := range odd {
		for _, to := range odd {
			d := healthy("mlx5_0")
			d.Run.Duration = from
			for _, samples := range []int{-1, 0, 1, math.MaxInt} {
				l := &d.Latencies[0]
				l.P50, l.P99 = from, to
				l.Distribution = []api.Bin{{From: from, To: to, Samples: samples}, {From: to, To: from, Samples: samples}, {From: 1e-6, To: 2e-6, Samples: 1}}
				d.Vectors[0].P50, d.Vectors[1].P50 = from, to
				d.Resources.Types[0].Objects, d.Resources.Types[0].Limit = int64(samples), new(int64(-samples))
				d.Resources.Owners[0].Memlock = &api.Memlock{Pinned: int64(samples), Locked: math.MinInt64, Limit: new(int64)}
				for _, screen := range []terminal.Screen{{Width: -1}, {Unicode: true, Colour: true}} {
					harmless(t, write(t, of(d), screen), screen)
				}
			}
		}
	}
	harmless(t, write(t, &api.Status{}, terminal.Screen{}), terminal.Screen{})
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestWriteFails(t *testing.T) {
	t.Parallel()
	want := errors.New("no space left on device")
	if err := terminal.Write(broken{want}, of(), end(of()), terminal.Screen{}); !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
	}
}

func FuzzReport(f *testing.F) {
	f.Add("", 80, true, true)
	f.Add(evil, 40, false, false)
	f.Fuzz(func(t *testing.T, text string, width int, colour, unicode bool) {
		d := violated()
		d.Name, d.Findings[0].Message, d.Resources.Owners[0].Comm, d.Resources.Owners[0].ContainerID = text, text, text, text
		d.Identity.Firmware, d.Contracts.Verdicts[0].Observed, d.Sizes[0].Profile = text, text, text
		screen := terminal.Screen{Width: width, Colour: colour, Unicode: unicode}
		harmless(t, write(t, of(d), screen), screen)
	})
}

// TestTogether: what is the same on several devices is told with what is to be done once,
// and for which device that is said.
func TestTogether(t *testing.T) {
	t.Parallel()
	leaks := func(name string) api.Device {
		return ill(healthy(name), api.Finding{
			Kind: health.FindingLeaked, Severity: api.SeverityCritical, Subject: "objects",
			Message: "Left: 3 objects on " + name + ".", Action: "Stop: `--device.exclude=" + name + "`.",
		})
	}
	got := write(t, of(leaks("mlx5_0"), leaks("mlx5_1")), terminal.Screen{})
	const want = `
CRITICAL  mlx5_0, mlx5_1: objects (leaked)
          (here on mlx5_0) Left: 3 objects on mlx5_0.
          To do: (here for mlx5_0) Stop: ` + "`--device.exclude=mlx5_0`.\n"
	if !strings.Contains(got, want) || strings.Count(got, "To do: ") != 1 || !strings.Contains(got, "CRITICAL  objects (leaked)\n          Left: 3 objects on mlx5_1.\n") {
		t.Errorf("got\n%s\nwant it to have\n%s", got, want)
	}
}
