// Package terminal says what is known of the host's devices as text, for people in
// front of a terminal and for mails and logs, and shows how an audit gets on.
//
// What comes from devices, drivers and other processes reaches the terminal free of
// control characters and of whatever else could steer it.
package terminal
