//go:build vm

package path

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// The addresses of the devices rxa and rxb. Their GID of RoCE v2 has index 1.
const addressA, addressB = "10.99.0.1", "10.99.0.2"

// Rules for [drop], which select RoCE packets by direction. More conditions can follow:
// "meta length > 500" selects by the length of the IP packet in bytes. oneFlow selects the UDP source
// port of the first packet, which is that of one queue pair: the set one has no room for more.
const (
	anyRoCE = "udp dport 4791"
	aToB    = "iifname pa " + anyRoCE
	bToA    = "iifname pb " + anyRoCE
	oneFlow = aToB + " add @one { udp sport }"
)

// newBed makes the devices rxa on va and rxb on vb. The peers of va and vb, pa and pb, are ports
// of the bridge br0. It waits until both devices are active. The bed ends with the test.
func newBed(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		// Errors are ignored, since a link may not have been made. The rxe devices go first: the
		// kernel removes that of a deleted link later.
		for _, of := range []string{"rdma link del rxa", "rdma link del rxb", "ip link del va", "ip link del vb", "ip link del br0"} {
			command := strings.Fields(of)
			_ = exec.Command(command[0], command[1:]...).Run()
		}
		set(t, "all", "arp_ignore", "0")
	})
	// br0 would answer for both addresses, since they are local.
	set(t, "all", "arp_ignore", "1")
	running.Command(t, "ip", "link", "add", "br0", "type", "bridge")
	running.Command(t, "ip", "link", "set", "br0", "up")
	for end, address := range map[string]string{"a": addressA, "b": addressB} {
		netdev, port := "v"+end, "p"+end
		running.Command(t, "ip", "link", "add", netdev, "address", "02:00:00:00:02:0"+end, "type", "veth", "peer", "name", port)
		// Packets come from an address of this machine.
		set(t, netdev, "accept_local", "1")
		set(t, netdev, "rp_filter", "0")
		running.Command(t, "ip", "link", "set", port, "master", "br0", "up")
		running.Command(t, "ip", "address", "add", address+"/24", "dev", netdev)
		running.Command(t, "ip", "link", "set", netdev, "up")
		running.Command(t, "rdma", "link", "add", "rx"+end, "type", "rxe", "netdev", netdev)
	}
	awaitBed(t)
}

// set writes a setting of IPv4 of a network device, or of all.
func set(t testing.TB, netdev, setting, value string) {
	t.Helper()
	running.Check(t, os.WriteFile("/proc/sys/net/ipv4/conf/"+netdev+"/"+setting, []byte(value), 0o644))
}

// awaitBed waits until the ports of the bridge forward, and the devices are active with their GIDs.
func awaitBed(t testing.TB) {
	t.Helper()
	for file, want := range map[string]string{
		"net/pa/brport/state": "3", "net/pb/brport/state": "3", // BR_STATE_FORWARDING
		"infiniband/rxa/ports/1/state": "ACTIVE", "infiniband/rxb/ports/1/state": "ACTIVE",
		"infiniband/rxa/ports/1/gids/1": "ffff:0a63:0001", "infiniband/rxb/ports/1/gids/1": "ffff:0a63:0002",
	} {
		running.Eventually(t, file+" is "+want, func() bool {
			text, _ := os.ReadFile("/sys/class/" + file)
			return strings.HasSuffix(strings.TrimSpace(string(text)), want)
		})
	}
}

// drop drops packets in the bridge, where the sender cannot notice it. A sender whose own egress
// drops them retries forever. The rule is an expression of nft, such as aToB. The drop ends with
// undo, at the latest with the test.
func drop(t *testing.T, rule string) (undo func()) {
	t.Helper()
	table := "drop" + rand.Text()
	running.Command(t, "nft", fmt.Sprintf("table bridge %s { set one { type inet_service; size 1; flags dynamic; }; chain forward { type filter hook forward priority 0; %s counter drop; }; }", table, rule))
	return undone(t, func() { running.Command(t, "nft", "delete", "table", "bridge", table) })
}

// dropped reports whether a rule of drop, in force now, has dropped a packet.
func dropped(t *testing.T) bool {
	t.Helper()
	return regexp.MustCompile("counter packets [1-9]").MatchString(running.Command(t, "nft", "list", "ruleset"))
}

