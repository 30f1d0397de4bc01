package e2e_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// block is a block of code of a page: its language, and its text.
var block = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// TestTutorial types the commands of the tutorial into one shell, and makes sure that
// each prints what the page says below it. Only the times are others: what the rules wait
// for passes at once.
func TestTutorial(t *testing.T) {
	t.Parallel()
	text := running.Must(os.ReadFile("../../docs/tutorial.md"))(t)
	page := string(text)
	for _, port := range []string{"10879", "9090"} {
		page = strings.ReplaceAll(page, "127.0.0.1:"+port, "127.0.0.1:"+running.FreePort(t))
	}
	page = strings.NewReplacer("--probe.interval=10s", "--probe.interval=1s", "scrape_interval: 10s", "scrape_interval: 1s").Replace(page)

	s := openShell(t, clonedForTutorial(t))
	defer s.end(t)
	// What is built is there.
	s.run(t, "make() { :; }\n")
	blocks := block.FindAllStringSubmatch(page, -1)
	shown := 0
	for i, b := range blocks {
		if b[1] != "sh" {
			continue
		}
		if i+1 == len(blocks) || blocks[i+1][1] != "text" {
			s.run(t, b[2])
			continue
		}
		shown++
		out := ""
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s\nprinted last\n%s", b[2], out)
			}
		})
		running.Eventually(t, "what the tutorial shows below\n"+b[2], func() bool {
			out = s.run(t, b[2])
			for line := range strings.Lines(blocks[i+1][2]) {
				if !strings.Contains(out, strings.TrimSpace(line)) {
					return false
				}
			}
			return true
		})
	}
	if shown < 5 {
		t.Errorf("the tutorial shows what %d commands print", shown)
	}
	if _, err := os.Stat(filepath.Join(s.cmd.Dir, ".cache", "tutorial")); err == nil {
		t.Error("the tutorial leaves something behind")
	}
}

// clonedForTutorial returns a folder that has of a clone what the tutorial uses. Its
// rules are evaluated each second, and wait for nothing.
func clonedForTutorial(t *testing.T) string {
	t.Helper()
	clone := t.TempDir()
	programs := map[string]string{
		"bin/rdma_exporter":             binary,
		"prometheus/usr/bin/prometheus": running.FindPrometheus(t, "prometheus"),
		"prometheus/usr/bin/promtool":   running.FindPrometheus(t, "promtool"),
	}
	for name, program := range programs {
		name = filepath.Join(clone, ".cache", name)
		running.Check(t, os.MkdirAll(filepath.Dir(name), 0o755))
		running.Check(t, os.Symlink(program, name))
	}
	running.Check(t, os.Mkdir(filepath.Join(clone, "alerts"), 0o755))
	waits := regexp.MustCompile(`(?m)^( *(?:interval|for)): .*$`)
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		rules := running.Must(os.ReadFile(filepath.Join("../../alerts", name)))(t)
		running.Check(t, os.WriteFile(filepath.Join(clone, "alerts", name), waits.ReplaceAll(rules, []byte("$1: 1s")), 0o600))
	}
	return clone
}

// A shell is one bash, into which commands are typed.
type shell struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines *bufio.Reader
}

// openShell starts a shell in a folder.
func openShell(t *testing.T, dir string) *shell {
	t.Helper()
	s := &shell{cmd: exec.CommandContext(t.Context(), "bash", "--norc")}
	s.cmd.Dir = dir
	// All that it starts is one group, which ends with it.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Cancel = func() error { return syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }
	var err error
	if s.input, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output := running.Must(s.cmd.StdoutPipe())(t)
	s.cmd.Stderr = s.cmd.Stdout
	s.lines = bufio.NewReader(output)
	running.Check(t, s.cmd.Start())
	// Also if the test is killed: the shell ends with its input.
	s.run(t, "trap 'kill -KILL 0' EXIT\n")
	return s
}

// typed is what the shell prints when it has run what was typed.
const typed = "-- all of it was run --"

// run types commands, and returns what they print.
func (s *shell) run(t *testing.T, commands string) string {
	t.Helper()
	if _, err := io.WriteString(s.input, commands+"echo '"+typed+"'\n"); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(running.Patience, func() { _ = s.cmd.Cancel() })
	defer stop.Stop()
	var out strings.Builder
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the shell ended: %v\n%s", err, out.String())
		}
		if strings.TrimSpace(line) == typed {
			return out.String()
		}
		out.WriteString(line)
	}
}

// end ends the shell, and makes sure that nothing that was typed ran on until then.
func (s *shell) end(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		if left := s.run(t, "jobs -r\n"); left != "" {
			t.Errorf("the tutorial leaves running\n%s", left)
		}
	}
	if err := s.input.Close(); err != nil {
		t.Error(err)
	}
	_ = s.cmd.Wait() // It is killed, with all that it started.
}
