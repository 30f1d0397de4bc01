package main

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
)

// TestMain lets the test binary be the child of the command ceiling: it becomes a shell with
// the script that it reads. A program that a test writes could be "text file busy", since a
// child that another test starts then may have it open.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != commandClimb {
		os.Exit(m.Run())
	}
	script, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = syscall.Exec("/bin/sh", []string{"sh", "-c", string(script)}, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(exitFailed)
}

// TestVersionOf makes sure that a program that nobody stamped has a version, too.
func TestVersionOf(t *testing.T) {
	if got := versionOf("1.2.3"); got != "1.2.3" {
		t.Errorf("the version is %q, want the stamped one", got)
	}
	if got := versionOf(""); got == "" {
		t.Error("without a stamp there is no version")
	}
}
