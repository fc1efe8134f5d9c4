// Package browsertest has tests only: they open the page of package web in a browser, and use every
// screen of it with the mouse and with the keyboard. They are a module of their own, so that
// nothing else needs what drives a browser.
package browsertest
