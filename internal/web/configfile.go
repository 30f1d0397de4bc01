package web

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/input"
)

// verifyClients is the client_auth_type with which nobody is let in without a certificate
// of the authority.
const verifyClients = "RequireAndVerifyClientCert"

// ConfigFile is a web configuration. The toolkit reads its file at each connection and
// request, and obeys what is there at the moment, were it nothing. So it is given a copy
// instead, which is in memory: of the file as it was when it could last be used, and
// protected no less than before. A nil ConfigFile is none. It is safe for concurrent use.
type ConfigFile struct {
	path   string
	logger *slog.Logger
	// copied is the copy. Its number stays, what it leads to is replaced as a whole.
	copied *os.File

	mu sync.Mutex
	// text is the file as it is in force, and config what it says.
	text   []byte
	config *toolkit.Config
	// problem is why the file as it is now is not in force; empty if it is.
	problem string
}

// OpenConfigFile reads a web configuration; none if path is empty. The logger is told of
// what becomes of the file later.
func OpenConfigFile(path string, logger *slog.Logger) (*ConfigFile, error) {
	if path == "" {
		return nil, nil
	}
	f := &ConfigFile{path: path, logger: logger}
	text, err := input.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config, copied, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	f.text, f.config, f.copied = text, config, copied
	return f, nil
}

// toolkitPath returns the path of the copy; empty if there is no configuration.
func (f *ConfigFile) toolkitPath() string {
	if f == nil {
		return ""
	}
	return pathOf(f.copied)
}

// InForce tells whether the file was in force when the latest request was begun.
func (f *ConfigFile) InForce() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem == ""
}

// refresh looks whether the file has changed, and replaces the copy if it can be used.
func (f *ConfigFile) refresh() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, err := f.update()
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	switch {
	case problem == f.problem && !changed:
		return
	case problem != "":
		f.logger.Error("The web configuration cannot be used; the previous one stays in force", "file", f.path, "err", problem)
	default:
		f.logger.Info("The web configuration was reloaded", "file", f.path)
	}
	f.problem = problem
}

// update is refresh without the log. It tells whether the copy was replaced. It is called
// with mu held.
func (f *ConfigFile) update() (changed bool, err error) {
	text, err := input.ReadFile(f.path)
	if err != nil {
		return false, err
	}
	if bytes.Equal(text, f.text) {
		return false, nil
	}
	config, copied, err := f.parse(text)
	if err != nil {
		return false, err
	}
	defer func() { _ = copied.Close() }()
	if err := weaker(f.config, config); err != nil {
		return false, err
	}
	if config.TLSConfig.IsEnabled() && !f.config.TLSConfig.IsEnabled() {
		return false, errors.New("it has a tls_server_config, but the exporter was started without: restart the exporter, which serves in the clear until then")
	}
	// Whoever opens the copy meanwhile has the old one or the new.
	if err := unix.Dup3(int(copied.Fd()), int(f.copied.Fd()), unix.O_CLOEXEC); err != nil {
		return false, fmt.Errorf("replace the copy in memory: %w", err)
	}
	f.text, f.config = text, config
	return true, nil
}

// parse checks a configuration, and returns it, and a copy for the toolkit, which the
// caller closes.
func (f *ConfigFile) parse(text []byte) (*toolkit.Config, *os.File, error) {
	// This reads the file again, so that what is wrong has its line.
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
	if err := errors.Join(input.CheckWhole(&root, config)...); err != nil {
		return nil, nil, err
	}
	if err := checkNames(&config.TLSConfig); err != nil {
		return nil, nil, err
	}
	if err := checkAuthority(&config.TLSConfig, filepath.Dir(f.path)); err != nil {
		return nil, nil, err
	}
	if err := absolute(&root, filepath.Dir(f.path)); err != nil {
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
	// The file may have been another one when its text was read.
	if err := toolkit.Validate(pathOf(copied)); err != nil {
		_ = copied.Close()
		return nil, nil, err
	}
	return config, copied, nil
}

// checkNames returns an error if names of clients are asked for and not proven: the toolkit
// looks at the names in whatever certificate it is sent, and lets in who sends none.
func checkNames(c *toolkit.TLSConfig) error {
	if c.ClientAllowedSans == nil {
		return nil
	}
	if c.ClientAuth != verifyClients || !hasAuthority(c) {
		return fmt.Errorf("tls_server_config: client_allowed_sans proves nothing by itself: add client_auth_type: %s and client_ca_file", verifyClients)
	}
	return nil
}

// checkAuthority returns an error if the authority of clients has no certificate, with which
// the toolkit refuses every client. Its path counts from a folder.
func checkAuthority(c *toolkit.TLSConfig, folder string) error {
	if !hasAuthority(c) {
		return nil
	}
	name, text := "client_ca", []byte(c.ClientCAsText)
	if path := c.ClientCAs; path != "" {
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
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

// hasAuthority tells whether an authority of clients is named. Without one, it is any of
// those that the host knows.
func hasAuthority(c *toolkit.TLSConfig) bool { return c.ClientCAs != "" || c.ClientCAsText != "" }

// weaker returns an error if a configuration asks less of clients than the one before.
func weaker(before, after *toolkit.Config) error {
	var gone []string
	for _, p := range []struct {
		name          string
		before, after bool
	}{
		{"basic_auth_users", len(before.Users) > 0, len(after.Users) > 0},
		{"tls_server_config", before.TLSConfig.IsEnabled(), after.TLSConfig.IsEnabled()},
		{"client_auth_type: " + verifyClients, before.TLSConfig.ClientAuth == verifyClients, after.TLSConfig.ClientAuth == verifyClients},
		{"client_ca_file", hasAuthority(&before.TLSConfig), hasAuthority(&after.TLSConfig)},
		{"client_allowed_sans", before.TLSConfig.ClientAllowedSans != nil, after.TLSConfig.ClientAllowedSans != nil},
	} {
		if p.before && !p.after {
			gone = append(gone, p.name)
		}
	}
	if gone != nil {
		return fmt.Errorf("it no longer has %s: put it back, or restart the exporter if this is intended", strings.Join(gone, ", "))
	}
	return nil
}

// absolute makes the paths that a configuration in a folder names independent of where
// the configuration is.
func absolute(n *yaml.Node, folder string) error {
	for i, value := range n.Content {
		key := ""
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			key = n.Content[i-1].Value
		}
		if key == "basic_auth_users" {
			continue // whose keys are names of people
		}
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if value.Kind != yaml.ScalarNode {
			if err := absolute(value, folder); err != nil {
				return err
			}
			continue
		}
		if !slices.Contains([]string{"cert_file", "key_file", "client_ca_file"}, key) || value.Value == "" || filepath.IsAbs(value.Value) {
			continue
		}
		path, err := filepath.Abs(filepath.Join(folder, value.Value))
		if err != nil {
			return err
		}
		value.SetString(path)
	}
	return nil
}

// inMemory returns a file that has no name and is in memory.
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
