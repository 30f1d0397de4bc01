package terminal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/terminal"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := terminal.NewProgress(&b, terminal.Screen{Width: 80}, func() int { return 12 })
	for _, run := range []*state.Run{
		{Kind: state.KindProbe, Device: "mlx5_0", Outcome: state.OutcomeOK, Duration: 413 * time.Millisecond},
		{Kind: state.KindProbe, Device: "mlx5_1", Outcome: state.OutcomeTimeout, Duration: 10 * time.Second, Error: "timed out after 10s in ibv_destroy_qp; the child cannot be killed"},
		{Kind: state.KindContract, Device: "mlx5_0", Outcome: state.OutcomeCrashed, Duration: time.Second, Error: "killed by SIGSEGV"},
		{Kind: state.KindContract, Device: "mlx5_0", Outcome: state.OutcomeOK, Duration: 2 * time.Second},
		{Kind: state.KindInventory, Device: "mlx5_1", Outcome: state.OutcomeOK, Duration: 12 * time.Millisecond},
		{Kind: state.KindInventory, Device: "mlx5_0", Outcome: state.OutcomeFailed, Duration: 12 * time.Millisecond, Error: "é" + evil},
	} {
		p.Observe(run)
	}
	p.Forget("mlx5_0")
	want := `probes             1/12 mlx5_0           ok        413 ms
probes             2/12 mlx5_1           timeout     10 s  timed out after ...
contracts          1/12 mlx5_0           crashed      1 s  killed by SIGSEGV
contracts          1/12 mlx5_0           ok           2 s
inventory          1/12 mlx5_1           ok         12 ms
inventory          2/12 mlx5_0           failed     12 ms  ??[31m?]0;owned?<b...
`
	if b.String() != want {
		t.Errorf("it shows\n%s, want\n%s", b.String(), want)
	}
}

func TestProgressIsHarmless(t *testing.T) {
	t.Parallel()
	for _, screen := range screens() {
		var b bytes.Buffer
		p := terminal.NewProgress(&b, screen, func() int { return 1 })
		p.Observe(&state.Run{Kind: evil, Device: strings.Repeat("d", 255) + evil, Outcome: evil, Duration: -1, Error: strings.Repeat(evil, 100)})
		harmless(t, b.String(), screen)
		if n := strings.Count(b.String(), "\n"); n != 1 {
			t.Errorf("%d lines: %q", n, b.String())
		}
	}
	var b bytes.Buffer
	p := terminal.NewProgress(&b, terminal.Screen{Width: 60}, func() int { return 1 })
	p.Observe(&state.Run{Kind: state.KindProbe, Device: "a", Error: strings.Repeat("x", 1000)})
	if n := utf8.RuneCountInString(strings.TrimSpace(b.String())); n > 60 {
		t.Errorf("%d columns: %s", n, &b)
	}
}

// TestProgressOfManyAtOnce verifies that concurrent runs have a line each, and that a failed
// write does no harm.
func TestProgressOfManyAtOnce(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := terminal.NewProgress(&b, terminal.Screen{}, func() int { return 50 })
	lost := terminal.NewProgress(broken{errors.New("gone")}, terminal.Screen{}, func() int { return 50 })
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			run := &state.Run{Kind: state.KindProbe, Device: fmt.Sprint("d", i), Outcome: state.OutcomeOK}
			p.Observe(run)
			lost.Observe(run)
		})
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 50 || !strings.Contains(lines[49], " 50/50 ") {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}
