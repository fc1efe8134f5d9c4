// Package fusible tests the search for products of floats that a compiler may fuse with a sum. A
// line ends with "want" exactly if it has such a product.
package fusible

type meters float64

type vector[F float32 | float64] struct{ x, y F }

func (v *vector[F]) move(by vector[F], dt F) {
	v.x += by.x * dt // want
	v.y += F(by.y * dt)
}

func inOneExpression(x, v, dt float64, f float32, m meters) float64 {
	a := x + v*dt     // want
	a = v*dt - x      // want
	a = x + (v * dt)  // want
	a = x - -(v * dt) // want
	g := f*f + 1      // want
	n := m*2 + m      // want
	a += v * dt       // want
	a -= v * dt       // want
	return a + float64(g) + float64(n)
}

func acrossStatements(x, v, dt float64, p *float64) float64 {
	step := v * dt                       // want
	*p = v * dt                          // want
	x *= dt                              // want
	c := complex(v, dt) * complex(x, dt) // want
	c /= complex(dt, x)                  // want
	return x + step + *p + real(c)
}

func inlined(v, dt float64) float64 {
	return v * dt // want
}

func passed(v, dt float64) float64 {
	return inlined(v*dt, dt) // want
}

func safe(x, v, dt float64, m meters, n int) float64 {
	const half = 0.5 * 3
	a := x + float64(v*dt)
	a += float64(v*dt) - float64((x * x))
	a = a / (v * dt)
	a = x + float64(v*dt*x)
	a = x + half*1
	b := meters(m*2) + m
	n += n*n + int(v*dt)
	if v*dt > x {
		a = float64(a * x)
	}
	return a + float64(b) + float64(n)
}
