package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/healthcheck"
	"rdma_exporter/internal/input"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/probe/contract"
	"rdma_exporter/internal/text"
)

type fileConfig struct {
	Probe    probe.Config    `yaml:"probe"`
	Findings health.Config   `yaml:"findings"`
	Accept   []health.Accept `yaml:"accept"`
	Expect   expect.Rules    `yaml:"expect"`
	DocsURL  string          `yaml:"docs_url"`
	Path     path.Config     `yaml:"path"`
}

// loadConfig reads the configuration file, if there is one, and checks it.
func (o *options) loadConfig() error {
	if o.configFile == "" {
		return nil
	}
	b, err := input.ReadFile(o.configFile)
	if err != nil {
		return fmt.Errorf("--config.file: %w", err)
	}
	c := fileConfig{Probe: o.probe, Findings: o.findings, Path: o.path.config}
	if err := decodeConfig(b, &c); err != nil {
		return fmt.Errorf("--config.file %s: %w", o.configFile, err)
	}
	o.probe, o.findings, o.path.config = c.Probe, c.Findings, c.Path
	o.findings.Accept, o.findings.DocsURL, o.findings.Expect = c.Accept, c.DocsURL, c.Expect
	return o.checkExpect(c.Expect)
}

// checkExpect returns an error if something is expected that is never read.
func (o *options) checkExpect(all expect.Rules) error {
	for _, r := range all {
		switch s := &o.schedule; {
		case s.Hardware.Interval == 0 && (r.Rate != "" || r.RoCEv2IPv4 != nil || r.Driver != ""):
			return errors.New("expect needs the hardware for rate, roce_v2_ipv4 and driver: use another --hardware.interval than 0s, or leave out these keys")
		case s.Inventory.Interval == 0 && r.Memlock != "":
			return errors.New("expect needs inventories for memlock: use another --inventory.interval than 0s, or leave out the key")
		case r.Memlock != "" && o.inventory.NoOwners:
			return errors.New("expect needs the owners of objects for memlock: leave out --no-collector.owners, or the key")
		}
	}
	return nil
}

// readable rewrites a message of the decoder, which has Go types, and cuts long values in the
// middle of a character.
func readable(message string) string {
	message = strings.ToValidUTF8(message, "")
	for _, r := range []struct{ pattern, text string }{
		{`field (\S+) not found in type \S+`, `there is no key "$1"`},
		{`cannot unmarshal !!seq into`, "found a list, expected"},
		{`cannot unmarshal !!map into`, "found a mapping, expected"},
		{"cannot unmarshal !!\\S+ (`.*`) into", "found $1, expected"},
		{`expected time\.Duration$`, "expected a duration, such as 2s or 500ms"},
		{`expected int(64)?$`, "expected a whole number"},
		{`expected float64$`, "expected a number"},
		{`expected (string|health\.Kind)$`, "expected text"},
		{`expected \[\]\S+$`, "expected a list"},
		{`expected \S+\.\S+$`, "expected a mapping"},
	} {
		message = regexp.MustCompile(r.pattern).ReplaceAllString(message, r.text)
	}
	return message
}

func decodeConfig(b []byte, c *fileConfig) error {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	var typeErr *yaml.TypeError
	switch err := dec.Decode(c); {
	case errors.Is(err, io.EOF):
		return nil // The file is empty.
	case errors.As(err, &typeErr):
		msgs := slices.Clone(typeErr.Errors)
		for i := range msgs {
			msgs[i] = readable(msgs[i])
		}
		return fmt.Errorf("%s (docs/reference/configuration.md lists the keys)", strings.Join(msgs, "; "))
	case err != nil:
		return err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document: remove what follows the line ---")
	}
	var root yaml.Node
	if err := yaml.Unmarshal(b, &root); err != nil {
		return err
	}
	var keys map[string]yaml.Node
	if err := root.Decode(&keys); err != nil {
		return err
	}
	if _, given := keys["expect"]; given && len(c.Expect) == 0 {
		return errors.New("expect is empty: say what is expected, or leave out the key")
	}
	if errs := input.CheckWhole(&root, c); errs != nil {
		return errors.Join(errs...)
	}
	_, clientErr := healthcheck.Client("path.http_config_file", c.Path.HTTPConfigFile)
	return errors.Join(c.Probe.Validate(), c.Findings.Validate(), health.ValidateAccepts(c.Accept), c.Expect.Validate(),
		c.Path.Validate(), clientErr, checkContracts(c.Accept), checkDocsURL(c.DocsURL))
}

// checkContracts returns an error that names each unknown contract.
func checkContracts(all []health.Accept) error {
	var errs []error
	for i, a := range all {
		known := slices.ContainsFunc(contract.Catalogue(), func(c contract.Contract) bool { return c.Name == a.Contract })
		if a.Contract != "" && !known {
			errs = append(errs, fmt.Errorf("accept[%d].contract is %q: there is no such contract; docs/reference/contracts.md lists them", i, a.Contract))
		}
	}
	return errors.Join(errs...)
}

// checkDocsURL returns an error unless a URL can go before the paths of documents. Spaces,
// quotes and backticks are refused, since it stands in prose. The chart's schema has the
// same pattern.
func checkDocsURL(url string) error {
	const most = 500
	pattern := regexp.MustCompile(`^(https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?/(([A-Za-z0-9._~:/?!$&()*+,;=-]|%[0-9A-Fa-f]{2})*/)?)?$`)
	if len(url) <= most && pattern.MatchString(url) {
		return nil
	}
	return fmt.Errorf("docs_url is %q: use an http or https URL with a slash at its end, such as https://git.example/rdma_exporter/, of up to %d characters", text.Truncate(url, most), most)
}
