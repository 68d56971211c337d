// Package test holds the tests that need real mounts: the built program serves
// directories through /dev/fuse, and the tests use them as applications do.
//
// The serving process must never touch its own mount, so every mount is a
// process of its own, built by TestMain (with the race detector if the tests
// have it). Readers that are to be killed, or that must count as different
// applications, are the test binary started again; see client_test.go.
package test
