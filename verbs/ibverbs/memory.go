//go:build cgo && linux

package ibverbs

import (
	"fmt"
	"runtime/metrics"

	"github.com/prometheus/procfs"

	"rdma_exporter/verbs"
)

// Memory implements verbs.Device, with what the kernel and the Go runtime say of the
// process.
func (d *device) Memory() (verbs.Memory, error) {
	if err := d.use(); err != nil {
		return verbs.Memory{}, err
	}
	defer d.done()
	return processMemory()
}

func processMemory() (verbs.Memory, error) {
	self, err := procfs.Self()
	if err != nil {
		return verbs.Memory{}, fmt.Errorf("find this process in /proc: %w", err)
	}
	status, err := self.NewStatus()
	if err != nil {
		return verbs.Memory{}, fmt.Errorf("read the memory of this process: %w", err)
	}
	return verbs.Memory{Virtual: status.VmSize, Locked: status.VmPin, Runtime: runtimeTables()}, nil
}

// runtimeTables returns how many bytes the Go runtime has mapped for other things than
// heap and stacks, whose address space it has reserved long before it uses it.
func runtimeTables() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/metadata/mcache/free:bytes"},
		{Name: "/memory/classes/metadata/mcache/inuse:bytes"},
		{Name: "/memory/classes/metadata/mspan/free:bytes"},
		{Name: "/memory/classes/metadata/mspan/inuse:bytes"},
		{Name: "/memory/classes/metadata/other:bytes"},
		{Name: "/memory/classes/other:bytes"},
		{Name: "/memory/classes/profiling/buckets:bytes"},
	}
	metrics.Read(samples)
	var sum uint64
	for _, s := range samples {
		// A version of Go that does not know one of them has none of it.
		if s.Value.Kind() == metrics.KindUint64 {
			sum += s.Value.Uint64()
		}
	}
	return sum
}
