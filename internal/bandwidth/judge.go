package bandwidth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"rdma_exporter/internal/state"
)

// Finding is a device that is slower than it should be. Kind is bandwidth_low or numa_asymmetric.
// Reason is link, max_read_request, max_payload, acs_redirect, iommu, relaxed_ordering or unknown.
type Finding struct {
	Kind   string `json:"kind"`
	Device string `json:"device"`
	Reason string `json:"suspected_reason"`
	Detail string `json:"detail"`
}

// The parts of a link, of the median of siblings, and of the best NUMA node that are enough.
const enoughOfLink, enoughOfNode = 0.8, 0.7

// fastest returns what a port moves, in bytes per second: with the memory next to the device, and
// with the slowest and the fastest NUMA node. It leaves out devices that the kernel emulates, and those whose
// measurement did not end.
func fastest(b *state.Bandwidth, port int) (near, worst, best float64) {
	byNode := make(map[int]float64)
	for _, c := range b.Cells {
		if c.Port == port && c.Size == large && b.Interrupted == "" && b.Failure == "" && b.Hardware.Driver != "rxe" && b.Hardware.Driver != "siw" {
			byNode[c.Node] = max(byNode[c.Node], c.BytesPerSecond)
		}
	}
	for n, rate := range byNode {
		if home := b.Hardware.Identity.NUMANode; home < 0 || n == home {
			near = max(near, rate)
		}
		best, worst = max(best, rate), min(cmp.Or(worst, rate), rate)
	}
	return cmp.Or(near, best), worst, best // The device's own node may have no memory.
}

// shortfall is what a device lacks, in words, and the highest bound that it misses, in bytes per second.
type shortfall struct {
	detail string
	bound  float64
}

func (s *shortfall) add(bound float64, format string, args ...any) {
	s.detail, s.bound = s.detail+fmt.Sprintf(format, args...)+"; ", max(s.bound, bound)
}

// Evaluate returns the findings, at most one of each kind for a device. Siblings are ports of the same
// model and rate. A cell with a Best is compared with that too, but never with more than the rate of the port.
func Evaluate(all []state.Bandwidth) (findings []Finding) {
	siblings := make(map[string][]float64)
	kind := func(b *state.Bandwidth, p state.HardwarePort) string {
		return fmt.Sprint(cmp.Or(b.Hardware.Identity.BoardID, b.Hardware.Identity.Model, b.Device), p.Rate)
	}
	for i := range all {
		for _, p := range all[i].Hardware.Ports {
			if near, _, _ := fastest(&all[i], p.Number); near > 0 {
				siblings[kind(&all[i], p)] = append(siblings[kind(&all[i], p)], near)
			}
		}
	}
	for i := range all {
		b, low, past, uneven := &all[i], shortfall{}, shortfall{}, shortfall{}
		for _, p := range b.Hardware.Ports {
			near, worst, best := fastest(b, p.Number)
			most, by := p.Rate/8, "its rate"
			if _, l := carries(b.Hardware.Identity.Link, b.PCI.MaxPayload); l > 0 && (l < most || most == 0) {
				most, by = l, "what its PCI link carries"
			}
			others := slices.Sorted(slices.Values(siblings[kind(b, p)]))
			if n := len(others); n > 2 && others[n/2] > most {
				most, by = others[n/2], "the median of its siblings"
			}
			if near > 0 && near < enoughOfLink*most {
				low.add(most, "port %d moves %s of %s, %s", p.Number, gigabits(near), gigabits(most), by)
			}
			if worst < enoughOfNode*best {
				uneven.add(best, "port %d moves %s with the slowest NUMA node and %s with the fastest", p.Number, gigabits(worst), gigabits(best))
			}
		}
		for _, c := range b.Cells {
			was := c.Best
			for _, p := range b.Hardware.Ports {
				if p.Number == c.Port && p.Rate > 0 {
					was = min(was, p.Rate/8)
				}
			}
			if near, _, _ := fastest(b, c.Port); near > 0 && c.BytesPerSecond < enoughOfLink*was {
				past.add(was, "port %d moves %s (%s, NUMA node %d), and has moved %s", c.Port, gigabits(c.BytesPerSecond), c.Operation, c.Node, gigabits(c.Best))
			}
		}
		for _, f := range []struct {
			kind string
			shortfall
		}{{"bandwidth_low", cmp.Or(low, past)}, {"numa_asymmetric", uneven}} {
			if f.detail != "" {
				reason, why := cause(b, f.bound)
				findings = append(findings, Finding{f.kind, b.Device, reason, f.detail + why})
			}
		}
	}
	return findings
}

