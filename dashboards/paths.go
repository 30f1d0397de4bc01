package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// paths returns the dashboard of the paths between nodes.
func paths() grafanaBoard {
	s := scope{job: `job=~"$job"`, instance: `instance=~"$instance"`, device: `device=~"$device"`}
	b := newBoard(pathsUID, "RDMA / Paths",
		"Which nodes reach each other over RDMA, and whether a device, a rail or a switch is to blame if they do not. Only with peers.", s,
		sourceVariable(), clusterVariable(), jobVariable(many), instanceVariable(s, many), deviceVariable(s, many))
	b.row("Paths at a glance", pathState()...)
	b.row("Node by node", pathNodes()...)
	b.row("Rails, results and losses", pathRails()...)
	b.folded("Pairs of devices", pathPairs()...)
	return b.dashboard
}

const (
	pairLabels  = `@id, peer, peer_device`
	pairSuccess = `max by (` + pairLabels + `) (rdma_path_success{@device})`
)

func pathState() []dashboard.Panel {
	return []dashboard.Panel{
		stat(tile("Pairs", count, plain(), "Pairs of a device and a device of a peer whose last run says something about RDMA."),
			nil, query{`count(` + pairSuccess + `)`, ""}),
		stat(tile("Pairs that fail", count, anyIs(warning), "Pairs whose path did not work in the last run, whether it worked before or not."),
			none(), query{`count(` + pairSuccess + ` == 0) or 0 * count(` + pairSuccess + `)`, ""}),
		stat(tile("Pairs lost", count, anyIs(critical), "Pairs that fail and worked before."+needsRules),
			none(), query{`count(instance_device_peer:rdma_path_success:lost{@device}) or 0 * count(` + pairSuccess + `)`, ""}),
		stat(tile("Oldest result", seconds, overdue(), "Age of the oldest result of a pair."),
			nil, query{`max(time() - rdma_path_timestamp_seconds{@device})`, ""}),
	}
}

func worksOrFails() []dashboard.ValueMapping {
	return texts(text{"1", "ok", good}, text{"0", "FAILS", critical})
}

func pathNodes() []dashboard.Panel {
	return []dashboard.Panel{
		matrix(of(12, 14, "Success from node to node", count, falling(1, 1.5), "Whether all devices of the node of a row reach those of the peer of a column. Empty: the row does not ask the column. A column that fails points to a peer, a row to a node, a block to a switch."+needsRules),
			"instance", "peer", worksOrFails(), `instance_peer:rdma_path_success:min{@instance}`),
		matrix(of(12, 14, "Median round trip from node to node", seconds, plain(), "The median round trip of the slowest chosen device of the node of a row to the peer of a column."),
			"instance", "peer", nil, `max by (@host, peer) (rdma_path_rtt_seconds{@device,stat="median"})`),
	}
}

func pathRails() []dashboard.Panel {
	return []dashboard.Panel{
		matrix(of(8, 10, "Success from rail to rail", fraction, falling(0.5, 1), "Share of the pairs from the rail of a row to the rail of a column that work, of all nodes of the jobs."+needsRules),
			"rail", "peer_rail", nil, `min by (rail, peer_rail) (job_rail_peer:rdma_path_success:avg{@job})`),
		columns(of(8, 10, "Failures by result", count, plain(), "Runs other than ok, in the minutes before each bar, by the result. It says where to look: docs/reference/findings.md#path_failed."),
			query{`sum by (result) (increase(rdma_path_probes_total{@device,result!="ok"}[$__rate_interval])) > 0`, "{{result}}"}),
		lines(of(8, 10, "Packets lost by direction", packets, plain(), "Packets that the exporters sent each other, and those lost on the way there (forward) or on the way back (reverse)."),
			query{`sum by (direction) (rate(rdma_path_packets_lost_total{@device}[$__rate_interval]))`, "lost, {{direction}}"},
			query{`sum(rate(rdma_path_packets_sent_total{@device}[$__rate_interval]))`, "sent"}),
		columns(of(24, 6, "Sessions that peers requested", count, plain(), "Requests of peers to the chosen exporters, in the minutes before each bar, by the answer."),
			query{`sum by (result) (increase(rdma_path_sessions_total{@instance}[$__rate_interval])) > 0`, "{{result}}"}),
	}
}

func pathPairs() []dashboard.Panel {
	pair := func(metric string) string { return `max by (` + pairLabels + `) (` + metric + `)` }
	const ends = pairLabels + `, suspect, clock, rail, tor, peer_rail, peer_tor`
	return []dashboard.Panel{
		filterable(table(of(24, 14, "Paths by pair", count, plain(), "Each pair with its last run, those that fail first, and where both ends are. Filter by a column."), "-success", append(whose(),
			label("peer", 180), titled("peer_device", "peer device", 100),
			column{title: "success", width: 80, mappings: worksOrFails(), expr: pair("rdma_path_success{@device}")},
			label("suspect", 90),
			column{title: "median round trip", width: 130, unit: seconds, expr: pair(`rdma_path_rtt_seconds{@device,stat="median"}`)},
			column{title: "flows", width: 70, expr: pair("rdma_path_flows{@device}")},
			column{title: "flows failed", width: 100, thresholds: new(anyIs(critical)), expr: pair("rdma_path_flows_failed{@device}")},
			column{title: "MTU", width: 90, unit: octets, expr: pair("rdma_path_mtu_bytes{@device}")},
			label("clock", 90), label("rail", 90), titled("tor", "ToR", 90), titled("peer_rail", "peer rail", 90), titled("peer_tor", "peer ToR", 90),
			column{title: "ends", hidden: true, expr: `group by (` + ends + `) (rdma_path_info{@device})`},
		))),
	}
}
