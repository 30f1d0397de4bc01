package ethtool

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/state"
)

// The numbers of <linux/ethtool.h> that golang.org/x/sys/unix does not have.
const (
	commandStrings  = 0x1b // ETHTOOL_GSTRINGS
	commandValues   = 0x1d // ETHTOOL_GSTATS
	commandSizes    = 0x37 // ETHTOOL_GSSET_INFO
	setOfStatistics = 1    // ETH_SS_STATS
	nameSize        = 32   // ETH_GSTRING_LEN
	valueSize       = 8
)

// maxStatistics limits the statistics that are read. A driver has dozens for each of its queues.
const maxStatistics = 1 << 16

// statistics returns the statistics of a driver that are wanted. Names and number change at any
// time, as when PFC is switched on, so both are asked for each time.
func (r Reader) statistics(ctx context.Context, netdev string, wanted func(string) bool) ([]state.Counter, error) {
	if wanted == nil {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sizes := binary.NativeEndian.AppendUint32(nil, commandSizes)
	sizes = binary.NativeEndian.AppendUint32(sizes, 0)
	sizes = binary.NativeEndian.AppendUint64(sizes, 1<<setOfStatistics)
	sizes = binary.NativeEndian.AppendUint32(sizes, 0)
	if err := r.Ioctl(netdev, sizes); err != nil {
		return nil, failure(ctx, "ETHTOOL_GSSET_INFO", netdev, err)
	}
	count := binary.NativeEndian.Uint32(sizes[16:])
	if count == 0 || count > maxStatistics {
		return nil, nil
	}
	names, err := r.list(ctx, netdev, nameSize, commandStrings, setOfStatistics, count)
	if err != nil {
		return nil, failure(ctx, "ETHTOOL_GSTRINGS", netdev, err)
	}
	values, err := r.list(ctx, netdev, valueSize, commandValues, count)
	if err != nil {
		return nil, failure(ctx, "ETHTOOL_GSTATS", netdev, err)
	}
	return decodeStatistics(names, values, wanted), nil
}

// list sends a request whose last word is a number of entries, and returns the entries that follow
// it in the reply. Until Linux 6.19 the kernel writes as many as the driver has by then, so the
// request is in memory of its own, and a page after it cannot be written. A reply with another
// number is dropped.
func (r Reader) list(ctx context.Context, netdev string, size int, request ...uint32) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	header, count := 4*len(request), request[len(request)-1]
	need, page := header+size*int(count), os.Getpagesize()
	guard := (need + page - 1) / page * page
	memory, err := unix.Mmap(-1, 0, guard+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Munmap(memory) }() // It was mapped above.
	if err := unix.Mprotect(memory[guard:], unix.PROT_NONE); err != nil {
		return nil, err
	}
	for i, word := range request {
		binary.NativeEndian.PutUint32(memory[4*i:], word)
	}
	if err := r.Ioctl(netdev, memory[:guard:guard]); err != nil {
		return nil, err
	}
	if got := binary.NativeEndian.Uint32(memory[header-4:]); got != count {
		return nil, fmt.Errorf("%d entries instead of %d: %w", got, count, syscall.EAGAIN)
	}
	return bytes.Clone(memory[header:need]), nil
}

// decodeStatistics returns the wanted ones among names and values in the form of the kernel. Some
// names of mlx5e end with a blank.
func decodeStatistics(names, values []byte, wanted func(string) bool) (counters []state.Counter) {
	for i := range min(len(names)/nameSize, len(values)/valueSize) {
		name, _, _ := bytes.Cut(names[i*nameSize:][:nameSize], []byte{0})
		c := state.Counter{Group: state.GroupEthtool, Name: string(bytes.TrimRight(name, " "))}
		known := slices.ContainsFunc(counters, func(other state.Counter) bool { return other.Name == c.Name })
		if wanted(c.Name) && !known {
			c.Value = binary.NativeEndian.Uint64(values[i*valueSize:])
			counters = append(counters, c)
		}
	}
	return counters
}

// ioctl sends a request of SIOCETHTOOL about a network device.
func ioctl(netdev string, request []byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // Nothing was written.
	ifreq := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(unsafe.SliceData(request))}
	copy(ifreq.name[:], netdev)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifreq))); errno != 0 {
		return errno
	}
	return nil
}
