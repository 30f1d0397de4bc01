package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"rdma_exporter/test/running"
)

// Without a file of its own, the exporter shows its three simulated devices, and
// says on every page for people that they are simulated.
func TestPages(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated")
	e.ready(t)

	if status, body := e.get(t, "/-/ready"); status != http.StatusOK || body == "" {
		t.Errorf("/-/ready: status %d %q, want 200 and some text", status, body)
	}
	if status, _ := e.get(t, "/-/healthy"); status != http.StatusOK {
		t.Errorf("/-/healthy: status %d, want 200", status)
	}
	for _, path := range []string{"/nope", "/metrics/", "/-/", "/index.html"} {
		if status, _ := e.get(t, path); status != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, status)
		}
	}
	if status, _, _ := e.fetch(t, "/metrics", func(r *http.Request) { r.Method = http.MethodPost }); status != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics: status %d, want 405", status)
	}

	status, page, header := e.fetch(t, "/", nil)
	if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
		t.Errorf("/: status %d, type %q, want a page", status, header.Get("Content-Type"))
	}
	for _, want := range []string{"Simulated devices", "sim_rxe0", "sim_siw0", "sim_ib0", `href="./metrics"`, `href="./api/v1/status"`, `href="./-/healthy"`, `href="./-/ready"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}

	text, m := e.exposition(t)
	m.want(t, 3, "rdma_devices")
	m.want(t, 1, "rdma_exporter_discovery_success")
	if got := m.values("rdma_device_info", "provider"); len(got) != 1 || got[0] != "simulated" {
		t.Errorf("the devices are those of %q, want simulated", got)
	}
	for _, metric := range []string{"rdma_exporter_build_info", "go_goroutines", "process_open_fds", "promhttp_metric_handler_requests_total"} {
		if len(m[metric]) == 0 {
			t.Errorf("there is no %s", metric)
		}
	}
	checkExposition(t, text)
}

func TestTelemetryPath(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated", "--web.telemetry-path=/of/rdma", "--web.disable-exporter-metrics")
	e.ready(t)
	if status, _ := e.get(t, "/metrics"); status != http.StatusNotFound {
		t.Errorf("/metrics: status %d, want 404", status)
	}
	if _, page := e.get(t, "/"); !strings.Contains(page, `href="./of/rdma"`) {
		t.Error("the page does not lead to /of/rdma")
	}
	status, text := e.get(t, "/of/rdma")
	if status != http.StatusOK {
		t.Errorf("/of/rdma: status %d, want 200", status)
	}
	m := parse(t, text)
	m.want(t, 1, "rdma_exporter_build_info")
	m.want(t, 3, "rdma_devices")
	for metric := range m {
		if regexp.MustCompile(`^(go|process|promhttp)_`).MatchString(metric) {
			t.Errorf("there is %s in spite of --web.disable-exporter-metrics", metric)
		}
	}
	checkExposition(t, text)
}

func TestMaxRequests(t *testing.T) {
	t.Parallel()
	e := start(t, "--provider=simulated", "--web.max-requests=1")
	e.ready(t)
	var served, refused atomic.Int32
	running.Eventually(t, "of many scrapes at once, some are refused", func() bool {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				// Those that ask for the same count as one.
				switch status, err := e.try(t, "/metrics?name[]=rdma_devices&name[]="+strconv.Itoa(i), "", ""); {
				case err != nil:
					t.Errorf("scrape: %v", err)
				case status == http.StatusOK:
					served.Add(1)
				case status == http.StatusServiceUnavailable:
					refused.Add(1)
				default:
					t.Errorf("scrape: status %d", status)
				}
			})
		}
		wg.Wait()
		return t.Failed() || served.Load() > 0 && refused.Load() > 0
	})
	running.Eventually(t, "a scrape alone is served", func() bool {
		status, _ := e.get(t, "/metrics")
		return status == http.StatusOK
	})
}

func TestTLSAndPassword(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots := certificate(t, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte("open sesame"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "web.yaml")
	if err := os.WriteFile(config, []byte(`
tls_server_config: {cert_file: cert.pem, key_file: key.pem}
basic_auth_users: {alice: `+string(hash)+`}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	e := start(t, "--provider=simulated", "--web.config.file="+config)

	if status, _ := e.get(t, "/metrics"); status != http.StatusBadRequest {
		t.Errorf("without TLS: status %d, want 400", status)
	}
	e.url = strings.Replace(e.url, "http:", "https:", 1)
	e.client.Transport = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	for _, c := range []struct {
		user, password string
		want           int
	}{
		{"", "", http.StatusUnauthorized},
		{"alice", "sesame", http.StatusUnauthorized},
		{"bob", "open sesame", http.StatusUnauthorized},
		{"alice", "open sesame", http.StatusOK},
	} {
		for _, path := range []string{"/", "/metrics", "/-/healthy"} {
			status, _, _ := e.fetch(t, path, func(r *http.Request) {
				if c.user != "" {
					r.SetBasicAuth(c.user, c.password)
				}
			})
			if status != c.want {
				t.Errorf("%s as %q with password %q: status %d, want %d", path, c.user, c.password, status, c.want)
			}
		}
	}
}

// certificate writes a certificate for 127.0.0.1 and its key into a folder.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, data := range map[string][]byte{
		"cert.pem": cert,
		"key.pem":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	return roots
}
