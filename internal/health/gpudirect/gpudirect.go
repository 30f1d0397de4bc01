// Package gpudirect says what keeps an adapter from the memory of GPUs, or makes that slow.
package gpudirect

import (
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Problems reports each problem of an adapter once, as a finding of a kind and case.
func Problems(h *state.Hardware, report func(kind, entry, subject, message string, warning bool)) {
	const none, slow, maxFew = "gpudirect_unavailable", "gpudirect_slow", 8
	for _, p := range []struct {
		kind, entry, subject, message string
		loud                          bool // A warning if they share a switch, as on hosts built for it.
		is                            func(*state.GPU) bool
	}{
		{none, "", "peer memory", "The adapter cannot register memory of GPU {gpus}: the kernel has neither a peer memory module nor dma-buf for it.", true, func(gpu *state.GPU) bool { return gpu.Memory == "none" }},
		{slow, "acs", "ACS", "ACS sends what goes between the adapter and GPU {gpus} through the CPU, although they share a switch. Bridges that redirect: {bridges}.", true, func(gpu *state.GPU) bool { return gpu.ACS == "redirect" && gpu.SharesSwitch() }},
		{slow, "iommu", "IOMMU", "The IOMMU translates what goes between the adapter and GPU {gpus}, although they share a switch.", false, func(gpu *state.GPU) bool { return strings.HasPrefix(h.IOMMU, "DMA") && gpu.SharesSwitch() }},
		{slow, "bar", "BAR", "The largest BAR is smaller than 1 GiB: GPU {gpus}.", false, func(gpu *state.GPU) bool { return gpu.BAR > 0 && gpu.BAR < 1<<30 }},
	} {
		var gpus, bridges []string
		shared := false
		for i := range h.GPUs {
			if gpu := &h.GPUs[i]; p.is(gpu) && gpu.Driver != "vfio-pci" { // Virtual machines need what isolates it.
				gpus, bridges, shared = append(gpus, text.Clean(gpu.PCI)), append(bridges, gpu.Redirecting...), shared || gpu.SharesSwitch()
			}
		}
		slices.Sort(bridges)
		if gpus != nil {
			named := strings.NewReplacer("{gpus}", text.Join(gpus, ", ", maxFew), "{bridges}", text.Clean(text.Join(slices.Compact(bridges), ", ", maxFew)))
			report(p.kind, p.entry, p.subject, named.Replace(p.message), p.loud && shared)
		}
	}
}
