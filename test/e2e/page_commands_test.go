package e2e_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/links"
	"rdma_exporter/test/running"
)

var (
	// ofPage is a line of a page that runs the exporter once, on devices: in a shell, by
	// cron, or by systemd.
	ofPage = regexp.MustCompile(`^(?:\$ |\*/10 \* \* \* \* root |ExecStart=/usr/bin/)?((?:echo '[^']*' \| )?rdma_exporter (?:audit|ceiling|contract) ?.*)$`)
	// deviceOfPage is the device that such a line names, and outputOfPage the file.
	deviceOfPage = regexp.MustCompile(`--device=rxe[01]`)
	outputOfPage = regexp.MustCompile(`--output="?/[^ ]*/([a-z.-]+)`)
)

// TestPageCommands runs the commands of README and guides that look at devices once, on
// simulated ones. Those that read the children's input from nowhere are left out.
func TestPageCommands(t *testing.T) {
	t.Parallel()
	running.DependOn(t, binary)
	root := running.Must(filepath.Abs("../.."))(t)
	// The command ceiling refuses devices that are in use, as the built-in ones are.
	profile := running.File(t, "idle.yaml", smallDevice(idle))
	config := running.File(t, "config.yaml", "probe:\n  cq: {large: {entries: 8192}}\n")
	folder := t.TempDir()
	var commands []string
	for path, text := range links.Pages(t, root) {
		if path != "README.md" && !strings.HasPrefix(path, "docs/") || path == "docs/tutorial.md" {
			continue
		}
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(b[2]) {
				m := ofPage.FindStringSubmatch(strings.TrimSpace(line))
				if m == nil || strings.ContainsAny(m[1], `<\`) {
					continue
				}
				command := strings.ReplaceAll(m[1], "/etc/rdma_exporter.yml", config)
				command = outputOfPage.ReplaceAllString(command, "--output="+folder+"/$1")
				if !strings.Contains(command, "simulated") {
					command += " --provider=simulated"
				}
				// Simulated devices have names of their own.
				device := "--device=sim_rxe0"
				if strings.Contains(command, "rdma_exporter ceiling ") {
					command += " --simulated.profile=" + profile
					device = "--device=sim0"
				}
				commands = append(commands, deviceOfPage.ReplaceAllString(command, device))
			}
		}
	}
	slices.Sort(commands)
	commands = slices.Compact(commands)
	if len(commands) < 5 {
		t.Errorf("only these commands were found: %q", commands)
	}
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", command)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if _, file, found := strings.Cut(command, "--output="); found {
				file, _, _ = strings.Cut(file, " ")
				report, err := os.ReadFile(file)
				if err != nil {
					t.Error(err)
				}
				out = append(out, report...)
			}
			// 1 says that something is wrong with a device, as it is with some.
			var ended *exec.ExitError
			if err != nil && (!errors.As(err, &ended) || ended.ExitCode() != 1) || len(out) == 0 || strings.Contains(string(out), "error:") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
