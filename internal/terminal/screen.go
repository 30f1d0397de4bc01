package terminal

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Widths of a report, in columns.
const (
	// DefaultWidth is that of text that goes to no terminal.
	DefaultWidth = 80
	// A line is neither shorter nor longer than these, whatever the terminal is:
	// less holds no table, and more is hard to read.
	minWidth, maxWidth = 40, 120
)

// Screen is what is known of where text goes. The zero value is for a file that
// anybody may read: ASCII, without colour, 80 columns wide.
type Screen struct {
	// Terminal tells that it is a terminal.
	Terminal bool
	// Width is in columns; 0 stands for DefaultWidth.
	Width int
	// Colour tells that it shows colours, and that they are wanted.
	Colour bool
	// Unicode tells that it shows more than ASCII.
	Unicode bool
}

// Detect returns what is known of a file, which may be nil, from itself and from the
// environment: COLUMNS is the width if it is set, NO_COLOR and TERM=dumb forbid
// colours, and LC_ALL, LC_CTYPE or LANG tell whether text may be UTF-8. It waits for
// nothing.
func Detect(f *os.File, getenv func(string) string) Screen {
	s := Screen{Width: DefaultWidth, Unicode: isUTF8(getenv)}
	if f != nil {
		// A terminal is what has the attributes of one.
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

// isUTF8 tells whether text of the locale is UTF-8: the first variable that is set
// decides.
func isUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := getenv(name); locale != "" {
			locale = strings.ToLower(locale)
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
