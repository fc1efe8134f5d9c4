// Package part saves and loads some entities of a world: a level, a template, what a
// player who joins is sent, whoever goes from one world to another.
//
//	world ──Of──▶ Part ──Save, SaveTo──▶ file, bytes ──Load, LoadFrom──▶ Part ──Merge──▶ world that is not empty
//	                └───────────────────────────Merge──────────────────────────────────────▶
//
//	take some entities                       Of; Options
//	write them                               Part.Save, Part.SaveFS, Part.SaveTo
//	read them again, or a whole save         Load, LoadFS, LoadFrom
//	give a world new ones like them          Part.Merge; MergeOptions
//	what became of which                     Merged.Entities, Merged.Of, Merged.Cleared
//	references to entities that stay behind  MergeOptions.Outside; Outside.Keep, Clear, Refuse
//	look into it before it is merged         Part.World, Part.Entities
//
// What is written is a save like any other, of a world that has the entities of the part
// in the order in which they were named: every reader of saves reads it. Two components
// say what a save does not. An entity with "part.origin" is one of the part, and was called
// so where it was taken from. One with "part.outside" is none: it stands for an entity that stayed
// behind, and to which components of the part refer.
//
//	entity  components                          in the world that it was taken from
//	0v1     Cart,  part.origin                  7v2
//	1v1     Wheel{Of: 0v1},  part.origin        9v1, whose Of was 7v2
//	2v1     Rope{To: 3v1},  part.origin         4v1, whose To was 1v5,
//	3v1     part.outside                        which is no part
//
// docs/PARTS.md shows what games do with it.
package part
