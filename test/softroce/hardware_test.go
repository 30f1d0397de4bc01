//go:build vm

package softroce

import (
	"encoding/json"
	"net"
	"testing"

	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/state"
)

// TestReadsHardware holds what is read of a device beside what rdma(8) and the standard
// library tell of it.
func TestReadsHardware(t *testing.T) {
	for device, want := range map[string]struct {
		state, netdev string
		gid           int // of RoCE v2 and IPv4; -1 for none
	}{
		active: {"active", activeNetdev, 1},
		down:   {"down", "veth2", -1},
	} {
		t.Run(device, func(t *testing.T) {
			h := hardware.Read(t.Context(), hardware.Options{Device: device})
			if h.Failure != "" || h.Driver != "rxe" || h.Table != "rxe" || h.Identity != (state.Adapter{NUMANode: -1}) || len(h.Ports) != 1 {
				t.Fatalf("got %+v", h)
			}
			p := h.Ports[0]
			netdev, err := net.InterfaceByName(want.netdev)
			if err != nil {
				t.Fatal(err)
			}
			if p.State != want.state || p.LinkLayer != "Ethernet" || p.Netdev != want.netdev || p.Ifindex != netdev.Index || p.MTU != netdev.MTU || p.CarrierChanges == nil || p.Rate <= 0 {
				t.Errorf("got %+v", p)
			}
			if gid := p.RoCEv2IPv4; gid == nil && want.gid >= 0 || gid != nil && *gid != want.gid {
				t.Errorf("got %+v as addresses", p.GIDs)
			}
			// Nobody uses the devices meanwhile.
			var shown []map[string]any
			if err := json.Unmarshal([]byte(output(t, "rdma", "--json", "statistic", "show", "link", device+"/1")), &shown); err != nil || len(shown) != 1 {
				t.Fatalf("rdma shows %v: %v", shown, err)
			}
			delete(shown[0], "ifname")
			delete(shown[0], "port")
			if len(shown[0]) == 0 || len(p.Counters) != len(shown[0]) {
				t.Errorf("%d counters, rdma shows %d", len(p.Counters), len(shown[0]))
			}
			for _, c := range p.Counters {
				if v, ok := shown[0][c.Name].(float64); !ok || c.Group != state.GroupHardware || float64(c.Value) != v {
					t.Errorf("%s is %d, rdma shows %v", c.Name, c.Value, shown[0][c.Name])
				}
			}
		})
	}
}
