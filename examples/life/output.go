package main

import (
	"io"
	"strings"
	"sync"
)

// An output is a writer for several goroutines. It records the first error of a write.
type output struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// firstError returns the first error of a write.
func (o *output) firstError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// indent returns text with every line indented.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}
