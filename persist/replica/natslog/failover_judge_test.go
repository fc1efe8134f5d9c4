//go:build linux

package natslog_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A judge hears what machines say, one line after the other, and decides whether the log kept its
// promises.
//
// It demands after each fault, of the history that a new follower reads from the log:
//
//	each tick that an owner confirmed is in it        otherwise the tick is lost
//	no tick was confirmed twice with different sums   otherwise the history is forked
//	each tick that a follower showed is in it
//	an owner begins at the newest confirmed tick, or later
//	no machine reports that the log forgot entries
//
// An engine can be made to forget: its servers get older copies of their stores. Then the judge
// demands:
//
//	ticks that are confirmed afterwards are in one history, as above
//	an owner that confirmed a forgotten tick, and still runs, has lost the store or has appended the tick again
//	if a running machine knew a forgotten tick, at least one machine reports the loss
//
// A tick has a sum over all ticks before it, so the newest sum tells the whole history.
type judge struct {
	mu        sync.Mutex
	commits   map[uint64]commit // All ticks that were ever made, by their sums.
	confirmed map[uint64]uint64 // Sums of the confirmed ticks.
	newest    uint64            // The newest confirmed tick.
	// Sums that were shown since the last verdict, and the machine that showed them.
	shown    map[uint64]string
	machines map[string]*testimony
	owner    string // The machine that said last that it owns the world,
	term     int    // and how many times any machine said so.
	last     time.Time
	lastTerm int           // The term in which a tick was last confirmed.
	longest  time.Duration // The longest time without a confirmed tick since the watch began.
	// What was confirmed when the engine was made to forget; nil after the verdict.
	before map[uint64]uint64

	forks, lost int
	again       int // How many times an owner appended entries again.
	losses      int // How many times the engine forgot confirmed ticks,
	forgotten   int // and how many ticks.
	quiet       int // How many followers knew a forgotten tick and did not report it.
	violations  []string
}

// A commit is a tick that a machine made, and the sum of the tick before.
type commit struct{ tick, before uint64 }

// A testimony is what one process of a machine said.
type testimony struct {
	head  uint64 // Sum of the newest tick that it showed or confirmed,
	owned bool   // as the owner.

	knew      uint64 // What head and owned were when the engine was made to forget.
	ownedThen bool
	reported  bool // Since then, it said that the log forgot entries,
	lost      bool // that it lost the store,
	again     bool // or that it appended entries again.

	refused bool   // Its claim was refused, as its program is too old.
	shown   uint64 // The newest tick that it showed since it began to follow.
	stuck   string // Why nothing is confirmed, as it said last.
	trouble string // Why it does not follow, as it said last.
}

func newJudge() *judge {
	return &judge{
		commits: map[uint64]commit{}, confirmed: map[uint64]uint64{}, shown: map[uint64]string{}, machines: map[string]*testimony{},
	}
}

// began notes that a process of a machine begins. It knows nothing of what the process before was
// told.
func (j *judge) began(machine string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.machines[machine] = &testimony{}
}

// killed notes that the process of a machine was killed, and all it said was heard.
func (j *judge) killed(machine string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.machines, machine)
}

// violate notes a broken promise.
func (j *judge) violate(format string, args ...any) {
	j.violations = append(j.violations, fmt.Sprintf(format, args...))
}

// hear takes a line of a machine.
func (j *judge) hear(machine, line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := j.machines[machine]
	if m == nil {
		m = &testimony{}
		j.machines[machine] = m
	}
	var tick, sum, before uint64
	switch word, rest, _ := strings.Cut(line, " "); word {
	case "commit":
		fmt.Sscan(rest, &tick, &sum, &before)
		j.commits[sum] = commit{tick, before}
	case "confirmed":
		fmt.Sscan(rest, &tick, &sum)
		m.head, m.owned, m.stuck = sum, true, ""
		j.confirm(machine, tick, sum)
	case "shown":
		fmt.Sscan(rest, &tick, &sum)
		if tick < m.shown {
			j.violate("%s shows tick %d after tick %d", machine, tick, m.shown)
		}
		m.shown, m.head, m.owned, m.trouble = tick, sum, false, ""
		j.shown[sum] = machine
	case "follows":
		m.shown, m.trouble = 0, ""
	case "own":
		fmt.Sscan(rest, &tick)
		if tick < j.newest && j.before == nil {
			j.violate("%s begins at tick %d, and %d was confirmed", machine, tick, j.newest)
		}
		j.owner, j.term = machine, j.term+1
	case "stuck":
		m.stuck = rest
	case "troubled":
		m.trouble = rest
	case "refused":
		m.refused = true
	case "lost":
		m.lost = true
	case "shorter":
		m.reported = true
		if j.before == nil {
			j.violate("%s: %s", machine, rest)
		}
	case "again":
		m.again = true
		j.again++
		if j.before == nil {
			j.violate("%s appended entries again: %s", machine, rest)
		}
	case "failed":
		j.violate("%s: %s", machine, rest)
	}
}

// confirm notes a confirmed tick.
func (j *judge) confirm(machine string, tick, sum uint64) {
	if old, known := j.confirmed[tick]; known && old != sum {
		j.forks++
	}
	j.confirmed[tick] = sum
	j.newest = max(j.newest, tick)
	if machine == j.owner {
		now := time.Now()
		j.longest = max(j.longest, now.Sub(j.last))
		j.last, j.lastTerm = now, j.term
	}
}

// watch begins to measure the longest time without a confirmed tick.
func (j *judge) watch() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.longest = 0
}

// outage returns the longest time without a confirmed tick since watch.
func (j *judge) outage() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.longest
}

