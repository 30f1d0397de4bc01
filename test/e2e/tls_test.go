package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"rdma_exporter/test/running"
)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// pem is its own certificate.
	pem []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := running.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := running.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	cert := running.Must(x509.ParseCertificate(der))(t)
	return &authority{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue issues a certificate for 127.0.0.1 and a name, for servers and clients.
func (a *authority) issue(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private := running.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der := running.Must(x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key))(t)
	keyDER := running.Must(x509.MarshalPKCS8PrivateKey(private))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// pair is issue for a client.
func (a *authority) pair(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	cert, key := a.issue(t, name)
	p := running.Must(tls.X509KeyPair(cert, key))(t)
	return &p
}

// pool trusts the authority.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// secured is a folder with what a web configuration names.
type secured struct {
	dir string
	ca  *authority
}

// newSecured returns a folder with the files cert.pem, key.pem and ca.pem.
func newSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{dir: t.TempDir(), ca: newAuthority(t)}
	s.renew(t, s.ca)
	s.write(t, "ca.pem", string(s.ca.pem))
	return s
}

// renew writes another certificate for the server.
func (s *secured) renew(t *testing.T, ca *authority) {
	t.Helper()
	cert, key := ca.issue(t, "server")
	s.write(t, "cert.pem", string(cert))
	s.write(t, "key.pem", string(key))
}

// write puts a file into the folder at once, as one that is read meanwhile should be.
func (s *secured) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	running.Check(t, os.WriteFile(path+".new", []byte(text), 0o600))
	running.Check(t, os.Rename(path+".new", path))
	return path
}

// start starts an exporter with a web configuration, and with a client that speaks TLS
// as config says.
func (s *secured) start(t *testing.T, webConfig string, config *tls.Config, args ...string) *exporter {
	t.Helper()
	if args == nil {
		args = []string{"--provider=simulated"}
	}
	e := start(t, append(args, "--web.config.file="+s.write(t, "web.yaml", webConfig))...)
	e.url = strings.Replace(e.url, "http:", "https:", 1)
	e.speak(config)
	return e
}

// speak makes the client speak TLS as config says, HTTP/2 if the server does, on a
// connection of its own for each request.
func (e *exporter) speak(config *tls.Config) {
	e.client.Transport = &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: config}
}

// try asks for a path and returns the status, or the error if there was no answer.
func (e *exporter) try(t *testing.T, path, user, password string) (int, error) {
	t.Helper()
	r := running.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+path, nil))(t)
	if user != "" || password != "" {
		r.SetBasicAuth(user, password)
	}
	response, err := e.do(t, e.client, r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// everyPath are all paths that the exporter serves, and some that it does not.
func everyPath() []string {
	return []string{"/", "/metrics", "/metrics?name[]=rdma_devices", "/api/v2/status", "/-/healthy", "/-/ready", "/nope", "/debug/pprof/"}
}

func hash(t *testing.T, password string) string {
	t.Helper()
	h := running.Must(bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost))(t)
	return string(h)
}

// Without the right password there is nothing to be had, on no path, by no protocol.
func TestPasswordOnEveryPath(t *testing.T) {
	t.Parallel()
	users := fmt.Sprintf("basic_auth_users: {alice: %s, bob: %s}\n", hash(t, "open sesame"), hash(t, "b"))
	for _, protocol := range []string{"plain", "HTTP/1.1", "HTTP/2"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := newSecured(t)
			var e *exporter
			if protocol == "plain" {
				e = start(t, "--provider=simulated", "--web.config.file="+s.write(t, "web.yaml", users))
			} else {
				e = s.start(t, fmt.Sprintf("tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nhttp_server_config: {http2: %t}\n", protocol == "HTTP/2")+users, &tls.Config{RootCAs: s.ca.pool()})
			}
			for _, path := range everyPath() {
				for _, c := range []struct {
					user, password string
					right          bool
				}{
					{},
					{user: "alice"},
					{user: "alice", password: "Open sesame"},
					{user: "alice", password: "b"},
					{user: "carol", password: "open sesame"},
					{password: "open sesame"},
					{user: "alice", password: hash(t, "open sesame")},
					{user: "alice", password: "open sesame", right: true},
					{user: "bob", password: "b", right: true},
				} {
					status, body, header := e.fetch(t, path, func(r *http.Request) {
						if c.user != "" || c.password != "" {
							r.SetBasicAuth(c.user, c.password)
						}
					})
					if refused := status == http.StatusUnauthorized; refused == c.right {
						t.Errorf("%s as %q with %q: status %d", path, c.user, c.password, status)
					}
					if !c.right && (body != http.StatusText(http.StatusUnauthorized)+"\n" || header.Get("WWW-Authenticate") == "") {
						t.Errorf("%s as %q with %q: %q, %v", path, c.user, c.password, body, header)
					}
				}
			}
		})
	}
}

