// Package browsertest tests package browser in tabs that are killed, and in a storage that is full.
package browsertest
