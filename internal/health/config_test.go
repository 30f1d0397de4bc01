package health_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/growth"
	"rdma_exporter/test/running"
)

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*health.Config)
		want   []string
	}{
		{"defaults", func(*health.Config) {}, nil},
		{"smallest", func(t *health.Config) {
			l := health.Levels{Warning: math.SmallestNonzeroFloat64, Critical: math.SmallestNonzeroFloat64}
			*t = health.Config{NearLimit: l, CgroupNearLimit: l, MemlockNearLimit: l, QPErrors: 1, CQEntries: 1, PortFlapping: health.Flapping{Downs: 1, Window: 1}, Growing: growth.Config{Objects: 1, Window: 10 * time.Minute}}
		}, nil},
		{"largest", func(t *health.Config) {
			l := health.Levels{Warning: 1, Critical: 1}
			*t = health.Config{NearLimit: l, CgroupNearLimit: l, MemlockNearLimit: l, OrphanAge: 24 * time.Hour, QPErrors: 1 << 48, CQEntries: 1 << 48, PortFlapping: health.Flapping{Downs: 32, Window: 24 * time.Hour}, Growing: growth.Config{Objects: 1 << 48, Window: 55 * time.Minute, Within: 365 * 24 * time.Hour}}
		}, nil},
		{"nothing set", func(t *health.Config) { *t = health.Config{} }, []string{
			"findings.near_limit.warning is 0: use a number above 0, up to 1", "findings.near_limit.critical is 0",
			"findings.cgroup_near_limit.warning", "findings.cgroup_near_limit.critical",
			"findings.memlock_near_limit.warning", "findings.memlock_near_limit.critical",
			"findings.qp_errors is 0: use a number from 1 to 281474976710656", "findings.cq_entries is 0: use a number from 1 to",
			"findings.port_flapping.downs is 0: use a number from 1 to 32", "findings.port_flapping.window is 0s: use a duration above 0s, up to 24h0m0s",
			"findings.growing.objects is 0: use a number from 1 to", "findings.growing.window is 0s: use a duration from 10m0s to 55m0s",
		}},
		{"not a number", func(t *health.Config) { t.NearLimit.Warning, t.CgroupNearLimit.Critical = math.NaN(), math.NaN() }, []string{
			"findings.near_limit.warning is NaN", "findings.cgroup_near_limit.critical is NaN",
		}},
		{"infinite", func(t *health.Config) {
			t.MemlockNearLimit = health.Levels{Warning: math.Inf(-1), Critical: math.Inf(1)}
		}, []string{
			"findings.memlock_near_limit.warning is -Inf", "findings.memlock_near_limit.critical is +Inf",
		}},
		{"in per cent", func(t *health.Config) { t.NearLimit = health.Levels{Warning: 80, Critical: 95} }, []string{
			"findings.near_limit.warning is 80", "findings.near_limit.critical is 95",
		}},
		{"one of them in per cent", func(t *health.Config) { t.NearLimit.Warning = 80 }, []string{"findings.near_limit.warning is 80: use a number above 0, up to 1"}},
		{"the wrong way round", func(t *health.Config) { t.CgroupNearLimit = health.Levels{Warning: 0.9, Critical: 0.5} }, []string{
			"findings.cgroup_near_limit.warning is 0.9: use a number not above critical, which is 0.5",
		}},
		{"negative", func(t *health.Config) { t.OrphanAge, t.QPErrors, t.CQEntries = -1, -1, -1 }, []string{
			"findings.orphan_age is -1ns: use a duration from 0s to 24h0m0s", "findings.qp_errors is -1", "findings.cq_entries is -1",
		}},
		{"too much", func(t *health.Config) {
			t.OrphanAge, t.QPErrors, t.CQEntries = 24*time.Hour+1, 1<<48+1, math.MaxInt64
			t.PortFlapping = health.Flapping{Downs: 33, Window: 24*time.Hour + 1}
			t.Growing = growth.Config{Objects: 1, Window: time.Hour, Within: 366 * 24 * time.Hour}
		}, []string{"findings.orphan_age", "findings.qp_errors", "findings.cq_entries", "findings.port_flapping.downs is 33", "findings.port_flapping.window is 24h", "findings.growing.window is 1h", "findings.growing.within is 8784h0m0s: use a duration from 0s to 8760h0m0s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			thresholds := health.Default()
			tc.change(&thresholds)
			err := thresholds.Validate()
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(tc.want) {
				t.Fatalf("got %d errors, want %d: %v", len(lines), len(tc.want), err)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("got %q, want %q", lines[i], want)
				}
			}
		})
	}
}

// The keys of the file are those that the errors name, and what is not set keeps its default.
func TestYAML(t *testing.T) {
	const file = `
near_limit: {warning: 0.5, critical: 0.6}
cgroup_near_limit: {critical: 0.9}
memlock_near_limit:
  warning: 0.7
orphan_age: 5m
qp_errors: 3
cq_entries: 4
port_flapping: {window: 10m}
growing: {objects: 500}
`
	got := health.Default()
	decoder := yaml.NewDecoder(strings.NewReader(file))
	decoder.KnownFields(true)
	running.Check(t, decoder.Decode(&got))
	want := health.Config{
		NearLimit:        health.Levels{Warning: 0.5, Critical: 0.6},
		CgroupNearLimit:  health.Levels{Warning: 0.8, Critical: 0.9},
		MemlockNearLimit: health.Levels{Warning: 0.7, Critical: 0.95},
		OrphanAge:        5 * time.Minute, QPErrors: 3, CQEntries: 4,
		PortFlapping: health.Flapping{Downs: 3, Window: 10 * time.Minute},
		Growing:      growth.Config{Objects: 500, Window: 30 * time.Minute, Within: 24 * time.Hour},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
