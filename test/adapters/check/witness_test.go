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

const (
	// patience is the time that a program gets that must end.
	patience = time.Minute
	// silence is how long programs get that are not to talk: those that do are done in a
	// second or two. Some wait for the first message for ever.
	silence = 10 * time.Second
)

// TestWitnessDatagrams has programs that are not ours use the adapters that have no
// connected queue pairs. Neither library sends unsignalled, hence -Q 1.
func TestWitnessDatagrams(t *testing.T) {
	for _, a := range adapters(t) {
		if a.of() != "efa" && a.of() != "efa_eq" {
			continue
		}
		for _, w := range []struct {
			command string
			fails   bool
		}{
			{command: "ibv_ud_pingpong -g 0"},
			// The device without event queues has no CQ with a channel.
			{command: "ibv_ud_pingpong -g 0 -e", fails: a.of() == "efa"},
			{command: "ib_send_bw -x 0 -c UD -s 4000 -Q 1"},
			{command: "ib_send_lat -x 0 -c SRD"},
			{command: "ib_read_bw -x 0 -c SRD"},
		} {
			t.Run(a.spec+"/"+w.command, func(t *testing.T) {
				args := append(strings.Fields(w.command), "-d", a.name, "-n", "50")
				if w.fails == pair(t, w.fails, args[0], args[1:]) {
					t.Errorf("the programs talk: %v", !w.fails)
				}
			})
		}
	}
}

// TestWitness has programs that are not ours use the adapters: a device that they find
// right is one.
func TestWitness(t *testing.T) {
	for _, a := range adapters(t) {
		if strings.HasPrefix(a.of(), "efa") || a.of() == "erdma" { // without connected queue pairs
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
			except  string // the vendors that have nothing of the kind
		}{
			{program: "ibv_rc_pingpong"},
			{program: "ibv_rc_pingpong", args: []string{"-e"}},
			{program: "ibv_uc_pingpong", args: []string{"-e"}, except: "bnxt_re hns irdma mana qedr"},
			{program: "ibv_ud_pingpong", args: []string{"-e"}, except: "mana qedr"},
			{program: "ibv_srq_pingpong", args: []string{"-e"}, except: "irdma mana"},
			{program: "ib_send_lat", args: []string{"-I", "64"}},
			{program: "ib_write_bw"},
			{program: "ib_read_lat"},
			{program: "ib_atomic_lat", except: "irdma mana"},
		} {
			if slices.Contains(strings.Fields(w.except), a.of()) || strings.HasPrefix(w.program, "ib_") && a.is("ib") ||
				a.is("down") && w.program != "ibv_rc_pingpong" { // others wait for long
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
				// Two limited members of a partition may not talk, nor may a port that is
				// down, and libmana has only learnt to after Debian 12.
				if fails := a.is("limited") || a.is("down") || a.of() == "mana" && rdmaCore(t) == "44"; fails == pair(t, fails, w.program, args) {
					t.Errorf("the programs talk: %v", !fails)
				}
			})
		}
	}
}

// pair runs a program twice, as server and as client, and reports whether they talked. They
// get less time if they are to fail.
func pair(t *testing.T, fails bool, program string, args []string) bool {
	t.Helper()
	limit := patience
	if fails {
		limit = silence
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
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
