//go:build vm

package softroce

import (
	"encoding/json"
	"slices"
	"testing"

	"rdma_exporter/internal/hardware"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/running"
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
			if p.State != want.state || p.LinkLayer != "Ethernet" || p.Netdev != want.netdev || p.Rate <= 0 {
				t.Errorf("got %+v", p)
			}
			if gid := p.RoCEv2IPv4; gid == nil && want.gid >= 0 || gid != nil && *gid != want.gid {
				t.Errorf("got %+v as addresses", p.GIDs)
			}
			// Nobody uses the devices meanwhile.
			asRDMA(t, device, p.Counters)
			asIP(t, &p)
		})
	}
}

// asRDMA holds the counters of a port that the driver names beside what rdma(8) shows of it,
// which has to have some.
func asRDMA(t *testing.T, device string, counters []state.Counter) {
	t.Helper()
	var shown []map[string]any
	if err := json.Unmarshal([]byte(running.Command(t, "rdma", "--json", "statistic", "show", "link", device+"/1")), &shown); err != nil || len(shown) != 1 {
		t.Fatalf("rdma shows %v: %v", shown, err)
	}
	delete(shown[0], "ifname")
	delete(shown[0], "port")
	if len(shown[0]) == 0 || len(counters) != len(shown[0]) {
		t.Errorf("%d counters, rdma shows %d", len(counters), len(shown[0]))
	}
	for _, c := range counters {
		if v, ok := shown[0][c.Name].(float64); !ok || c.Group != state.GroupHardware || float64(c.Value) != v {
			t.Errorf("%s is %d, rdma shows %v", c.Name, c.Value, shown[0][c.Name])
		}
	}
	t.Logf("%s: %d counters, all as by rdma(8): %v", device, len(counters), shown[0])
}

// asIP holds what is read of a port's network device beside what ip(8) shows of it.
func asIP(t *testing.T, p *state.HardwarePort) {
	t.Helper()
	var shown []struct {
		Ifindex int      `json:"ifindex"`
		MTU     int      `json:"mtu"`
		Flags   []string `json:"flags"`
		Stats   struct {
			TX struct {
				CarrierChanges *uint64 `json:"carrier_changes"`
			} `json:"tx"`
		} `json:"stats64"`
	}
	if err := json.Unmarshal([]byte(running.Command(t, "ip", "-s", "-s", "-j", "link", "show", "dev", p.Netdev)), &shown); err != nil || len(shown) != 1 {
		t.Fatalf("ip shows %v: %v", shown, err)
	}
	ip := shown[0]
	changes := ip.Stats.TX.CarrierChanges
	if p.CarrierChanges == nil || changes == nil {
		t.Fatalf("no carrier_changes: %+v, ip shows %+v", p, ip)
	}
	up := slices.Contains(ip.Flags, "UP") && slices.Contains(ip.Flags, "LOWER_UP")
	t.Logf("%s: ifindex %d, MTU %d, carrier_changes %d, %s; ip shows %d, %d, %d, %v", p.Netdev, p.Ifindex, p.MTU, *p.CarrierChanges, p.State, ip.Ifindex, ip.MTU, *changes, ip.Flags)
	if p.Ifindex != ip.Ifindex || p.MTU != ip.MTU || *p.CarrierChanges != *changes || (p.State == "active") != up {
		t.Errorf("%s is not as ip shows it", p.Netdev)
	}
}
