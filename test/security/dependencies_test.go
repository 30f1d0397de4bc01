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
)

const (
	root = "../.."
	// document tells of the dependencies, and begin and end are around the part of it
	// that is written by -update.
	document = root + "/docs/dependencies.md"
	begin    = "<!-- What follows is written by make generate. -->"
	end      = "<!-- Here ends what is written by make generate. -->"
)

// pkg is a package as go list tells of it.
type pkg struct {
	ImportPath string
	Imports    []string
	Module     *module
}

// module is a module as go list tells of it.
type module struct {
	Path, Version, Dir string
	Main               bool
}

// list returns the packages that go list names.
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
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// exporter returns the packages that the exporter is built of.
func exporter(t *testing.T) []pkg {
	t.Helper()
	dependOnSource(t)
	return list(t, "./cmd/rdma_exporter")
}

// tags returns all build tags of this module, as make lint has them, with commas between.
func tags(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^tags := (\S+)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the Makefile has no line that begins with \"tags := \"")
	}
	return string(line[1])
}

// dependOnSource makes the test's result depend on the source of this module. go test
// keeps a result until something changes that the test has looked at, and what go list
// looks at is none of that.
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
	if err != nil {
		t.Fatal(err)
	}
}

// modules returns the modules of packages, save this one, and by whom each is imported.
func modules(packages []pkg) (of map[string]module, importers map[string][]string) {
	of, importers = make(map[string]module), make(map[string][]string)
	home := make(map[string]string)
	for _, p := range packages {
		if p.Module != nil {
			home[p.ImportPath] = p.Module.Path
			if !p.Module.Main {
				of[p.Module.Path] = *p.Module
			}
		}
	}
	for _, p := range packages {
		for _, imported := range p.Imports {
			to := home[imported]
			if from := home[p.ImportPath]; of[to].Path != "" && from != to && from != "" && !slices.Contains(importers[to], from) {
				importers[to] = append(importers[to], from)
			}
		}
	}
	for _, froms := range importers {
		slices.Sort(froms)
	}
	return of, importers
}

// licence returns the SPDX expression of the licences that a module comes with, those
// of what it has taken in from elsewhere too. An error tells that there is none, or one
// that is not known here.
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

// own is this module in the column of importers.
const own = "rdma_exporter"

// TestModules makes sure that docs/dependencies.md has each module that the exporter is
// built of, with its version, its licence and who imports it, and says of each that this
// module imports itself why; and of those that only tests use.
func TestModules(t *testing.T) {
	of, importers := modules(exporter(t))
	if len(of) == 0 {
		t.Fatal("go list names no module")
	}
	var table strings.Builder
	row := func(m module, of string) {
		l, err := licence(m)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m.Path, m.Version, l, of)
	}
	table.WriteString("| module in the exporter | version | licence | imported by |\n|---|---|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(of)) {
		from := slices.Clone(importers[path])
		for i, f := range from {
			if f == own {
				f = "the exporter itself"
			}
			from[i] = strings.TrimPrefix(f, "github.com/")
		}
		row(of[path], strings.Join(from, ", "))
	}
	tests, _ := modules(list(t, "-test", "-tags", tags(t), "./..."))
	table.WriteString("\n| module of tests only | version | licence | |\n|---|---|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(tests)) {
		if _, ok := of[path]; !ok {
			row(tests[path], "")
		}
	}

	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckPart(t, document, begin, end, "\n"+table.String()+"\n")

	// Each dependency of one's own has its reason, and none that has gone has one.
	var told, direct []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(strings.SplitN(string(b), begin, 2)[0], -1) {
		told = append(told, m[1])
	}
	for path := range of {
		if slices.Contains(importers[path], own) {
			direct = append(direct, path)
		}
	}
	slices.Sort(told)
	slices.Sort(direct)
	if !slices.Equal(told, direct) {
		t.Errorf("%s has reasons for %q, and the exporter imports %q", document, told, direct)
	}
}

// TestNothingElse makes sure that what could be asked over HTTP for the inner state of a
// Go program is not in the exporter, or not reachable. That no path leads there is told
// by the tests of package web.
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
		// These register themselves with the default multiplexer of package http, which
		// serves nobody.
		if slices.Contains([]string{"expvar", "golang.org/x/net/trace"}, p.ImportPath) {
			t.Logf("%s is in the exporter", p.ImportPath)
		}
	}
	if c != 1 {
		t.Errorf("%d packages have C, want one", c)
	}
}

// TestLicencesIn makes sure that a licence is told from others.
func TestLicencesIn(t *testing.T) {
	mpl := "Mozilla Public License Version 2.0"
	if got := licencesIn(mpl); got != nil {
		t.Errorf("%q is %q", mpl, got)
	}
	if got, err := licence(module{Path: "x", Dir: t.TempDir()}); err == nil {
		t.Errorf("without a file: %q", got)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "COPYING"), []byte(mpl), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := licence(module{Path: "x", Dir: dir}); err == nil {
		t.Errorf("of an unknown one: %q", got)
	}
}
