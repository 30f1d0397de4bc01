package web

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/input"
)

// verifyClients is the client_auth_type that admits no client without a certificate of the
// authority.
const verifyClients = "RequireAndVerifyClientCert"

// ConfigFile is a web configuration file. The toolkit reads its file at each handshake and
// request. It gets a copy in memory, so that only Reload waits for the file. Certificates
// are read from their own files, so they may rotate. Its methods are safe for concurrent use,
// but one goroutine at a time may call Reload.
type ConfigFile struct {
	path string
	read func(path string) ([]byte, error)
	// copied is the copy. Its descriptor stays, and Reload replaces the file behind it.
	copied *os.File
	// failed is true if the latest reload failed.
	failed atomic.Bool

	config *toolkit.Config
}

// OpenConfigFile reads a web configuration file. It returns nil if path is empty.
func OpenConfigFile(path string) (*ConfigFile, error) {
	if path == "" {
		return nil, nil
	}
	f := &ConfigFile{path: path, read: input.ReadFile}
	var err error
	if f.config, f.copied, err = f.load(); err != nil {
		return nil, fmt.Errorf("--web.config.file %s: %w", path, err)
	}
	return f, nil
}

// InForce reports whether the latest reload succeeded. If not, the previous version stays
// in force.
func (f *ConfigFile) InForce() bool { return !f.failed.Load() }

// toolkitPath returns the path of the copy. It is empty if there is no configuration.
func (f *ConfigFile) toolkitPath() string {
	if f == nil {
		return ""
	}
	return pathOf(f.copied)
}

// Reload reads the file again. A file that is invalid, or asks less of clients than the
// one in force, changes nothing.
func (f *ConfigFile) Reload() error {
	if f == nil {
		return nil
	}
	err := f.replace()
	f.failed.Store(err != nil)
	if err != nil {
		return fmt.Errorf("--web.config.file %s: %w", f.path, err)
	}
	return nil
}

func (f *ConfigFile) replace() error {
	config, copied, err := f.load()
	if err != nil {
		return err
	}
	defer func() { _ = copied.Close() }()
	if err := checkWeaker(f.config, config); err != nil {
		return err
	}
	if config.TLSConfig.IsEnabled() && !f.config.TLSConfig.IsEnabled() {
		return errors.New("it has a tls_server_config, but the exporter was started without: restart the exporter, which serves in the clear until then")
	}
	// A concurrent open gets the old copy or the new one.
	if err := unix.Dup3(int(copied.Fd()), int(f.copied.Fd()), unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("replace the copy in memory: %w", err)
	}
	f.config = config
	return nil
}

// load checks the file. It returns the configuration, and a copy for the toolkit, which
// the caller closes.
func (f *ConfigFile) load() (*toolkit.Config, *os.File, error) {
	text, err := f.read(f.path)
	if err != nil {
		return nil, nil, err
	}
	config, root := new(toolkit.Config), new(yaml.Node)
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(config); errors.Is(err, io.EOF) {
		return nil, nil, errors.New("it is empty: drop --web.config.file to let everybody in")
	} else if err != nil {
		return nil, nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(f.path))
	if err != nil {
		return nil, nil, err
	}
	config.TLSConfig.SetDirectory(dir)
	if err := yaml.Unmarshal(text, root); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(append(input.CheckWhole(root, config), checkTLS(&config.TLSConfig))...); err != nil {
		return nil, nil, err
	}
	makeAbsolute(root, dir)
	moved, err := yaml.Marshal(root)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the copy in memory: %w", err)
	}
	copied, err := inMemory(moved)
	if err != nil {
		return nil, nil, err
	}
	if err := toolkit.Validate(pathOf(copied)); err != nil {
		_ = copied.Close()
		return nil, nil, err
	}
	return config, copied, nil
}

