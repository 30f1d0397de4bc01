//go:build vm

package path

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

// TestTwoMachines verifies that messages pass between the machines of test/vm/run --nodes 2, as
// do those of the command path. Both machines run the test.
func TestTwoMachines(t *testing.T) {
	var server []string
	switch node := os.Getenv("NODE"); node {
	case "1":
	case "2":
		server = append(server, addressA)
	default:
		t.Fatalf("NODE is %q, want 1 or 2: run this test with -exec 'test/vm/run --nodes 2'", node)
	}
	ctx, cancel := context.WithTimeout(t.Context(), running.Patience)
	defer cancel()
	var out []byte
	var err error
	for _, witness := range [][]string{
		{"ibv_ud_pingpong", "-d", "rxe2", "-g", "1", "-e", "-n", "20", "-s", "64"},
		{"ib_send_lat", "-c", "UD", "-d", "rxe2", "-x", "1", "-e", "-n", "1000", "-s", "64"},
	} {
		running.Eventually(t, "the other machine listens", func() bool {
			out, err = exec.CommandContext(ctx, witness[0], append(witness[1:], server...)...).CombinedOutput()
			return err == nil || !strings.Contains(string(out), "Couldn't connect")
		})
		if err != nil {
			t.Fatalf("%s: %v\n%s", witness[0], err, out)
		}
	}
	typical := regexp.MustCompile(`(?m)^ 64 +1000 +\S+ +\S+ +(\S+)`).FindSubmatch(out)
	if typical == nil {
		t.Fatalf("ib_send_lat:\n%s", out)
	}
	if os.Getenv("NODE") == "1" {
		answerOther(t)
		return
	}
	// ib_send_lat shows half a round trip.
	var found []api.PathRow
	running.Eventually(t, "the other machine's exporter answers", func() bool {
		out, err := exec.CommandContext(ctx, binary, "path", addressA, "--device=rxe2", "--rc", "--json").Output()
		return json.Unmarshal(out, &found) == nil && (err == nil || len(found) > 0 && found[0].Failed() && found[0].Result != state.PathControl && found[0].Result != state.PathRefused)
	})
	p := found[0]
	if p.Result != state.PathOK || p.RC != "success" || p.RTTMin <= 0 || p.LostForward+p.LostReverse > 0 {
		t.Errorf("%+v", p)
	}
	t.Logf("ib_send_lat: %s µs for half a round trip; path: min %s, median %s, max %s for a whole one", typical[1], p.RTTMin, p.RTTMedian, p.RTTMax)
	audit := exec.CommandContext(ctx, binary, "audit", "--device=rxe2", "--probe.timeout=2m", "--contract.timeout=1m", "--inventory.timeout=2m", "--format=json",
		"--peer.file="+running.File(t, "peers.yml", `[{targets: ["`+addressA+`:10879"], labels: {tor: one}}]`))
	out, _ = audit.Output() // The status is that of other findings.
	var status struct{ Devices []state.DeviceState }
	if err := json.Unmarshal(out, &status); err != nil || len(status.Devices) != 1 || len(status.Devices[0].Paths) != 1 || status.Devices[0].Paths[0].Result != state.PathOK {
		t.Errorf("audit: %v\n%s", err, out)
	}
	_, err = (&net.Dialer{}).DialContext(ctx, "tcp", done)
	running.Check(t, err)
}

// done is where the machine that asks says that it has ended.
const done = addressA + ":7000"

// answerOther answers the other machine until it has ended, and verifies that nothing is held then.
func answerOther(t *testing.T) {
	t.Helper()
	ended := running.Must(net.Listen("tcp", done))(t)
	defer func() { _ = ended.Close() }()
	exporter := running.Launch(t, "responder", binary, running.Unhurried("--peer.respond", "--web.listen-address="+addressA+":10879", "--contract.interval=0s")...)
	exporter.Listening(t)
	running.Check(t, ended.(*net.TCPListener).SetDeadline(time.Now().Add(running.Patience)))
	_, err := ended.Accept()
	running.Check(t, err)
	exporter.Stop(t)
	running.Eventually(t, "no responder is left", func() bool { return len(responders(t)) == 0 })
}