// linkDown sets va, vb, pa or pb down until undo. With pa or pb, the device on the other end of the
// link loses its carrier.
func linkDown(t *testing.T, name string) (undo func()) {
	t.Helper()
	running.Command(t, "ip", "link", "set", name, "down")
	return undone(t, func() {
		running.Command(t, "ip", "link", "set", name, "up")
		awaitBed(t)
	})
}

// noARP leaves ARP requests unanswered until undo. It also forgets the neighbours, since the kernel
// does not ask for one that it knows.
func noARP(t *testing.T) (undo func()) {
	t.Helper()
	answer := drop(t, "ether type arp")
	forget := func() {
		for _, netdev := range []string{"va", "vb"} {
			running.Command(t, "ip", "neigh", "flush", "dev", netdev)
		}
	}
	forget()
	return undone(t, func() {
		answer()
		forget() // that they were unreachable
	})
}

// undone returns a function that does something once, at the latest at the end of the test.
func undone(t *testing.T, do func()) func() {
	done := false
	undo := func() {
		if !done {
			done = true
			do()
		}
	}
	t.Cleanup(undo)
	return undo
}

// serve starts ibv_ud_pingpong at rxa, and returns when it listens.
func serve(t *testing.T, size int) *running.Process {
	t.Helper()
	p := pingpong(t, "rxa", size)
	running.Eventually(t, p.Name+" listens", func() bool {
		p.MustRun(t)
		table := running.Must(os.ReadFile("/proc/net/tcp"))(t)
		return strings.Contains(string(table), ":4853 00000000:0000 0A ") // port 18515, listening
	})
	return p
}

// pingpong starts ibv_ud_pingpong, which answers each message of a size in bytes. One that is lost
// makes it wait forever.
func pingpong(t *testing.T, device string, size int, server ...string) *running.Process {
	t.Helper()
	args := []string{"-d", device, "-g", "1", "-e", "-n", "20", "-s", strconv.Itoa(size)}
	return running.Launch(t, "ibv_ud_pingpong at "+device, "/usr/bin/ibv_ud_pingpong", append(args, server...)...)
}

// passes makes sure that messages of a size in bytes pass between rxa and rxb.
func passes(t *testing.T, size int) {
	t.Helper()
	server := serve(t, size)
	client := pingpong(t, "rxb", size, addressA)
	for _, p := range []*running.Process{client, server} {
		running.Eventually(t, p.Name+" has ended", func() bool { return hasEnded(p) })
		if err := p.Err(); err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
	}
}

func hasEnded(p *running.Process) bool {
	select {
	case <-p.Ended():
		return true
	default:
		return false
	}
}

// TestBed verifies that the bridge joins the devices, that each fault stops what it should and
// nothing else, and that it can be undone.
func TestBed(t *testing.T) {
	newBed(t)
	passes(t, 64)
	rule := func(rule string) func(*testing.T) func() {
		return func(t *testing.T) func() { return drop(t, rule) }
	}
	for _, test := range []struct {
		name  string
		fault func(*testing.T) (undo func())
		// small is true if messages of 64 bytes pass with the fault. Those of 1,024 do not.
		small bool
		// refused is what the server says if it cannot even address the client. Empty if messages
		// are lost.
		refused string
	}{
		{"a to b", rule(aToB), false, ""},
		{"b to a", rule(bToA), false, ""},
		{"any", rule(anyRoCE), false, ""},
		{"long", rule(aToB + " meta length > 500"), true, ""},
		{"flow", rule(oneFlow), true, ""},
		{"ARP", noARP, false, "Failed to create AH"},
		{"link", func(t *testing.T) func() { return linkDown(t, "va") }, false, "Failed to create AH"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := serve(t, 1024)
			undo := test.fault(t)
			client := pingpong(t, "rxb", 1024, addressA)
			if test.refused == "" {
				running.Eventually(t, "a message is dropped", func() bool {
					client.MustRun(t)
					server.MustRun(t)
					return dropped(t)
				})
			} else {
				running.Eventually(t, "both have ended", func() bool { return hasEnded(server) && hasEnded(client) })
				if server.Err() == nil || client.Err() == nil || !strings.Contains(server.Log.String(), test.refused) {
					t.Errorf("%v and %v, want both to fail, and %q", server.Err(), client.Err(), test.refused)
				}
			}
			server.Stop(t)
			client.Stop(t)
			if test.small {
				passes(t, 64)
			}
			undo()
			passes(t, 1024)
		})
	}
}