// checkTLS returns an error if clients may use a version of TLS that is broken, or are identified
// by something that proves nothing, or by an authority without a certificate.
func checkTLS(c *toolkit.TLSConfig) error {
	name, old := "min_version", func(v toolkit.TLSVersion) bool { return v != 0 && v < tls.VersionTLS12 }
	if old(c.MaxVersion) {
		name = "max_version"
	}
	if old(c.MinVersion) || old(c.MaxVersion) {
		return fmt.Errorf("tls_server_config: %s is older than TLS 1.2, which anybody can break: use TLS12 or TLS13", name)
	}
	if c.ClientAllowedSans != nil && (c.ClientAuth != verifyClients || !hasAuthority(c)) {
		// The toolkit checks the names in any certificate, and admits clients without one.
		return fmt.Errorf("tls_server_config: client_allowed_sans proves nothing by itself: add client_auth_type: %s and client_ca_file", verifyClients)
	}
	name, text := "client_ca", []byte(c.ClientCAsText)
	if c.ClientCAs != "" {
		var err error
		if text, err = os.ReadFile(c.ClientCAs); err != nil {
			return fmt.Errorf("tls_server_config: client_ca_file: %w", err)
		}
		name = "client_ca_file " + c.ClientCAs
	}
	if hasAuthority(c) && !x509.NewCertPool().AppendCertsFromPEM(text) {
		return fmt.Errorf("tls_server_config: %s has no certificate: name the authority of the clients", name)
	}
	return nil
}

// hasAuthority reports whether an authority of clients is named. Otherwise any authority
// that the host trusts will do.
func hasAuthority(c *toolkit.TLSConfig) bool { return c.ClientCAs != "" || c.ClientCAsText != "" }

func checkWeaker(before, after *toolkit.Config) error {
	var gone []string
	for _, p := range []struct {
		name string
		in   func(*toolkit.Config) bool
	}{
		{"basic_auth_users", func(c *toolkit.Config) bool { return len(c.Users) > 0 }},
		{"client_allowed_sans", func(c *toolkit.Config) bool { return c.TLSConfig.ClientAllowedSans != nil }},
		{"client_auth_type: " + verifyClients, func(c *toolkit.Config) bool { return c.TLSConfig.ClientAuth == verifyClients }},
		{"client_ca_file", func(c *toolkit.Config) bool { return hasAuthority(&c.TLSConfig) }},
		{"min_version: TLS13", func(c *toolkit.Config) bool { return c.TLSConfig.MinVersion >= tls.VersionTLS13 }},
		{"TLS 1.3 (max_version)", func(c *toolkit.Config) bool {
			return c.TLSConfig.MaxVersion == 0 || c.TLSConfig.MaxVersion >= tls.VersionTLS13
		}},
		{"tls_server_config", func(c *toolkit.Config) bool { return c.TLSConfig.IsEnabled() }},
	} {
		if p.in(before) && !p.in(after) {
			gone = append(gone, p.name)
		}
	}
	if gone != nil {
		return fmt.Errorf("it no longer has %s: put it back, or restart the exporter if this is intended", strings.Join(gone, ", "))
	}
	return nil
}

// makeAbsolute makes the paths in a configuration independent of its directory.
func makeAbsolute(n *yaml.Node, dir string) {
	for i, value := range n.Content {
		key := ""
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			key = n.Content[i-1].Value
		}
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		switch {
		case key == "basic_auth_users": // Its keys are names of users.
		case value.Kind != yaml.ScalarNode:
			makeAbsolute(value, dir)
		case slices.Contains([]string{"cert_file", "key_file", "client_ca_file"}, key) && value.Value != "" && !filepath.IsAbs(value.Value):
			value.SetString(filepath.Join(dir, value.Value))
		}
	}
}

func inMemory(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("web configuration", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make the copy in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "web configuration")
	if _, err := f.Write(text); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("write the copy in memory: %w", err)
	}
	return f, nil
}

// pathOf returns a path by which this process can open a file that it has open.
func pathOf(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
