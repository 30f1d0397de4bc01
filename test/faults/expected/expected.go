// Package expected says how a run of the probes ends in which one verb misbehaves, on
// a device like sim_rxe0 or one of Soft-RoCE with an active port. The tests of the probes
// and of real devices hold to it what each of them sees.
package expected

import (
	"slices"

	"rdma_exporter/verbs"
)

// A Verb describes the effect of a verb that misbehaves. Where it says nothing, if
// each call of a verb fails, then the probes that call it fail, and no other.
type Verb struct {
	Verb verbs.Verb
	// Probes are those that call the verb, in their order. If it fails once, the first
	// of them fails; a destruction is repeated, so that none does.
	Probes []string
	// Whole is true if the run itself needs the verb: it fails too. Alone
	// is true if without it no probe is run, and Last if it is called after all of them.
	Whole, Alone, Last bool
	// Object is the type of what the verb destroys, and Holds are the types of what
	// cannot be destroyed either while it is there, with their verbs.
	Object string
	Holds  map[string]verbs.Verb
	// Silent is true if the verb of libibverbs returns nothing. On simulated devices it
	// fails, leaves objects of these types, and drags calls of these verbs along.
	Silent bool
	Leaves []string
	Drags  []verbs.Verb
	// Short are the metrics that tell less if the verb gives less than it was asked for;
	// nil if it gives no sizes. ShortFails is true if its first probe fails then.
	Short      []string
	ShortFails bool
	// Batched is how many calls come before those of a measurement in one batch; 0 if
	// the verb is not called there.
	Batched int

	// The rest is about verbs that the device does not offer (EOPNOTSUPP), or the process
	// may not call (EPERM).

	// subjects of the first probe are skipped in either case. Partial is true if this
	// leaves something of it, and search that the probe takes such a refusal for an
	// answer, not for a failed call.
	subjects        []string
	partial, search bool
	// lacking are the probes and subjects that are skipped if it is not offered, and
	// emptied the probes that have nothing left then.
	lacking map[string][]string
	emptied []string
	// vital is true if nothing can be probed on a device that does not offer it.
	vital bool
	// measured are the measurements that are skipped, while the others go on; nil if the
	// probe notification fails then, too. Denied are those skipped with EPERM, if they
	// are others.
	measured, denied []string
	// without are the errnos with which messages are measured that are empty: of the
	// probes all but the last fail.
	without []string
}

// Probes are those of a run, in its order.
func Probes() []string { return []string{"cq", "comp_channel", "srq", "qp", "mr", notification} }

const notification = "notification"

// asleep are the measurements of a device with one port that use events.
func asleep() []string {
	return []string{"loopback any", "loopback solicited", "flush any", "flush solicited"}
}

func measurements() []string { return append(asleep(), "loopback poll", "flush poll") }

