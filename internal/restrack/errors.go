package restrack

import (
	"errors"
	"fmt"
)

// ErrInterrupted is matched by the error of a dump during which, as the kernel
// says (NLM_F_DUMP_INTR), the table changed: objects that were visited may miss
// some, or have some twice. The dump went on to its end.
var ErrInterrupted = errors.New("the table changed while it was read")

// ErrMalformed is matched by every [MessageError].
var ErrMalformed = errors.New("malformed message")

// ErrNotSupported is matched by the errors of requests that the kernel does not
// know: it is too old for that table. The kernel's errno is matched, too:
// EOPNOTSUPP, or EINVAL for a device that exists. [Conn.Statistic] tells what else
// the latter means there.
var ErrNotSupported = errors.New("not supported by this kernel")

// A MessageError is a message from the kernel that cannot be what it should be.
type MessageError struct {
	Command string // what was asked, as RES_QP_GET
	Message int    // which of its replies, from 1; 0 where there was only one to decode
	Err     error  // what is wrong, and with which attribute
}

// Error names the command, the message and what is wrong with it.
func (e *MessageError) Error() string {
	if e.Message == 0 {
		return fmt.Sprintf("%s: malformed message: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("%s: malformed message %d: %v", e.Command, e.Message, e.Err)
}

// Unwrap returns what is wrong.
func (e *MessageError) Unwrap() error { return e.Err }

// Is makes [ErrMalformed] match.
func (e *MessageError) Is(target error) bool { return target == ErrMalformed }
