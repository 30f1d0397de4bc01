package collector

import (
	"cmp"
	"strconv"

	"rdma_exporter/internal/state"
)

func declareInterrupt(t *table) {
	t.about("Interrupts")
	t.of(Interrupts)
	t.counter("rdma_vector_interrupts_total", "interrupts",
		"Interrupts of a completion vector since the kernel started; the counter wraps to 0 after 32 bits.", "device", "comp_vector", "irq")
	t.gauge("rdma_vector_interrupt_info", "always 1",
		"Which interrupt serves a completion vector, and on which CPUs.", "device", "comp_vector", "irq", "cpus")
}

func addInterrupts(b *builder, name string, all []state.Interrupt) {
	for i := range all {
		n := &all[i]
		vector, irq := strconv.Itoa(n.Vector), strconv.Itoa(n.IRQ)
		b.counter("rdma_vector_interrupts_total", n.Count, name, vector, irq)
		b.gauge("rdma_vector_interrupt_info", 1, name, vector, irq, cmp.Or(n.Effective, n.CPUs))
	}
}
