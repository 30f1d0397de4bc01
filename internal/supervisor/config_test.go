package supervisor

import (
	"strings"
	"testing"
	"time"
)

func TestValidateFits(t *testing.T) {
	t.Parallel()
	in := testConfig()
	in.Interval, in.Discovery, in.Backoff = 2*time.Second, 5*time.Second, time.Second
	c, err := in.Validate()
	if err != nil || c.Discovery != 2*time.Second || c.Backoff != 2*time.Second || c.Logger == nil {
		t.Errorf("%+v, error %v", c, err)
	}
}

func TestValidateRejects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want   string
		change func(*Config)
	}{
		{"--probe.interval is -1s: use a duration above 0s", func(c *Config) { c.Interval = -time.Second }},
		{"--probe.interval is 99ms: use a duration from 100ms", func(c *Config) { c.Interval = 99 * time.Millisecond }},
		{"--probe.timeout is 0s: use a duration above 0s", func(c *Config) { c.Timeout = 0 }},
		{"--probe.concurrency is 0: use a number from 1", func(c *Config) { c.Concurrency = 0 }},
		{"--contract.interval is -1s: use a duration from 100ms, or 0s for none", func(c *Config) { c.Contract.Interval = -time.Second }},
		{"--contract.timeout is -2s: use a duration above 0s", func(c *Config) { c.Contract.Timeout = -2 * time.Second }},
		{"--hardware.interval is 1ms: use a duration from 100ms, or 0s for none", func(c *Config) { c.Hardware.Interval = time.Millisecond }},
		{"--inventory.interval is 1ms: use a duration from 100ms, or 0s for none", func(c *Config) { c.Inventory.Interval = time.Millisecond }},
		{"--inventory.timeout is 0s: use a duration above 0s", func(c *Config) { c.Inventory.Timeout = 0 }},
	} {
		cfg := testConfig()
		tt.change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", err, tt.want)
		}
	}
}