// Verbs has every verb that the probes call.
func Verbs() []Verb {
	measuring := []string{notification}
	loopback := []string{"loopback any", "loopback poll", "loopback solicited"}
	sizes := []string{"small", "medium", "large"}
	pd := map[string]verbs.Verb{"pd": verbs.DeallocPD}
	return []Verb{
		{Verb: verbs.GetDeviceList, Whole: true, Alone: true},
		{Verb: verbs.OpenDevice, Whole: true, Alone: true},
		{Verb: verbs.QueryDevice, Whole: true, Alone: true},
		{Verb: verbs.QueryPort, Whole: true, Probes: measuring, measured: []string{"loopback port 1"}},
		{Verb: verbs.QueryGIDTable, Probes: measuring, measured: []string{"loopback port 1"}},
		{
			Verb: verbs.AllocPD, Probes: []string{"comp_channel", "srq", "qp", "mr", notification},
			lacking: map[string][]string{
				"comp_channel": {"pd"}, "srq": {"pd"}, "qp": {"pd"}, "mr": {"pd"},
			},
			emptied: []string{"comp_channel", "srq", "qp", "mr"}, measured: measurements(),
		},
		{Verb: verbs.RegMR, Probes: []string{"mr", notification}, measured: measurements(), without: []string{"ENOMEM", "EPERM"}},
		{
			Verb: verbs.CreateAH, Probes: measuring, search: true,
			measured: []string{}, denied: []string{"flush any", "flush poll", "flush solicited"},
		},
		{Verb: verbs.DestroyAH, Probes: measuring, Object: "ah", Holds: pd},
		{
			Verb: verbs.CreateCompChannel, Probes: []string{"comp_channel", notification},
			subjects: []string{""}, measured: asleep(),
		},
		{
			Verb: verbs.CreateCQ, Probes: []string{"cq", "comp_channel", "qp", notification},
			Short: []string{"rdma_probe_cq_entries_actual"}, ShortFails: true,
			measured: measurements(), vital: true,
		},
		{
			Verb: verbs.ReqNotifyCQ, Probes: []string{"comp_channel", notification}, Batched: 2,
			lacking: map[string][]string{"comp_channel": {"cq"}}, measured: asleep(),
		},
		{Verb: verbs.GetCQEvent, Probes: measuring, Batched: 1, measured: asleep()},
		// A CQ with an unacknowledged event would never be destroyed.
		{
			Verb: verbs.AckCQEvents, Probes: measuring, Batched: 1, Silent: true,
			Leaves: []string{"cq", "comp_channel"}, Drags: []verbs.Verb{verbs.DestroyCompChannel},
		},
		// Before them the completions of the first sample are polled for.
		{Verb: verbs.PollCQ, Probes: measuring, Batched: 15, measured: measurements()},
		{
			Verb: verbs.CreateSRQ, Probes: []string{"srq"}, subjects: sizes,
			Short:      []string{"rdma_probe_srq_scatter_gather_entries_actual", "rdma_probe_srq_work_requests_actual"},
			ShortFails: true,
		},
		{
			Verb: verbs.QuerySRQ, Probes: []string{"srq"}, subjects: sizes, partial: true,
			// The other size is told only where it differs from what creation told.
			Short: []string{"rdma_probe_srq_scatter_gather_entries_queried"},
		},
		{
			Verb: verbs.CreateQP, Probes: []string{"qp", notification},
			Short: []string{
				"rdma_probe_qp_inline_bytes_actual", "rdma_probe_qp_max_inline_bytes",
				"rdma_probe_qp_scatter_gather_entries_actual", "rdma_probe_qp_work_requests_actual",
			},
			ShortFails: true,
			subjects:   []string{"rc", "uc", "ud", "raw_packet"}, search: true, measured: measurements(),
		},
		// Sizes from ibv_query_qp are not shown.
		{
			Verb: verbs.QueryQP, Probes: []string{"qp"}, Short: []string{},
			lacking: map[string][]string{"qp": {"rc small", "uc small", "ud small", "raw_packet"}},
		},
		{Verb: verbs.ModifyQP, Probes: []string{"qp", notification}, measured: measurements()},
		{Verb: verbs.PostSend, Probes: measuring, Batched: 1, measured: loopback, denied: measurements()},
		{Verb: verbs.PostRecv, Probes: measuring, Batched: 1, measured: loopback},
		{
			Verb: verbs.DestroyQP, Probes: []string{"qp", notification}, Object: "qp",
			Holds: map[string]verbs.Verb{"cq": verbs.DestroyCQ, "pd": verbs.DeallocPD, "comp_channel": verbs.DestroyCompChannel},
		},
		{Verb: verbs.DestroySRQ, Probes: []string{"srq"}, Object: "srq", Holds: pd},
		{
			Verb: verbs.DestroyCQ, Probes: []string{"cq", "comp_channel", "qp", notification}, Object: "cq",
			Holds: map[string]verbs.Verb{"comp_channel": verbs.DestroyCompChannel},
		},
		{Verb: verbs.DestroyCompChannel, Probes: []string{"comp_channel", notification}, Object: "comp_channel"},
		{Verb: verbs.DeregMR, Probes: []string{"mr", notification}, Object: "mr", Holds: pd},
		{Verb: verbs.DeallocPD, Whole: true, Last: true, Object: "pd"},
		{Verb: verbs.CloseDevice, Whole: true, Last: true, Object: "ctx"},
	}
}

// A Run is what is seen of a run. The lists are sorted, those of probes in their order.
type Run struct {
	Outcome string
	// Failed are the probes that failed, and Unjudged those without a result.
	Failed, Unjudged []string
	// Failures are the verbs and errnos of failed calls, and Undestroyed the types and
	// errnos of objects left.
	Failures, Undestroyed []string
	// Skipped are the subjects of probes that are skipped for SkipReason.
	Skipped    map[string][]string
	SkipReason string
	// Abort is the verb in which the run was ended.
	Abort verbs.Verb
}

// Pair is a verb or a type and an errno, as a Run has them.
func Pair[S ~string](what S, errno string) string { return string(what) + " " + errno }

