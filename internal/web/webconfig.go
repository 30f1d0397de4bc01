package web

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
// are read from their own files, so they may rotate. All methods are safe for concurrent
// use.
type ConfigFile struct {
	path string
	read func(path string) ([]byte, error)
	// copied is the copy. Its descriptor stays, and Reload replaces the file behind it.
	copied *os.File
	// failed is true if the latest reload failed.
	failed atomic.Bool

	// loading is held while the file is read. No request waits for it.
	loading sync.Mutex
	config  *toolkit.Config
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
	f.loading.Lock()
	defer f.loading.Unlock()
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
	// The toolkit reads the file again. Unlike with the copy, its errors name the right line.
	if err := toolkit.Validate(f.path); err != nil {
		return nil, nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, nil, err
	}
	if len(root.Content) == 0 {
		return nil, nil, errors.New("it is empty: drop --web.config.file to let everybody in")
	}
	config := new(toolkit.Config)
	if err := root.Decode(config); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(append(input.CheckWhole(&root, config), checkClients(&config.TLSConfig, filepath.Dir(f.path)))...); err != nil {
		return nil, nil, err
	}
	if err := makeAbsolute(&root, filepath.Dir(f.path)); err != nil {
		return nil, nil, err
	}
	moved, err := yaml.Marshal(&root)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the copy in memory: %w", err)
	}
	copied, err := inMemory(moved)
	if err != nil {
		return nil, nil, err
	}
	// The file may have changed between the two reads.
	if err := toolkit.Validate(pathOf(copied)); err != nil {
		_ = copied.Close()
		return nil, nil, err
	}
	return config, copied, nil
}

// checkClients returns an error if clients are identified by something that proves nothing,
// or by an authority without a certificate. Its path is relative to a directory.
func checkClients(c *toolkit.TLSConfig, dir string) error {
	if c.ClientAllowedSans != nil && (c.ClientAuth != verifyClients || !hasAuthority(c)) {
		// The toolkit checks the names in any certificate, and admits clients without one.
		return fmt.Errorf("tls_server_config: client_allowed_sans proves nothing by itself: add client_auth_type: %s and client_ca_file", verifyClients)
	}
	if !hasAuthority(c) {
		return nil
	}
	name, text := "client_ca", []byte(c.ClientCAsText)
	if path := c.ClientCAs; path != "" {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return fmt.Errorf("tls_server_config: client_ca_file: %w", err)
		}
		name = "client_ca_file " + path
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return fmt.Errorf("tls_server_config: %s has no certificate: name the authority of the clients", name)
	}
	return nil
}

// hasAuthority reports whether an authority of clients is named. Otherwise any authority
// that the host trusts will do.
func hasAuthority(c *toolkit.TLSConfig) bool { return c.ClientCAs != "" || c.ClientCAsText != "" }

func checkWeaker(before, after *toolkit.Config) error {
	protections := func(c *toolkit.Config) map[string]bool {
		return map[string]bool{
			"basic_auth_users":                   len(c.Users) > 0,
			"tls_server_config":                  c.TLSConfig.IsEnabled(),
			"client_auth_type: " + verifyClients: c.TLSConfig.ClientAuth == verifyClients,
			"client_ca_file":                     hasAuthority(&c.TLSConfig),
			"client_allowed_sans":                c.TLSConfig.ClientAllowedSans != nil,
		}
	}
	var gone []string
	now := protections(after)
	for name, had := range protections(before) {
		if had && !now[name] {
			gone = append(gone, name)
		}
	}
	if gone != nil {
		slices.Sort(gone)
		return fmt.Errorf("it no longer has %s: put it back, or restart the exporter if this is intended", strings.Join(gone, ", "))
	}
	return nil
}

// makeAbsolute makes the paths in a configuration independent of its directory.
func makeAbsolute(n *yaml.Node, dir string) error {
	for i, value := range n.Content {
		key := ""
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			key = n.Content[i-1].Value
		}
		if key == "basic_auth_users" {
			continue // Its keys are names of users.
		}
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if value.Kind != yaml.ScalarNode {
			if err := makeAbsolute(value, dir); err != nil {
				return err
			}
			continue
		}
		if !slices.Contains([]string{"cert_file", "key_file", "client_ca_file"}, key) || value.Value == "" || filepath.IsAbs(value.Value) {
			continue
		}
		path, err := filepath.Abs(filepath.Join(dir, value.Value))
		if err != nil {
			return err
		}
		value.SetString(path)
	}
	return nil
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
