package security_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

const (
	root = "../.."
	// document describes the dependencies. -update writes the part between begin and end.
	document = root + "/docs/dependencies.md"
	begin    = "<!-- What follows is written by make generate. -->"
	end      = "<!-- Here ends what is written by make generate. -->"
)

// pkg is a package as printed by go list.
type pkg struct {
	ImportPath string
	Imports    []string
	Module     *module
}

// module is a module as printed by go list.
type module struct {
	Path, Version, Dir string
	Main               bool
}

// list returns the packages that go list prints.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Imports,Module", "-deps"}, args...)...)
	cmd.Dir, cmd.Stderr = root, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		running.Check(t, err)
		packages = append(packages, p)
	}
}

func exporter(t *testing.T) []pkg {
	t.Helper()
	dependOnSource(t)
	return list(t, "./cmd/rdma_exporter")
}

// tags returns all build tags of this module from the Makefile, with commas between.
func tags(t *testing.T) string {
	t.Helper()
	text := running.Must(os.ReadFile(filepath.Join(root, "Makefile")))(t)
	line := regexp.MustCompile(`(?m)^tags := (\S+)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the Makefile has no line that begins with \"tags := \"")
	}
	return string(line[1])
}

// dependOnSource makes the cached result of the test depend on the source of this module. go test
// does not notice the files that go list reads.
func dependOnSource(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err == nil && entry.IsDir() && len(name) > 2 && name[0] == '.' {
			return fs.SkipDir
		}
		if err == nil && (filepath.Ext(name) == ".go" || name == "go.mod") {
			_, err = os.Stat(path)
		}
		return err
	})
	running.Check(t, err)
}

// modules returns the modules of packages without this one, and the paths of those that this one
// imports.
func modules(packages []pkg) (of map[string]module, direct map[string]bool) {
	of, direct = make(map[string]module), make(map[string]bool)
	home := make(map[string]string)
	for _, p := range packages {
		if p.Module != nil && !p.Module.Main {
			home[p.ImportPath] = p.Module.Path
			of[p.Module.Path] = *p.Module
		}
	}
	for _, p := range packages {
		for _, imported := range p.Imports {
			if to := home[imported]; to != "" && p.Module != nil && p.Module.Main {
				direct[to] = true
			}
		}
	}
	return of, direct
}

// licence returns the SPDX expression of all licences in a module. It is an error if there is none,
// or an unknown one.
func licence(m module) (string, error) {
	name := regexp.MustCompile(`(?i)^(licen[cs]e|copying)`)
	found := make(map[string]bool)
	err := filepath.WalkDir(m.Dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "testdata":
			return fs.SkipDir
		case e.IsDir() || !name.MatchString(e.Name()) || filepath.Ext(path) == ".go":
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		in := licencesIn(string(b))
		if len(in) == 0 {
			return fmt.Errorf("%s of %s is of no licence that is known here: teach licencesIn about it, and see whether it goes with ours", e.Name(), m.Path)
		}
		for _, l := range in {
			found[l] = true
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%s has no licence", m.Path)
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " AND "), nil
}

// licencesIn returns the SPDX identifiers of the licences in a text.
func licencesIn(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	var in []string
	if strings.Contains(text, "Apache License Version 2.0") || strings.Contains(text, "Licensed under the Apache License, Version 2.0") {
		in = append(in, "Apache-2.0")
	}
	if strings.Contains(text, "Redistribution and use in source and binary forms") {
		if strings.Contains(text, "be used to endorse or promote products") {
			in = append(in, "BSD-3-Clause")
		} else {
			in = append(in, "BSD-2-Clause")
		}
	}
	if strings.Contains(text, "Permission is hereby granted, free of charge, to any person obtaining a copy") {
		in = append(in, "MIT")
	}
	return in
}

// byLicence returns a list of modules with their versions, an item for each licence.
func byLicence(t *testing.T, of map[string]module) string {
	t.Helper()
	items := make(map[string]string)
	for _, path := range slices.Sorted(maps.Keys(of)) {
		m := of[path]
		l, err := licence(m)
		if err != nil {
			t.Error(err)
		}
		items[l] += fmt.Sprintf(", `%s` %s", m.Path, m.Version)
	}
	var list strings.Builder
	for _, l := range slices.Sorted(maps.Keys(items)) {
		fmt.Fprintf(&list, "- %s: %s\n", l, strings.TrimPrefix(items[l], ", "))
	}
	return list.String()
}

// TestModules verifies that docs/dependencies.md has the version and licence of each module of the
// exporter and of the tests, and a reason for each module that the exporter imports itself.
func TestModules(t *testing.T) {
	of, direct := modules(exporter(t))
	if len(of) == 0 {
		t.Fatal("go list names no module")
	}
	tests, _ := modules(list(t, "-test", "-tags", tags(t), "./..."))
	maps.DeleteFunc(tests, func(path string, _ module) bool { return of[path].Path != "" })
	b := running.Must(os.ReadFile(document))(t)
	golden.CheckPart(t, document, begin, end, "\nIn the exporter:\n\n"+byLicence(t, of)+"\nIn tests only:\n\n"+byLicence(t, tests)+"\n")

	var explained []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(strings.SplitN(string(b), begin, 2)[0], -1) {
		explained = append(explained, m[1])
	}
	slices.Sort(explained)
	if imported := slices.Sorted(maps.Keys(direct)); !slices.Equal(explained, imported) {
		t.Errorf("%s has reasons for %q, and the exporter imports %q", document, explained, imported)
	}
}

// TestNothingElse verifies that the exporter has no package that serves the inner state of a Go
// program over HTTP. The tests of package web verify that no path leads to such pages.
func TestNothingElse(t *testing.T) {
	packages := exporter(t)
	c := 0
	for _, p := range packages {
		switch p.ImportPath {
		case "net/http/pprof", "testing", "plugin":
			t.Errorf("%s is in the exporter", p.ImportPath)
		}
		if p.Module != nil && slices.Contains(p.Imports, "C") {
			c++
			if p.ImportPath != "rdma_exporter/verbs/ibverbs" {
				t.Errorf("%s has C", p.ImportPath)
			}
		}
	}
	if c != 1 {
		t.Errorf("%d packages have C, want one", c)
	}
}

// TestLicencesIn verifies that unknown and missing licences are errors.
func TestLicencesIn(t *testing.T) {
	mpl := "Mozilla Public License Version 2.0"
	if got := licencesIn(mpl); got != nil {
		t.Errorf("%q is %q", mpl, got)
	}
	if got, err := licence(module{Path: "x", Dir: t.TempDir()}); err == nil {
		t.Errorf("without a file: %q", got)
	}
	dir := t.TempDir()
	running.Check(t, os.WriteFile(filepath.Join(dir, "COPYING"), []byte(mpl), 0o600))
	if got, err := licence(module{Path: "x", Dir: dir}); err == nil {
		t.Errorf("of an unknown one: %q", got)
	}
}
