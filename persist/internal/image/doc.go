// Package image has the state of a world without Go types: the registry, and for each
// component its entities and rows, which are bytes. Ticks are applied to it, whoever wrote
// them, and only its end becomes a typed world.
//
//	replay                       Image.Adopt; Image.Apply, which compares rows and operations
//	is the state a sound one     Image.Unsound
//	ask it                       Image.Find, Component.Find, Component.Row, Image.Digest
//	make a world of it           Conversions, Image.Fill, Image.World
//
// A bare image is one that no tick will be applied to: rows that vary in length stay in
// the pages they were read from, and nothing finds a row by its entity.
package image
