// Package docs_test holds the documentation to the code: each message of the log has
// its line, links lead somewhere, and flags and metrics that pages name are there.
package docs_test
