package supervisor

import (
	"strings"
	"testing"
	"time"
)

func TestValidateDefaults(t *testing.T) {
	t.Parallel()
	in := Config{Provider: "simulated", Discover: SysfsDevices("/sys"), Command: testConfig().Command, Sinks: []Sink{newRecorder()}}
	c, err := in.Validate()
	if err != nil {
		t.Fatal(err)
	}
	if c.Interval != time.Minute || c.Timeout != 30*time.Second || c.Discovery != 5*time.Second || c.Backoff != 8*time.Minute ||
		c.KillGrace != 2*time.Second || c.Concurrency != 2 || c.Jitter != 0.1 || c.Logger == nil ||
		c.Contract.Command != nil || c.Contract.Interval != 24*time.Hour || c.Contract.Timeout != time.Minute {
		t.Errorf("defaults %+v", c)
	}
	in.Sinks[0] = nil
	if c.Sinks[0] == nil {
		t.Error("the copy shares its sinks with the original")
	}
	in = testConfig()
	in.Interval, in.Jitter = 2*time.Second, -1
	if c, err = in.Validate(); err != nil || c.Discovery != 2*time.Second || c.Backoff != 16*time.Second || c.Jitter != 0 {
		t.Errorf("defaults %+v, error %v", c, err)
	}
}

func TestValidateRejects(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*Config){
		"no provider":                func(c *Config) { c.Provider = "" },
		"no function that discovers": func(c *Config) { c.Discover = nil },
		"no command":                 func(c *Config) { c.Command = nil },
		"interval -1s":               func(c *Config) { c.Interval = -time.Second },
		"timeout -1s":                func(c *Config) { c.Timeout = -time.Second },
		"discovery interval -1s":     func(c *Config) { c.Discovery = -time.Second },
		"less than the interval":     func(c *Config) { c.Backoff = c.Interval - 1 },
		"after a kill -1s":           func(c *Config) { c.KillGrace = -time.Second },
		"concurrency -1":             func(c *Config) { c.Concurrency = -1 },
		"jitter 1.5":                 func(c *Config) { c.Jitter = 1.5 },
		"contract run -1s":           func(c *Config) { c.Contract.Interval = -time.Second },
		"contract run -2s":           func(c *Config) { c.Contract.Timeout = -2 * time.Second },
		"sink 0 is nil":              func(c *Config) { c.Sinks = []Sink{nil} },
	}
	for want, change := range tests {
		cfg := testConfig()
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	var all Config
	_, err := all.Validate()
	for _, want := range []string{"no provider", "no function that discovers", "no command"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
