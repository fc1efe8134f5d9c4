/*
 * The protocol of package replica: machines follow a log, claim it, append to it and confirm what they appended.
 * README.md says which properties hold under which faults, and what the model leaves out. run.sh has the runs.
 *
 * An action of a machine is one request to the log, or one reading of it. An action is atomic. Machines interleave
 * between actions. Names in brackets are functions of the Go code.
 *
 * The bounds are given with -D: N machines, IDS entries that are ever made, and the numbers of faults:
 *
 *   FORGET  the engine drops the newest entry or two     STALE  an answer lacks the newest entry or two
 *   LOSE    an append is done, and its answer is lost    HOLE   an entry is not delivered to a reader
 *   LATE    an append is done later, or never            CRASH  a machine restarts from an older state
 *
 * Protections that can be removed, to check that the model then finds the fault:
 *
 *   NOCOND   the engine ignores the position that an append names  NOCHAIN    a reader applies every entry
 *   NOCHECK  an owner never compares the entry that it continues   NOHOLE     a reader treats a hole as a trimmed log
 *   NOCLAIM  an owner does not compare it when it claims           NORECHECK  a reader never checks invalid entries again
 *   NOFAIL   an owner does not compare it after a failure          NOSURE     a machine trusts an old answer immediately
 *   NOTRAIL  a check compares the newest entry alone               QUIET      no append fails after entries were dropped
 */
#ifdef NOTRAIL
#define TRAIL 1
#else
#define TRAIL 4 /* [trail] */
#endif

/* The engine. Positions have no gaps. Position 0 is before the first entry. */
byte last;                                /* The position at which the log ends. */
byte log[IDS + 2];                        /* The entry at each position. */
byte made;                                /* The number of entries that were ever made. */
byte beforeP[IDS + 1], beforeI[IDS + 1];  /* Position and ID of the entry that each entry continues. */
byte lateP, lateI;                        /* A late append: the position before it, and its entry. 0 means none. */
bool failing[N];                          /* The next append of a machine fails, because servers restarted. */
byte forgets = FORGET, losses = LOSE, lates = LATE, stales = STALE, holes = HOLE, crashes = CRASH;

bool confirmed[IDS + 1];                  /* An owner got the answer that the log has the entry. */
bool gone[IDS + 1];                       /* The engine dropped the entry at least once. */

hidden byte p, i, n, e, c, d, r, cP, cI, vis, yes, known; /* Scratch variables of one action. */

mtype = { starts, follows, appends, looks, repeats, checks, owns, told };
#define OK 0
#define OLD 1     /* errOldAnswer */
#define SHORTER 2 /* ShorterError */
#define NONE 3
#define FOUND 4
#define TAKEN 5
#define continues(x, P, I) (beforeP[x] == P && beforeI[x] == I)

/* Sets yes if entry x is valid: each valid entry continues the last valid entry. A new machine applies the valid entries. */
inline counts(x) {
	cP = 0; cI = 0; yes = false;
	for (p : 1 .. last) {
		if :: continues(log[p], cP, cI) -> cP = p; cI = log[p]; yes = yes || cI == x :: else fi
	}
}

/* Sets yes if the engine ever dropped entry x, or an entry that x continues directly or indirectly. */
inline lost(x) {
	yes = false; e = x;
	do :: e > 0 -> yes = yes || gone[e]; e = beforeI[e] :: else -> break od
}

/* Sets k to the number of entries in the history that ends with entry x. */
inline place(x, k) {
	k = 0; e = x;
	do :: e > 0 -> k++; e = beforeI[e] :: else -> break od
}

/* DURABLE: a new machine applies every entry that was confirmed and never dropped. */
inline durable() {
	for (i : 1 .. made) {
		if :: confirmed[i] && !gone[i] -> counts(i); assert(yes) :: else fi
	}
}

inline put(x) { last++; log[last] = x; durable() }

/* Sets vis to the last position of the log in an answer. The answer may be old. */
inline ask() {
	if
	:: vis = last
	:: stales > 0 && last > 0 -> stales--; vis = last - 1
	:: stales > 0 && last > 1 -> stales--; vis = last - 2
	fi
}

/* [trail.check] Sets r: does the log have entry I at P and the entries before it in the trail, and are they valid? */
inline check(P, I) {
	i = 0; cP = P; cI = I; /* The oldest entry of the trail. */
	do :: i < TRAIL - 1 && beforeI[cI] > 0 -> cP = beforeP[cI]; cI = beforeI[cI]; i++ :: else -> break od;
	r = (cI == 0 -> OK : (cP > vis -> OLD : (log[cP] == cI -> OK : SHORTER))); /* [checkLink] */
	do
	:: r == OK && i > 0 ->
		e = I; d = P; c = i - 1; /* In the trail, entry e at d continues entry cI at cP. */
		do :: c > 0 -> d = beforeP[e]; e = beforeI[e]; c-- :: else -> break od;
		p = cP + 1; /* [continuation] */
		do :: p <= vis && p < d && !continues(log[p], cP, cI) -> p++ :: else -> break od;
		r = (p > vis -> OLD : ((p == d && log[p] == e) || continues(log[p], d, e) -> OK : SHORTER));
		cP = d; cI = e; i--
	:: else -> break
	od
}

