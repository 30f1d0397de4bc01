// Package security_test holds what is told of security to what is: the modules that the
// exporter is built of with their licences, what must not be in it, and the tests that
// SECURITY.md names.
package security_test
