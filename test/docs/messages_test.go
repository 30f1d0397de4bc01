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

// TestMessages makes sure that each message that the program logs has a row in the
// table, with its level, and each row a message.
func TestMessages(t *testing.T) {
	logged := messages(t)
	if len(logged) < 20 {
		t.Fatalf("only %d messages were found in the code", len(logged))
	}
	var told []string
	for _, p := range pages(t) {
		if p.path == operationsFile {
			told = toldMessages(t, p)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(logged)) {
		if !slices.Contains(told, m) {
			t.Errorf("%s: below %q there is no row that begins with %s (%s)", operationsFile, messagesTitle, m, logged[m])
		}
	}
	for i, m := range told {
		if logged[m] == "" {
			t.Errorf("%s: nothing logs %s", operationsFile, m)
		}
		if slices.Contains(told[:i], m) {
			t.Errorf("%s: %s is there twice", operationsFile, m)
		}
	}
}

// messageRow is a row: level and message, then what it means and what to do.
var messageRow = regexp.MustCompile("^\\| (debug|info|warn|error) \\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\|$")

// toldMessages returns the messages of the table, as rows begin: level and message.
func toldMessages(t *testing.T, p page) []string {
	t.Helper()
	var told []string
	for _, line := range p.section(t, messagesTitle) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| level ") {
			continue
		}
		m := messageRow.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%s: this is no row of four columns with a level and a message: %s", p.path, line)
			continue
		}
		told = append(told, row(m[1], m[2]))
	}
	return told
}

func row(level, message string) string { return fmt.Sprintf("| %s | `%s` |", level, message) }

// messages returns the messages of all calls of a logger's methods outside of tests, as
// rows begin, with where they are. A message is a literal, or made of literals, constants
// and parameters, for which callers within the package give literals.
func messages(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for dir, files := range packages(t) {
		p := newSource(files)
		for _, f := range files {
			for _, decl := range f.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(fn, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					level, expr := logging(call)
					if expr == nil {
						return true
					}
					for _, message := range p.values(expr, fn) {
						found[row(level, message)] = dir
					}
					return true
				})
			}
		}
	}
	return found
}

// logging returns the level and the message of a call of a logger; nil if it is none.
func logging(call *ast.CallExpr) (level string, message ast.Expr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
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
	if !slices.Contains([]string{"log", "logger", "Logger", "slog"}, name) {
		return "", nil
	}
	method, withContext := strings.CutSuffix(sel.Sel.Name, "Context")
	if !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method) {
		return "", nil
	}
	message = call.Args[0]
	if withContext {
		message = call.Args[1]
	}
	return strings.ToLower(method), message
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

// A source is the code of one package.
type source struct {
	constants map[string]string
	// given are the arguments of all calls, by the name of the function or method.
	given map[string][]argument
}

// An argument is one that a function gives in a call.
type argument struct {
	position int
	expr     ast.Expr
	caller   *ast.FuncDecl
}

func newSource(files []*ast.File) *source {
	s := &source{constants: make(map[string]string), given: make(map[string][]argument)}
	for _, f := range files {
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.CONST {
						for i, name := range v.Names {
							if i < len(v.Values) {
								if text, ok := literal(v.Values[i]); ok {
									s.constants[name.Name] = text
								}
							}
						}
					}
				}
			case *ast.FuncDecl:
				ast.Inspect(d, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					name := ""
					switch fun := call.Fun.(type) {
					case *ast.Ident:
						name = fun.Name
					case *ast.SelectorExpr:
						name = fun.Sel.Name
					}
					for i, expr := range call.Args {
						s.given[name] = append(s.given[name], argument{i, expr, d})
					}
					return true
				})
			}
		}
	}
	return s
}

func literal(expr ast.Expr) (string, bool) {
	l, ok := expr.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// values returns what an expression within a function can be, as far as the code says:
// nothing of what comes from outside, such as messages of libraries.
func (s *source) values(expr ast.Expr, within *ast.FuncDecl) []string {
	if text, ok := literal(expr); ok {
		return []string{text}
	}
	switch e := expr.(type) {
	case *ast.BinaryExpr:
		var all []string
		for _, left := range s.values(e.X, within) {
			for _, right := range s.values(e.Y, within) {
				all = append(all, left+right)
			}
		}
		return all
	case *ast.Ident:
		if text, ok := s.constants[e.Name]; ok {
			return []string{text}
		}
		position := 0
		for _, field := range within.Type.Params.List {
			for _, name := range field.Names {
				if name.Name == e.Name {
					return s.valuesGiven(within, position)
				}
				position++
			}
		}
	}
	return nil
}

// valuesGiven returns what callers give for a parameter.
func (s *source) valuesGiven(fn *ast.FuncDecl, position int) []string {
	var all []string
	for _, a := range s.given[fn.Name.Name] {
		if a.position == position && a.caller != fn {
			all = append(all, s.values(a.expr, a.caller)...)
		}
	}
	return all
}
