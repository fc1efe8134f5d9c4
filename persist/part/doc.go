// Package part saves and loads some entities of a world. Examples are a level, a template, the area
// sent to a new player, or an entity that moves to another world.
//
//	take some entities                       Of; Options
//	write them                               Part.Save, Part.SaveTo
//	read them again, or a whole save         Load, LoadFrom
//	create copies of them in a world         Part.Merge; MergeOptions
//	find the copies                          Merged.Entities, Merged.Of, Merged.Cleared
//	handle references out of the part        MergeOptions.Outside; Outside.Keep, Clear, Refuse
//	inspect a part before it is merged       Part.World, Part.Entities
//
// A part is written as a save of a world that has only the entities of the part, in their order.
// Every reader of saves can read it. The save also has two components of this package. An entity
// with "part.origin" belongs to the part; the component has its ID in the original world. An entity
// with "part.outside" does not belong to the part. It stands for an entity outside the part that a
// component of the part refers to.
//
// For example, a part has a cart, its wheel and its rope. The rope refers to a fourth entity, which
// is outside the part. The save has these entities:
//
//	entity   ID in the original world   components
//	0v1      7v2                        Cart, part.origin
//	1v1      9v1                        Wheel{Of: 0v1}, part.origin
//	2v1      4v1                        Rope{To: 3v1}, part.origin
//	3v1      1v5                        part.outside
//
// docs/PARTS.md shows what games do with it.
package part
