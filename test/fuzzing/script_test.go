//go:build fuzzing

package fuzzing_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// TestFuzzScript makes sure that tools/fuzz passes over nothing: neither an input that
// hangs, if the time is too short for Go to notice, nor a seed that does, nor targets that
// cannot be listed; and that it bears a machine that stands still once.
func TestFuzzScript(t *testing.T) {
	t.Parallel()
	script := running.Must(os.ReadFile(filepath.Join("..", "..", "tools", "fuzz")))(t)
	const fine = "func FuzzFine(f *testing.F) {\n\tf.Add([]byte(\"seed\"))\n\tf.Fuzz(func(*testing.T, []byte) {})\n}\n"
	for name, c := range map[string]struct {
		code string
		// time is short, but not where something has to be tried: what tries it
		// may take seconds to start.
		time   string
		status int
		says   string
	}{
		"nothing is found": {fine, "1s", 0, "fuzz: 1 targets, 1s each, nothing found\n"},
		"a failure": {
			"func FuzzBad(f *testing.F) {\n\tf.Fuzz(func(t *testing.T, b []byte) { t.Error(b) })\n}\n",
			"30s", 1, "fuzz: tried FuzzBad failed\n",
		},
		"an input that hangs": {
			"func FuzzHang(f *testing.F) {\n\tf.Add([]byte(\"seed\"))\n\tf.Fuzz(func(_ *testing.T, b []byte) {\n\t\tfor string(b) != \"seed\" {\n\t\t\ttime.Sleep(time.Second)\n\t\t}\n\t})\n}\n",
			"5s", 1, "fuzz: tried FuzzHang failed\n",
		},
		"a seed that hangs": {
			"func FuzzHang(f *testing.F) {\n\tf.Add([]byte(\"seed\"))\n\tf.Fuzz(func(*testing.T, []byte) { time.Sleep(time.Hour) })\n}\n",
			"30s", 1, "fuzz: tried FuzzHang failed\n",
		},
		"a seed that hung once": {
			"func FuzzOnce(f *testing.F) {\n\tf.Add([]byte(\"seed\"))\n\tf.Fuzz(func(*testing.T, []byte) {\n\t\tif os.Mkdir(\"hung\", 0o700) == nil {\n\t\t\ttime.Sleep(time.Hour)\n\t\t}\n\t})\n}\n",
			"12s", 0, "fuzz: 1 targets, 12s each, nothing found\n",
		},
		"a list that is empty": {
			fine + "func TestMain(*testing.M) { os.Exit(0) }\n",
			"1s", 1, "fuzz: tried has 1 targets, but lists these:\n",
		},
		"a list that fails": {
			fine + "func TestMain(*testing.M) { os.Exit(3) }\n",
			"1s", 1, "fuzz: tried has 1 targets, but lists these:\n",
		},
		"a package that cannot be listed": {fine + "import \"C\" // too late\n", "1s", 1, "imports must appear before other declarations"},
		"no target":                       {"", "1s", 1, "fuzz: no target was found\n"},
		"a time that is none":             {fine, "soon", 2, "fuzz: the time is a number with s, m or h, not soon\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			running.Check(t, os.Mkdir(filepath.Join(dir, "tools"), 0o700))
			for path, text := range map[string]string{
				"tools/fuzz": string(script), "go.mod": "module tried\n",
				"tried_test.go": "package tried\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nvar _, _, _ = os.Args, testing.Short, time.Now\n\n" + c.code,
			} {
				running.Check(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, "bash", filepath.Join(dir, "tools", "fuzz"), c.time).CombinedOutput()
			status := 0
			if exit := new(exec.ExitError); errors.As(err, &exit) {
				status = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if status != c.status || !strings.Contains(string(out), c.says) {
				t.Errorf("status %d, want %d, and to be told %q: %s", status, c.status, c.says, out)
			}
		})
	}
}
