//go:build vm

package restrack

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/kernelsocket"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
)

// These tests run on real devices: see test/vm/README.md. RDMA_HOLDER names the
// program that test/holder is built into.

var record = flag.Bool("record", false, "print a recording for testdata/netlink (see TestRecord)")

func start(t testing.TB, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(name, arguments...)
	command.Stderr = os.Stderr
	running.Check(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command
}

func hold(t testing.TB, arguments ...string) *running.Held {
	t.Helper()
	path := os.Getenv("RDMA_HOLDER")
	if path == "" {
		t.Fatal("RDMA_HOLDER does not name the program of test/holder")
	}
	return running.Hold(t, exec.Command(path, arguments...))
}

// said returns the number that the holder printed as key=number.
func said(t *testing.T, line, key string) uint32 {
	t.Helper()
	for field := range strings.FieldsSeq(line) {
		if value, ok := strings.CutPrefix(field, key+"="); ok {
			number := running.Must(strconv.ParseUint(value, 10, 32))(t)
			return uint32(number)
		}
	}
	t.Fatalf("the holder did not say %s: %q", key, line)
	return 0
}

func rdma(t testing.TB, arguments ...string) []byte {
	t.Helper()
	output, err := exec.Command("rdma", append([]string{"-d", "-j", "resource"}, arguments...)...).Output()
	if err != nil {
		t.Fatalf("rdma resource %v: %v", arguments, err)
	}
	return output
}

func within(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func connect(t testing.TB) *Conn {
	t.Helper()
	conn := running.Must(Dial())(t)
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func deviceIndex(t testing.TB, conn *Conn, name string) uint32 {
	t.Helper()
	devices := running.Must(conn.Devices(within(t, time.Minute)))(t)
	for _, device := range devices {
		if device.Name == name {
			return device.Index
		}
	}
	t.Fatalf("there is no device %s among %v", name, devices)
	return 0
}

func list(t testing.TB, conn *Conn, index uint32, kind Type) []Object {
	t.Helper()
	var objects []Object
	running.Check(t, conn.Dump(within(t, time.Minute), index, kind, func(o *Object) error {
		objects = append(objects, *o)
		return nil
	}))
	return objects
}

// await waits until there are as many objects as wanted, or more.
func await(t testing.TB, conn *Conn, index uint32, kind Type, count int) {
	t.Helper()
	running.Eventually(t, fmt.Sprintf("%d objects of the type %s", count, kind), func() bool {
		return len(list(t, conn, index, kind)) >= count
	})
}

// holdAll starts programs that hold an object of every type on rxe0.
func holdAll(t testing.TB, conn *Conn) (index uint32) {
	t.Helper()
	index = deviceIndex(t, conn, "rxe0")
	hold(t, "--qps", "10", "--error", "1", "--init", "2", "--rtr", "1", "--rts", "2",
		"--pds", "2", "--cqs", "3", "--cq-entries", "100", "--mrs", "3", "--mr-bytes", "12288")
	hold(t, "--qps", "8", "--rts", "1", "--srqs", "3", "--use-srqs", "--qp-type", "rc")
	hold(t, "--qps", "2", "--init", "1", "--qp-type", "uc", "--threads", "2")
	hold(t, "--qps", "3", "--rts", "2", "--qp-type", "ud", "--mrs", "1", "--srqs", "1", "--thread-ends")
	contexts := len(list(t, conn, index, CTX))
	start(t, "ibv_rc_pingpong", "-d", "rxe0", "-g", "1")
	await(t, conn, index, CTX, contexts+1)
	await(t, conn, index, QP, 10+8+4+3+1+1) // the GSI's one, too
	start(t, "ib_send_lat", "-R", "-d", "rxe0")
	await(t, conn, index, CMID, 1)
	rest(t)
	return index
}

// rest waits until programs have come to rest: until the tables are the same twice.
func rest(t testing.TB) {
	t.Helper()
	tables := func() string {
		var all strings.Builder
		for _, kind := range Types() {
			all.Write(rdma(t, "show", kind.String()))
		}
		return all.String()
	}
	before := ""
	running.Eventually(t, "the programs come to rest", func() bool {
		time.Sleep(200 * time.Millisecond)
		last := before
		before = tables()
		return before == last
	})
}

func TestTablesAgreeWithRDMA(t *testing.T) {
	conn := connect(t)
	held := holdAll(t, conn)
	devices := running.Must(conn.Devices(within(t, time.Minute)))(t)
	if len(devices) < 2 {
		t.Fatalf("devices: %v", devices)
	}
	// steady reads what rdma prints before and after, again if it changes between both.
	steady := func(read func(), arguments ...string) (printed []byte) {
		for range 20 {
			printed = rdma(t, arguments...)
			read()
			if string(printed) == string(rdma(t, arguments...)) {
				break
			}
		}
		return printed
	}
	for _, device := range devices {
		for _, kind := range Types() {
			var got []Object
			printed := steady(func() { got = list(t, conn, device.Index, kind) }, "show", kind.String())
			if device.Index == held && len(got) == 0 {
				t.Errorf("nothing of the type %s is held", kind)
			}
			compare(t, fmt.Sprintf("%s of %s", kind, device.Name), got, rows(t, kind, printed, device.Index))
		}
		var counts []Count
		printed := steady(func() { counts = running.Must(conn.Summary(within(t, time.Minute), device.Index))(t) })
		compareSummary(t, counts, printed, device.Index)
	}
}

func TestDevicesAgreeWithSysfs(t *testing.T) {
	devices := running.Must(connect(t).Devices(within(t, time.Minute)))(t)
	entries := running.Must(os.ReadDir("/sys/class/infiniband"))(t)
	if len(entries) == 0 || len(devices) != len(entries) {
		t.Errorf("%d devices, sysfs has %d", len(devices), len(entries))
	}
	for _, device := range devices {
		if _, err := os.Stat(filepath.Join("/sys/class/infiniband", device.Name)); err != nil {
			t.Error(err)
		}
	}
}

func TestGet(t *testing.T) {
	conn := connect(t)
	index := holdAll(t, conn)
	ctx := within(t, time.Minute)
	for _, kind := range []Type{PD, CQ, MR, CTX, SRQ} {
		// What changes between both is read again.
		for attempt := 0; ; attempt++ {
			objects := list(t, conn, index, kind)
			if len(objects) == 0 {
				t.Errorf("nothing of the type %s is held", kind)
			}
			var wrong []string
			for _, want := range objects {
				got, err := conn.Get(ctx, index, kind, want.ID)
				if err != nil || got != want {
					wrong = append(wrong, fmt.Sprintf("%s %d: %v\n got %+v\nwant %+v", kind, want.ID, err, got, want))
				}
			}
			if len(wrong) > 0 && attempt < 20 && !slices.Equal(list(t, conn, index, kind), objects) {
				continue
			}
			for _, text := range wrong {
				t.Error(text)
			}
			break
		}
		if got, err := conn.Get(ctx, index, kind, 0xfffff0); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%s that is not there: %+v, %v", kind, got, err)
		}
	}

	holder := hold(t, "--qps", "1", "--device", "rxe1")
	other := deviceIndex(t, conn, "rxe1")
	pds := list(t, conn, other, PD)
	i := slices.IndexFunc(pds, func(o Object) bool { return !o.Kernel })
	if i < 0 {
		t.Fatalf("no PD of the holder among %+v", pds)
	}
	if _, err := conn.Get(ctx, other, PD, pds[i].ID); err != nil {
		t.Error(err)
	}
	holder.Release()
	if got, err := conn.Get(ctx, other, PD, pds[i].ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a PD that is gone: %+v, %v", got, err)
	}
}

func TestNoSuchDevice(t *testing.T) {
	conn, ctx := connect(t), within(t, time.Minute)
	const nowhere = 4711
	_, err := conn.Summary(ctx, nowhere)
	_, errGet := conn.Get(ctx, nowhere, PD, 1)
	for _, err := range []error{
		err, errGet,
		conn.Dump(ctx, nowhere, QP, func(*Object) error { return nil }),
	} {
		if !errors.Is(err, syscall.ENODEV) || errors.Is(err, ErrNotSupported) {
			t.Errorf("%v", err)
		}
	}
}

// TestUnknownCommand verifies how a table that an old kernel lacks is reported.
func TestUnknownCommand(t *testing.T) {
	conn, ctx := connect(t), within(t, time.Minute)
	index := deviceIndex(t, conn, "rxe0")
	for _, dump := range []bool{true, false} {
		err := conn.query(ctx, request{command: 1000, dump: dump, index: index}, func([]byte) error { return nil })
		if !errors.Is(err, ErrNotSupported) || !errors.Is(err, syscall.EINVAL) {
			t.Errorf("dump %t: %v", dump, err)
		}
	}
}

// TestOwnerIsGone verifies that objects whose thread or process has ended have no owner.
func TestOwnerIsGone(t *testing.T) {
	conn := connect(t)
	index := deviceIndex(t, conn, "rxe0")
	for _, test := range []struct {
		option string
		owner  string // by which name the holder tells it
		owned  bool
	}{
		{"--threads=1", "thread", true},
		{"--thread-ends", "thread", false},
		{"--pass-fd", "creator", false},
	} {
		holder := hold(t, "--qps", "2", "--mrs", "1", "--srqs", "1", test.option)
		owner := said(t, holder.Said, test.owner)
		for _, kind := range []Type{PD, CQ, QP, MR, CTX, SRQ} {
			users := 0
			for _, o := range list(t, conn, index, kind) {
				if o.Kernel {
					continue
				}
				users++
				want := uint32(0)
				if test.owned {
					want = owner
				}
				if o.Thread != want {
					t.Errorf("%s: %s %d is of thread %d, want %d (%s)", test.option, kind, o.ID, o.Thread, want, holder.Said)
				}
			}
			if users == 0 {
				t.Errorf("%s: nothing of the type %s", test.option, kind)
			}
		}
		holder.Release()
		running.Eventually(t, test.option+": the holder's objects are gone", func() bool {
			return len(list(t, conn, index, CTX)) == 0
		})
	}
}

// An SRQ's row lists its QPs. If it is too large for any message the kernel
// begins it again and again.
func TestRowTooLarge(t *testing.T) {
	conn := connect(t)
	index := deviceIndex(t, conn, "rxe0")
	hold(t, "--qps", "6000", "--srqs", "2", "--use-srqs")
	err := conn.Dump(within(t, time.Minute), index, SRQ, func(*Object) error { return nil })
	if !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("dump: %v", err)
	}
	if qps := list(t, conn, index, QP); len(qps) < 6000 {
		t.Errorf("after that, %d QPs", len(qps))
	}
}

// A dump that is broken off does not spoil the next one, nor is the driver
// asked for the rest of it.
func TestBrokenOff(t *testing.T) {
	conn := connect(t)
	index := deviceIndex(t, conn, "rxe0")
	hold(t, "--qps", "2000")
	enough := errors.New("enough")
	for range 3 {
		seen := 0
		err := conn.Dump(within(t, time.Minute), index, QP, func(*Object) error {
			if seen++; seen == 100 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || seen != 100 {
			t.Errorf("after %d objects: %v", seen, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		seen = 0
		err = conn.Dump(ctx, index, QP, func(*Object) error {
			seen++
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) || seen >= 2000 {
			t.Errorf("cancelled, after %d objects: %v", seen, err)
		}
		if cqs := list(t, conn, index, CQ); len(cqs) != 2 {
			t.Errorf("CQs: %+v", cqs)
		}
		if qps := list(t, conn, index, QP); len(qps) != 2001 {
			t.Errorf("%d QPs", len(qps))
		}
	}
}

func TestInterruptedWait(t *testing.T) {
	s := running.Must(dial())(t)
	time.AfterFunc(50*time.Millisecond, s.Interrupt)
	if n, err := s.Receive(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestForeignSender verifies that what another process sends is ignored.
func TestForeignSender(t *testing.T) {
	s := running.Must(dial())(t)
	fd := running.Must(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_RDMA))(t)
	defer unix.Close(fd)
	to := &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: s.(*kernelsocket.Socket).PID()}
	running.Check(t, unix.Sendto(fd, make([]byte, 64), 0, to))
	time.AfterFunc(200*time.Millisecond, s.Interrupt)
	if n, err := s.Receive(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("received %d bytes from a process: %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestHeapIsBounded verifies that memory does not grow with the number of objects.
func TestHeapIsBounded(t *testing.T) {
	const limit = 512 << 10
	conn := connect(t)
	index := deviceIndex(t, conn, "rxe0")
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	for _, qps := range []string{"1000", "8000"} {
		holder := hold(t, "--qps", qps)
		before, most, seen := heap(), uint64(0), 0
		running.Check(t, conn.Dump(within(t, time.Minute), index, QP, func(*Object) error {
			if seen++; seen%1000 == 0 {
				most = max(most, heap())
			}
			return nil
		}))
		t.Logf("%s QPs: the heap grows from %d to %d bytes", qps, before, most)
		if most > before+limit || seen < 1000 {
			t.Errorf("%s QPs: the heap grows from %d to %d bytes over %d QPs", qps, before, most, seen)
		}
		holder.Release()
	}
}

// TestRecord prints a recording for testdata/netlink. From the repository's
// root, with RDMA_HOLDER set:
//
//	go test -tags vm -exec "$PWD/test/vm/run" -v -run '^TestRecord$' ./internal/restrack -args -record |
//	  sed -n '/^# Replies/,/^-- end --$/p' > testdata/netlink/linux-6.1.txt
func TestRecord(t *testing.T) {
	conn := connect(t)
	kept := &recorder{}
	conn.dial = func() (socket, error) {
		s, err := dial()
		kept.socket = s
		return kept, err
	}
	holdAll(t, conn)
	send(t)
	running.Check(t, conn.drop())
	var name unix.Utsname
	running.Check(t, unix.Uname(&name))
	var b strings.Builder
	version := running.Must(exec.Command("rdma", "-V").Output())(t)
	fmt.Fprintf(&b, "# Replies of NETLINK_RDMA, recorded by TestRecord of restrack_vm_test.go,\n")
	fmt.Fprintf(&b, "# and what %s printed at that time.\n", strings.TrimSpace(string(version)))
	fmt.Fprintf(&b, "# Kernel: Linux %s, rdma_rxe. Held on rxe0: see holdAll there.\n", unix.ByteSliceToString(name.Release[:]))
	section := func(name string) {
		fmt.Fprintf(&b, "-- %s --\n", name)
		for _, datagram := range kept.datagrams {
			fmt.Fprintf(&b, "%x\n", datagram)
		}
		kept.datagrams = nil
	}
	ctx := within(t, time.Minute)
	kept.datagrams = nil
	devices, err := conn.Devices(ctx)
	if err != nil || len(devices) < 2 {
		t.Fatalf("devices: %v, %v", devices, err)
	}
	section(sectionName(commandDevice, 0))
	running.Must(conn.NetnsMode(ctx))(t)
	section(sectionName(commandSystem, 0))
	for _, device := range devices {
		running.Must(conn.Summary(ctx, device.Index))(t)
		section(sectionName(commandSummary, device.Index))
		running.Must(conn.Statistic(ctx, device.Index, 1))(t)
		section(sectionName(commandStatistic, device.Index))
		for _, kind := range Types() {
			objects := list(t, conn, device.Index, kind)
			section(sectionName(kind.table().command, device.Index))
			if len(objects) == 0 || kind.table().perPort {
				continue
			}
			id := objects[0].ID
			running.Must(conn.Get(ctx, device.Index, kind, id))(t)
			section(sectionName(kind.table().command, device.Index, id))
		}
	}
	for _, of := range []string{"statistic", "system"} {
		out := running.Must(exec.Command("rdma", "-j", of, "show").Output())(t)
		fmt.Fprintf(&b, "-- rdma %s show --\n%s\n", of, strings.TrimSpace(string(out)))
	}
	for _, kind := range Types() {
		fmt.Fprintf(&b, "-- rdma resource show %s --\n%s\n", kind, strings.TrimSpace(string(rdma(t, "show", kind.String()))))
	}
	fmt.Fprintf(&b, "-- rdma resource --\n%s\n-- end --\n", strings.TrimSpace(string(rdma(t))))
	if *record {
		fmt.Print(b.String())
	}
}

// send has rxe0 send messages to itself.
func send(t *testing.T) {
	t.Helper()
	program := []string{"ibv_rc_pingpong", "-d", "rxe0", "-g", "1", "-p", "18600"}
	server := start(t, program[0], program[1:]...)
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	running.Eventually(t, "the server listens", func() bool {
		return exec.Command(program[0], append(program[1:], "10.77.0.1")...).Run() == nil
	})
	running.Check(t, <-ended)
}

// TestStatisticAgreesWithRDMA compares the counters of two ports, one of which has sent packets, with
// rdma statistic and sysfs.
func TestStatisticAgreesWithRDMA(t *testing.T) {
	conn := connect(t)
	send(t)
	ctx := within(t, time.Minute)
	for _, device := range []string{"rxe0", "rxe1"} {
		index := deviceIndex(t, conn, device)
		var counters []state.Counter
		// Replies to packets are sent for a while after the last message.
		for range 100 {
			before := running.Must(conn.Statistic(ctx, index, 1))(t)
			out := running.Must(exec.Command("rdma", "-j", "statistic", "show", "link", device+"/1").Output())(t)
			counters = running.Must(conn.Statistic(ctx, index, 1))(t)
			if !slices.Equal(before, counters) {
				continue
			}
			var links []map[string]any
			if err := json.Unmarshal(out, &links); err != nil || len(links) != 1 || len(counters) < 10 {
				t.Fatalf("%s: %v, %s: %v", device, counters, out, err)
			}
			for _, counter := range counters {
				file := filepath.Join("/sys/class/infiniband", device, "ports/1/hw_counters", counter.Name)
				text, err := os.ReadFile(file)
				if err != nil || strings.TrimSpace(string(text)) != strconv.FormatUint(counter.Value, 10) {
					t.Errorf("%s: %v, sysfs has %q: %v", device, counter, text, err)
				}
				if value, ok := links[0][counter.Name].(float64); !ok || uint64(value) != counter.Value {
					t.Errorf("%s: %v, rdma(8) has %v", device, counter, links[0][counter.Name])
				}
			}
			break
		}
		t.Logf("%s: %v", device, counters)
		if sent := counters[0]; sent.Name != "sent_pkts" || (sent.Value > 0) != (device == "rxe0") {
			t.Errorf("%s: %v", device, sent)
		}
	}
	if _, err := conn.Statistic(ctx, deviceIndex(t, conn, "rxe0"), 2); !errors.Is(err, syscall.EINVAL) || !errors.Is(err, ErrNotSupported) {
		t.Errorf("port 2: %v", err)
	}
	if _, err := conn.Statistic(ctx, 12345, 1); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("no device: %v", err)
	}
	out := running.Must(exec.Command("rdma", "system", "show").Output())(t)
	if mode, err := conn.NetnsMode(ctx); err != nil || !strings.HasPrefix(string(out), "netns "+mode+" ") {
		t.Errorf("%q, %v: rdma(8) has %q", mode, err, out)
	}
}

// A recorder keeps what a socket receives.
type recorder struct {
	socket
	datagrams [][]byte
}

func (r *recorder) Receive(b []byte) (int, error) {
	n, err := r.socket.Receive(b)
	if err == nil && n <= len(b) {
		r.datagrams = append(r.datagrams, slices.Clone(b[:n]))
	}
	return n, err
}
