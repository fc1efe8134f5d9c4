package browsertest

import (
	goruntime "runtime"
	"testing"
)

// Goroutines of a store may end their threads. This must not end the browser.
func TestBrowser_SurvivesEndOfThreads(t *testing.T) {
	p := open(t, browser(t), serve(t, store(t, 200)), 600, 400, false)
	for range 500 {
		done := make(chan bool)
		go func() {
			// The goroutine does not unlock its thread, so the thread ends with the goroutine.
			goruntime.LockOSThread()
			done <- true
		}()
		<-done
	}
	if p.text("body") == "" {
		t.Error("the page is empty")
	}
}