// ownership returns the owner and its term.
func (j *judge) ownership() (owner string, term int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.owner, j.term
}

// confirmedSince reports whether a tick was confirmed after a moment, in a later term than the
// given one.
func (j *judge) confirmedSince(at time.Time, term int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last.After(at) && j.lastTerm > term
}

// newestConfirmed returns the newest confirmed tick.
func (j *judge) newestConfirmed() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.newest
}

// reasons returns what machines said of why nothing is confirmed or followed.
func (j *judge) reasons() (reasons []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, m := range j.machines {
		for _, reason := range []string{m.stuck, m.trouble} {
			if reason != "" {
				reasons = append(reasons, name+": "+reason)
			}
		}
	}
	slices.Sort(reasons)
	return reasons
}

// stuckReason returns why nothing is confirmed, as a machine said last.
func (j *judge) stuckReason(machine string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m := j.machines[machine]; m != nil {
		return m.stuck
	}
	return ""
}

// forget tells the judge that the engine forgets now. No server runs, and all that was confirmed
// was heard.
func (j *judge) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.before, j.confirmed, j.newest = j.confirmed, map[uint64]uint64{}, 0
	for _, m := range j.machines {
		m.knew, m.ownedThen = m.head, m.owned
		m.reported, m.lost, m.again, m.shown = false, false, false, 0
	}
}

// reported returns whether a machine said since forget that the log forgot entries.
func (j *judge) reported(machine string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := j.machines[machine]
	return m != nil && m.reported
}

// refused returns whether a claim of a machine was refused, as its program is too old.
func (j *judge) refused(machine string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := j.machines[machine]
	return m != nil && m.refused
}

// history returns the sums of all ticks up to one with a given sum; ok is false if no machine made
// one of them.
func (j *judge) history(head uint64) (history map[uint64]uint64, ok bool) {
	history = map[uint64]uint64{}
	for sum := head; sum != 0; {
		made, known := j.commits[sum]
		if !known {
			return nil, false
		}
		history[made.tick], sum = sum, made.before
	}
	return history, true
}

// knows reports whether machines said that they made all ticks up to one with a given sum.
func (j *judge) knows(head uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.history(head)
	return ok
}

// tickOf returns the tick of a sum.
func (j *judge) tickOf(head uint64) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.commits[head].tick
}

// follows reports whether a machine owns the world, or shows the newest confirmed tick but for a
// second's worth.
func (j *judge) follows(machine string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := j.machines[machine]
	return machine == j.owner || m != nil && m.shown > 0 && m.shown+60 >= j.newest
}

// silent returns the machines that knew a tick which is not in the history with the given head, and
// that did not say so. They run since before forget.
func (j *judge) silent(head uint64) (owners, followers []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	history, _ := j.history(head)
	for name, m := range j.machines {
		switch tick := j.commits[m.knew].tick; {
		case m.knew == 0 || history[tick] == m.knew || m.reported || m.ownedThen && (m.lost || m.again):
		case m.ownedThen:
			owners = append(owners, name)
		default:
			followers = append(followers, name)
		}
	}
	return owners, followers
}

// verdict compares what was confirmed and shown with the history that ends at the given head. All
// ticks up to upto must be in it. It returns how many confirmed ticks the engine forgot, which is 0
// unless forget was called.
func (j *judge) verdict(upto, head uint64) (forgotten int) {
	owners, followers := j.silent(head)
	j.mu.Lock()
	defer j.mu.Unlock()
	history, ok := j.history(head)
	if !ok {
		j.violate("the history has a tick that no machine made")
		return 0
	}
	if j.before != nil {
		forgotten = j.pardon(history, owners, followers)
	}
	for tick, sum := range j.confirmed {
		if tick > upto || history[tick] == sum {
			continue
		}
		if j.lost++; j.lost <= 5 {
			j.violate("tick %d was confirmed and is not in the history, which ends at %d", tick, len(history))
		}
	}
	for sum, machine := range j.shown {
		made, known := j.commits[sum]
		if !known || made.tick > uint64(len(history)) {
			continue // Its owner was not heard yet, or the history does not go so far.
		}
		if history[made.tick] != sum {
			j.violate("%s showed tick %d with another sum than the history has", machine, made.tick)
		}
		delete(j.shown, sum)
	}
	return forgotten
}

// pardon counts the ticks that were confirmed before forget and that the history does not have, and
// no longer demands them.
func (j *judge) pardon(history map[uint64]uint64, owners, followers []string) (forgotten int) {
	for tick, sum := range j.before {
		if history[tick] != sum {
			forgotten++
			continue
		}
		j.confirmed[tick] = sum
	}
	knew, reported := 0, 0
	for _, m := range j.machines {
		if m.knew != 0 && history[j.commits[m.knew].tick] != m.knew {
			knew++
		}
		if m.reported || m.lost {
			reported++
		}
		m.knew = 0
	}
	if len(owners) > 0 {
		j.violate("%v confirmed a tick that the log forgot, and was not told", owners)
	}
	if knew > 0 && reported == 0 {
		j.violate("%d machines knew a tick that the log forgot, and none reported it", knew)
	}
	j.quiet += len(followers)
	for sum := range j.shown {
		if history[j.commits[sum].tick] != sum {
			delete(j.shown, sum)
		}
	}
	j.before = nil
	j.forgotten += forgotten
	if forgotten > 0 {
		j.losses++
	}
	return forgotten
}

// takeViolations returns the violations since the last call.
func (j *judge) takeViolations() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.forks > 0 {
		j.violate("%d ticks were confirmed twice, with different sums", j.forks)
	}
	taken := j.violations
	j.violations = nil
	return taken
}
