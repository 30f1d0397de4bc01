//go:build vm

package check

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// carriesData tells the vendors whose paper adapters have a data path.
var carriesData = map[string]bool{"bnxt_re": true, "hns": true, "irdma": true, "mlx5": true}

// patience is the time that a program gets that must end.
const patience = time.Minute

// TestWitness has programs that are not ours use the adapters: a device that they find
// right is one.
func TestWitness(t *testing.T) {
	for _, a := range adapters(t) {
		if !carriesData[a.of()] {
			continue
		}
		gid := []string{"-g", "3"} // RoCE v2, IPv4
		if a.is("ib") {
			gid = nil
		}
		if a.is("grh") {
			gid = []string{"-g", "0"}
		}
		for _, w := range []struct {
			program string
			args    []string
			except  []string // the vendors that have no such thing
		}{
			{program: "ibv_rc_pingpong"},
			{program: "ibv_rc_pingpong", args: []string{"-e"}},
			{program: "ibv_uc_pingpong", args: []string{"-e"}, except: []string{"bnxt_re", "hns", "irdma"}},
			{program: "ibv_ud_pingpong", args: []string{"-e"}},
			{program: "ibv_srq_pingpong", args: []string{"-e"}, except: []string{"irdma"}},
			{program: "ib_send_lat", args: []string{"-I", "64"}},
			{program: "ib_write_bw"},
			{program: "ib_read_lat"},
			{program: "ib_atomic_lat", except: []string{"irdma"}},
		} {
			if slices.Contains(w.except, a.of()) || strings.HasPrefix(w.program, "ib_") && a.is("ib") {
				continue
			}
			t.Run(a.spec+"/"+strings.Join(append([]string{w.program}, w.args...), " "), func(t *testing.T) {
				args := append([]string{"-d", a.name, "-n", "50"}, w.args...)
				if strings.HasPrefix(w.program, "ib_") {
					args = append(args, "-x", "3")
					if a.of() == "hns" {
						// Newer ones ask for operations of ibv_create_qp_ex that libhns has not.
						args = append(args, "--use_old_post_send")
					}
				} else {
					args = append(args, gid...)
				}
				// Two limited members of a partition, and nothing else, may not talk.
				if fails := a.is("limited") || a.is("alone"); fails == pair(t, w.program, args) {
					t.Errorf("the programs talk: %v", !fails)
				}
			})
		}
	}
}

// pair runs a program twice, as server and as client, and tells whether they talked.
func pair(t *testing.T, program string, args []string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server := exec.CommandContext(ctx, program, args...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Wait() }()
	var out []byte
	var err error
	for {
		// The server may not listen yet.
		out, err = exec.CommandContext(ctx, program, append(args, "10.77.2.1")...).CombinedOutput()
		if !strings.Contains(strings.ToLower(string(out)), "couldn't connect to 10.77.2.1") && !strings.Contains(string(out), "Connection refused") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%s %s\n%s", program, strings.Join(args, " "), out)
	if err != nil {
		_ = server.Process.Kill() // it may wait for a message that was lost
		<-served
		return false
	}
	return <-served == nil
}
