package ceiling

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/owner"
	"rdma_exporter/verbs"
)

// System is the host as the kernel tells of it. It implements [Host].
type System struct {
	// Procfs and Cgroup are where the proc file system and those of the cgroups are
	// mounted.
	Procfs, Cgroup string
}

// Memory implements Host.
func (s System) Memory() (Memory, error) {
	people, err := owner.New(s.Procfs, s.Cgroup)
	if err != nil {
		return Memory{}, err
	}
	held, err := people.Memlock(os.Getpid())
	if err != nil {
		return Memory{}, err
	}
	m := Memory{Locked: held.Pinned + held.Locked}
	statm, err := os.ReadFile(filepath.Join(s.Procfs, "self", "statm"))
	if err != nil {
		return Memory{}, fmt.Errorf("the memory of the process: %w", err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return Memory{}, fmt.Errorf("the memory of the process: statm is %q: %w", statm, err)
	}
	m.Resident = resident * int64(os.Getpagesize())
	meminfo, err := os.ReadFile(filepath.Join(s.Procfs, "meminfo"))
	if err != nil {
		return Memory{}, fmt.Errorf("the memory of the host: %w", err)
	}
	for key, to := range map[string]*int64{"MemTotal:": &m.Total, "MemAvailable:": &m.Available} {
		if *to, err = kilobytes(meminfo, key); err != nil {
			return Memory{}, fmt.Errorf("the memory of the host: %w", err)
		}
	}
	return m, nil
}

// kilobytes returns a value of meminfo in bytes.
func kilobytes(meminfo []byte, key string) (int64, error) {
	for line := range bytes.Lines(meminfo) {
		fields := strings.Fields(string(line))
		if len(fields) == 3 && fields[0] == key {
			n, err := strconv.ParseInt(fields[1], 10, 64-10)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("meminfo has no %s", key)
}

// Limits implements Host. What could be told comes with the error.
func (s System) Limits() (Limits, error) {
	l := Limits{Memlock: -1}
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	if people, err := owner.New(s.Procfs, s.Cgroup); err != nil {
		note(err)
	} else {
		note(l.memlock(people))
		note(l.charges(people))
	}
	note(l.mappings(s.Procfs))
	var files unix.Rlimit
	note(unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
	l.Files = int64(min(files.Cur, 1<<62))
	return l, errors.Join(errs...)
}

// memlock reads what is pinned, and how much may be.
func (l *Limits) memlock(people *owner.Reader) error {
	m, err := people.Memlock(os.Getpid())
	if err != nil {
		return err
	}
	l.Pinned = m.Pinned
	if !verbs.LocksFreely() {
		l.Memlock = m.Limit
	}
	return nil
}

// charges reads what the RDMA controller counts, for the cgroup of the process and for
// those around it.
func (l *Limits) charges(people *owner.Reader) error {
	id, err := people.Identify(os.Getpid())
	if err != nil {
		return err
	}
	// Who is in a cgroup namespace is in its root, or outside, and sees none further up.
	l.Hidden = id.Cgroup == "/" || strings.HasPrefix(id.Cgroup, "/..")
	for cgroup := id.Cgroup; strings.HasPrefix(cgroup, "/"); cgroup = path.Dir(cgroup) {
		uses, err := people.RDMAController(cgroup)
		if errors.Is(err, owner.ErrOutside) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, u := range uses {
			l.Charges = append(l.Charges, Charge{Cgroup: cgroup, Device: u.Device, Resource: u.Resource, Current: u.Current, Limit: u.Limit})
		}
		if cgroup == "/" {
			return nil
		}
	}
	return nil
}

// mappings counts the mappings of the process. Their list may be long, and memory may be
// what there is no more of: it is not kept.
func (l *Limits) mappings(procfs string) error {
	most, err := os.ReadFile(filepath.Join(procfs, "sys", "vm", "max_map_count"))
	if err != nil {
		return fmt.Errorf("the most mappings of a process: %w", err)
	}
	f, err := os.Open(filepath.Join(procfs, "self", "maps"))
	if err != nil {
		return fmt.Errorf("the mappings of the process: %w", err)
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadSlice('\n')
		if bytes.HasSuffix(line, []byte("\n")) {
			l.Mappings++
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("the mappings of the process: %w", err)
		}
	}
	if l.MaxMappings, err = strconv.ParseInt(strings.TrimSpace(string(most)), 10, 64); err != nil {
		return fmt.Errorf("the most mappings of a process: %w", err)
	}
	return nil
}
