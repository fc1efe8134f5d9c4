package ecs

import "slices"

// A seqs has a sequence number of each recorder for a tick. It is immutable.
type seqs struct {
	first  uint64
	others []uint64
}

// of returns the sequence number of recorder k, or 0 if k is -1.
func (n seqs) of(k int) uint64 {
	switch {
	case k == 0:
		return n.first
	case k > 0 && k <= len(n.others):
		return n.others[k-1]
	}
	return 0
}

// with returns a copy of n with the number seq of recorder k.
func (n seqs) with(k int, seq uint64) seqs {
	if k == 0 {
		n.first = seq
		return n
	}
	n.others = slices.Clone(n.others)
	if k <= len(n.others) {
		n.others[k-1] = seq
	} else {
		n.others = append(n.others, seq)
	}
	return n
}

// without returns a copy of n without the number of recorder k.
func (n seqs) without(k int) seqs {
	switch {
	case k > len(n.others):
		return n
	case k == 0 && len(n.others) == 0:
		return seqs{}
	case k == 0:
		return seqs{n.others[0], n.others[1:]}
	}
	return seqs{n.first, slices.Delete(slices.Clone(n.others), k-1, k)}
}
