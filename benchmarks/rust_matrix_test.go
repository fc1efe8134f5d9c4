package benchmarks

import "math"

// A matrix is a 4×4 matrix, stored by columns.
type matrix [16]float32

func identity() (m matrix) {
	m[0], m[5], m[10], m[15] = 1, 1, 1, 1
	return m
}

// turned returns the rotation by angle around the x axis.
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

// Each of these methods returns three elements of a row.
func (r row) yzw() vector { return vector{r.Y, r.Z, r.W} }
func (r row) xzw() vector { return vector{r.X, r.Z, r.W} }
func (r row) xyw() vector { return vector{r.X, r.Y, r.W} }
func (r row) xyz() vector { return vector{r.X, r.Y, r.Z} }

// minor returns a*b - c*d, rounded in the same way on every machine.
func minor(a, b, c, d float32) float32 { return float32(a*b) - float32(c*d) }

// det3 returns the determinant of the 3×3 matrix with these rows.
func det3(a, b, c vector) float32 {
	return float32(a.X*minor(b.Y, c.Z, c.Y, b.Z)) - float32(b.X*minor(a.Y, c.Z, c.Y, a.Z)) + float32(c.X*minor(a.Y, b.Z, b.Y, a.Z))
}

// inverse returns the inverse of m, if m is invertible. The suite uses the matrix library cgmath.
// This is its formula, but without vector instructions.
func (m *matrix) inverse() (inv matrix, ok bool) {
	x, y, z, w := m.row(0), m.row(1), m.row(2), m.row(3)
	det := float32(x.X*det3(y.yzw(), z.yzw(), w.yzw())) - float32(x.Y*det3(y.xzw(), z.xzw(), w.xzw())) +
		float32(x.Z*det3(y.xyw(), z.xyw(), w.xyw())) - float32(x.W*det3(y.xyz(), z.xyz(), w.xyz()))
	if det == 0 {
		return inv, false
	}
	f := 1 / det
	return matrix{
		float32(f * det3(y.yzw(), z.yzw(), w.yzw())),
		float32(-f * det3(y.xzw(), z.xzw(), w.xzw())),
		float32(f * det3(y.xyw(), z.xyw(), w.xyw())),
		float32(-f * det3(y.xyz(), z.xyz(), w.xyz())),

		float32(-f * det3(x.yzw(), z.yzw(), w.yzw())),
		float32(f * det3(x.xzw(), z.xzw(), w.xzw())),
		float32(-f * det3(x.xyw(), z.xyw(), w.xyw())),
		float32(f * det3(x.xyz(), z.xyz(), w.xyz())),

		float32(f * det3(x.yzw(), y.yzw(), w.yzw())),
		float32(-f * det3(x.xzw(), y.xzw(), w.xzw())),
		float32(f * det3(x.xyw(), y.xyw(), w.xyw())),
		float32(-f * det3(x.xyz(), y.xyz(), w.xyz())),

		float32(-f * det3(x.yzw(), y.yzw(), z.yzw())),
		float32(f * det3(x.xzw(), y.xzw(), z.xzw())),
		float32(-f * det3(x.xyw(), y.xyw(), z.xyw())),
		float32(f * det3(x.xyz(), y.xyz(), z.xyz())),
	}, true
}

// turn returns m·v. It ignores the last column of m, which is a translation.
func (m *matrix) turn(v vector) vector {
	return vector{
		float32(m[0]*v.X) + float32(m[4]*v.Y) + float32(m[8]*v.Z),
		float32(m[1]*v.X) + float32(m[5]*v.Y) + float32(m[9]*v.Z),
		float32(m[2]*v.X) + float32(m[6]*v.Y) + float32(m[10]*v.Z),
	}
}

func (m *matrix) times(o *matrix) (p matrix) {
	for col := range 4 {
		for row := range 4 {
			for k := range 4 {
				p[4*col+row] += float32(m[4*k+row] * o[4*col+k])
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