/* [sender.walk] Sets r, and sets n to the position of the pending entry. */
inline walk() {
	end = atP; known = false;
	do
	:: end >= vis -> r = NONE; break
	:: end < vis ->
		n = end + 1;
		if
		:: continues(log[n], atP, atI) && log[n] == pending -> r = FOUND; break
		:: continues(log[n], atP, atI) && log[n] != pending -> r = TAKEN; break
		:: !continues(log[n], atP, atI) && beforeP[log[n]] > end -> r = TAKEN; break
		:: else ->
			r = OK; compare(!known);
			if :: r != OK -> break :: r == OK -> known = true; end = n fi
		fi
	od
}

/* Compares the entry that the owner continues with the log, if cond is true. */
inline compare(cond) {
	if
#ifndef NOCHECK
	:: cond -> check(atP, atI)
#endif
	:: else
	fi
}

/* An owner gets the answer that the log has its entry. COUNTS: it is valid. NO FORK: no other was confirmed in its place. */
inline confirm() {
	place(pending, d);
	for (i : 1 .. made) {
		place(i, c);
		assert(i == pending || c != d || !confirmed[i] || gone[i])
	}
	counts(pending); assert(yes);
	confirmed[pending] = true;
	atP = n; atI = pending; end = n; pending = 0; checked = false; mode = owns
}

inline restart() { mode = starts; pending = 0; first = 0; redo = 0; end = 0; skipP = 0; skipI = 0; checked = false; failing[_pid] = false }

/* REPORT: if a machine reports ErrLogShorter, the engine dropped an entry that this machine had. */
inline report() { lost(atI); assert(yes); restart(); mode = told }

/* READ: an entry that a reader applies is valid, unless the engine dropped an entry that the reader had. */
inline accept() { lost(atI); d = yes; atP = n; atI = log[n]; end = n; counts(atI); assert(d || yes) }

/* SKIP: an entry that a reader skips is invalid, unless the engine dropped an entry that the reader had. */
inline pass() { lost(atI); d = yes; skipP = n; skipI = log[n]; end = n; counts(log[n]); assert(d || !yes) }

/* [Follower.take, continues, recheck] The entry at n was delivered. */
inline take() {
#ifdef NOCHAIN
	accept()
#else
	if
	:: continues(log[n], atP, atI) -> accept()
	:: !continues(log[n], atP, atI) && beforeP[log[n]] > end ->
		/* HOLE: [fill] reads the missing entry, which is another action in this model. The log is not trimmed. */
#ifdef NOHOLE
		assert(false) /* The reader dropped its tree. */
#endif
	:: else ->
		known = skipI > 0 && continues(log[n], skipP, skipI); r = OK;
		if :: known :: !known -> check(atP, atI) fi;
		p = n;
#ifndef NORECHECK
		p = (!known && end > atP -> atP + 1 : n);
		do :: p < n && !continues(log[p], atP, atI) -> p++ :: else -> break od;
#endif
		if
		:: r == SHORTER -> report()
		:: r == OLD
		:: r == OK && p < n -> end = atP /* A valid entry was not read. */
		:: r == OK && p == n -> pass()
		fi
	fi
#endif
}

inline make() { made++; beforeP[made] = atP; beforeI[made] = atI; pending = made; mode = appends }

/* The server answers that the log ends before atP, and this owner has no entry to append there. */
inline doubt(next) {
	if
#ifndef NOSURE
	:: vis < last -> mode = next /* The machine retries for 15 s; old answers end earlier. */
	:: vis == last -> report()
#else
	:: report()
#endif
	fi
}

