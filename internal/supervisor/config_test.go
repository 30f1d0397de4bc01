package supervisor

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestValidateFits(t *testing.T) {
	t.Parallel()
	in := testConfig()
	in.Observers = []Observer{newRecorder()}
	in.Interval, in.Discovery, in.Backoff = 2*time.Second, 5*time.Second, time.Second
	c, err := in.Validate()
	if err != nil || c.Discovery != 2*time.Second || c.Backoff != 2*time.Second || c.Logger == nil {
		t.Errorf("%+v, error %v", c, err)
	}
	in.Observers[0] = nil
	if c.Observers[0] == nil {
		t.Error("the copy shares its observers with the original")
	}
}

func TestValidateRejects(t *testing.T) {
	t.Parallel()
	const needs = "the supervisor needs Provider, Discover, Command, and observers"
	for _, tt := range []struct {
		want   string
		change func(*Config)
	}{
		{needs, func(c *Config) { c.Provider = "" }},
		{needs, func(c *Config) { c.Discover = nil }},
		{needs, func(c *Config) { c.Command = nil }},
		{"grace after a kill -1s", func(c *Config) { c.KillGrace = -time.Second }},
		{needs, func(c *Config) { c.Observers = []Observer{nil} }},
		{"--probe.interval is -1s: use a duration above 0s", func(c *Config) { c.Interval = -time.Second }},
		{"--probe.interval is 99ms: use a duration from 100ms", func(c *Config) { c.Interval = 99 * time.Millisecond }},
		{"--probe.timeout is 0s: use a duration above 0s", func(c *Config) { c.Timeout = 0 }},
		{"--discovery.interval is 0s: use a duration above 0s", func(c *Config) { c.Discovery = 0 }},
		{"--probe.max-backoff is 0s: use a duration above 0s", func(c *Config) { c.Backoff = 0 }},
		{"--probe.concurrency is 0: use a number from 1", func(c *Config) { c.Concurrency = 0 }},
		{"--probe.jitter is 1.5: use a number from 0 to 1", func(c *Config) { c.Jitter = 1.5 }},
		{"--probe.jitter is NaN: use a number from 0 to 1", func(c *Config) { c.Jitter = math.NaN() }},
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
