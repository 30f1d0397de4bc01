//go:build remediation

package remediation_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// binary is the exporter under test.
var binary string

func TestMain(m *testing.M) { os.Exit(running.Exporter(m, &binary)) }

// node is the name of the only node.
const node = "n1"

// configuration has the keys in capitals replaced. Nothing of it needs root or cgroups.
const configuration = `
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=USER
SlurmdUser=USER
SlurmctldPort=CONTROLLERPORT
SlurmdPort=NODEPORT
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket=FOLDER/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmdPidFile=FOLDER/slurmd.pid
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=nohold_on_prolog_fail
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
HealthCheckProgram=FOLDER/healthcheck
HealthCheckInterval=HEALTHINTERVAL
HealthCheckNodeState=ANY
Prolog=FOLDER/prolog
ReturnToService=1
NodeName=n1 NodeHostname=HOSTNAME NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES State=UP
`

// cluster is a Slurm of one node.
type cluster struct {
	folder string
	// settings is the file of settings of the scripts.
	settings   string
	controller *running.Process
	daemon     *running.Process
}

// startCluster starts a Slurm whose node is idle when it returns. Slurm runs the health check in
// intervals of some seconds, or never if that is 0. The settings are those of the scripts.
func startCluster(t *testing.T, healthInterval int, settings string) *cluster {
	t.Helper()
	c := &cluster{folder: t.TempDir()}
	c.settings = filepath.Join(c.folder, "settings")
	conf := filepath.Join(c.folder, "slurm.conf")
	c.set(t, settings)
	for _, name := range []string{"munge", "state", "spool"} {
		running.Check(t, os.Mkdir(filepath.Join(c.folder, name), 0o700))
	}
	for _, name := range []string{"healthcheck", "prolog"} {
		script := running.Must(filepath.Abs("../../deploy/slurm/rdma-" + name))(t)
		running.Program(t, filepath.Join(c.folder, name), "export RDMA_SLURM_SETTINGS="+c.settings+"\n"+script+
			"\nstatus=$?\necho >>"+filepath.Join(c.folder, name+".runs")+"\nexit $status")
	}
	me := running.Must(user.Current())(t)
	text := strings.NewReplacer("USER", me.Username, "FOLDER", c.folder, "HOSTNAME", running.Command(t, "hostname", "-s"),
		"CONTROLLERPORT", running.FreePort(t), "NODEPORT", running.FreePort(t), "HEALTHINTERVAL", fmt.Sprint(healthInterval)).Replace(configuration)
	running.Check(t, os.WriteFile(conf, []byte(text), 0o600))

	key := make([]byte, 128)
	_, _ = rand.Read(key)
	munge := filepath.Join(c.folder, "munge")
	running.Check(t, os.WriteFile(filepath.Join(munge, "key"), key, 0o600))
	// Forced, it accepts the folders of a test, which other users may not enter.
	running.Launch(t, "munged", "/usr/sbin/munged", "--foreground", "--force", "--socket="+munge+"/socket",
		"--key-file="+munge+"/key", "--pid-file="+munge+"/pid", "--log-file="+munge+"/log", "--seed-file="+munge+"/seed")
	running.Eventually(t, "munged listens", func() bool {
		_, err := os.Stat(munge + "/socket")
		return err == nil
	})
	// Without an environment, as a service manager starts them.
	c.controller = running.Launch(t, "slurmctld", "/usr/bin/env", "-i", "/usr/sbin/slurmctld", "-D", "-f", conf)
	c.daemon = running.Launch(t, "slurmd", "/usr/bin/env", "-i", "/usr/sbin/slurmd", "-D", "-N", node, "-f", conf)
	began := time.Now()
	running.Eventually(t, "the node is idle", func() bool { return c.state() == "IDLE" })
	t.Logf("Slurm runs after %v", time.Since(began).Round(10*time.Millisecond))
	return c
}

// set replaces the settings of the scripts.
func (c *cluster) set(t *testing.T, settings string) {
	t.Helper()
	text := "SLURM_CONF=" + c.folder + "/slurm.conf\nexport SLURM_CONF\ndirectory=" + c.folder + "/run\nseconds=60 prolog_seconds=60 scontrol_seconds=60\n" + settings
	temporary := c.settings + ".new"
	running.Check(t, os.WriteFile(temporary, []byte(text), 0o600))
	running.Check(t, os.Rename(temporary, c.settings))
}

// command returns a command of Slurm's clients.
func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.folder+"/slurm.conf")
	return cmd
}

// control runs scontrol, which must succeed.
func (c *cluster) control(t *testing.T, args ...string) {
	t.Helper()
	if out, err := c.command("scontrol", args...).CombinedOutput(); err != nil {
		t.Fatalf("scontrol %v: %v\n%s", args, err, out)
	}
}

var (
	stateOf  = regexp.MustCompile(`(?m)^ *State=(\S+)`)
	reasonOf = regexp.MustCompile(`(?m)^ *Reason=(.*) \[[^ ]*@[^ ]*\]$`)
)

// show returns the state of the node, whether it answers or not, and the reason that it has, without who gave it and when.
func (c *cluster) show() (state, reason string) {
	out, err := c.command("scontrol", "show", "node", node).Output()
	if err != nil {
		return "", ""
	}
	if m := stateOf.FindSubmatch(out); m != nil {
		// After a change the node answers only a moment later.
		state = strings.ReplaceAll(strings.ReplaceAll(string(m[1]), "*", ""), "+NOT_RESPONDING", "")
	}
	if m := reasonOf.FindSubmatch(out); m != nil {
		reason = string(m[1])
	}
	return state, reason
}

func (c *cluster) state() string {
	state, _ := c.show()
	return state
}

// await waits until the node has a state, and a reason that begins as given.
func (c *cluster) await(t *testing.T, state, reason string) {
	t.Helper()
	began := time.Now()
	var gotState, gotReason string
	defer func() {
		if t.Failed() {
			t.Logf("the node is %s: %q", gotState, gotReason)
		}
	}()
	running.Eventually(t, "the node is "+state+": "+reason, func() bool {
		gotState, gotReason = c.show()
		return gotState == state && strings.HasPrefix(gotReason, reason) && (reason == "") == (gotReason == "")
	})
	t.Logf("%s after %v: %q", state, time.Since(began).Round(10*time.Millisecond), gotReason)
}

// must checks that the node has a state and a reason now.
func (c *cluster) must(t *testing.T, what, state, reason string) {
	t.Helper()
	if gotState, gotReason := c.show(); gotState != state || gotReason != reason {
		t.Errorf("%s: the node is %s with the reason %q, want %s with %q", what, gotState, gotReason, state, reason)
	}
}

// awaitChecks waits until Slurm has run a number of health checks, from the first to the last line.
func (c *cluster) awaitChecks(t *testing.T, number int) {
	t.Helper()
	checks := func() int {
		// There is no file before the first.
		b, _ := os.ReadFile(filepath.Join(c.folder, "healthcheck.runs"))
		return len(b)
	}
	// One may be running now.
	before := checks() + 1
	running.Eventually(t, fmt.Sprintf("there were %d health checks", number), func() bool { return checks() >= before+number })
}

// changes returns how often the controller was asked to drain and to resume the node.
func (c *cluster) changes() (drained, resumed int) {
	log := c.controller.Log.String()
	return strings.Count(log, "update_node: node "+node+" state set to DRAIN"), strings.Count(log, "update_node: node "+node+" state set to IDLE")
}
