package hardware

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/state"
)

const (
	// maxInterrupts is the limit of MSI-X for a function.
	maxInterrupts = 2048
	// maxCPUs is the limit of Linux.
	maxCPUs = 8192
	// maxList limits the length of a list of CPUs, in bytes.
	maxList = 1024
)

// interrupts reads the interrupts that serve the completion vectors of the device.
func (d *device) interrupts() []state.Interrupt {
	// The interrupts of a subfunction are shared with others.
	if d.function == "" || d.subfunction {
		return nil
	}
	numbers, _ := d.numbers(filepath.Join(d.function, "msi_irqs")) // A device without MSI has no such folder.
	var all []state.Interrupt
	taken := map[int]bool{}
	for _, irq := range numbers[:min(len(numbers), maxInterrupts)] {
		name := d.action(irq)
		vector := completionVector(name)
		if vector == unnumbered {
			// Older irdma has no numbers. Its vectors are in the order of their interrupts.
			vector = len(all)
		}
		if vector < 0 || taken[vector] {
			continue
		}
		taken[vector] = true
		all = append(all, state.Interrupt{Vector: vector, IRQ: irq, Name: name})
	}
	if len(all) == 0 {
		return nil
	}
	list, _ := d.file(filepath.Join(d.Sysfs, "devices/system/cpu/isolated")) // None are isolated without it.
	isolated := parseCPUs(strings.TrimSpace(list))
	for i := range all {
		d.interrupt(&all[i], isolated)
	}
	slices.SortFunc(all, func(a, b state.Interrupt) int { return cmp.Compare(a.Vector, b.Vector) })
	return all
}

// action returns the name that the driver gave an interrupt. It is empty if unknown.
func (d *device) action(irq int) string {
	number := strconv.Itoa(irq)
	if name := d.text(filepath.Join(d.Sysfs, "kernel/irq", number, "actions")); name != "" {
		return name
	}
	// The kernel makes a directory for each action, next to the files of the interrupt.
	names, _ := d.list(filepath.Join(d.Procfs, "irq", number), maxEntries)
	for _, name := range names {
		if completionVector(name) != none {
			return clean(name)
		}
	}
	return ""
}

// interrupt reads where an interrupt may run, where it runs, and how often it occurred.
func (d *device) interrupt(i *state.Interrupt, isolated map[int]bool) {
	number := strconv.Itoa(i.IRQ)
	affinity := func(name string) string {
		s, err := d.file(filepath.Join(d.Procfs, "irq", number, name))
		if s = strings.TrimSpace(s); err != nil || len(s) > maxList || len(parseCPUs(s)) == 0 {
			return ""
		}
		return s
	}
	i.Effective = affinity("effective_affinity_list")
	if i.Effective == "" || !d.Without.InterruptCounts {
		i.CPUs = affinity("smp_affinity_list")
	}
	on := parseCPUs(cmp.Or(i.Effective, i.CPUs))
	i.Isolated = len(on) > 0
	for cpu := range on {
		i.Isolated = i.Isolated && isolated[cpu]
	}
	if d.Without.InterruptCounts {
		return
	}
	content, _ := d.file(filepath.Join(d.Sysfs, "kernel/irq", number, "per_cpu_count")) // Without it the count is 0.
	for part := range strings.SplitSeq(strings.TrimSpace(content), ",") {
		if n, err := strconv.ParseUint(part, 10, 64); err == nil {
			i.Count += n
		}
	}
	// The kernel counts 32 bits for each CPU. The sum wraps at 32 bits, too. Otherwise it would
	// decrease whenever the count of one CPU wraps.
	i.Count &= math.MaxUint32
}

// parseCPUs returns the CPUs in a list such as 0-3,8. There are none if it is malformed.
func parseCPUs(s string) map[int]bool {
	if s == "" {
		return nil
	}
	all := map[int]bool{}
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err != nil || err2 != nil || from > to || to >= maxCPUs {
			return nil
		}
		for cpu := int(from); cpu <= int(to); cpu++ {
			all[cpu] = true
		}
	}
	return all
}

// Results of completionVector for the name of no completion vector, and of one without a number.
const (
	none       = -1
	unnumbered = -2
)

// completionVector returns the completion vector that an interrupt serves, by the name that its
// driver gave it. The names are from the drivers' source:
//
//	mlx5_compK@pci:ADDRESS      mlx5_core/pci_irq.c irq_set_name; the vector is K
//	mlx4-N@ADDRESS              mlx4/eq.c mlx4_assign_eq; N includes queue 0, which is no vector
//	bnxt_re-nq-K@pci:ADDRESS    bnxt_re/qplib_fp.c bnxt_qplib_nq_start_irq; bnxt_qplib_nq-K
//	                            in older kernels. The driver may choose which of them serves a
//	                            completion queue
//	irdma-ADDRESS-CEQ-K         irdma/hw.c irdma_cfg_ceq_vector; AEQCEQ-0 where the first
//	                            is shared; CEQ and AEQCEQ in older kernels
//	hns-ADDRESS-ceq-K           hns/hns_roce_hw_v2.c __hns_roce_request_irq; hns-ceq-K
//	                            in older kernels
//	efa-compK@pci:ADDRESS       efa/efa_main.c efa_setup_comp_irq
//	erdma-ceqK@pci:ADDRESS      erdma/erdma_eq.c erdma_set_ceq_irq
//	qedrK@pci:ADDRESS           qedr/main.c qedr_alloc_resources
func completionVector(name string) int {
	if name == "CEQ" || name == "AEQCEQ" {
		return unnumbered
	}
	name, _, _ = strings.Cut(name, "@")
	for _, prefix := range []string{"mlx5_comp", "mlx4-", "bnxt_re-nq-", "bnxt_qplib_nq-", "efa-comp", "erdma-ceq", "qedr"} {
		if number, ok := strings.CutPrefix(name, prefix); ok {
			return vectorNumber(number, prefix == "mlx4-")
		}
	}
	for _, family := range []struct{ prefix, before string }{{"irdma-", "CEQ-"}, {"hns-", "ceq-"}} {
		rest, ok := strings.CutPrefix(name, family.prefix)
		if i := strings.LastIndex(rest, family.before); ok && i >= 0 {
			return vectorNumber(rest[i+len(family.before):], false)
		}
	}
	return none
}

func vectorNumber(s string, fromOne bool) int {
	n, err := strconv.ParseUint(s, 10, 12)
	if err != nil || fromOne && n == 0 {
		return none
	}
	if fromOne {
		n--
	}
	return int(n)
}
