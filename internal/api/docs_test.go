package api_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// TestDocs compares the page with the types. What precedes the first type is written by hand.
func TestDocs(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "reference", "status-page.md")
	now := running.Must(os.ReadFile(file))(t)
	prologue, _, _ := strings.Cut(string(now), "### "+nameOf(reflect.TypeFor[api.Status]()))
	p := &page{comments: make(map[string]string), seen: make(map[reflect.Type]bool)}
	for _, dir := range []string{".", "../state", "../health", "../health/growth", "../hardware/counters"} {
		p.read(t, dir)
	}
	p.text.WriteString(prologue)
	p.add(reflect.TypeFor[api.Status]())
	for len(p.rest) > 0 {
		next := p.rest[0]
		p.rest = p.rest[1:]
		p.add(next)
	}
	golden.Check(t, file, strings.TrimRight(p.text.String(), "\n")+"\n")
}

// page is the page in the making.
type page struct {
	text strings.Builder
	// comments are those of the fields by package, type and field.
	comments map[string]string
	seen     map[reflect.Type]bool
	rest     []reflect.Type
}

func (p *page) read(t *testing.T, dir string) {
	t.Helper()
	files := running.Must(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	for _, file := range files {
		f := running.Must(parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments))(t)
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						p.comments[f.Name.Name+"."+spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
}

// add adds the fields of a type: those without a comment of their own in a line, then the
// others.
func (p *page) add(t reflect.Type) {
	plain, commented := p.fields(t)
	fmt.Fprintf(&p.text, "### %s\n\n", nameOf(t))
	if len(plain) > 0 {
		p.text.WriteString("- " + strings.Join(plain, ", ") + "\n")
	}
	for _, line := range commented {
		p.text.WriteString("- " + line + "\n")
	}
	p.text.WriteString("\n")
}

// nameOf returns the name of a type. Two are called Device.
func nameOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[api.Status]():
		return "Top level"
	case reflect.TypeFor[state.Device]():
		return "DeviceInfo"
	default:
		return t.Name()
	}
}

func (p *page) fields(t reflect.Type) (plain, commented []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" {
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			morePlain, moreCommented := p.fields(of)
			plain, commented = append(plain, morePlain...), append(commented, moreCommented...)
			continue
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		tag = "`" + tag + "`"
		if option != "" {
			tag += "?"
		}
		tag += " " + p.typeOf(f.Type)
		if comment := p.comment(t, i); comment != "" {
			commented = append(commented, tag+": "+comment)
		} else {
			plain = append(plain, tag)
		}
	}
	return plain, commented
}

// plain returns the fields of a type without comments and structures, which needs no section.
func (p *page) plain(t reflect.Type) string {
	for i := range t.NumField() {
		of := t.Field(i).Type
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct && of != reflect.TypeFor[time.Time]() || p.comment(t, i) != "" {
			return ""
		}
	}
	fields, _ := p.fields(t)
	return strings.Join(fields, ", ")
}

func (p *page) comment(t reflect.Type, field int) string {
	return p.comments[filepath.Base(t.PkgPath())+"."+t.Name()+"."+t.Field(field).Name]
}

// typeOf returns a type in words, and has it be added if it is a struct.
func (p *page) typeOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t.Kind() == reflect.Pointer:
		return p.typeOf(t.Elem())
	case t.Kind() == reflect.Slice:
		return "list of " + p.typeOf(t.Elem())
	case t.Kind() == reflect.Struct:
		if fields := p.plain(t); fields != "" {
			return "object (" + fields + ")"
		}
		if !p.seen[t] {
			p.seen[t] = true
			p.rest = append(p.rest, t)
		}
		return fmt.Sprintf("[%s](#%s)", nameOf(t), strings.ToLower(nameOf(t)))
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Float64:
		return "number"
	default:
		return "integer"
	}
}
