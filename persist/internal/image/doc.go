// Package image represents the state of a world without Go types: the registry, and the entities
// and rows of each component. Rows are bytes. Recorded ticks can be applied to an image without the
// program's types. The final state can become a typed world.
//
//	replay                       Image.Adopt; Image.Apply, which checks rows and operations
//	validate the state           Image.Unsound
//	query the state              Image.Find, Component.Find, Component.Row, Image.Digest
//	make a world                 Conversions, Image.Fill, Image.World
//
// A bare image is one to which no tick will be applied. Its rows of varying length stay in the
// pages from which they were read, and it has no lookup of rows by entity.
package image
