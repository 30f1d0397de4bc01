//go:build image

package image

import (
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// inside runs a command with the file system of the image as its root, which is
// read-only, with the kernel's /proc, as the image's user and without any capability.
const inside = `
mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount --bind /proc "$0/proc" &&
cd "$0" && exec chroot --userspec="$1" --groups= . "${@:2}"`

// command returns a command that runs the image's program with arguments.
func command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("these tests change their root, which needs root")
	}
	a := read(t)
	all := append([]string{"--mount", "--propagation=private", "bash", "-c", inside, built(t, "rootfs"), a.Config.User}, a.Config.Entrypoint...)
	cmd := exec.CommandContext(ctx, "unshare", append(all, args...)...)
	cmd.Env = a.Config.Env
	return cmd
}

func TestImageVersion(t *testing.T) {
	out, err := command(t.Context(), t, "--version").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	revision := read(t).Config.Labels["org.opencontainers.image.revision"]
	if want := "rdma_exporter, version " + version(t) + " (branch: , revision: " + revision + ")\n"; !strings.HasPrefix(string(out), want) {
		t.Errorf("it says %q, want %q", out, want)
	}
}

func TestImageRuns(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := command(ctx, t, "--provider=simulated", "--web.listen-address=127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	log := running.Must(cmd.StderrPipe())(t)
	running.Check(t, cmd.Start())
	address, said := listening(log)
	if address == "" {
		t.Fatalf("it ended without listening: %v\n%s", cmd.Wait(), said)
	}
	rest := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(log)
		rest <- string(text)
	}()

	for _, args := range [][]string{{"healthcheck", "--url=http://" + address}, {"healthcheck", "--ready", "--url=http://" + address}} {
		for {
			out, err := command(ctx, t, append(args, "--timeout=2m")...).CombinedOutput()
			if err == nil {
				t.Logf("%s", out)
				break
			}
			if ctx.Err() != nil || args[1] != "--ready" {
				t.Fatalf("%q: %v: %s", args, err, out)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	status := running.Must(os.ReadFile("/proc/" + pid(t, cmd) + "/status"))(t)
	for _, line := range []string{`Uid:\t10879\t10879\t10879\t10879`, `Gid:\t10879\t10879\t10879\t10879`, `Groups:\t ?`, `CapPrm:\t0+`, `CapEff:\t0+`} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).Match(status) {
			t.Errorf("its status is not %s:\n%s", line, status)
		}
	}
	page := string(running.Must(running.Get(nil, "http://"+address+"/metrics"))(t))
	for _, device := range []string{"sim_rxe0", "sim_siw0", "sim_ib0"} {
		if want := `rdma_probe_success{device="` + device + `",probe="cq"} 1`; !strings.Contains(page, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}

	cancel() // which is SIGTERM
	text := <-rest
	_ = cmd.Wait() // the error is that of the context
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ended with status %d:\n%s%s", code, said, text)
	}
	if out, err := command(t.Context(), t, "healthcheck", "--url=http://"+address).CombinedOutput(); err == nil {
		t.Errorf("healthy when it has ended: %s", out)
	}
}

// pid is the process of a command: each of those before it became the next one.
func pid(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	id := strconv.Itoa(cmd.Process.Pid)
	exe, err := os.Readlink("/proc/" + id + "/exe")
	if err != nil || !strings.HasSuffix(exe, "/usr/bin/rdma_exporter") {
		t.Fatalf("the process runs %q (%v)", exe, err)
	}
	return id
}

// listening reads a log until it tells where the exporter listens, and returns that
// and what it has read.
func listening(log io.Reader) (address, said string) {
	where := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	var text strings.Builder
	for buffer := make([]byte, 4096); ; {
		n, err := log.Read(buffer)
		text.Write(buffer[:n])
		if m := where.FindStringSubmatch(text.String()); m != nil {
			return m[1], text.String()
		}
		if err != nil {
			return "", text.String()
		}
	}
}
