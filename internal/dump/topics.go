package dump

// A topic is a help text that is not about a single command.
type topic struct{ name, title, text string }

// pointsText explains points, in the root help and in the topic "points".
const pointsText = `A POINT names a state. The flag --at shows it instead of the newest one:

  @latest        the newest state
  @first         the oldest state that it comes from and that is kept
  1200           tick 1200 on the way to the newest state
  @-5s           the newest tick that is at least 5 seconds older than it
  @+5s           the first tick that is at least 5 seconds newer than @first
  @02:47:10      the newest tick that was committed by then: the last such time, UTC
  @2026-11-24T02:47:10Z    the same with its day; RFC 3339
  record:88      record 88 of the journal, on whatever branch
  snap:3         the state in snapshot file 3; snap:NAME: in the one of that name
  mark:NAME      the newest tick that the program gave that name
  tip:1          the end of the oldest branch; info says how many there are
  mark:NAME~10   10 ticks before it; so after every other point: @latest~10
`

// topics are printed by "ecsdump help NAME", in man pages and in docs/ECSDUMP.md.
var topics = []topic{
	{"points", "Points and ranges in time", pointsText + `
A RANGE is A..B, A.., ..B, ".." or a single point. Both ends belong to it. Ticks in it
mean those of all branches; other points mean the order in the journal, so that
record:88.. is everything that was written from record 88 on.

Any state is reached from the nearest snapshot and the ticks after it. Of a state in
a snapshot, info, schema, stats, show, arrays, ls and query read what they need: they
do not tell of damage elsewhere, ecsdump verify does.

ecsdump log lists ticks and records, ecsdump info snapshots.`},
	{"output", "Output for people and for programs", `Results go to standard output, everything else to standard error. A file or a pipe
gets them whole and plain. On a terminal

  - lines are no wider than it is, or than COLUMNS says if that is set: long
    values are folded, long rows of long lists cut, and columns that have no room
    come below; outside tables a name that is longer stays whole, to be copied;
  - there are colours, unless NO_COLOR is set; --color always or never decides
    otherwise;
  - what does not fit goes through the pager that ECSDUMP_PAGER or PAGER names,
    else less; --no-pager prints it at once;
  - what takes longer than a second shows how far it is; --progress always or
    never decides otherwise.

With --json, standard output is one JSON document, and an error one line of JSON on
standard error. The first member of each is its format, as in "ecsdump.ls/1". The
number rises when a member goes or comes to mean something else; members may be
added at any time.

With --ndjson, each line is an object, and long lists need no memory: first a line
with the format and the members before the list of the document, then a line for each
element of the list, which has no format, then, if there are any, a line with the
format and the members behind the list. A document without a list is one line:

  ecsdump log D --ndjson | jq -c 'select(.format == null) | {tick, created}'

Entities are strings, INDEXvGENERATION. Digests are 16 hexadecimal digits. Times are
RFC 3339 in UTC. Values are objects for structs, arrays, numbers, strings and
booleans for the rest; floating-point numbers that JSON has not are strings.`},
	exitTopic,
}

var exitTopic = topic{"exit", "Exit status", exitsText() + `
With --json, an error also says it in words: problem, usage, not_found, corrupt or
system.`}
