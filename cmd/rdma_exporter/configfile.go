package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/probe"
)

// fileConfig is the configuration file.
type fileConfig struct {
	Probe    probe.Config  `yaml:"probe"`
	Findings health.Config `yaml:"findings"`
}

// loadConfig reads the configuration file, if there is one, and checks it. What it
// leaves out stays as it is.
func (o *options) loadConfig() error {
	if o.configFile == "" {
		return nil
	}
	b, err := os.ReadFile(o.configFile)
	if err != nil {
		return fmt.Errorf("--config.file: %w", err)
	}
	c := fileConfig{Probe: o.probe, Findings: o.findings}
	if err := decodeConfig(b, &c); err != nil {
		return fmt.Errorf("--config.file %s: %w", o.configFile, err)
	}
	o.probe, o.findings = c.Probe, c.Findings
	return nil
}

// readable rewrites a message of the decoder, which speaks of Go types, and cuts long
// values in the middle of a character.
func readable(message string) string {
	message = strings.ToValidUTF8(message, "")
	for _, r := range []struct{ pattern, text string }{
		{`field (\S+) not found in type \S+`, `there is no key "$1"`},
		{"cannot unmarshal !!\\S+ (`.*`) into time.Duration", "$1 is no duration, such as 2s or 500ms"},
		{"cannot unmarshal !!\\S+ (`.*`) into int(?:64)?", "$1 is no whole number"},
		{`cannot unmarshal !!(?:seq|map) into int(?:64)?`, "a list or mapping is where a whole number belongs"},
		{"cannot unmarshal !!\\S+ (`.*`) into float64", "$1 is no number"},
		{`cannot unmarshal !!(?:seq|map) into float64`, "a list or mapping is where a number belongs"},
		{`cannot unmarshal !!seq into \S+`, "a list is where a mapping belongs"},
		{"cannot unmarshal !!\\S+ (`.*`) into \\S+", "$1 is where a mapping belongs"},
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
		return nil // an empty file changes nothing
	case errors.As(err, &typeErr):
		msgs := slices.Clone(typeErr.Errors)
		for i := range msgs {
			msgs[i] = readable(msgs[i])
		}
		return fmt.Errorf("%s (docs/configuration.md lists the keys)", strings.Join(msgs, "; "))
	case err != nil:
		return err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document: remove what follows the line ---")
	}
	return errors.Join(c.Probe.Validate(), c.Findings.Validate())
}
