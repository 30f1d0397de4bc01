package probe_test

import (
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/probe"
)

func TestConfigValidate(t *testing.T) {
	if err := probe.DefaultConfig().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	for _, tc := range []struct {
		name   string
		change func(*probe.Config)
		want   string
	}{
		{"cq zero", func(c *probe.Config) { c.CQ.Small.Entries = 0 }, "probe.cq.small.entries is 0: use a number from 1 to 262144"},
		{"cq huge", func(c *probe.Config) { c.CQ.Large.Entries = 1 << 20 }, "probe.cq.large.entries is 1048576"},
		{"srq wr", func(c *probe.Config) { c.SRQ.Medium.WorkRequests = -1 }, "probe.srq.medium.work_requests is -1"},
		{"srq sge", func(c *probe.Config) { c.SRQ.Medium.ScatterGather = 1000 }, "probe.srq.medium.scatter_gather_entries is 1000"},
		{"qp send", func(c *probe.Config) { c.QP.Small.SendWorkRequests = 0 }, "probe.qp.small.send_work_requests is 0"},
		{"qp recv", func(c *probe.Config) { c.QP.Small.RecvWorkRequests = 0 }, "probe.qp.small.recv_work_requests is 0"},
		{"qp send sge", func(c *probe.Config) { c.QP.Large.SendScatterGather = 0 }, "probe.qp.large.send_scatter_gather_entries is 0"},
		{"qp recv sge", func(c *probe.Config) { c.QP.Large.RecvScatterGather = 0 }, "probe.qp.large.recv_scatter_gather_entries is 0"},
		{"inline", func(c *probe.Config) { c.QP.Large.InlineBytes = -1 }, "probe.qp.large.inline_bytes is -1: use a number from 0 to 65536"},
		{"destroy timeout", func(c *probe.Config) { c.DestroyTimeout = time.Hour }, "probe.destroy_timeout is 1h0m0s: use a duration from 0s to 1m0s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := probe.DefaultConfig()
			tc.change(&c)
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
