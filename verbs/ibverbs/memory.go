//go:build cgo && linux

package ibverbs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"rdma_exporter/verbs"
)

// Cost implements verbs.Device with the kernel's figures of the process right before
// and right after each verb.
func (d *device) Cost(create func()) (verbs.Memory, error) {
	if err := d.use(); err != nil {
		return verbs.Memory{}, err
	}
	m, err := newMeter()
	if err != nil {
		create()
		return verbs.Memory{}, err
	}
	defer m.close()
	d.meter = m
	defer func() { d.meter = nil }()
	create()
	return m.cost()
}

// meter sums what calls cost this process.
type meter struct {
	self  procfs.Proc
	statm *os.File // /proc/self/statm
	sum   verbs.Memory
	err   error // the first
}

// newMeter opens the kernel's figures of this process. The caller closes the meter.
func newMeter() (*meter, error) {
	self, err := procfs.Self()
	if err != nil {
		return nil, fmt.Errorf("find this process in /proc: %w", err)
	}
	statm, err := os.Open("/proc/self/statm")
	if err != nil {
		return nil, fmt.Errorf("open the memory of this process: %w", err)
	}
	return &meter{self: self, statm: statm}, nil
}

func (m *meter) close() { _ = m.statm.Close() } // nothing was written

// statmRoom is more than the seven numbers of proc_pid_statm(5) can take.
const statmRoom = 256

// measure calls f and adds what it cost. The address space of a Go process grows at
// moments of its own, by tables of the runtime or by a piece of the heap, and that
// when something is allocated. Therefore nothing is between the two readings of the
// address space, unless by f; whatever else there is to read comes before and after.
func (m *meter) measure(f func()) {
	textBefore, textAfter := make([]byte, statmRoom), make([]byte, statmRoom)
	lockedBefore, err1 := m.locked()

	n, err2 := m.statm.ReadAt(textBefore, 0)
	f()
	k, err3 := m.statm.ReadAt(textAfter, 0)

	lockedAfter, err4 := m.locked()
	before, err2 := addressSpace(textBefore, n, err2)
	after, err3 := addressSpace(textAfter, k, err3)
	m.err = cmp.Or(m.err, err1, err2, err3, err4)
	// A process has less than before where an allocator gave something back meanwhile.
	m.sum.Virtual += after - min(before, after)
	m.sum.Locked += lockedAfter - min(lockedBefore, lockedAfter)
}

// locked returns how many bytes the kernel pinned for the process.
func (m *meter) locked() (uint64, error) {
	status, err := m.self.NewStatus()
	if err != nil {
		return 0, fmt.Errorf("read the memory that is pinned for this process: %w", err)
	}
	return status.VmPin, nil
}

// addressSpace returns the bytes of address space in a statm. The first n bytes of it
// were read until the error, which is io.EOF unless it could not be read.
func addressSpace(statm []byte, n int, err error) (uint64, error) {
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read /proc/self/statm: %w", err)
	}
	text := string(statm[:n])
	pages, rest, _ := strings.Cut(text, " ")
	size, err := strconv.ParseUint(pages, 10, 48)
	if err != nil || !strings.HasSuffix(rest, "\n") {
		return 0, fmt.Errorf("/proc/self/statm says %q, which does not begin with a number of pages or is cut short", text)
	}
	return size * uint64(os.Getpagesize()), nil
}

// cost returns what the calls cost that were measured.
func (m *meter) cost() (verbs.Memory, error) {
	if m.err != nil {
		return verbs.Memory{}, m.err
	}
	return m.sum, nil
}
