package security_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// TestHostileRequests sends what no scraper does, as bytes, and checks the first line of each answer.
// Afterwards the exporter probes and answers as before, and has not filled its log.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	p := hostile(t, "")
	address := p.Listening(t)
	const refused, served = `^HTTP/1\.[01] 4\d\d `, `^HTTP/1\.[01] 200 `
	get := func(path string, headers ...string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
	}
	for _, c := range []struct{ name, request, want string }{
		{"a reload from another site", "POST /-/reload HTTP/1.1\r\nHost: x\r\nOrigin: http://evil\r\nContent-Length: 0\r\n\r\n", refused},
		{"a quit", "POST /-/quit HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", refused},
		{"a method that changes", "DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", refused},
		{"a method that tells", "TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", refused},
		{"a profile", get("/debug/pprof/heap"), refused},
		{"a file", get("/../../../etc/passwd"), `^HTTP/1\.[01] [34]\d\d `},
		{"a file, escaped", get("/%2e%2e/%2e%2e/etc/passwd"), refused},
		{"a byte that ends a path", get("/metrics%00.html"), refused},
		{"a line of a header in the path", get("/metrics\r\nX: y"), refused},
		{"no host", "GET /metrics HTTP/1.1\r\n\r\n", refused},
		{"a host with markup", "GET /metrics HTTP/1.1\r\nHost: <script>\r\n\r\n", refused},
		{"two lengths", get("/metrics", "Content-Length: 1", "Content-Length: 2"), refused},
		{"a length that is not a number", get("/metrics", "Content-Length: -1"), refused},
		{"an unknown transfer coding", get("/metrics", "Transfer-Encoding: x, chunked"), `^HTTP/1\.[01] [45]\d\d `},
		{"a header of 2 MiB", get("/metrics", "X: "+strings.Repeat("x", 2<<20)), `^HTTP/1\.1 431 |^$`},
		{"100,000 headers", get("/metrics", strings.Repeat("X: y\r\n", 100000)), `^HTTP/1\.1 431 |^$`},
		{"a name[] of 2 MiB", get("/metrics?name[]=" + strings.Repeat("x", 2<<20)), `^HTTP/1\.1 4\d\d |^$`},
		{"collectors that are not there", get("/metrics?collect[]=<script>"), refused},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 64), refused},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", `^HTTP/1\.1 [45]\d\d |^$`},
		{"an unknown version", "GET /metrics HTTP/9.9\r\nHost: x\r\n\r\n", `^HTTP/1\.1 [45]\d\d `},
		{"no HTTP", "\x00\x01\x02\x03\r\n\r\n", refused},
		{"an Accept of nonsense", get("/metrics", "Accept: "+strings.Repeat("application/openmetrics-text;q=2;version=x,", 100)), served},
		{"protobuf as text", get("/metrics", "Accept: application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text"), served},
		{"protobuf, compact", get("/metrics", "Accept: application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=compact-text"), served},
		{"names in any form", get("/metrics", "Accept: text/plain;version=1.0.0;escaping=values"), served},
		{"an unknown encoding", get("/metrics", "Accept-Encoding: x, zip;q=9"), served},
		{"an absolute address of another host", get("http://evil/metrics"), served},
		{"a body that is not asked for", get("/metrics", "Content-Length: 10") + "0123456789", served},
	} {
		conn := running.Must(net.Dial("tcp", address))(t)
		running.Check(t, conn.SetDeadline(time.Now().Add(running.Patience)))
		go func() { _, _ = conn.Write([]byte(c.request)) }() // The exporter need not read all of it.
		first, _ := bufio.NewReader(conn).ReadString('\n')   // Nothing, if it cuts the connection.
		if !regexp.MustCompile(c.want).MatchString(first) {
			t.Errorf("%s: the answer begins with %q, want %s", c.name, first, c.want)
		}
		_ = conn.Close()
	}
	_, before := okRuns(scrape(address))
	running.Eventually(t, "each device is probed, and again", func() bool {
		devices, runs := okRuns(scrape(address))
		return devices == 3 && runs >= before+3
	})
	if lines := strings.Count(p.Log.String(), "\n"); lines > 60 {
		t.Errorf("the log has %d lines:\n%s", lines, p.Log.String())
	}
}

// TestHiddenQueuePairs verifies that a program with the name of the exporter hides no broken queue pairs.
func TestHiddenQueuePairs(t *testing.T) {
	t.Parallel()
	p := hostile(t, "devices:\n  - name: sim\n    like: sim_rxe0\n    resources:\n      holders:\n"+
		"        - {pid: 4711, comm: rdma_exporter, objects: {qp: 500}, queue_pairs: [{type: rc, state: err, objects: 500}]}\n")
	address := p.Listening(t)
	running.Eventually(t, "the finding", func() bool {
		return regexp.MustCompile(`(?m)^rdma_finding_first_seen_timestamp_seconds\{.*finding="qp_error"`).MatchString(scrape(address))
	})
}

func newPair(t *testing.T) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	running.Command(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
		"-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-days", "1")
	return cert, key
}

// TestFolderOfState verifies that the name of the state folder is no pattern, and that the folder has
// one user.
func TestFolderOfState(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	odd, other := filepath.Join(parent, "g*"), filepath.Join(parent, "good")
	running.Check(t, os.Mkdir(odd, 0o755))
	running.Check(t, os.Mkdir(other, 0o755))
	precious := filepath.Join(other, "past.json.new")
	running.Check(t, os.WriteFile(precious, nil, 0o600))
	start := func() *running.Process {
		p := running.Launch(t, "the exporter", binary, "--provider=simulated", "--web.listen-address=127.0.0.1:0", "--state.dir="+odd)
		p.Listening(t)
		return p
	}
	running.DependOn(t, binary)
	first := start()
	running.Eventually(t, "the state is saved", func() bool {
		_, err := os.Stat(filepath.Join(odd, "past.json"))
		return err == nil
	})
	second := start()
	running.Eventually(t, "the second exporter says that it saves nothing", func() bool {
		return strings.Contains(second.Log.String(), "another exporter")
	})
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("a file of another folder: %v", err)
	}
	first.MustRun(t)
}

// TestKeyIsMissing verifies that the check of liveness passes while the key of TLS is missing, and
// that the check of readiness does not.
func TestKeyIsMissing(t *testing.T) {
	t.Parallel()
	cert, key := newPair(t)
	running.DependOn(t, binary)
	p := running.Launch(t, "the exporter", binary, "--provider=simulated", "--web.listen-address=127.0.0.1:0",
		"--web.config.file="+running.File(t, "web.yaml", fmt.Sprintf("tls_server_config: {cert_file: %s, key_file: %s}\n", cert, key)))
	address := p.Listening(t)
	check := func(args ...string) error {
		return exec.CommandContext(t.Context(), binary, append([]string{"healthcheck", "--url=http://" + address}, args...)...).Run()
	}
	running.Eventually(t, "the exporter is ready", func() bool { return check("--ready") == nil })
	running.Check(t, os.Remove(key))
	if err := check(); err != nil {
		t.Errorf("liveness without the key: %v", err)
	}
	if check("--ready") == nil {
		t.Error("it is ready without the key")
	}
}
