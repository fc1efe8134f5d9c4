// Package browsertest only contains tests. They open the page of package web in a browser, and use
// all of its screens with mouse and keyboard. They are a separate module, so that no other code
// depends on the browser driver.
package browsertest
