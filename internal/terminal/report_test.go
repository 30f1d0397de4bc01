package terminal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// evil is text that would steer a terminal.
const evil = "\x1b[31m\x07]0;owned\u202e<b>\ue001"

type writer func(io.Writer, *api.Status, terminal.End, terminal.Screen) error

func write(t testing.TB, h apitest.Host, as writer, screen terminal.Screen) string {
	t.Helper()
	s := api.New(h.Evaluated(), api.Options{Now: apitest.Now(), Version: "0.2.0", Host: "node17"})
	end := terminal.End{Status: 1, FailOn: "warning"}
	if s.Health == health.OK {
		end.Status = 0
	}
	var b bytes.Buffer
	running.Check(t, as(&b, s, end, screen))
	return b.String()
}

func host(t testing.TB, name string) apitest.Host {
	t.Helper()
	all := apitest.Hosts()
	i := slices.IndexFunc(all, func(h apitest.Host) bool { return h.Name == name })
	if i < 0 {
		t.Fatalf("there is no host %s", name)
	}
	return all[i]
}

// alone returns a host with the first of its devices only.
func alone(h apitest.Host) apitest.Host {
	s := *h.Snapshot
	s.Devices = s.Devices[:1]
	h.Snapshot = &s
	return h
}

func TestReport(t *testing.T) {
	t.Parallel()
	screen := terminal.Screen{Unicode: true, Width: 100}
	for _, name := range []string{"no_devices", "not_probed", "accepted", "contract_violated", "left_alone", "permission_denied"} {
		golden.Check(t, filepath.Join("testdata", name+".txt"), write(t, host(t, name), terminal.Write, screen))
	}
	for _, name := range []string{"healthy", "stuck", "leaks", "slow_vector", "known_of_driver", "peers"} {
		golden.Check(t, filepath.Join("testdata", "one_"+name+".txt"), write(t, alone(host(t, name)), terminal.Write, screen))
	}
	golden.Check(t, filepath.Join("testdata", "one_leaks.ascii.txt"), write(t, alone(host(t, "leaks")), terminal.Write, terminal.Screen{}))
	golden.Check(t, filepath.Join("testdata", "hostile.txt"), write(t, host(t, "hostile"), terminal.Write, screen))
}

// TestGPUDirect verifies the matrix of adapters and GPUs, and what unknown values look like.
func TestGPUDirect(t *testing.T) {
	t.Parallel()
	h := host(t, "healthy")
	s := *h.Snapshot
	s.Devices = slices.Clone(s.Devices)
	h.Snapshot = &s
	near := state.GPU{PCI: "0000:1b:00.0", Driver: "nvidia", BAR: 128 << 30, Memory: "dma-buf", Distance: "PXB", ACS: "redirect", Redirecting: []string{"0000:17:00.0"}}
	far := state.GPU{PCI: "0000:43:00.0", NUMANode: 1, Distance: "SYS"}
	for i := range s.Devices[:2] {
		r := state.Hardware{Device: s.Devices[i].Name, Identity: state.Adapter{NUMANode: i}, IOMMU: "DMA-FQ", GPUs: []state.GPU{near, far}}
		if i > 0 {
			r.IOMMU, r.GPUs[0].Distance, r.GPUs[0].ACS, r.GPUs[1].Distance = "", "SYS", "", "PXB"
		}
		s.Devices[i].Hardware = &state.HardwareState{Latest: &r}
	}
	s.Devices[1].Last = &state.Run{Kind: state.KindProbe, Outcome: state.OutcomeTimeout, Started: apitest.Now()} // It comes first, but not in the matrix.
	golden.Check(t, filepath.Join("testdata", "gpudirect.txt"), write(t, h, terminal.Write, terminal.Screen{Unicode: true, Width: 100}))
	if report := write(t, alone(h), terminal.Write, terminal.Screen{}); !strings.Contains(report, "0000:1b:00.0, nvidia") {
		t.Error("it is not in the report of one device")
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	var all string
	for _, name := range []string{"no_devices", "healthy", "stuck", "accepted", "left_alone", "hostile"} {
		all += "== " + name + "\n" + write(t, host(t, name), terminal.WriteBrief, terminal.Screen{Unicode: true})
	}
	golden.Check(t, filepath.Join("testdata", "brief.txt"), all)
}

// screens are screens of every kind.
func screens() []terminal.Screen {
	return []terminal.Screen{{}, {Width: 1}, {Width: 57, Unicode: true}, {Width: 1000, Unicode: true, Colour: true}, {Terminal: true, Width: 80, Colour: true}}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// harmless checks that text steers the terminal only by colours, if it has them.
func harmless(t *testing.T, text string, screen terminal.Screen) {
	t.Helper()
	if screen.Colour {
		text = escapes.ReplaceAllString(text, "")
	}
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || !screen.Unicode && r >= utf8.RuneSelf) {
			t.Fatalf("%+v: the report has %U", screen, r)
		}
	}
}

