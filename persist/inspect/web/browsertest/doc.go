// Package browsertest contains only tests. They open the page of package web in a browser, and
// use all screens by mouse and keyboard. The tests are a separate module, so no other code
// depends on the browser driver.
package browsertest
