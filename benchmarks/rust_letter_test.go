package benchmarks

import (
	"math"

	"github.com/stet-ecs/stet/ecs"
)

// The components of ecs_bench_suite that are not in bodyWorld. Each component is a number.
type (
	data float32

	letterA float32
	letterB float32
	letterC float32
	letterD float32
	letterE float32
	letterF float32
	letterG float32
	letterH float32
	letterI float32
	letterJ float32
	letterK float32
	letterL float32
	letterM float32
	letterN float32
	letterO float32
	letterP float32
	letterQ float32
	letterR float32
	letterS float32
	letterT float32
	letterU float32
	letterV float32
	letterW float32
	letterX float32
	letterY float32
	letterZ float32
)

const (
	letters       = 26
	lettersOfEach = 20
	bunch         = 10_000
)

// fragmentedIter doubles the data component of all entities. There are 26 groups of 20 entities,
// and each group has a different second component.
var fragmentedIter = []form{
	{"all", func(int) *work {
		w, values := fragments()
		q := ecs.NewQuery1(ecs.Write(values))
		return doubled(w, values, func() {
			for _, v := range q.All() {
				*v = data(*v * 2)
			}
		})
	}},
	{"runs", func(int) *work {
		w, values := fragments()
		q := ecs.NewQuery1(ecs.Write(values))
		return doubled(w, values, func() {
			for run := range q.Runs() {
				for i := range run.A {
					run.A[i] = data(run.A[i] * 2)
				}
			}
		})
	}},
}

func fragments() (*ecs.World, *ecs.Storage[data]) {
	w := ecs.NewWorld(ecs.Options{})
	values := ecs.MustRegister[data](w)
	addLetter[letterA](w, values)
	addLetter[letterB](w, values)
	addLetter[letterC](w, values)
	addLetter[letterD](w, values)
	addLetter[letterE](w, values)
	addLetter[letterF](w, values)
	addLetter[letterG](w, values)
	addLetter[letterH](w, values)
	addLetter[letterI](w, values)
	addLetter[letterJ](w, values)
	addLetter[letterK](w, values)
	addLetter[letterL](w, values)
	addLetter[letterM](w, values)
	addLetter[letterN](w, values)
	addLetter[letterO](w, values)
	addLetter[letterP](w, values)
	addLetter[letterQ](w, values)
	addLetter[letterR](w, values)
	addLetter[letterS](w, values)
	addLetter[letterT](w, values)
	addLetter[letterU](w, values)
	addLetter[letterV](w, values)
	addLetter[letterW](w, values)
	addLetter[letterX](w, values)
	addLetter[letterY](w, values)
	addLetter[letterZ](w, values)
	return w, values
}

func addLetter[T ~float32](w *ecs.World, values *ecs.Storage[data]) {
	letter := ecs.MustRegister[T](w)
	for range lettersOfEach {
		e := w.Create()
		letter.Set(e, 0)
		values.Set(e, 1)
	}
}

// doubled returns a benchmark whose timed operation is repeat. Each call of repeat must double all
// values. The values start at 1 and soon become infinite.
func doubled(w *ecs.World, values *ecs.Storage[data], repeat func()) *work {
	return &work{world: w, repeat: repeat, check: func(times int) bool {
		for _, v := range values.Values() {
			if v != data(math.Ldexp(1, min(times, 200))) {
				return false
			}
		}
		return values.Len() == letters*lettersOfEach
	}}
}

// scheduleWorld is the world of schedule. It has four groups of entities, with (A, B), (A, B, C),
// (A, B, C, D) and (A, B, C, E).
type scheduleWorld struct {
	world *ecs.World
	a     *ecs.Storage[letterA]
	b     *ecs.Storage[letterB]
	c     *ecs.Storage[letterC]
	d     *ecs.Storage[letterD]
	e     *ecs.Storage[letterE]

	ab *ecs.Query2[letterA, letterB]
	cd *ecs.Query2[letterC, letterD]
	ce *ecs.Query2[letterC, letterE]
}

func newScheduleWorld() *scheduleWorld {
	w := ecs.NewWorld(ecs.Options{})
	s := &scheduleWorld{
		world: w,
		a:     ecs.MustRegister[letterA](w),
		b:     ecs.MustRegister[letterB](w),
		c:     ecs.MustRegister[letterC](w),
		d:     ecs.MustRegister[letterD](w),
		e:     ecs.MustRegister[letterE](w),
	}
	s.ab = ecs.NewQuery2(ecs.Write(s.a), ecs.Write(s.b))
	s.cd = ecs.NewQuery2(ecs.Write(s.c), ecs.Write(s.d))
	s.ce = ecs.NewQuery2(ecs.Write(s.c), ecs.Write(s.e))
	for i := range 4 * bunch {
		s.add(i / bunch)
	}
	return s
}

// add creates an entity of group 0, 1, 2 or 3. Its component A has the number 1, B has 2, and so
// on.
func (s *scheduleWorld) add(bunch int) {
	e := s.world.Create()
	s.a.Set(e, 1)
	s.b.Set(e, 2)
	if bunch > 0 {
		s.c.Set(e, 3)
	}
	switch bunch {
	case 2:
		s.d.Set(e, 4)
	case 3:
		s.e.Set(e, 5)
	}
}

// schedule runs three systems in sequence. They swap the numbers of (A, B), of (C, D) and of (C,
// E).
var schedule = []form{
	{"all", func(int) *work {
		s := newScheduleWorld()
		return s.swapped(func() {
			swapAll(s.ab)
			swapAll(s.cd)
			swapAll(s.ce)
		})
	}},
	{"runs", func(int) *work {
		s := newScheduleWorld()
		return s.swapped(func() {
			swapRuns(s.ab)
			swapRuns(s.cd)
			swapRuns(s.ce)
		})
	}},
}

func swapAll[A, B ~float32](q *ecs.Query2[A, B]) {
	for _, row := range q.All() {
		*row.A, *row.B = A(*row.B), B(*row.A)
	}
}

func swapRuns[A, B ~float32](q *ecs.Query2[A, B]) {
	for run := range q.Runs() {
		a, b := run.A, run.B
		for i := range a {
			a[i], b[i] = A(b[i]), B(a[i])
		}
	}
}

func (s *scheduleWorld) swapped(repeat func()) *work {
	return &work{world: s.world, repeat: repeat, check: func(times int) bool {
		odd := times%2 == 1
		e := s.world.Entities()
		return odd == (get(s.a, e[0]) == 2) && odd == (get(s.b, e[0]) == 1) &&
			odd == (get(s.c, e[2*bunch]) == 4) && odd == (get(s.d, e[2*bunch]) == 3) &&
			odd == (get(s.c, e[3*bunch]) == 5) && odd == (get(s.e, e[3*bunch]) == 3)
	}}
}

func get[T any](s *ecs.Storage[T], e ecs.Entity) T {
	v, _ := s.Get(e)
	return v
}

// addRemoveComponent adds B to 10 000 entities with A, then removes it.
func addRemoveComponent(n int) *work {
	w := ecs.NewWorld(ecs.Options{})
	as, bs := ecs.MustRegister[letterA](w), ecs.MustRegister[letterB](w)
	entities := make([]ecs.Entity, n)
	for i := range entities {
		entities[i] = w.Create()
		as.Set(entities[i], 0)
	}
	return &work{
		world: w,
		repeat: func() {
			for _, e := range entities {
				bs.Set(e, 0)
			}
			for _, e := range entities {
				bs.Remove(e)
			}
		},
		check: func(int) bool { return as.Len() == n && bs.Len() == 0 },
	}
}
