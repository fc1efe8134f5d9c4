// Package play runs the games of the guide, in a terminal or in a browser.
//
// A game describes itself by a [Program], and calls [Run]:
//
//	func main() {
//		play.Run(play.Program{Title: "Coins", Rate: 6, New: newGame})
//	}
//
// The function newGame returns a [Game]: a world, and the functions that run and draw a tick.
//
// # Terminal
//
// Run plays the game until the player presses q, or k, which kills the process. If Program.Rate is
// 0, or if the input is not a terminal, Run prints some frames instead. These flags select what it
// prints:
//
//	-ticks N    run N ticks, print a frame after each of them, and end
//	-keys KEYS  press these keys, one in each tick: "right*5 up space"
//
// Each parameter of the program is a flag too. The digits 1 to 9 are the keys of the actions.
//
// # Browser
//
// A program for GOOS=js calls the function stetReady of the page. The argument is an object with
// these functions:
//
//	title            a text, not a function
//	rate             ticks in a second, not a function
//	params()         JSON: [{"name", "value", "min", "max", "step"}]
//	set(name, value) sets a parameter; it takes effect at the next restart
//	restart()        begins the game again
//	step(keys)       runs a tick; keys is a text such as "left space"
//	tick()           the current tick
//	oldest()         the oldest tick for seek
//	newest()         the newest tick for seek
//	seek(tick)       goes to a tick
//	view()           the state as text
//	actions()        JSON: the names of the actions
//	act(name)        runs an action
//
// The functions set, restart, step, seek and act return the text of an error, or "".
package play
