package running_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// recorder is a test that keeps what fails it, and whose end the test calls.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Helper()             {}
func (r *recorder) Failed() bool        { return len(r.failures) > 0 }
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Cleanup(f func())    { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func TestLaunch(t *testing.T) {
	t.Setenv(running.EnvBinary, "unused")
	for _, test := range []struct {
		name, script string
		during       func(t *testing.T, r *recorder, p *running.Process)
		want         []string
	}{
		{
			name:   "runs until the test ends",
			script: `echo ready; exec sleep 1000`,
		}, {
			name:   "has crashed",
			script: `exit 3`,
			during: func(_ *testing.T, _ *recorder, p *running.Process) { <-p.Ended() },
			want:   []string{"shell has ended by itself: exit status 3"},
		}, {
			name:   "ends by itself, as the test knows",
			script: `exit 3`,
			during: func(t *testing.T, _ *recorder, p *running.Process) {
				if err := p.Err(); err == nil || err.Error() != "exit status 3" {
					t.Errorf("it ended with %v", err)
				}
			},
		}, {
			name:   "is stopped, and again",
			script: `trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done`,
			during: func(t *testing.T, r *recorder, p *running.Process) {
				running.Eventually(t, "it is ready", func() bool { return p.Log.String() == "ready\n" })
				p.Stop(r)
				p.Stop(r)
				if err := p.Err(); err == nil || err.Error() != "exit status 5" {
					t.Errorf("it ended with %v", err)
				}
			},
		}, {
			name:   "leaves a process",
			script: `sleep 1000 >&- 2>&- & echo $!`,
			during: func(t *testing.T, _ *recorder, p *running.Process) {
				_ = p.Err()
				var left int
				if _, err := fmt.Sscan(p.Log.String(), &left); err != nil {
					t.Fatal(err)
				}
				// Its parent, whoever that is now, may never wait for it.
				running.Eventually(t, "what is left ends", func() bool {
					stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", left))
					return err != nil || strings.Contains(string(stat), ") Z ")
				})
			},
			want: []string{"shell left processes, which were killed"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &recorder{TB: t}
			p := running.Launch(r, "shell", "/bin/sh", "-c", test.script)
			if test.during != nil {
				test.during(t, r, p)
			}
			r.end()
			select {
			case <-p.Ended():
			default:
				t.Error("it has not ended")
			}
			if got, want := strings.Join(r.failures, "\n"), strings.Join(test.want, "\n"); got != want {
				t.Errorf("failures:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}