// Where a client certificate is asked for, no other client gets an answer.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	other := newAuthority(t)
	e := s.start(t, `tls_server_config:
  cert_file: cert.pem
  key_file: key.pem
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.pem
  client_allowed_sans: [prometheus]
`, nil)
	for _, c := range []struct {
		name string
		cert *tls.Certificate
		ok   bool
	}{
		{"no certificate", nil, false},
		{"that of another authority", other.pair(t, "prometheus"), false},
		{"one with another name", s.ca.pair(t, "grafana"), false},
		{"the right one", s.ca.pair(t, "prometheus"), true},
	} {
		for _, http2 := range []bool{false, true} {
			config := &tls.Config{RootCAs: s.ca.pool()}
			if c.cert != nil {
				// Sent whatever the server says that it takes.
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.cert, nil }
			}
			e.client.Transport = &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: http2, TLSClientConfig: config}
			for _, path := range everyPath() {
				status, err := e.try(t, path, "", "")
				if (err == nil) != c.ok || c.ok && status == 0 {
					t.Errorf("%s, %s: status %d, %v", c.name, path, status, err)
				}
			}
		}
	}
	// The server must be the right one, too: else the client is of no use here.
	e.speak(&tls.Config{RootCAs: other.pool(), Certificates: []tls.Certificate{*s.ca.pair(t, "prometheus")}})
	if status, err := e.try(t, "/metrics", "", ""); err == nil {
		t.Errorf("a client that trusts another authority: status %d", status)
	}
}

// TLS before 1.2 is not spoken, nor any below what the configuration asks for.
func TestTLSVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config string
		least  uint16
	}{
		{"", tls.VersionTLS12},
		{", min_version: TLS13", tls.VersionTLS13},
	} {
		s := newSecured(t)
		e := s.start(t, "tls_server_config: {cert_file: cert.pem, key_file: key.pem"+c.config+"}\n", nil)
		for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13} {
			e.speak(&tls.Config{RootCAs: s.ca.pool(), MinVersion: version, MaxVersion: version})
			status, err := e.try(t, "/-/healthy", "", "")
			if ok := err == nil && status == http.StatusOK; ok != (version >= c.least) {
				t.Errorf("%q, %s: status %d, %v", c.config, tls.VersionName(version), status, err)
			}
		}
		e.url = strings.Replace(e.url, "https:", "http:", 1)
		if status, _ := e.get(t, "/metrics"); status != http.StatusBadRequest {
			t.Errorf("%q, without TLS: status %d", c.config, status)
		}
	}
}

// What is wrong with a web configuration is told at start, as with all other files.
// TestBadInput has more.
func TestBadWebConfig(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	cert, _ := s.ca.issue(t, "other")
	s.write(t, "other.pem", string(cert))
	s.write(t, "empty.pem", "")
	const (
		pair    = "cert_file: cert.pem, key_file: key.pem"
		verify  = pair + ", client_auth_type: RequireAndVerifyClientCert"
		sans    = ", client_allowed_sans: [prometheus]"
		nothing = "client_allowed_sans proves nothing by itself: add client_auth_type: RequireAndVerifyClientCert and client_ca_file"
	)
	for text, want := range map[string]string{
		"tls_server_config: {cert_file: other.pem, key_file: key.pem}\n":                                                     "private key does not match",
		"tls_server_config: {cert_file: empty.pem, key_file: key.pem}\n":                                                     "failed to find any PEM data",
		"tls_server_config: {cert_file: cert.pem}\n":                                                                         "key_file",
		"tls_server_config: {" + pair + ", client_ca_file: ca.pem}\n":                                                        "without a Client Auth Policy",
		"tls_server_config: {" + pair + ", client_auth_type: Require}\n":                                                     "invalid ClientAuth: Require",
		"tls_server_config: {" + verify + ", client_ca_file: x}\n":                                                           "no such file",
		"tls_server_config: {" + verify + ", client_ca_file: key.pem}\n":                                                     "key.pem has no certificate",
		"tls_server_config: {" + pair + ", min_version: TLS9}\n":                                                             "unknown TLS version: TLS9",
		"tls_server_config: {" + pair + ", min_version: TLS10}\n":                                                            "min_version is older than TLS 1.2, which anybody can break: use TLS12 or TLS13",
		"tls_server_config: {" + pair + ", max_version: TLS11}\n":                                                            "max_version is older than TLS 1.2",
		"tls_server_config: {" + pair + sans + "}\n":                                                                         nothing,
		"tls_server_config: {" + pair + ", client_allowed_sans: []}\n":                                                       nothing,
		"tls_server_config: {" + pair + ", client_auth_type: RequireAnyClientCert" + sans + "}\n":                            nothing,
		"tls_server_config: {" + verify + sans + "}\n":                                                                       nothing,
		"tls_server_config: {" + pair + ", client_auth_type: VerifyClientCertIfGiven, client_ca_file: ca.pem" + sans + "}\n": nothing,
		"tls_server_config: {client_allowed_sans: [prometheus]}\n":                                                           nothing,
		"http_server_config: {headers: {X-Anything: y}}\n":                                                                   "X-Anything",
		"tls_server_config:\n\tcert_file: x\n":                                                                               "line 2",
	} {
		file := s.write(t, "web.yaml", text)
		refused(t, invoke(t, binary, s.dir, "--provider=simulated", "--web.config.file="+file), 2, file, []string{"--web.config.file " + file + ": ", want})
	}
}

