package check_test

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/strvals"
)

// settings are the options of `helm template` and `helm lint` that tests set.
type settings struct {
	namespace, showOnly string
	values              map[string]any
	version             *chartutil.KubeVersion
}

// parseArgs reads options as helm does. Values of a later option override those of an earlier one.
func parseArgs(args []string) (*settings, error) {
	version, err := chartutil.ParseKubeVersion(kubeVersion)
	if err != nil {
		return nil, err
	}
	s := &settings{values: map[string]any{}, version: version}
	flags := flag.NewFlagSet("helm", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.namespace, "namespace", "default", "")
	flags.StringVar(&s.showOnly, "show-only", "", "")
	flags.Func("values", "", func(file string) error {
		values, err := chartutil.ReadValuesFile(file)
		if err == nil {
			s.values = chartutil.MergeTables(values, s.values)
		}
		return err
	})
	for name, parse := range map[string]func(string, map[string]any) error{
		"set": strvals.ParseInto, "set-string": strvals.ParseIntoString, "set-json": strvals.ParseJSON,
	} {
		flags.Func(name, "", func(text string) error { return parse(text, s.values) })
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("helm takes no %q here", flags.Args())
	}
	return s, nil
}

// helmTemplate does what `helm template` does with the chart of a folder and no cluster: it returns
// all objects, or the error of the schema, a template or an option.
func helmTemplate(release, folder string, args ...string) (string, error) {
	s, err := parseArgs(args)
	if err != nil {
		return "", err
	}
	if err := chartutil.ValidateReleaseName(release); err != nil {
		return "", fmt.Errorf("release %q: %w", release, err)
	}
	loaded, err := loader.LoadDir(folder)
	if err != nil {
		return "", err
	}
	if err := chartutil.ProcessDependencies(loaded, s.values); err != nil {
		return "", err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *s.version
	values, err := chartutil.ToRenderValues(loaded, s.values, chartutil.ReleaseOptions{
		Name: release, Namespace: s.namespace, Revision: 1, IsInstall: true,
	}, capabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		shown := s.showOnly == "" || name == path.Join(loaded.Name(), s.showOnly)
		if content := files[name]; shown && path.Ext(name) == ".yaml" && strings.TrimSpace(content) != "" {
			fmt.Fprintf(&b, "---\n%s\n", content)
		}
	}
	return b.String(), nil
}

// helmLint does what `helm lint --strict` does: a warning is an error.
func helmLint(folder string, args ...string) error {
	s, err := parseArgs(args)
	if err != nil {
		return err
	}
	if l := lint.AllWithKubeVersion(folder, s.values, s.namespace, s.version); l.HighestSeverity >= support.WarningSev {
		return fmt.Errorf("lint %s: %v", folder, l.Messages)
	}
	return nil
}
