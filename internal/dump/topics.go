package dump

// A topic is a help text that is not about a single command.
type topic struct{ name, title, text string }

// pointsText explains points, in the root help and in the topic "points".
const pointsText = `A POINT names a state. The flag --at selects it; the default is the newest state:

  @latest        the newest state
  @first         the oldest stored state that leads to the newest one
  1200           tick 1200, of the ticks that lead to the newest state
  @-5s           the newest tick that is at least 5 seconds older than @latest
  @+5s           the first tick that is at least 5 seconds newer than @first
  @02:47:10      the newest tick that was committed by the last such time of day, in UTC
  @2026-11-24T02:47:10Z    the newest tick that was committed by this time, in RFC 3339
  record:88      record 88 of the journal, on any branch
  snap:3         the state of snapshot file 3; snap:NAME: of the snapshot of that name
  mark:NAME      the newest tick with the mark NAME; see ecsdump marks
  tip:1          the end of the oldest branch; see ecsdump branches
  mark:NAME~10   10 records before mark:NAME; ~N works after every point: @latest~10
  1200@tip:1     tick 1200, of the ticks that lead to tip:1; works before every point
`

// topics are printed by "ecsdump help NAME", in man pages and in docs/ECSDUMP.md.
var topics = []topic{
	{"points", "Points and ranges in time", pointsText + `
A RANGE is A..B, A.., ..B, ".." or a single point A, which means A..A. Both ends belong
to a range. What it selects depends on the command:

  log, stats     the ticks of all branches: 100..200 are all ticks with these numbers.
                 All other points select by the order in the journal: record:88.. is
                 everything that was written from record 88 on.
  history, bisect, plot, panel, export
                 only the ticks on the way from A to B: 100..tip:1 are those that lead
                 to tip:1. A range without B ends at @latest, and one without A begins
                 at the oldest state. If A is a tick, it is one of those that lead to B.
  diff           the two states A and B; the default of B is @latest

In plot and panel, 200 is an expression, so write 200..200 for a single tick.

Ecsdump computes a state from the nearest snapshot and the ticks after it. If a snapshot
has the state, the commands info, schema, stats, show, arrays, ls and query read only the
parts that they need. They do not notice damage elsewhere; ecsdump verify does.

ecsdump log lists ticks and records, and ecsdump info lists snapshots.`},
	{"output", "Output for people and for programs", `Results go to standard output, and everything else goes to standard error. A file or a
pipe gets results complete and without colours. On a terminal:

  - Lines are as wide as the terminal, or as COLUMNS if it is set. Long values are
    folded, long rows of long lists are cut, and columns that do not fit are printed
    below. Outside tables, a long name is printed whole, so that it can be copied.
  - Output has colours unless NO_COLOR is set. --color always or never overrides this.
  - Output that does not fit goes through the pager of ECSDUMP_PAGER or PAGER, by
    default less. --no-pager disables this.
  - A command that takes longer than a second shows its progress. --progress always or
    never overrides this.

With --json, standard output is one JSON document, and an error is one line of JSON on
standard error. The first member of each is its format, for example "ecsdump.ls/1". The
number rises when a member is removed or changes its meaning. New members may be added
at any time.

With --ndjson, each line is an object, and long lists take little memory. The first line
has the format and the members before the list of the document. Then each element of the
list is a line without a format. If the document has members after the list, the last
line has the format and these members. A document without a list is one line:

  ecsdump log D --ndjson | jq -c 'select(.format == null) | {tick, created}'

Entities are strings, INDEXvGENERATION. Digests are 16 hexadecimal digits. Times are
RFC 3339 in UTC. Structs are objects. Other values are arrays, numbers, strings and
booleans. Floating-point numbers that JSON lacks are strings.`},
	exitTopic,
}

var exitTopic = topic{"exit", "Exit status", exitsText() + `
With --json, an error also has its kind as a word: problem, usage, not_found, corrupt or
system.`}
