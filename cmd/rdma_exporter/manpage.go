package main

import (
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

const manFlag = "--help-man"

// writeManPage writes the manual page with the flags of the command serve. It mends kingpin's page,
// which has several lines in its title, no line for apropos(1), and hyphens that cannot be typed.
func writeManPage(app *kingpin.Application) error {
	context, err := app.ParseContext([]string{commandServe})
	if err != nil {
		return err
	}
	template := strings.NewReplacer(
		`.TH {{.App.Name}} 1 {{.App.Version}} "{{.App.Author}}"`, `.TH RDMA_EXPORTER 1 "" "{{.App.Name}} `+version.Version+`" "User Commands"`,
		".SH \"NAME\"\n{{.App.Name}}", ".SH NAME\n{{.App.Name}} \\- Prometheus exporter and resource auditor for RDMA devices",
		"--{{.Name}}", `\-\-{{.Name}}`,
	).Replace(kingpin.ManPageTemplate)
	return app.UsageForContextWithTemplate(context, 0, template+`.SH FILES
.TP
.I /etc/default/rdma_exporter
The flags of the service, in the variable ARGS.
.TP
.I /usr/share/rdma_exporter
Alert rules, dashboards, and examples of drop\-ins for the service.
.SH SEE ALSO
.BR ibv_devinfo (1),
.BR rdma (8)
`)
}
