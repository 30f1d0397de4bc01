package web_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/crypto/bcrypt"

	"rdma_exporter/internal/web"
	"rdma_exporter/test/running"
)

// server is a running Serve.
type server struct {
	address string
	config  *web.ConfigFile
	stop    context.CancelFunc
	ended   chan error
}

// start runs Serve until the test ends, on an address of its own, so that no other program
// takes the port when Serve has ended.
func start(t *testing.T, h http.Handler, configFile string) *server {
	t.Helper()
	return startAs(t, web.Serve, h, configFile)
}

func startAs(t *testing.T, serve func(context.Context, http.Handler, []net.Listener, *web.ConfigFile, *slog.Logger) error, h http.Handler, configFile string) *server {
	t.Helper()
	s := &server{ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	flags := &toolkit.FlagConfig{WebListenAddresses: &[]string{"127.0.83.1:0"}}
	log := new(running.Output)
	logger := slog.New(slog.NewTextHandler(log, nil))
	config := running.Must(web.OpenConfigFile(configFile))(t)
	s.config = config
	listeners := running.Must(web.Listen(ctx, flags))(t)
	go func() { s.ended <- serve(ctx, h, listeners, config, logger) }()
	running.Eventually(t, "somebody listens", func() bool {
		select {
		case err := <-s.ended:
			t.Fatal(err)
		default:
		}
		s.address = log.Listening()
		return s.address != ""
	})
	return s
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	var config net.ListenConfig
	l := running.Must(config.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	return l
}

// dial returns an error if no program listens on an address.
func dial(t *testing.T, address string) error {
	t.Helper()
	var dialer net.Dialer
	c, err := dialer.DialContext(t.Context(), "tcp", address)
	if err == nil {
		_ = c.Close()
	}
	return err
}

// fetch requests a page, with a password unless it is empty. It does so again if the machine
// may have been so slow that the connection was cut before the request was sent.
func fetch(t *testing.T, client *http.Client, url, password string) (int, string, error) {
	const headerTimeout = 5 * time.Second // of the server
	began := time.Now()
	status, body, err := fetchOnce(t, client, url, password)
	if err != nil && time.Since(began) >= headerTimeout {
		return fetchOnce(t, client, url, password)
	}
	return status, body, err
}

func fetchOnce(t *testing.T, client *http.Client, url, password string) (int, string, error) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if password != "" {
		request.SetBasicAuth("scraper", password)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// TestServeFinishesRequests verifies that a request in flight is answered if it ends in time.
func TestServeFinishesRequests(t *testing.T) {
	const inTime = 3 * time.Second // as Serve promises
	for range 10 {
		entered := make(chan struct{})
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			entered <- struct{}{}
			<-entered
			w.WriteHeader(http.StatusTeapot)
		}), "")
		code := make(chan int, 1)
		go func() {
			got, _, _ := fetch(t, http.DefaultClient, "http://"+s.address, "")
			code <- got
		}()
		<-entered
		began := time.Now()
		s.stop()
		for dial(t, s.address) == nil {
			time.Sleep(10 * time.Millisecond)
		}
		entered <- struct{}{}
		got := <-code
		took := time.Since(began)
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
		if got == http.StatusTeapot {
			return
		}
		if took < inTime {
			t.Fatalf("got %d after %v", got, took)
		}
		t.Logf("the machine stood still, and the request was cut after %v: again", took)
	}
	t.Error("the request never ended in time")
}

// TestServeCutsRequests verifies that a request that does not end cannot delay the exporter.
func TestServeCutsRequests(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	defer close(leave)
	s := startAs(t, web.ServeHasty, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave // Not even the end of the request's context ends it.
	}), "")
	failed := make(chan error, 1)
	go func() {
		_, _, err := fetch(t, http.DefaultClient, "http://"+s.address, "")
		failed <- err
	}()
	<-entered
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
}

func TestServeErrors(t *testing.T) {
	l := listen(t)
	_ = l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), running.Patience)
	defer cancel()
	if err := web.Serve(ctx, http.NotFoundHandler(), []net.Listener{l}, nil, slog.New(slog.DiscardHandler)); err == nil || ctx.Err() != nil {
		t.Errorf("a closed listener: got %v, %v", err, ctx.Err())
	}
}

