package main

import (
	"regexp"
	"strings"
	"testing"
)

// maxFlags limits the flags of the command serve, those of libraries included.
const maxFlags = 48

func TestFlagsAreFew(t *testing.T) {
	t.Parallel()
	_, _, text := parsed(t, "--help")
	flags := regexp.MustCompile(`(?m)^ {2,6}(?:-h, )?--(?:\[no-\])?[a-z][a-z.-]*(?:=| |$)`).FindAllString(text, -1)
	if n := len(flags); n < 30 || n > maxFlags {
		t.Errorf("there are %d flags, at most %d may be: %q", n, maxFlags, flags)
	}
}

// TestRetiredFlags verifies that flags of the previous release change nothing, and are named
// once each with what holds instead.
func TestRetiredFlags(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "audit", "ceiling --device=x --type=cq"} {
		args := strings.Fields(command)
		for _, f := range retiredFlags() {
			switch f.name {
			case "collector.vectors", "collector.verbs":
				args = append(args, "--no-"+f.name)
			case "web.enable-lifecycle":
				args = append(args, "--web.enable-lifecycle")
			default:
				args = append(args, "--"+f.name, "what it was", "--"+f.name+"=")
			}
		}
		o, status, text := parsed(t, args...)
		if status != exitOK || text != "" {
			t.Fatalf("%s: status %d: %s", command, status, text)
		}
		var named []string
		o.retired.warn(func(flag, now string) { named = append(named, flag+" "+now) })
		for i, f := range retiredFlags() {
			if i >= len(named) || named[i] != "--"+f.name+" "+f.now {
				t.Errorf("%s: named are %q, want --%s with %q", command, named, f.name, f.now)
			}
		}
	}
	o, _, _ := parsed(t)
	o.retired.warn(func(flag, _ string) { t.Errorf("%s is named, and was not given", flag) })
}

// TestDerived verifies what follows from other flags.
func TestDerived(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"", "backoff 5m0s, hardware 10s, deadline 500ms, budget 2s"},
		{"--probe.interval=10s --inventory.timeout=3s", "backoff 50s, hardware 3s, deadline 500ms, budget 2s"},
		{"--probe.timeout=2m", "backoff 5m0s, hardware 10s, deadline 7.375s, budget 29.5s"},
		{"--probe.timeout=1h", "backoff 5m0s, hardware 10s, deadline 10s, budget 1m0s"},
	} {
		o, _, _ := parsed(t, strings.Fields(c.args)...)
		n := o.settings().Probe.Notification
		got := "backoff " + o.schedule.Backoff.String() + ", hardware " + o.schedule.Hardware.Timeout.String() +
			", deadline " + n.Deadline.String() + ", budget " + n.Budget.String()
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
}
