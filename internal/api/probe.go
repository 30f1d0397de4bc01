package api

import (
	"cmp"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// addProbe adds what one probe found.
func (d *Device) addProbe(p *state.Probe) {
	probe := Probe{Name: text.Clean(p.Name), Status: state.Status(text.Clean(string(p.Status))), Duration: seconds(p.Duration)}
	for _, f := range cut(p.Failures) {
		probe.Failures = append(probe.Failures, Failure{
			Subject: text.Clean(f.Subject), Verb: text.Clean(f.Verb), Errno: text.Clean(f.Errno), Message: text.Clean(f.Message), Memlock: copied(f.Memlock),
		})
	}
	for _, s := range cut(p.Skips) {
		probe.Skips = append(probe.Skips, Skip{
			Subject: text.Clean(s.Subject), Reason: state.SkipReason(text.Clean(string(s.Reason))), Detail: text.Clean(s.Detail), Memlock: copied(s.Memlock),
		})
	}
	d.Probes = append(d.Probes, probe)
	d.addSizes(p)
	for _, i := range cut(p.Inline) {
		d.MaxInline = append(d.MaxInline, MaxInline{Type: text.Clean(i.Type), Bytes: count(i.Bytes), Result: state.InlineUntried})
	}
	for _, s := range cut(p.InlineSends) {
		for i := range d.MaxInline {
			if m := &d.MaxInline[i]; m.Type == text.Clean(s.Type) && m.Bytes == count(s.Bytes) {
				m.Result, m.Detail = state.InlineResult(text.Clean(string(s.Result))), text.Clean(s.Detail)
			}
		}
	}
	for _, m := range cut(p.Memory) {
		d.Memory = append(d.Memory, Memory{
			Object: text.Clean(m.Object), Profile: text.Clean(m.Profile), Virtual: count(m.Virtual), Locked: count(m.Locked),
		})
	}
	for _, r := range cut(p.Registrations) {
		d.Registrations = append(d.Registrations, Registration{
			Memory: state.RegisteredMemory(text.Clean(string(r.Memory))), Bytes: count(r.Bytes), Result: state.RegistrationResult(text.Clean(string(r.Result))),
			Duration: seconds(r.Duration), By: state.RefusedBy(text.Clean(string(r.By))), Errno: text.Clean(r.Errno), Detail: text.Clean(r.Detail),
		})
	}
	for _, w := range cut(p.Ways) {
		d.Ways = append(d.Ways, Way{Port: w.Port, Path: state.LatencyPath(text.Clean(string(w.Path))), By: text.Clean(w.By), InsteadOf: text.Clean(w.InsteadOf)})
	}
	d.MaxInline, d.Memory, d.Registrations, d.Ways = cut(d.MaxInline), cut(d.Memory), cut(d.Registrations), cut(d.Ways)
}

// addSizes adds what was asked for and what was given.
func (d *Device) addSizes(p *state.Probe) {
	type key struct{ profile, object, attribute string }
	clamps := make(map[key]*state.Clamp, len(p.Clamps))
	for i := range cut(p.Clamps) {
		c := &p.Clamps[i]
		clamps[key{c.Profile, c.Subject, c.Attribute}] = c
	}
	// add adds one size; name is what the verb calls it, by which clamps go.
	add := func(object, profile, attribute, name string, requested, actual int64, queried *int64) {
		if len(d.Sizes) >= maxItems {
			return
		}
		size := Size{
			Object: text.Clean(object), Profile: text.Clean(profile), Attribute: attribute,
			Requested: requested, Actual: actual, Queried: queried,
		}
		if c := clamps[key{profile, object, name}]; c != nil {
			size.Configured, size.LimitName = new(c.Configured), text.Clean(c.Limit)
		}
		d.Sizes = append(d.Sizes, size)
	}
	for _, c := range cut(p.CQs) {
		add("cq", c.Profile, "entries", "cqe", c.Requested, c.Actual, nil)
	}
	for _, s := range cut(p.SRQs) {
		var requests, elements *int64
		if s.Queried != nil {
			requests, elements = new(s.Queried.WorkRequests), new(s.Queried.ScatterGather)
		}
		add("srq", s.Profile, "work_requests", "max_wr", s.Requested.WorkRequests, s.Actual.WorkRequests, requests)
		add("srq", s.Profile, "scatter_gather_entries", "max_sge", s.Requested.ScatterGather, s.Actual.ScatterGather, elements)
	}
	for _, q := range cut(p.QPs) {
		object, r, a := "qp_"+q.Type, q.Requested, q.Actual
		add(object, q.Profile, "send_work_requests", "max_send_wr", r.SendWorkRequests, a.SendWorkRequests, nil)
		add(object, q.Profile, "recv_work_requests", "max_recv_wr", r.RecvWorkRequests, a.RecvWorkRequests, nil)
		add(object, q.Profile, "send_scatter_gather_entries", "max_send_sge", r.SendScatterGather, a.SendScatterGather, nil)
		add(object, q.Profile, "recv_scatter_gather_entries", "max_recv_sge", r.RecvScatterGather, a.RecvScatterGather, nil)
		add(object, q.Profile, "inline_bytes", "max_inline_data", r.InlineBytes, a.InlineBytes, nil)
	}
}

// copied returns a number of its own; nil for none.
func copied(n *int64) *int64 {
	if n == nil {
		return nil
	}
	return new(*n)
}

// Meaning says in words what the figure is worth.
func (m MaxInline) Meaning() string {
	switch {
	case m.Result == state.InlineSent:
		return "sent"
	case m.Result == state.InlineFailed:
		return "accepted, and cannot be sent"
	case m.Detail != "":
		return "accepted, not tried: " + m.Detail
	default:
		return "accepted, not tried"
	}
}

// Words says what came of it, after what kind of memory it was.
func (r Registration) Words() string {
	name := map[state.RegisteredMemory]string{
		state.MemoryPage: "4 KiB", state.MemoryMany: "2 MiB", state.MemoryHuge: "a huge page of 2 MiB", state.MemoryDMABuf: "a dma-buf of 2 MiB",
	}[r.Memory]
	name = cmp.Or(name, string(r.Memory))
	switch r.Result {
	case state.MemoryRegistered:
		return name + " in " + text.Seconds(r.Duration)
	case state.MemoryRefused:
		return name + " refused by the " + map[state.RefusedBy]string{
			state.RefusedByMemlock: "limit on locked memory", state.RefusedByCgroup: "cgroup", state.RefusedByHost: "host", state.RefusedByDevice: "device",
		}[r.By] + " (" + r.Detail + ")"
	default:
		return name + " " + strings.ReplaceAll(string(r.Result), "_", " ") + " (" + r.Detail + ")"
	}
}