// TestListen verifies that Listen opens all addresses or none, and that an error names flag and
// address.
func TestListen(t *testing.T) {
	taken := listen(t)
	defer func() { _ = taken.Close() }()
	flags := func(addresses ...string) *toolkit.FlagConfig {
		return &toolkit.FlagConfig{WebListenAddresses: &addresses}
	}
	all, err := web.Listen(t.Context(), flags("127.0.0.1:0", "127.0.83.2:0"))
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, l := range all {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	systemd := flags("")
	systemd.WebSystemdSocket = new(true)
	for name, f := range map[string]*toolkit.FlagConfig{"--web.systemd-socket": systemd, "--web.listen-address": flags()} {
		if all, err := web.Listen(t.Context(), f); all != nil || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	for address, want := range map[string]string{
		"": "missing port", "127.0.0.1": "missing port", "127.0.0.1:": "port is missing", ":": "port is missing", "[::1": "missing ']'",
		":65536": "invalid port", "192.0.2.1:0": "cannot assign", ":no-such-port": "unknown port",
		"vsock://": "missing port", "vsock://:": "port is missing", "vsock://:4294967296": "not a number", "vsock://:x": "not a number",
		taken.Addr().String(): "address already in use",
	} {
		all, err := web.Listen(t.Context(), flags("127.0.83.3:0", address))
		if all != nil || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("--web.listen-address is %q: ", address)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", address, all, err)
		}
		if address == taken.Addr().String() && !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// TestServeStoppedBeforehand verifies that a stop before listening is not lost.
func TestServeStoppedBeforehand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := web.Serve(ctx, http.NotFoundHandler(), []net.Listener{listen(t)}, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

// TestStalledConfigFile verifies that only a reload waits for a web configuration that cannot be
// read.
func TestStalledConfigFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	write(t, file, "http_server_config: {http2: true}\n")
	s := start(t, handler(t, config(devices())), file)
	entered, leave, reloaded := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	web.Reading(s.config, func(string) ([]byte, error) {
		entered <- struct{}{}
		<-leave
		return nil, syscall.EIO
	})
	go func() { reloaded <- s.config.Reload() }()
	<-entered
	for range 5 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: running.Patience}
		if code, _, err := fetch(t, client, "http://"+s.address+"/-/healthy", ""); err != nil || code != http.StatusOK {
			t.Errorf("while the file stalls: status %d, %v", code, err)
		}
	}
	if !s.config.InForce() {
		t.Error("a reload that has not ended counts as failed")
	}
	close(leave)
	if err := <-reloaded; !errors.Is(err, syscall.EIO) || s.config.InForce() {
		t.Errorf("the reload returned %v, in force %t", err, s.config.InForce())
	}
}

// TestConnections verifies that connections leave file descriptors for children.
func TestConnections(t *testing.T) {
	for files, want := range map[uint64]int{0: 1, 64: 16, 256: 128, 1024: 512, 1 << 20: 512, 1<<64 - 1: 512} {
		if got := web.ConnectionsFor(files); got != want {
			t.Errorf("%d files: %d connections, want %d", files, got, want)
		}
	}
}

// TestConfigFilePaths verifies that paths are relative to the file, however they are written,
// and that users may have any name.
func TestConfigFilePaths(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	hash := running.Must(bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost))(t)
	file := filepath.Join(dir, "web.yml")
	write(t, file, fmt.Sprintf("tls_server_config:\n  cert_file: &both both.pem\n  key_file: *both\nbasic_auth_users:\n  scraper: &hash %s\n  cert_file: *hash\n", hash))
	if _, err := web.OpenConfigFile(file); err != nil {
		t.Error(err)
	}
}

// TestReloadConfigFile verifies that a reload replaces passwords, and takes no protection away.
func TestReloadConfigFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	users := func(password string) string {
		hash := running.Must(bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost))(t)
		return fmt.Sprintf("basic_auth_users: {scraper: %s}\n", hash)
	}
	write(t, file, users("one"))
	s := start(t, handler(t, config(devices())), file)
	defer http.DefaultClient.CloseIdleConnections()
	for _, step := range []struct{ text, want, password string }{
		{users("two"), "", "two"},
		{"http_server_config: {http2: true}\n", "no longer has basic_auth_users", "two"},
		{users("three") + "tls_server_config: {cert_file: both.pem, key_file: both.pem}\n", "was started without", "two"},
		{"basic_auth_users: {scraper: secret}\n", "hashedSecret too short", "two"},
		{"", "it is empty", "two"},
		{users("four"), "", "four"},
	} {
		write(t, file, step.text)
		certificate(t, filepath.Dir(file))
		err := s.config.Reload()
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) || s.config.InForce() != (err == nil) {
			t.Errorf("%q: %v, want %q; in force %t", step.text, err, step.want, s.config.InForce())
		}
		for _, password := range []string{"one", "two", "three", "four", ""} {
			want := http.StatusUnauthorized
			if password == step.password {
				want = http.StatusOK
			}
			if code, _, err := fetch(t, http.DefaultClient, "http://"+s.address+"/-/healthy", password); err != nil || code != want {
				t.Errorf("%q: with password %q: status %d, %v", step.text, password, code, err)
			}
		}
	}
}

// certificate writes a certificate with its key to both.pem in dir.
func certificate(t *testing.T, dir string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	s.Close()
	key := running.Must(x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey))(t)
	both := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	write(t, filepath.Join(dir, "both.pem"), both)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	running.Check(t, os.WriteFile(path, []byte(text), 0o600))
}
