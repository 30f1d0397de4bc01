package running_test

import (
	"fmt"
	"os/exec"
	"testing"

	"rdma_exporter/test/running"
)

func TestHold(t *testing.T) {
	t.Parallel()
	h := running.Hold(t, exec.Command("/bin/sh", "-c", `echo begins; echo "ready pid=$$"; while read -r line; do echo "ready $line"; done`))
	if want := fmt.Sprintf("ready pid=%d", h.PID()); h.Said != want {
		t.Errorf("it said %q, not %q", h.Said, want)
	}
	if _, err := fmt.Fprintln(h, "twice"); err != nil {
		t.Fatal(err)
	}
	if h.Ready(t); h.Said != "ready twice" {
		t.Errorf("it said %q", h.Said)
	}
	h.Release()
	h.Release()
}