// TestReportFits verifies that text is no wider than the screen, except tables, long words
// and the verdict, and that no text steers the terminal.
func TestReportFits(t *testing.T) {
	t.Parallel()
	for _, h := range apitest.Hosts() {
		for _, screen := range screens() {
			text := write(t, h, terminal.Write, screen)
			harmless(t, text, screen)
			harmless(t, write(t, h, terminal.WriteBrief, screen), screen)
			if !strings.HasSuffix(text, ").\n") {
				t.Errorf("%s ends in %q", h.Name, text[len(text)-20:])
			}
			width := min(max(screen.Width, 40), 120)
			if screen.Width == 0 {
				width = terminal.DefaultWidth
			}
			for line := range strings.Lines(escapes.ReplaceAllString(text, "")) {
				line = strings.TrimSuffix(line, "\n")
				if line != strings.TrimRight(line, " ") {
					t.Errorf("%s, %+v: a space at the end of %q", h.Name, screen, line)
				}
				words := strings.Fields(line)
				isTable := strings.Contains(strings.TrimSpace(line), "  ")
				if utf8.RuneCountInString(line) > width && len(words) > 2 && !isTable && words[0] != "Verdict:" {
					t.Errorf("%s, %+v: %d columns: %q", h.Name, screen, utf8.RuneCountInString(line), line)
				}
			}
		}
	}
}

// TestColourIsNoText verifies that colours change nothing else.
func TestColourIsNoText(t *testing.T) {
	t.Parallel()
	for _, h := range apitest.Hosts() {
		for _, as := range []writer{terminal.Write, terminal.WriteBrief} {
			without := write(t, h, as, terminal.Screen{Unicode: true})
			with := write(t, h, as, terminal.Screen{Unicode: true, Colour: true})
			if with == without || escapes.ReplaceAllString(with, "") != without {
				t.Errorf("%s: with colours another text:\n%s", h.Name, with)
			}
		}
	}
}

// TestAnyValues verifies that values that make no sense cause no panic.
func TestAnyValues(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		d := apitest.Device("mlx5_0", 4)
		d.Hardware.Latest.Ports[0].Rate, d.Hardware.Latest.Ports[0].MaxRate = math.NaN(), math.Inf(1)
		d.Info.Limits = []state.Limit{{Name: "max_qp", Value: n}}
		d.Resources.Inventory.Objects = []state.ObjectCount{{Type: "qp", Owner: state.OwnerUser, Objects: n}}
		d.Resources.Inventory.Owners[0].Memlock = &state.Memlock{Pinned: n, Locked: -n, Limit: n}
		h := apitest.Host{Snapshot: &state.Snapshot{Devices: []state.DeviceState{d}}}
		harmless(t, write(t, h, terminal.Write, terminal.Screen{}), terminal.Screen{})
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestWriteFails(t *testing.T) {
	t.Parallel()
	want := errors.New("no space left on device")
	s := api.New(host(t, "healthy").Evaluated(), api.Options{Now: apitest.Now()})
	if err := terminal.Write(broken{want}, s, terminal.End{}, terminal.Screen{}); !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
	}
}

// TestWritePaths verifies that each pair has a line, and those that do not work what that means.
func TestWritePaths(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	screen := terminal.Screen{Unicode: true, Width: 100}
	paths := apitest.Paths()
	paths[3].Peer = evil
	rows := api.PathRows("mlx5_0", paths, apitest.Now())
	running.Check(t, terminal.WritePaths(&b, rows, screen))
	golden.Check(t, filepath.Join("testdata", "paths.txt"), b.String())
	harmless(t, b.String(), screen)
	want := errors.New("no space left on device")
	if err := terminal.WritePaths(broken{want}, rows, screen); !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
	}
}

// TestTogether verifies that findings of several devices have one action, which names its
// device.
func TestTogether(t *testing.T) {
	t.Parallel()
	h := apitest.Host{Snapshot: &state.Snapshot{}, Found: make(map[string][]health.Finding)}
	for _, name := range []string{"mlx5_0", "mlx5_1"} {
		h.Snapshot.Devices = append(h.Snapshot.Devices, apitest.Device(name, 4))
		h.Found[name] = []health.Finding{{
			Kind: health.FindingLeaked, Severity: health.SeverityCritical, Subject: "objects",
			Message: "Left: 3 objects on " + name + ".", Action: "Stop: `--device.exclude=" + name + "`.",
		}}
	}
	got := write(t, h, terminal.Write, terminal.Screen{})
	want := `
CRITICAL  mlx5_0: objects (leaked)
          Left: 3 objects on mlx5_0.
          mlx5_1: objects (leaked)
          Left: 3 objects on mlx5_1.
          To do: (here for mlx5_0) Stop: ` + "`--device.exclude=mlx5_0`.\n"
	if !strings.Contains(got, want) || strings.Count(got, "To do: ") != 1 {
		t.Errorf("got\n%s\nwant it to have\n%s", got, want)
	}
	// The findings beyond the first are with their devices.
	for n := range 30 {
		f := h.Found["mlx5_0"][0]
		f.Subject = fmt.Sprint("objects ", n)
		h.Found["mlx5_0"] = append(h.Found["mlx5_0"], f)
	}
	if got := write(t, h, terminal.Write, terminal.Screen{}); !strings.Contains(got, "\nAnd 12 further findings below, with their devices.\n") {
		t.Errorf("got\n%s", got)
	}
}
