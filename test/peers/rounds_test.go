//go:build vm

package peers

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// TestRounds measures one reading of the hardware of all devices, by the child process that
// does it, from its start to its end, beside a scrape of node_exporter, which reads the same
// files in it.
func TestRounds(t *testing.T) {
	table := all.table("Hardware reading, files on the machine itself", "node_exporter")
	for _, devices := range []int{8, 64} {
		root := sysfsOf(t, devices)
		var names []string
		for i := range devices {
			names = append(names, fmt.Sprintf("mlx5_%d", i))
		}
		input, err := json.Marshal(map[string]any{
			"request":  map[string]any{"hardware": map[string]any{"devices": names}},
			"settings": map[string]any{"provider": "libibverbs", "hardware": map[string]any{"sysfs": root, "budget": time.Minute}},
		})
		if err != nil {
			t.Fatal(err)
		}
		situation := fmt.Sprintf("%d devices", devices)
		for n := range *runs {
			say(t, "%s: run %d of %d", situation, n+1, *runs)
			const rounds = 40
			theirs := serve(t, nodeExporterFile, append([]string{"--path.sysfs=" + root, withoutOwn}, nodeExporterFlags...)...)
			var ours []cost
			var p, first scrapes
			first.measure(t, theirs, rounds/4) // by then it has allocated what it needs
			for round := range rounds + 1 {
				if o := run(t, string(input), exporterFile, "hardware"); round > 0 {
					ours = append(ours, o)
				}
			}
			p.measure(t, theirs, rounds)
			theirs.stop()
			wall, cpu := milliseconds(ours)
			table.add(situation, "time", "ms", wall, median(p.times))
			table.add(situation, "CPU", "ms", cpu, p.cpuOfOne()*1e3)
		}
	}
}
