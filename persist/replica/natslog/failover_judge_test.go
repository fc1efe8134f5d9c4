//go:build linux

package natslog_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A judge reads the lines that machines print, and decides whether the log kept its promises.
//
// After each fault, a new follower reads the history from the log. The judge demands:
//
//   - The history has each confirmed tick. Otherwise, the tick is lost.
//   - If a tick is confirmed twice, the sums are equal. Otherwise, the history is forked.
//   - The history has each tick that a follower showed.
//   - An owner begins at the newest confirmed tick, or later.
//   - A report of lost entries is a violation.
//
// The test can make the engine lose entries, with older copies of the servers' stores. Then the
// judge demands:
//
//   - One history has all ticks that are confirmed after the loss, as above.
//   - If a running owner confirmed a lost tick, it has lost the store or appended the tick again.
//   - If a running machine had a lost tick, at least one machine reports the loss.
//
// The sum of a tick covers all ticks before it, so the newest sum identifies the whole history.
type judge struct {
	mu        sync.Mutex
	commits   map[uint64]commit // All ticks that machines made, by sum.
	confirmed map[uint64]uint64 // Sums of the confirmed ticks.
	newest    uint64            // The newest confirmed tick.
	// Sums that were shown since the last verdict, with the machine that showed them.
	shown    map[uint64]string
	machines map[string]*testimony
	owner    string // The machine that last became the owner.
	term     int    // The number of times that a machine became the owner.
	last     time.Time
	lastTerm int           // The term in which a tick was last confirmed.
	longest  time.Duration // The longest time without a confirmed tick since the call of watch().
	// The confirmed ticks at the time of the loss. nil after the verdict.
	before map[uint64]uint64

	forks, lost int
	again       int // The number of times that an owner appended lost entries again.
	losses      int // The number of times that the engine lost confirmed ticks.
	forgotten   int // The number of confirmed ticks that were lost.
	quiet       int // The number of followers that had a lost tick and did not report the loss.
	violations  []string
}

// A commit is a tick that a machine made, and the sum of the tick before it.
type commit struct{ tick, before uint64 }

// A testimony is the state of one machine process, according to its lines.
type testimony struct {
	head  uint64 // Sum of the newest tick that the process showed or confirmed.
	owned bool   // Whether the process confirmed head as the owner.

	knew      uint64 // The value of head when forget() was called.
	ownedThen bool   // The value of owned when forget() was called.
	reported  bool   // Whether the process reported, after forget(), that the log lost entries.
	lost      bool   // Whether the process reported, after forget(), that it lost the store.
	// Whether the process reported, after forget(), that it appended entries again.
	again bool

	refused bool   // Whether a claim of the process was refused because its program is too old.
	shown   uint64 // The newest tick that the process showed.
	stuck   string // The last reason why no tick is confirmed.
	trouble string // The last reason why the process does not follow.
}

func newJudge() *judge {
	return &judge{
		commits: map[uint64]commit{}, confirmed: map[uint64]uint64{}, shown: map[uint64]string{}, machines: map[string]*testimony{},
	}
}

// began records that a process of a machine begins. The testimony of the machine's previous process
// is dropped.
func (j *judge) began(machine string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.machines[machine] = &testimony{}
}

// killed records that the process of a machine was killed, and that all of its lines were read.
func (j *judge) killed(machine string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.machines, machine)
}

// violate records a broken promise.
func (j *judge) violate(format string, args ...any) {
	j.violations = append(j.violations, fmt.Sprintf(format, args...))
}

// hear reads a line of a machine.
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

// confirm records a confirmed tick.
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

// watch starts to measure the longest time without a confirmed tick.
func (j *judge) watch() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.longest = 0
}

// outage returns the longest time without a confirmed tick since the call of watch().
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

// confirmedSince reports whether a tick was confirmed after a point in time, in a later term than
// the given one.
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

// reasons returns why machines do not confirm ticks or do not follow, according to their reports.
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

// stuckReason returns the last reason that a machine reported for not confirming ticks.
func (j *judge) stuckReason(machine string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m := j.machines[machine]; m != nil {
		return m.stuck
	}
	return ""
}

// forget records that the engine is about to lose entries. No server runs, and the judge has read
// all confirmations.
func (j *judge) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.before, j.confirmed, j.newest = j.confirmed, map[uint64]uint64{}, 0
	for _, m := range j.machines {
		m.knew, m.ownedThen = m.head, m.owned
		m.reported, m.lost, m.again, m.shown = false, false, false, 0
	}
}

// reported returns whether a machine reported, after forget(), that the log lost entries.
func (j *judge) reported(machine string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := j.machines[machine]
	return m != nil && m.reported
}

// refused returns whether a claim of a machine was refused because its program is too old.
func (j *judge) refused(machine string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := j.machines[machine]
	return m != nil && m.refused
}

// history returns the sums of all ticks up to the tick whose sum is head. ok is false if one of
// these ticks is unknown.
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

// knows reports whether the judge has read the tick with the given sum, and all ticks before this
// tick.
func (j *judge) knows(head uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.history(head)
	return ok
}

// tickOf returns the number of the tick with a sum.
func (j *judge) tickOf(head uint64) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.commits[head].tick
}

// follows reports whether a machine owns the world, or shows a tick that is at most one second old.
func (j *judge) follows(machine string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := j.machines[machine]
	return machine == j.owner || m != nil && m.shown > 0 && m.shown+60 >= j.newest
}

// silent returns the machines that had a lost tick and did not report the loss. A tick is lost if
// it is not in the history that ends with the given sum. Machines that started after forget() are
// ignored.
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

// verdict compares the confirmed and the shown ticks with the history that ends with the given sum.
// The history must have all confirmed ticks up to the given tick. verdict returns how many
// confirmed ticks the engine lost: 0 unless forget() was called.
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
			// The tick cannot be compared yet. Either the line of its owner is not read, or the
			// history ends before it.
			continue
		}
		if history[made.tick] != sum {
			j.violate("%s showed tick %d with a sum that differs from the history", machine, made.tick)
		}
		delete(j.shown, sum)
	}
	return forgotten
}

// pardon counts the ticks that were confirmed before forget() and are missing in the history. The
// judge no longer demands them.
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
		j.violate("%v confirmed a tick that the log lost, and did not report the loss", owners)
	}
	if knew > 0 && reported == 0 {
		j.violate("%d machines had a tick that the log lost, and none reported it", knew)
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

// takeViolations returns the violations since the last call of takeViolations.
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
