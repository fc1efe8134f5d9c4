package browsertest

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// A Spot is a component with a position. Its numbers may be any float64.
type Spot struct{ X, Y float64 }

// spots saves a world with one entity per place. The last argument is the number of additional
// entities without a Spot.
func spots(t testing.TB, places []Spot, others int) string {
	t.Helper()
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister[Spot](w)
	for _, at := range places {
		s.Set(w.Create(), at)
	}
	for range others {
		w.Create()
	}
	file := filepath.Join(t.TempDir(), "spots.save")
	if err := persist.Save(t.Context(), file, w); err != nil {
		t.Fatal(err)
	}
	return file
}

// square returns n places on a square of 100 units.
func square(n int) (places []Spot) {
	for i := range n {
		places = append(places, Spot{float64(i * 7919 % 101), float64(i * 104729 % 97)})
	}
	return places
}

// extent returns the width and height, in pixels, of the area in which points are drawn.
const extent = `(() => {
	const canvas = document.querySelector("#map"), c = canvas.getContext("2d"), { width, height } = canvas, data = c.getImageData(0, 0, width, height).data;
	const [r, g, b] = [1, 3, 5].map((i) => parseInt(getComputedStyle(document.documentElement).getPropertyValue("--accent").trim().slice(i, i + 2), 16));
	let [left, right, low, high] = [width, 0, height, 0];
	for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
		const i = 4 * (y * width + x);
		if (data[i] === r && data[i + 1] === g && data[i + 2] === b) [left, right, low, high] = [Math.min(left, x), Math.max(right, x), Math.min(low, y), Math.max(high, y)];
	}
	return [right - left, high - low];
})()`

func TestMap_LeavesOutDistantPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	b := browser(t)
	for _, far := range []float64{1e9, -1e308, math.MaxFloat64} {
		p := open(t, b, serve(t, spots(t, append(square(400), Spot{far, 3}), 0)), 1280, 800, false)
		p.key("2")
		p.shows("#screen .status", "401 points, 1 far away")
		if got := eval[[2]float64](p, extent); got[0] < 300 || got[1] < 300 {
			t.Errorf("with a point at %g, the other points cover %v pixels", far, got)
		}
		p.shot("map-far")
		p.click("#screen .status button")
		p.until(`!document.querySelector("#screen .status button")`)
		if got := eval[[2]float64](p, extent); got[0] < 1000 || got[1] > 30 {
			t.Errorf("all points, one of them at %g, cover %v pixels", far, got)
		}
		eval[bool](p, `(document.querySelector("[aria-label^='Fit']").click(), true)`)
		p.shows("#screen .status button", "1 far away")
	}
}

func TestMap_PlacesUpToLargestFloat64(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	b := browser(t)
	var places []Spot
	for i := range 200 {
		x := []float64{1e308, -1e308, 0, 2045}[i%4]
		places = append(places, Spot{x, float64(i)})
	}
	p := open(t, b, serve(t, spots(t, places, 0)), 1280, 800, false)
	p.key("2")
	p.shows("#screen .status", "200 points")
	if got := eval[[2]float64](p, extent); got[0] < 1100 {
		t.Errorf("places from -1e308 to 1e308 cover %v pixels", got)
	}
	if x := eval[float64](p, `fetch("api/v1/map?record=0&x=Spot.X&y=Spot.Y").then((r) => r.json()).then((d) => d.x[0])`); x != 1e308 {
		t.Errorf("1e308 is shown as %g", x)
	}
	small := open(t, b, serve(t, spots(t, []Spot{{1e-9, 0}, {2e-9, 0}, {3e-9, 1e-9}}, 0)), 1280, 800, false)
	small.key("2")
	small.shows("#screen .status", "3 points")
	if got := eval[[2]float64](small, extent); got[0] < 1000 {
		t.Errorf("places from 1e-9 to 3e-9 cover %v pixels", got)
	}
}

func TestMap_CountsOmittedEntities(t *testing.T) {
	b := browser(t)
	places := append(square(60), Spot{math.NaN(), 1}, Spot{1, math.Inf(1)}, Spot{math.Inf(-1), math.NaN()})
	p := open(t, b, serve(t, spots(t, places, 5)), 1280, 800, false)
	p.key("2")
	p.shows("#screen .status", "60 points, 3 at NaN or ±Inf, 5 without a position")
	p.key("5")
	p.click("#expr")
	p.write("max(Spot.Y)")
	p.key("\r")
	p.shows(".plot .caption", "NaN or ±Inf at 1 tick")
}

func TestMap_SampleOfManyEntities(t *testing.T) {
	b := browser(t)
	var places []Spot
	// Entities with neighbouring indices are neighbours on the map. So the first 50,000 entities
	// alone would fill only a part of the map.
	for i := range 60_000 {
		places = append(places, Spot{float64(i / 300), float64(i % 300)})
	}
	p := open(t, b, serve(t, spots(t, places, 0)), 400, 800, true)
	p.key("2")
	p.shows("#screen .status", "50,000 points, a sample of 60,000")
	p.fits()
	last := eval[int](p, `fetch("api/v1/map?record=0&x=Spot.X&y=Spot.Y").then((r) => r.json()).then((d) => Number.parseInt(d.entities.at(-1)))`)
	if last < 59_000 {
		t.Errorf("the last entity of the sample is number %d", last)
	}
	p.shot(fmt.Sprintf("map-sample-%d", 400))
}
