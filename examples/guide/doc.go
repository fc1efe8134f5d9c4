// Package guide tests the programs of the guide, which are below this directory.
package guide
