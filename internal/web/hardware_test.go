package web_test

import (
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/state"
)

// TestHardware verifies that the page shows problems of the hardware, and leaves out what is
// not known.
func TestHardware(t *testing.T) {
	t.Parallel()
	const odd = `<span class="text warning"><span aria-hidden="true">▲</span> `
	for name, c := range map[string]struct {
		change    func(*state.HardwareState)
		want, not []string
	}{
		"as it should be": {
			change: func(*state.HardwareState) {},
			want:   []string{"<td role=\"cell\" data-label=\"Link layer\">Ethernet, module 46 °C</td>", "400 Gb/s, 4 lanes</td>", "RoCE v2 over IPv4 at index 3"},
			not:    []string{odd, "PCI bottleneck", "did not go to its end"},
		},
		"slower than it could be": {
			change: func(h *state.HardwareState) {
				h.Latest.Ports[0].Rate = 100e9
				h.Latest.Identity.Link = &state.PCILink{Speed: 16e9, MaxSpeed: 32e9, Width: 8, MaxWidth: 16}
				h.Latest.Identity.Bottleneck = &state.PCILink{Address: "0000:3a:00.0", Speed: 2.5e9, MaxSpeed: 2.5e9, Width: 4, MaxWidth: 4}
				h.Latest.Identity.AER.Fatal = 1
			},
			want: []string{
				odd + "100 Gb/s of 400 Gb/s, 4 lanes</span>", odd + "16 GT/s × 8 of 32 GT/s × 16</span>", odd + "2.5 GT/s × 4, at 0000:3a:00.0</span>",
				odd + "1 correctable, 0 nonfatal, 1 fatal</span>",
			},
		},
		"down since the last reading": {
			change: func(h *state.HardwareState) { h.Links[0].Active = false },
			want:   []string{`</span> down</span> for <time datetime="2026-02-28T10:00:00Z"`},
		},
		"without addresses": {
			change: func(h *state.HardwareState) { h.Latest.Ports[0].GIDs, h.Latest.Ports[0].RoCEv2IPv4 = nil, nil },
			want:   []string{"0, no RoCE v2 over IPv4, changed 2 times"},
		},
		"refused and dropped": {
			change: func(h *state.HardwareState) {
				h.Latest.Ports[0].Refused = []state.RefusedCounters{{Group: state.GroupHardware, Errno: "EINVAL", Detail: "a restricted <function>"}}
			},
			want: []string{
				" 1 saturated or refused, 1 less than before</summary>", "The kernel refuses to read hw_counters of port 1: EINVAL: a restricted &lt;function&gt;</p>",
				"<p>out_of_sequence (hw_counters) of port 1 was less than before: 1 reset",
			},
		},
		"saturated": {
			change: func(h *state.HardwareState) {
				h.Latest.Ports[0].Counters = []state.Counter{
					{Group: state.GroupPort, Name: "port_rcv_data", Value: 256},
					{Group: state.GroupPort, Name: "link_downed", Value: 255},
					{Group: state.GroupHardware, Name: "local_ack_timeout_err"},
				}
				h.Drops = nil
			},
			want: []string{
				"<summary>Counters: 1 not zero, 1 saturated or refused</summary>", "link_downed of port 1 is saturated and no longer counts</p>",
				"<tr><td>1</td><th scope=\"row\">receive bytes</th><td>1 KiB</td><td><code>port_rcv_data</code></td></tr>",
			},
			not: []string{"local_ack_timeout_err"},
		},
		"isolated": {
			change: func(h *state.HardwareState) { h.Latest.Interrupts[1].Isolated = true },
			want:   []string{"<td>121</td><td>1 " + odd + "isolated</span></td>"},
		},
		"hanging": {
			change: func(h *state.HardwareState) {
				*h = state.HardwareState{Failures: 1, Failure: "timed out after 4s", Reading: "/sys/class/infiniband/mlx5_0/ports/1/rate", Next: apitest.Now().Add(time.Minute)}
			},
			want: []string{"Not read yet.", "was incomplete:</span> timed out after 4s; <code>/sys/class/infiniband/mlx5_0/ports/1/rate</code> did not return; next"},
			not:  []string{"<h4>Adapter</h4>", `aria-label="Ports and links"`, "Counters", "Interrupts"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := apitest.Many(1, 4)
			c.change(host.Snapshot.Devices[0].Hardware)
			body := page(t, host).Body.String()
			for _, err := range flaws(body) {
				t.Error(err)
			}
			_, body, _ = strings.Cut(body, "<h4>Identity</h4>")
			body, _, _ = strings.Cut(body, "<h4>Latency")
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("the page does not say %s", want)
				}
			}
			for _, unwanted := range c.not {
				if strings.Contains(body, unwanted) {
					t.Errorf("the page says %s", unwanted)
				}
			}
			if t.Failed() {
				t.Log(body)
			}
		})
	}
}

// TestPortsOfTheKernel verifies that the list of devices has the kernel's ports of a device that
// could not be opened.
func TestPortsOfTheKernel(t *testing.T) {
	t.Parallel()
	host := apitest.Many(1, 4)
	refused := *host.Snapshot.Devices[0].Last
	refused.Info = nil
	host.Snapshot.Devices[0].Last = &refused
	listed := func() string {
		_, body, _ := strings.Cut(page(t, host).Body.String(), `data-label="Ports">`)
		cell, _, _ := strings.Cut(body, "</td>")
		return cell
	}
	if cell := listed(); !strings.Contains(cell, `<span class="port">1: `) || !strings.Contains(cell, "</span> active</span>") {
		t.Errorf("read, but not opened: %s", cell)
	}
	host.Snapshot.Devices[0].Hardware = nil
	if cell := listed(); cell != "not known" {
		t.Errorf("neither read nor opened: %s", cell)
	}
}