// result returns a run in which these probes failed, and so do calls with an errno.
func (v Verb) result(failed []string, errno string) Run {
	r := Run{Outcome: "ok", Failed: slices.Clone(failed), Failures: []string{Pair(v.Verb, errno)}}
	if v.Alone {
		r.Unjudged = Probes()
	}
	if len(failed) > 0 || v.Whole {
		r.Outcome = "failed"
	}
	for _, typ := range v.Leaves {
		r.Undestroyed = append(r.Undestroyed, Pair(typ, "EBUSY"))
	}
	for _, verb := range v.Drags {
		r.Failures = append(r.Failures, Pair(verb, "EBUSY"))
	}
	return r
}

func (r Run) sorted() Run {
	slices.Sort(r.Failures)
	slices.Sort(r.Undestroyed)
	return r
}

// Once is the run in which the first call of the verb fails.
func (v Verb) Once(errno string) Run {
	if v.Object != "" {
		return Run{Outcome: "ok", Failures: []string{Pair(v.Verb, errno)}}
	}
	return v.result(v.Probes[:min(len(v.Probes), 1)], errno).sorted()
}

// Always is the run in which each call of the verb fails.
func (v Verb) Always(errno string) Run {
	if slices.Contains(v.without, errno) {
		r := v.result(v.Probes[:len(v.Probes)-1], errno)
		r.SkipReason, r.Skipped = "not_permitted", map[string][]string{notification: {"message"}}
		return r
	}
	r := v.result(v.Probes, errno)
	if v.search && errno == "EOPNOTSUPP" {
		r.Failures = nil
	}
	if v.Object != "" {
		r.Undestroyed = append(r.Undestroyed, Pair(v.Object, errno))
		for typ, verb := range v.Holds {
			r.Undestroyed = append(r.Undestroyed, Pair(typ, "EBUSY"))
			r.Failures = append(r.Failures, Pair(verb, "EBUSY"))
		}
	}
	r.SkipReason = map[string]string{"EPERM": "not_permitted", "EOPNOTSUPP": "not_supported"}[errno]
	if r.SkipReason != "" {
		v.skip(&r, errno)
	}
	return r.sorted()
}

// skip sets the effect if the device does not offer, or the process may not do,
// what the verb does.
func (v Verb) skip(r *Run, errno string) {
	r.Skipped = make(map[string][]string)
	if v.vital && errno == "EOPNOTSUPP" {
		r.Outcome, r.Failed, r.Unjudged, r.Skipped["cq"] = "ok", nil, Probes(), []string{""}
		return
	}
	gone := make(map[string]bool) // whether nothing is left of a probe that does not fail
	if v.subjects != nil {
		gone[v.Probes[0]], r.Skipped[v.Probes[0]] = !v.partial, v.subjects
		if v.search && errno == "EPERM" {
			// Every process may create RC QPs.
			delete(gone, v.Probes[0])
			r.Skipped[v.Probes[0]] = v.subjects[1:]
		}
	}
	if errno == "EOPNOTSUPP" {
		for probe, subjects := range v.lacking {
			gone[probe], r.Skipped[probe] = slices.Contains(v.emptied, probe), subjects
		}
	}
	measured := v.measured
	if errno == "EPERM" && v.denied != nil {
		measured = v.denied
	}
	if measured != nil {
		gone[notification], r.Skipped[notification] = len(measured) == len(measurements()), measured
	}
	r.Failed = slices.DeleteFunc(r.Failed, func(probe string) bool { _, ok := gone[probe]; return ok })
	for _, probe := range Probes() {
		if gone[probe] {
			r.Unjudged = append(r.Unjudged, probe)
		}
	}
	for probe, subjects := range r.Skipped {
		r.Skipped[probe] = slices.Sorted(slices.Values(subjects))
	}
	if !v.Whole && len(r.Failed) == 0 {
		r.Outcome = "ok"
	}
}

// Ended is the run that ends within the verb. Only the probes before the first one that
// calls it have a result.
func (v Verb) Ended(outcome string) Run {
	r := Run{Outcome: outcome, Unjudged: Probes(), Abort: v.Verb}
	switch {
	case v.Last:
		r.Unjudged = nil
	case !v.Whole:
		r.Unjudged = r.Unjudged[slices.Index(r.Unjudged, v.Probes[0]):]
	}
	return r
}

// Less is the run in which the verb gives less than it was asked for.
func (v Verb) Less() Run {
	if v.ShortFails {
		return Run{Outcome: "failed", Failed: v.Probes[:1]}
	}
	return Run{Outcome: "ok"}
}