// A name that is taken from those that are allowed is refused on connections that begin
// anew. One that is open goes on, and so does who resumes an earlier session of TLS, until
// the exporter is started again: SECURITY.md and docs/reference/configuration.md say so. The
// authority is checked in any case.
func TestAllowedNameTakenAway(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			s := newSecured(t)
			config := func(name string) string {
				return "tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem, client_allowed_sans: [" + name + "]}\n"
			}
			client := &tls.Config{RootCAs: s.ca.pool(), MaxVersion: version, Certificates: []tls.Certificate{*s.ca.pair(t, "prometheus")}}
			resuming := client.Clone()
			resuming.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			e := s.start(t, config("prometheus"), resuming)
			want := func(when string, config *tls.Config, ok bool) {
				t.Helper()
				e.speak(config)
				if status, err := e.try(t, "/-/healthy", "", ""); (err == nil && status == http.StatusOK) != ok {
					t.Errorf("%s: status %d, %v", when, status, err)
				}
			}
			want("at first", resuming, true) // It is given a ticket.
			kept := &http.Transport{TLSClientConfig: client}
			defer kept.CloseIdleConnections()
			e.client.Transport = kept
			if status, err := e.try(t, "/-/healthy", "", ""); err != nil || status != http.StatusOK {
				t.Errorf("on a connection that is kept: status %d, %v", status, err)
			}

			s.write(t, "web.yaml", config("grafana"))
			e.reloads(t, "")
			if status, err := e.try(t, "/-/healthy", "", ""); err != nil || status != http.StatusOK {
				t.Errorf("without the name, on the same connection: status %d, %v", status, err)
			}
			// Each session that is resumed can be resumed again.
			for range 3 {
				want("without the name, resuming a session", resuming, true)
			}
			want("without the name, anew", client, false)

			// Another authority counts at once.
			s.write(t, "ca.pem", string(newAuthority(t).pem))
			want("without the authority, resuming a session", resuming, false)
			s.write(t, "ca.pem", string(s.ca.pem))
			want("with it again, anew", client, false)

			again := s.start(t, config("grafana"), resuming)
			if status, err := again.try(t, "/-/healthy", "", ""); err == nil {
				t.Errorf("started again, resuming a session: status %d", status)
			}
		})
	}
}

// reloads sends SIGHUP and waits until the log has the result, which is a failure if why is
// not empty.
func (e *exporter) reloads(t *testing.T, why string) {
	t.Helper()
	result := "Configuration reloaded"
	if why != "" {
		result = why
	}
	before := strings.Count(e.Log.String(), result)
	running.Check(t, e.Signal(syscall.SIGHUP))
	running.Eventually(t, "the log says: "+result, func() bool { return strings.Count(e.Log.String(), result) > before })
}

// TestWebConfigWhileRunning verifies that a reload replaces passwords unless the file is
// broken, and that certificates are replaced without one. TestReloadConfigFile has more.
func TestWebConfigWhileRunning(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	config := func(password string) string {
		return "tls_server_config: {cert_file: cert.pem, key_file: key.pem, min_version: TLS13}\nbasic_auth_users: {alice: " + hash(t, password) + "}\n"
	}
	e := s.start(t, config("one"), &tls.Config{RootCAs: s.ca.pool()})
	want := func(when, password string, want int) {
		t.Helper()
		for _, path := range everyPath()[:6] {
			if got, err := e.try(t, path, "alice", password); got != want && (want != http.StatusOK || got != http.StatusServiceUnavailable) || (err != nil) != (want == 0) {
				t.Errorf("%s, %s with %q: status %d, %v, want %d", when, path, password, got, err, want)
			}
		}
	}
	inForce := func(want float64) {
		t.Helper()
		_, body, _ := e.fetch(t, "/metrics", func(r *http.Request) { r.SetBasicAuth("alice", "two") })
		if got := parse(t, body).sum("rdma_exporter_web_config_last_reload_successful"); got != want {
			t.Errorf("rdma_exporter_web_config_last_reload_successful is %v, want %v", got, want)
		}
	}
	s.write(t, "web.yaml", config("two"))
	want("before a reload", "one", http.StatusOK)
	e.reloads(t, "")
	want("with another password", "one", http.StatusUnauthorized)
	want("with another password", "two", http.StatusOK)
	inForce(1)

	s.write(t, "web.yaml", "tls_server_config: {cert_file: cert.pem, key_file: key.pem, max_version: TLS12}\n")
	e.reloads(t, "no longer has basic_auth_users, min_version: TLS13, TLS 1.3 (max_version)")
	want("without users", "two", http.StatusOK)
	want("without users", "", http.StatusUnauthorized)
	inForce(0)

	other := newAuthority(t)
	s.renew(t, other)
	want("with the certificate of another authority", "two", 0)
	e.speak(&tls.Config{RootCAs: other.pool()})
	want("trusting that one", "two", http.StatusOK)
	s.write(t, "key.pem", "")
	want("with a broken key", "two", 0)
	s.renew(t, other)
	want("with another key", "two", http.StatusOK)
}
