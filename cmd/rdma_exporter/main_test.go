package main

import "testing"

// TestVersionOf verifies that a plain go build has a version, too.
func TestVersionOf(t *testing.T) {
	if got := versionOf("1.2.3"); got != "1.2.3" {
		t.Errorf("the version is %q, want the stamped one", got)
	}
	if got := versionOf(""); got == "" {
		t.Error("without a stamp there is no version")
	}
}
