// Ecsdump prints what a store or a save holds. It needs no application types and
// never changes what it reads: it takes no lock, repairs nothing, and may look at
// a directory that a running program has open.
//
//	ecsdump info STORE                what there is: state, components, snapshots, journal
//	ecsdump ls STORE                  entities with their components
//	ecsdump show STORE ENTITY         one entity, all fields; --resources: the resources
//	ecsdump schema STORE              components and resources with their layouts
//	ecsdump arrays STORE COMPONENT    its sparse, dense and data arrays as they lie
//	ecsdump log STORE [A..B]          what every tick changed
//	ecsdump diff STORE [A..B]         how two states differ, or those of two stores
//	ecsdump export STORE [A..B]       a state, or what ticks changed, as JSON, NDJSON or CSV
//	ecsdump import FILE -o OUT        a save of what export wrote
//	ecsdump history STORE ENTITY      what happened to an entity, a component or a field
//	ecsdump blame STORE ENTITY        which tick gave every field its value
//	ecsdump verify STORE              check everything
//	ecsdump query STORE [EXPR]        expressions and totals over entities
//	ecsdump bisect STORE EXPR [A..B]  the first tick at which a condition holds
//	ecsdump stats STORE [A..B]        what takes the bytes: components, ticks, files
//	ecsdump tail STORE                the newest ticks, and new ones as they come
//	ecsdump recover STORE -o OUT      write what is good of a damaged one to a new one
//	ecsdump compact STORE -o OUT      write the newest state, and little else, to a new one
//	ecsdump man -o DIR                man pages of all commands
//
// STORE is a directory kept by persist.Open or a file written by persist.Save. An
// ENTITY is written INDEXvGENERATION: 12v3.
//
// # Points in time
//
// The flag --at shows the state at another time than the newest:
//
//	@latest       the newest state
//	@first        the oldest
//	@-5s          the newest that is at least 5 seconds older than the newest state
//	@+5s          the first tick that is at least 5 seconds newer than the oldest
//	1200          tick 1200 on the way to the newest state
//	seq:88        record 88 of the journal, on whatever branch
//	snap:3        the state in snapshot file 3; snap:NAME: in the one of that name
//	mark:NAME     the newest tick that the program gave that name
//	tip:1         the end of the oldest branch; info says how many there are
//	mark:NAME~10  10 ticks before it; so after every other point: @latest~10
//
// A range for log is A..B, A.., ..B or a single point. Ticks in it mean those of
// all branches; other points mean the order in the journal.
//
// # Expressions
//
// ls --where, query and bisect take expressions over the fields of an entity:
//
//	Position.X > 3 && Health < 10
//	Label.Text contains "orc" || any(Label.Tags, # == "big")
//	has(Target) && !exists(Target.Of)
//	component("game.Unit-2").HP ?? 0
//
// The language is that of expr-lang.org. A component is its value, a tag whether the
// entity has it; entity, index, generation, tick and alive (how many entities are)
// are there too, and resources by their names. Integers count exactly, those beyond
// 63 bits only in comparisons; a float32 is the number it prints as; entities are
// text. A component that the entity lacks, or a nil pointer on the way, is nothing:
// each comparison with it is false, and so is a condition that is nothing itself,
// whatever and, or and not make of that; a value is null; ?? replaces it.
//
// # Output
//
// Results go to standard output, as tables for people. On a terminal they have
// colours (not if NO_COLOR is set; --color decides otherwise) and, if they are longer
// than it, go through the pager that PAGER names (or ECSDUMP_PAGER; not with
// --no-pager). Lines are cut to the width of the terminal, or of COLUMNS if that is
// set; what goes to a file or a pipe is whole. Everything else goes to standard
// error: what takes longer than a second shows there how far it is, if that is a
// terminal (--progress decides otherwise).
//
// With --json, standard output is one JSON document, and an error is one line of
// JSON on standard error. The first member of each says its format, as in
// "ecsdump.ls/1": the number rises when a member goes or changes its meaning, and
// members may be added at any time. With --ndjson, the elements of the document's
// list are on lines of their own; the lines before and behind them, which have a
// format, hold its other members.
//
// Entities are strings as above, digests are 16 hexadecimal digits, times are RFC
// 3339 in UTC, values are as package layout writes them.
//
// # Exit status
//
//	0  all is well
//	1  states differ, something was lost, or a problem that is no damage: a newer
//	   program wrote it
//	2  called wrongly
//	3  no such store, point in time, entity or component
//	4  damaged; what could be read was printed
//	5  the system did not let it be read
package main

import (
	"os"

	"github.com/stet-ecs/stet/internal/dump"
)

func main() { os.Exit(dump.Main()) }
