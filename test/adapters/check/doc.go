// Package check holds the exporter to what it must say and do on paper adapters: devices
// without hardware beneath the vendors' own libraries. Its tests run in the virtual
// machine: see the README of test/adapters.
package check