// carries returns what a link carries as it was trained, and at its best, in bytes per second: without
// encoding, and of each packet the payload. Zero means unknown.
func carries(l *state.PCILink, payload int) (trained, best float64) {
	if l == nil {
		return 0, 0
	}
	rate := func(speed float64, width int) float64 {
		const header = 24 // bytes of the transaction and data link layers
		encoding, data := 128.0/130, float64(cmp.Or(payload, 256))
		if speed < 8e9 {
			encoding = 8.0 / 10
		} else if speed > 32e9 {
			encoding = 242.0 / 256
		}
		return speed * float64(width) / 8 * encoding * data / (data + header)
	}
	return rate(l.Speed, l.Width), rate(max(l.Speed, l.MaxSpeed), max(l.Width, l.MaxWidth))
}

// cause returns the first reason that the facts give for what is below a bound, in bytes per second.
// Unknown facts give none.
func cause(b *state.Bandwidth, bound float64) (reason, why string) {
	for _, l := range []*state.PCILink{b.Hardware.Identity.Link, b.Hardware.Identity.Bottleneck} {
		if now, _ := carries(l, b.PCI.MaxPayload); now > 0 && now < enoughOfLink*bound {
			return "link", fmt.Sprintf("the PCI link of %s has %g of %g GT/s and %d of %d lanes", l.Address, l.Speed/1e9, l.MaxSpeed/1e9, l.Width, l.MaxWidth)
		}
	}
	switch p := b.PCI; {
	case p.MaxReadRequest > 0 && p.MaxReadRequest < 512:
		return "max_read_request", fmt.Sprintf("MaxReadReq is %d bytes", p.MaxReadRequest)
	case p.MaxPayload > 0 && p.MaxPayload < 256:
		return "max_payload", fmt.Sprintf("MaxPayload is %d bytes", p.MaxPayload)
	case strings.HasPrefix(p.IOMMU, "DMA"):
		return "iommu", "the IOMMU translates addresses: " + p.IOMMU
	case p.RelaxedOrdering != nil && !*p.RelaxedOrdering:
		return "relaxed_ordering", "relaxed ordering is off"
	case p.ACSRedirect != nil && *p.ACSRedirect: // It concerns requests between devices, so all else comes first.
		return "acs_redirect", "ACS redirects requests to the root"
	}
	return "unknown", "the reason is unknown"
}

// Report is what was measured, and what is wrong. docs/bandwidth.md describes its fields.
type Report struct {
	Version  int               `json:"version"`
	Devices  []state.Bandwidth `json:"devices"`
	Findings []Finding         `json:"findings"`
}

// NewReport returns the report about what was measured.
func NewReport(all []state.Bandwidth) Report {
	return Report{1, all, append([]Finding{}, Evaluate(all)...)}
}

func gigabits(bytesPerSecond float64) string { return fmt.Sprintf("%.4g Gb/s", bytesPerSecond*8/1e9) }

// Text returns a row for each port and NUMA node, and lines. It is good if nothing is wrong
// or missing, except what devices do not support.
func (r Report) Text() (text string, good bool) {
	var out, lines strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "device\tport\tnode\twrite inline\t64 B\t4 KiB\t1 MiB\tread 64 B\t4 KiB\t1 MiB\t")
	good = len(r.Findings) == 0
	for _, d := range r.Devices {
		var row [7]float64
		for i, c := range d.Cells {
			value := map[bool]float64{true: c.MessagesPerSecond / 1e6, false: c.BytesPerSecond * 8 / 1e9}[c.Size <= small]
			column := slices.Index([]int{small, medium, large}, c.Size) + 1 + map[string]int{"read": 3}[c.Operation]
			if c.Inline {
				column = 0
			}
			row[column] = max(row[column], value)
			if i+1 == len(d.Cells) || d.Cells[i+1].Port != c.Port || d.Cells[i+1].Node != c.Node {
				fmt.Fprintf(w, "%s\t%d\t%d\t%.4g\t%.4g\t%.4g\t%.4g\t%.4g\t%.4g\t%.4g\t\n", d.Device, c.Port, c.Node, row[0], row[1], row[2], row[3], row[4], row[5], row[6])
				row = [7]float64{}
			}
		}
		for _, l := range [][2]string{{"failed", d.Failure}, {"interrupted", d.Interrupted}, {"not measured", d.Skipped}} {
			if l[1] != "" {
				fmt.Fprintf(&lines, "%s: %s: %s\n", d.Device, l[0], l[1])
				good = good && l[1] == d.Skipped
			}
		}
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&lines, "%s: %s: %s\n", f.Device, f.Kind, f.Detail)
	}
	_ = w.Flush() // A strings.Builder takes everything.
	return out.String() + "Up to 64 B in million messages/s, others in Gb/s. 0: the device cannot.\n" + lines.String(), good
}