active [N] proctype machine() {
	mtype mode = starts;
	byte atP, atI;        /* The last valid entry that this machine read. */
	byte end;             /* The last entry that was read or appended. */
	byte skipP, skipI;    /* The last invalid entry that was read. */
	byte pending, first;  /* The current entry, and the claim. 0 means none. */
	byte redo;            /* The lost entry that is being appended again. */
	bool checked;         /* Whether the next entry needs a check to be confirmed. */
	do
	:: atomic { mode == starts -> ask(); d_step { /* [Follower.begin, remember] */
		check(atP, atI);
		if
		:: vis < atP -> doubt(starts)
		:: vis >= atP && r == SHORTER -> report()
		:: vis >= atP && r == OLD
		:: vis >= atP && r == OK -> mode = follows; end = atP
		fi } }
	:: d_step { mode == starts && crashes > 0 && atI > 0 -> crashes--; atP = beforeP[atI]; atI = beforeI[atI] }
	:: d_step { mode == follows && end < last -> vis = last; n = end + 1; take() }
	:: d_step { mode == follows && holes > 0 && end + 1 < last -> holes--; vis = last; n = end + 2; take() }
	:: d_step { mode == follows && made < IDS && (made > 0 || _pid == 0) -> /* The machines are equal, so machine 0 claims first. */
		make(); first = made; skipP = 0; skipI = 0; failing[_pid] = false;
#ifndef NOCLAIM
		checked = true
#endif
	}
	:: d_step { mode == owns && made < IDS -> make() }
	:: d_step { mode == owns || mode == appends || mode == checks -> restart() } /* The machine ends. The log may have its append. */
	:: d_step { mode == told -> restart(); atP = 0; atI = 0 } /* The machine restarts without files. */
	:: atomic { mode == appends -> /* [sender.try] */
		if
		:: failing[_pid] -> failing[_pid] = false; r = OLD
		:: !failing[_pid] && losses > 0 && last == end -> losses--; put(pending); r = OLD
		:: !failing[_pid] && lates > 0 -> lates--; lateP = end; lateI = pending; r = OLD
#ifdef NOCOND
		:: !failing[_pid] -> put(pending); n = last; r = OK
#else
		:: !failing[_pid] && last == end -> put(pending); n = last; r = OK
		:: !failing[_pid] && last != end -> r = TAKEN
#endif
		fi;
		d_step {
#ifndef NOFAIL
			checked = checked || r != OK;
#endif
			if
			:: r == OK && checked -> mode = checks
			:: r == OK && !checked -> confirm()
			:: r == TAKEN -> mode = looks
			:: r == OLD
			fi
		} }
	:: atomic { mode == looks -> ask(); d_step { /* [sender.look, again] */
		e = (first > 0 -> atI : 0); /* Becomes this owner's entry after vis. */
		do :: e > 0 && e >= first && beforeP[e] != vis -> e = beforeI[e] :: else -> break od;
		if
		:: vis >= atP -> mode = checks
		:: vis < atP && (e == 0 || e < first) -> doubt(appends)
		:: vis < atP && e > 0 && e >= first ->
			r = (beforeI[e] == 0 || log[beforeP[e]] == beforeI[e] -> OK : SHORTER);
			if
			:: r == OK -> redo = e; mode = repeats
			:: r == SHORTER -> report()
			fi
		fi } }
	:: d_step { mode == repeats -> /* [sender.again] */
		e = atI; vis = atP; known = 0; /* Become redo's old position, and the entry after redo. */
		do :: e != redo -> vis = beforeP[e]; known = e; e = beforeI[e] :: else -> break od;
		n = beforeP[redo];
		if
		:: failing[_pid] -> failing[_pid] = false; redo = 0; mode = appends
		:: !failing[_pid] && last == n -> put(redo); redo = known
		:: !failing[_pid] && last < n -> redo = 0; mode = appends
		:: !failing[_pid] && last > n && log[n + 1] == redo -> redo = known
		:: !failing[_pid] && last > n && log[n + 1] != redo -> report()
		fi;
		if
		:: mode == repeats && vis != n + 1 -> report() /* The entry got another position. */
		:: mode == repeats && vis == n + 1 && redo == 0 -> end = atP; mode = appends
		:: else
		fi }
	:: atomic { mode == checks -> ask(); d_step { /* [sender.try, walk, trail.check] */
		walk();
		if :: r == FOUND -> r = OK; known = n; compare(checked); n = known; r = (r == OK -> FOUND : r) :: else fi;
		if
		:: r == FOUND -> confirm()
		:: r == TAKEN -> restart() /* Another machine claimed: ErrLost. */
		:: r == SHORTER -> report()
		:: r == OLD || r == NONE -> mode = appends
		fi } }
	od
}

active proctype engine() {
	do
	:: d_step { lateI > 0 && last == lateP -> put(lateI); lateI = 0; lateP = 0 }
	:: d_step { lateI > 0 -> lateI = 0; lateP = 0 }
	:: atomic { forgets > 0 && last > 0 -> forgets--;
		if :: n = 1 :: last > 1 -> n = 2 fi;
		d_step {
			do :: n > 0 -> gone[log[last]] = true; log[last] = 0; last--; n-- :: else -> break od;
			durable();
#ifndef QUIET
			for (i : 0 .. N - 1) { failing[i] = true }
#endif
			skip
		} }
	od
}
