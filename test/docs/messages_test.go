package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	operationsFile = "docs/operations.md"
	messagesTitle  = "## What the log says"
)

// TestMessages verifies that each literal log message has a row in the table, with its
// level, and that the program has the message of each row.
func TestMessages(t *testing.T) {
	logged, literals := messages(t)
	if len(logged) < 20 {
		t.Fatalf("only %d messages were found in the code", len(logged))
	}
	rows := make(map[string]bool)
	for _, p := range pages(t) {
		if p.path != operationsFile {
			continue
		}
		for _, line := range p.section(t, messagesTitle) {
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| level ") {
				continue
			}
			m := messageRow.FindStringSubmatch(line)
			switch {
			case m == nil:
				t.Errorf("%s: this is no row of four columns with a level and a message: %s", p.path, line)
				continue
			case rows[row(m[1], m[2])]:
				t.Errorf("%s: %s is there twice", operationsFile, m[2])
			case logged[row(m[1], m[2])] == "" && !made(m[2], literals):
				t.Errorf("%s: nothing logs %s", operationsFile, m[2])
			}
			rows[row(m[1], m[2])] = true
		}
	}
	for _, m := range slices.Sorted(maps.Keys(logged)) {
		if !rows[m] {
			t.Errorf("%s: below %q there is no row that begins with %s (%s)", operationsFile, messagesTitle, m, logged[m])
		}
	}
}

// messageRow is a row: level and message, then what it means and what to do.
var messageRow = regexp.MustCompile("^\\| (debug|info|warn|error) \\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\|$")

// made reports whether a message is a literal, or the sum of two.
func made(message string, literals map[string]bool) bool {
	for i := range message {
		if literals[message[i:]] && (i == 0 || literals[message[:i]]) {
			return true
		}
	}
	return false
}

func row(level, message string) string { return fmt.Sprintf("| %s | `%s` |", level, message) }

// messages returns the literal messages of all calls of a logger outside of tests, as rows
// begin, with their directory. literals has all strings of the program.
func messages(t *testing.T) (found map[string]string, literals map[string]bool) {
	t.Helper()
	found, literals = make(map[string]string), make(map[string]bool)
	for dir, files := range packages(t) {
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil {
						literals[text] = true
					}
				case *ast.CallExpr:
					level, message := logging(n)
					if literal, ok := message.(*ast.BasicLit); ok {
						text, _ := strconv.Unquote(literal.Value)
						found[row(level, text)] = dir
					}
				}
				return true
			})
		}
	}
	return found, literals
}

// logging returns the level and the message of a call of a logger. The message is nil if
// it is another call.
func logging(call *ast.CallExpr) (level string, message ast.Expr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", nil
	}
	// The logger is a variable or a field of one of these names.
	name := ""
	switch x := sel.X.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	method, withContext := strings.CutSuffix(sel.Sel.Name, "Context")
	if !slices.Contains([]string{"log", "logger", "Logger", "slog"}, name) || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method) {
		return "", nil
	}
	if withContext {
		return strings.ToLower(method), call.Args[1]
	}
	return strings.ToLower(method), call.Args[0]
}

// packages parses the program, by folder.
func packages(t *testing.T) map[string][]*ast.File {
	t.Helper()
	all := make(map[string][]*ast.File)
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "test", "deploy"}, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		dir := filepath.Dir(path)
		all[dir] = append(all[dir], f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
