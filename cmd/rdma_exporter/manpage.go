package main

import (
	"fmt"
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

// manFlag asks for the manual page. It is kingpin's, whose own page has all lines of
// --version in its title, no line that apropos(1) could show, and a backslash or a dot
// of the help as it is.
const manFlag = "--help-man"

// writeManPage writes the manual page of the program, in the macros of man(7), and
// returns the exit status. The model is that of the command serve: what flags other
// commands share with it is not listed again.
func writeManPage(std stdio, app *kingpin.ApplicationModel) int {
	page := template.Must(template.New("man").Funcs(template.FuncMap{
		"roff": roff, "version": func() string { return version.Version },
	}).Parse(manTemplate))
	if err := page.Execute(std.out, app); err != nil {
		fmt.Fprintf(std.err, "%s: error: writing the manual page: %v\n", programName, err)
		return exitFailed
	}
	return exitOK
}

// roff returns text as text lines of roff: nothing in it is taken for an escape, a
// request, or a hyphen, which would be another character than the one to type.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace("\n" + text)
	return text[1:]
}

const manTemplate = `{{define "flags"}}{{range .}}{{if not .Hidden -}}
.TP
\fB{{with .Short}}\-{{printf "%c" .}}, {{end}}\-\-{{if .IsBoolFlag}}[no\-]{{end}}{{roff .Name}}\fR{{if not .IsBoolFlag}}=\fI{{roff .FormatPlaceHolder}}\fR{{end}}
{{roff .Help}}
{{end}}{{end}}{{end -}}
.TH RDMA_EXPORTER 1 "" "{{roff .Name}} {{roff version}}" "User Commands"
.SH NAME
{{roff .Name}} \- Prometheus exporter and resource auditor for RDMA devices
.SH SYNOPSIS
.B {{roff .Name}}
[\fIcommand\fR] [\fIflags\fR]
.SH DESCRIPTION
{{roff .Help}}
.SH COMMANDS
{{range .Commands}}{{if not .Hidden -}}
.TP
.B {{roff .Name}}
{{roff .Help}}
{{end}}{{end -}}
.SH OPTIONS
These are the flags of
.BR serve .
Which of them another command has, too, its own
.B \-\-help
lists.
{{template "flags" .Flags -}}
{{range .Commands}}{{if and (not .Hidden) .Flags -}}
.SS Only of {{roff .Name}}
{{template "flags" .Flags}}{{end}}{{end -}}
.SH FILES
.TP
.I /etc/default/rdma_exporter
The flags of the service, in the variable ARGS.
.TP
.I /usr/share/rdma_exporter
Alert rules, dashboards, and examples of drop\-ins for the service.
.SH SEE ALSO
.BR ibv_devinfo (1),
.BR rdma (8)
`
