//go:build vm

package check

import (
	"os"
	"testing"

	"rdma_exporter/test/running"
	"rdma_exporter/verbs/ibverbs"
)

// TestYank takes the network device away that the adapters' ports are on, while somebody
// has them open: they go with it, and nothing waits for them. It is the last test, for
// which its file is named so: nothing is left for another one.
func TestYank(t *testing.T) {
	list := adapters(t)
	onNetwork := func(a adapter) bool {
		link := running.Must(os.ReadFile("/sys/class/infiniband/" + a.name + "/ports/1/link_layer"))(t)
		return string(link) == "Ethernet\n"
	}
	goes := map[string]bool{}
	provider := ibverbs.New(nil)
	for _, a := range list {
		goes[a.name] = onNetwork(a)
		dev := running.Must(provider.Open(a.name))(t)
		t.Cleanup(func() { _ = dev.Close() })
	}
	if out, err := output(t, "ip", "link", "del", "paper0"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, a := range list {
		running.Eventually(t, a.spec+" goes with its network device, and only then", func() bool {
			_, err := os.Stat("/sys/class/infiniband/" + a.name)
			return os.IsNotExist(err) == goes[a.name]
		})
	}
}
