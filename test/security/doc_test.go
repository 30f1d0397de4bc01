// Package security_test compares the statements about security with the code: the modules that the
// exporter is built of with their licences, what must not be in it, and the tests that
// SECURITY.md names.
package security_test
