package restrack

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/mdlayher/netlink"

	"rdma_exporter/internal/kernelsocket"
)

// notices are what Linux 6.12.95 sent when rxe7 was created on mon0, and removed as rxe8.
func notices(t testing.TB) (register, attach, unregister []byte) {
	t.Helper()
	var all [][]byte
	for _, text := range []string{
		"2c0000001c140000000000000000000008000100020000000900020072786537000000000500660000000000",
		"480000001c1400000000000000000000080001000200000009000200727865370000000008000300010000000800320008000000090033006d6f6e30000000000500660002000000",
		"2c0000001c140000000000000000000008000100020000000900020072786538000000000500660001000000",
	} {
		notice, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, notice)
	}
	return all[0], all[1], all[2]
}

// newer returns a folder of sysfs with RDMA devices, and answers as Linux 6.12 does.
func newer(t testing.TB) (sysfs string, dial func() (socket, error)) {
	t.Helper()
	sysfs = t.TempDir()
	if err := os.MkdirAll(filepath.Join(sysfs, "class/infiniband"), 0o755); err != nil {
		t.Fatal(err)
	}
	return sysfs, answers(replies(nest(attrMonitorMode, []byte{1})))
}

func answers(answer func(netlink.Message) [][]byte) func() (socket, error) {
	return func() (socket, error) {
		return &fakeSocket{answer: answer, interrupted: make(chan struct{})}, nil
	}
}

// TestWatch verifies that each notice of the kernel is reported, and each loss of some, and
// that a message that makes no sense ends the watch.
func TestWatch(t *testing.T) {
	register, attach, unregister := notices(t)
	other := build(client<<10|commandDevice, 0, nil)(netlink.Message{})
	for name, test := range map[string]struct {
		datagrams [][]byte
		want      int
		err       error
	}{
		"nothing":             {},
		"each":                {datagrams: [][]byte{register, attach, unregister}, want: 3},
		"one datagram":        {datagrams: [][]byte{slices.Concat(register, other, attach)}, want: 2},
		"of another command":  {datagrams: [][]byte{other}},
		"of another client":   {datagrams: [][]byte{build(4<<10|commandMonitor, 0, nil)(netlink.Message{})}},
		"without attributes":  {datagrams: [][]byte{build(client<<10|commandMonitor, 0, nil)(netlink.Message{})}, want: 1},
		"lost":                {datagrams: [][]byte{register, nil, nil}, want: 3},
		"cut off":             {datagrams: [][]byte{register, attach[:40]}, want: 1, err: ErrMalformed},
		"longer than allowed": {datagrams: [][]byte{make([]byte, 32769)}, err: ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			sysfs, dial := newer(t)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				s := &fakeSocket{queue: test.datagrams, interrupted: make(chan struct{})}
				got, ended := 0, make(chan error, 1)
				go func() {
					ended <- watch(ctx, sysfs, dial, func() (kernelsocket.Listener, error) { return s, nil }, func() { got++ })
				}()
				synctest.Wait()
				want := test.err
				if want == nil {
					want = context.Canceled
				}
				cancel()
				if err := <-ended; !errors.Is(err, want) {
					t.Errorf("it ended with %v, not %v", err, want)
				}
				if got != test.want || !s.closed {
					t.Errorf("%d events, want %d; closed %t", got, test.want, s.closed)
				}
			})
		})
	}
}

// TestWatchOnlyIfSupported verifies that no socket joins the group where the kernel does not say
// that it reports events, and that none is opened where no driver is loaded.
func TestWatchOnlyIfSupported(t *testing.T) {
	sysfs, supports := newer(t)
	joined := errors.New("joined")
	recorded := make(map[string]func() (socket, error))
	for _, r := range recordings(t) {
		recorded[r.name] = answers(replies(r.payloads(t, sectionName(commandSystem, 0))[0]))
	}
	for name, test := range map[string]struct {
		sysfs string
		dial  func() (socket, error)
		want  error
	}{
		"supported":     {sysfs, supports, joined},
		"Linux 6.12":    {sysfs, recorded["linux-6.12.txt"], joined},
		"Linux 6.1":     {sysfs, recorded["linux-6.1.txt"], ErrNotSupported},
		"off":           {sysfs, answers(replies(nest(attrMonitorMode, []byte{0}))), ErrNotSupported},
		"wrong size":    {sysfs, answers(replies(attribute32(attrMonitorMode, 1))), ErrMalformed},
		"refused":       {sysfs, answers(fails(syscall.EPERM)), syscall.EPERM},
		"no netlink":    {sysfs, func() (socket, error) { return nil, syscall.EPROTONOSUPPORT }, syscall.EPROTONOSUPPORT},
		"no driver":     {t.TempDir(), func() (socket, error) { t.Error("a socket is opened"); return nil, joined }, ErrNotSupported},
		"no such sysfs": {filepath.Join(sysfs, "none"), nil, fs.ErrNotExist},
	} {
		err := watch(t.Context(), test.sysfs, test.dial, func() (kernelsocket.Listener, error) { return nil, joined }, func() { t.Error("an event") })
		if !errors.Is(err, test.want) || errors.Is(err, joined) != errors.Is(test.want, joined) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

func FuzzWatch(f *testing.F) {
	register, attach, unregister := notices(f)
	f.Add(register)
	f.Add(slices.Concat(attach, unregister))
	sysfs, dial := newer(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &fakeSocket{queue: [][]byte{data, nil}, interrupted: make(chan struct{})}
		err := watch(ctx, sysfs, dial, func() (kernelsocket.Listener, error) { return s, nil }, func() {
			if len(s.queue) == 0 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) && !errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
	})
}
