// Package windowtest plays the game in a browser and in a window, as a player does.
package windowtest
