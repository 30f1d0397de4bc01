//go:build vmhost

package install_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// shell returns a command that finds the installed exporter in its PATH, and has a
// home of its own.
func shell(t *testing.T, p place, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(p.dest, "usr/bin")+":"+os.Getenv("PATH"),
		"HOME="+cmd.Dir, "ZDOTDIR="+cmd.Dir, "XDG_DATA_DIRS="+filepath.Join(p.dest, "usr/share"), "LC_ALL=C.UTF-8", "TERM=dumb")
	return cmd
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd.Args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

// questions are words that are being typed after the program's name, and what they
// may become.
var questions = []struct {
	words []string
	want  []string
}{
	{[]string{"--prob"}, []string{"--probe.concurrency", "--probe.full-interval", "--probe.interval", "--probe.timeout", "--probe.when"}},
	{[]string{"au"}, []string{"audit"}},
	{[]string{"audit", "--fail"}, []string{"--fail-on"}},
	{[]string{"audit", "--fail-on", "c"}, []string{"critical"}},
	{[]string{"--provider", "si"}, []string{"simulated"}},
	{[]string{"healthcheck", "--read"}, []string{"--ready"}},
}

func TestBash(t *testing.T) {
	p := installed(t)
	script := filepath.Join(p.dest, "usr/share/bash-completion/completions/rdma_exporter")
	for _, q := range questions {
		t.Run(strings.Join(q.words, " "), func(t *testing.T) {
			// As bash does: the function that the script registers finds the words in
			// variables.
			got := output(t, shell(t, p, "bash", append([]string{"--norc", "-c", `
				source "$1" || exit
				shift
				[[ $(complete -p rdma_exporter) =~ -F\ ([^ ]+) ]] || exit
				COMP_WORDS=(rdma_exporter "$@") COMP_CWORD=$#
				"${BASH_REMATCH[1]}"
				printf '%s\n' "${COMPREPLY[@]}" | sort`, "bash", script}, q.words...)...))
			if !slices.Equal(strings.Fields(got), q.want) {
				t.Errorf("%v, want %v", got, q.want)
			}
		})
	}
}

func TestFish(t *testing.T) {
	p := installed(t)
	for _, q := range append(questions, struct{ words, want []string }{
		[]string{"--provider=si"}, []string{"--provider=simulated"},
	}) {
		t.Run(strings.Join(q.words, " "), func(t *testing.T) {
			got := output(t, shell(t, p, "fish", "--command", "complete --do-complete 'rdma_exporter "+strings.Join(q.words, " ")+"'"))
			if !slices.Equal(strings.Fields(got), q.want) {
				t.Errorf("%v, want %v", got, q.want)
			}
		})
	}
}

func TestZsh(t *testing.T) {
	p := installed(t)
	driver := running.Must(filepath.Abs("testdata/complete.zsh"))(t)
	for _, q := range questions {
		t.Run(strings.Join(q.words, " "), func(t *testing.T) {
			line := "rdma_exporter " + strings.Join(q.words, " ")
			file := filepath.Join(t.TempDir(), "line")
			output(t, shell(t, p, "zsh", "-f", driver, filepath.Join(p.dest, "usr/share/zsh/vendor-completions"), line, file))
			got := running.Must(os.ReadFile(file))(t)
			// What is common to all that it may become is filled in.
			want := strings.Join(q.words[:len(q.words)-1], " ")
			want = strings.TrimSpace("rdma_exporter "+want) + " " + common(q.want)
			if strings.TrimSpace(string(got)) != want {
				t.Errorf("%q becomes %q, want %q", line, got, want)
			}
		})
	}
}

// common is what all words begin with.
func common(words []string) string {
	prefix := words[0]
	for _, word := range words {
		for !strings.HasPrefix(word, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return prefix
}
