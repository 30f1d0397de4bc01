package terminal

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Widths of a report, in columns.
const (
	// DefaultWidth is the width of text that is not for a terminal.
	DefaultWidth = 80
	// A narrower line has no room for a table, and a wider one is hard to read.
	minWidth, maxWidth = 40, 120
)

// Screen describes where text is shown. The zero value is a file: ASCII, without colour, 80
// columns wide.
type Screen struct {
	Terminal bool
	// Width is in columns. Zero means DefaultWidth.
	Width int
	// Colour is true if colours can be shown and are wanted.
	Colour bool
	// Unicode is true if characters beyond ASCII can be shown.
	Unicode bool
}

// Detect describes a file, which may be nil, by the environment: COLUMNS sets the width,
// NO_COLOR and TERM=dumb forbid colours, and LC_ALL, LC_CTYPE or LANG name the encoding. It
// does not block.
func Detect(f *os.File, getenv func(string) string) Screen {
	s := Screen{Width: DefaultWidth, Unicode: isUTF8(getenv)}
	if f != nil {
		// Only a terminal has these attributes.
		_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		s.Terminal = err == nil
	}
	if s.Terminal {
		term := getenv("TERM")
		s.Colour = getenv("NO_COLOR") == "" && term != "" && term != "dumb"
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			s.Width = int(size.Col)
		}
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	return s
}

// isUTF8 reports whether the first variable that is set names UTF-8.
func isUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return false
}

func (s Screen) width() int {
	if s.Width == 0 {
		return DefaultWidth
	}
	return min(max(s.Width, minWidth), maxWidth)
}
