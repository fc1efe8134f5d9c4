package benchmarks

import "math"

// A matrix is 4 by 4, by columns.
type matrix [16]float32

func identity() (m matrix) {
	m[0], m[5], m[10], m[15] = 1, 1, 1, 1
	return m
}

// turned returns a turn around the first axis.
func turned(angle float64) matrix {
	m := identity()
	sin, cos := math.Sincos(angle)
	m[5], m[6] = float32(cos), float32(sin)
	m[9], m[10] = float32(-sin), float32(cos)
	return m
}

// A row of a matrix.
type row struct{ X, Y, Z, W float32 }

func (m *matrix) row(i int) row { return row{m[i], m[4+i], m[8+i], m[12+i]} }

// A row without one of its four.
func (r row) yzw() vector { return vector{r.Y, r.Z, r.W} }
func (r row) xzw() vector { return vector{r.X, r.Z, r.W} }
func (r row) xyw() vector { return vector{r.X, r.Y, r.W} }
func (r row) xyz() vector { return vector{r.X, r.Y, r.Z} }

// det3 returns the determinant of the 3 by 3 matrix of these rows.
func det3(a, b, c vector) float32 {
	return a.X*(b.Y*c.Z-c.Y*b.Z) - b.X*(a.Y*c.Z-c.Y*a.Z) + c.X*(a.Y*b.Z-b.Y*a.Z)
}

// inverse returns the inverse of m, if it has one. It is what the suite's cgmath does where
// it was not built for vector instructions: the determinant of m, and then the sixteen
// cofactors, from the determinants of what is left of m without a row and a column, each
// times its inverse. Compilers find the products that those share.
func (m *matrix) inverse() (inv matrix, ok bool) {
	x, y, z, w := m.row(0), m.row(1), m.row(2), m.row(3)
	det := x.X*det3(y.yzw(), z.yzw(), w.yzw()) - x.Y*det3(y.xzw(), z.xzw(), w.xzw()) +
		x.Z*det3(y.xyw(), z.xyw(), w.xyw()) - x.W*det3(y.xyz(), z.xyz(), w.xyz())
	if det == 0 {
		return inv, false
	}
	f := 1 / det
	return matrix{
		f * det3(y.yzw(), z.yzw(), w.yzw()),
		-f * det3(y.xzw(), z.xzw(), w.xzw()),
		f * det3(y.xyw(), z.xyw(), w.xyw()),
		-f * det3(y.xyz(), z.xyz(), w.xyz()),

		-f * det3(x.yzw(), z.yzw(), w.yzw()),
		f * det3(x.xzw(), z.xzw(), w.xzw()),
		-f * det3(x.xyw(), z.xyw(), w.xyw()),
		f * det3(x.xyz(), z.xyz(), w.xyz()),

		f * det3(x.yzw(), y.yzw(), w.yzw()),
		-f * det3(x.xzw(), y.xzw(), w.xzw()),
		f * det3(x.xyw(), y.xyw(), w.xyw()),
		-f * det3(x.xyz(), y.xyz(), w.xyz()),

		-f * det3(x.yzw(), y.yzw(), z.yzw()),
		f * det3(x.xzw(), y.xzw(), z.xzw()),
		-f * det3(x.xyw(), y.xyw(), z.xyw()),
		f * det3(x.xyz(), y.xyz(), z.xyz()),
	}, true
}

// turn returns m times v, without the translation.
func (m *matrix) turn(v vector) vector {
	return vector{
		m[0]*v.X + m[4]*v.Y + m[8]*v.Z,
		m[1]*v.X + m[5]*v.Y + m[9]*v.Z,
		m[2]*v.X + m[6]*v.Y + m[10]*v.Z,
	}
}

func (m *matrix) times(o *matrix) (p matrix) {
	for col := range 4 {
		for row := range 4 {
			for k := range 4 {
				p[4*col+row] += m[4*k+row] * o[4*col+k]
			}
		}
	}
	return p
}

func (m *matrix) near(o matrix) bool {
	for i := range m {
		if math.Abs(float64(m[i]-o[i])) > 1e-3 {
			return false
		}
	}
	return true
}
