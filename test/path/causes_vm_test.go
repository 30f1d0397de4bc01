//go:build vm

package path

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

// binary is the exporter that is tested.
var binary string

func TestMain(m *testing.M) { os.Exit(running.Exporter(m, &binary)) }

// rails makes rxa and rxb the two ends of one rail.
const rails = "path: {rails: {rxa: one, rxb: one}%s}\n"

// respond starts an exporter that answers for rxb, and returns where it listens.
func respond(t *testing.T, more string) *running.Process {
	t.Helper()
	p := running.Launch(t, "responder", binary, running.Unhurried("--peer.respond", "--device.include=rxb", "--web.listen-address=127.0.0.1:0",
		"--contract.interval=0s", "--config.file="+running.File(t, "responder.yml", fmt.Sprintf(rails, more)))...)
	p.Listening(t)
	running.Eventually(t, "the responder knows rxb", func() bool {
		p.MustRun(t)
		body, err := get("http://" + p.Listening(t) + "/api/v1/path/devices")
		return err == nil && (strings.Contains(body, `"rxb"`) || more != "")
	})
	return p
}

func get(url string) (string, error) {
	response, err := http.Get(url) //nolint:gosec,noctx // of this test
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(response.Body)
	return string(b), err
}

// ask runs the command path on rxa, and returns its result and exit status.
func ask(t *testing.T, target string, args ...string) (found api.PathRow, status int) {
	t.Helper()
	args = append([]string{"path", target, "--device=rxa", "--json", "--config.file=" + running.File(t, "prober.yml", fmt.Sprintf(rails, ""))}, args...)
	cmd := exec.Command(binary, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var all []api.PathRow
	if err := json.Unmarshal(out, &all); err != nil || len(all) != 1 {
		t.Fatalf("%v: %s%s", err, out, stderr.String())
	}
	return all[0], cmd.ProcessState.ExitCode()
}

// responders returns the children that answer.
func responders(t *testing.T) (pids []int) {
	t.Helper()
	for _, dir := range running.Must(os.ReadDir("/proc"))(t) {
		pid, err := strconv.Atoi(dir.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile("/proc/" + dir.Name() + "/cmdline")
		if slices.Contains(strings.Split(string(line), "\x00"), "answer") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	pids := responders(t)
	if len(pids) != 1 {
		t.Fatalf("%d responders, want 1", len(pids))
	}
	running.Check(t, syscall.Kill(pids[0], s))
}

// proxy returns the address of a proxy to a target that changes the answer when a session is opened.
func proxy(t *testing.T, target string, change func(answer map[string]any)) string {
	t.Helper()
	p := httputil.NewSingleHostReverseProxy(running.Must(url.Parse("http://" + target))(t))
	p.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method != http.MethodPost {
			return nil
		}
		var answer map[string]any
		err := json.NewDecoder(r.Body).Decode(&answer)
		change(answer)
		b := running.Must(json.Marshal(answer))(t)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		r.Header.Set("Content-Length", strconv.Itoa(len(b)))
		return err
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestCauses makes each cause for real, and verifies the class that the command path reports, whom
// it blames, and its exit status. Nothing is held afterwards.
func TestCauses(t *testing.T) {
	newBed(t)
	rule := func(rules ...string) func(*testing.T, string) string {
		return func(t *testing.T, target string) string {
			for _, r := range rules {
				drop(t, r)
			}
			return target
		}
	}
	before := func(do func(*testing.T) func()) func(*testing.T, string) string {
		return func(t *testing.T, target string) string { do(t); return target }
	}
	down := func(link string) func(*testing.T, string) string {
		return before(func(t *testing.T) func() { return linkDown(t, link) })
	}
	for _, test := range []struct {
		name   string
		config string
		// cause returns the target to ask.
		cause   func(t *testing.T, target string) string
		args    []string
		result  state.PathResult
		suspect string
		errno   string
		rc      string
		status  int
	}{
		{"nothing", "", rule(), nil, state.PathOK, "", "", "", 0},
		{"nothing, with RC", "", rule(), []string{"--rc"}, state.PathOK, "", "", "success", 0},
		{"all dropped there", "", rule(aToB), nil, state.PathForward, state.SuspectPath, "", "", 1},
		{"all dropped there, with RC", "", rule(aToB), []string{"--rc"}, state.PathForward, state.SuspectPath, "", "retry_exc_err", 1},
		{"all dropped back", "", rule(bToA), nil, state.PathReverse, state.SuspectPath, "", "", 1},
		{"large dropped there", "", rule(aToB + " meta length > 500"), nil, state.PathMTU, state.SuspectPath, "", "", 1},
		{"large dropped back", "", rule(bToA + " meta length > 500"), nil, state.PathMTU, state.SuspectPath, "", "", 1},
		{"one UDP source port", "", rule(oneFlow), nil, state.PathFlow, state.SuspectPath, "", "", 1},
		// The operations of datagrams are 0x64 and above.
		{"messages dropped there", "", rule(aToB + " @th,64,8 < 0x20"), []string{"--rc"}, state.PathOK, state.SuspectPath, "", "retry_exc_err", 1},
		{"ARP unanswered", "", before(noARP), nil, state.PathAddress, state.SuspectPath, "ETIMEDOUT", "", 1},
		{"this port down", "", down("va"), nil, state.PathSource, state.SuspectDevice, "", "", 1},
		{"peer's port down", "", down("vb"), nil, state.PathTarget, state.SuspectPeer, "", "", 1},
		{"wrong Q_Key", "", func(t *testing.T, target string) string {
			return proxy(t, target, func(answer map[string]any) { answer["qkey"] = 4711 })
		}, nil, state.PathForward, state.SuspectPath, "", "", 1},
		{"nobody listens", "", func(t *testing.T, _ string) string { return running.Refusing(t) }, nil, state.PathControl, "", "", "", 2},
		{"not allowed", ", allow: [192.0.2.0/24]", rule(), nil, state.PathRefused, "", "", "", 2},
		{"responder stopped", "", func(t *testing.T, target string) string {
			ask(t, target)
			signal(t, syscall.SIGSTOP)
			return target
		}, nil, state.PathTarget, state.SuspectPeer, "", "", 1},
		{"responder killed", "", func(t *testing.T, target string) string {
			drop(t, anyRoCE) // Losses make the run last long enough.
			return proxy(t, target, func(map[string]any) { signal(t, syscall.SIGKILL) })
		}, nil, state.PathTarget, state.SuspectPeer, "", "", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			target := test.cause(t, respond(t, test.config).Listening(t))
			found, status := ask(t, target, test.args...)
			if found.Result != test.result || found.Suspect != test.suspect || status != test.status ||
				test.errno != "" && found.Errno != test.errno || test.rc != found.RC {
				t.Errorf("%s, suspect %q, errno %q, RC %q, exit status %d: want %s, %q, %q, %q, %d\n%+v",
					found.Result, found.Suspect, found.Errno, found.RC, status, test.result, test.suspect, test.errno, test.rc, test.status, found)
			}
			t.Logf("%s, suspect %q: %s %s; lost %d there, %d back of %d; round trip %s", found.Result, found.Suspect, found.Errno, found.Detail,
				found.LostForward, found.LostReverse, found.Sent, found.RTTMedian)
		})
		running.Eventually(t, "no responder is left", func() bool { return len(responders(t)) == 0 })
	}
	t.Run("90 sessions in a lease", manySessions)
	running.Eventually(t, "no responder is left", func() bool { return len(responders(t)) == 0 })
	for _, device := range []string{"rxa", "rxb"} {
		if held := running.Command(t, "rdma", "resource", "show", "qp", "link", device); strings.Contains(held, " type UD") || strings.Contains(held, " type RC") {
			t.Errorf("%s holds\n%s", device, held)
		}
	}
}

// manySessions opens as many sessions as a lease allows, from three clients.
func manySessions(t *testing.T) {
	target := respond(t, "").Listening(t)
	request := `{"device":"rxb","addresses":[{"gid":"::ffff:` + addressA + `","type":"RoCE v2"}],"qpns":[100],"packets":1,"life_seconds":10,"mtu_bytes":1024}`
	statuses := make(map[int]int)
	for i := range 4 * 30 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i/30))}}
		client := http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
		response, err := client.Post("http://"+target+path.SessionsPath, "application/json", strings.NewReader(request)) //nolint:noctx // of this test
		running.Check(t, err)
		_ = response.Body.Close()
		statuses[response.StatusCode]++
	}
	if statuses[http.StatusCreated] != 90 || statuses[http.StatusTooManyRequests] != 30 {
		t.Errorf("the sessions have the statuses %v", statuses)
	}
}
