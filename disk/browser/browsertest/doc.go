// Package browsertest tests package browser in tabs that are killed, and with a full storage.
package browsertest
