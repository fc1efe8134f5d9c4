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

// inverse returns the inverse of m, which must have one, from the determinants
// of the 2 by 2 blocks of its upper two and lower two rows.
func (m *matrix) inverse() (inv matrix) {
	a := [6]float32{
		m[0]*m[5] - m[1]*m[4], m[0]*m[9] - m[1]*m[8], m[0]*m[13] - m[1]*m[12],
		m[4]*m[9] - m[5]*m[8], m[4]*m[13] - m[5]*m[12], m[8]*m[13] - m[9]*m[12],
	}
	c := [6]float32{
		m[2]*m[7] - m[3]*m[6], m[2]*m[11] - m[3]*m[10], m[2]*m[15] - m[3]*m[14],
		m[6]*m[11] - m[7]*m[10], m[6]*m[15] - m[7]*m[14], m[10]*m[15] - m[11]*m[14],
	}
	f := 1 / (a[0]*c[5] - a[1]*c[4] + a[2]*c[3] + a[3]*c[2] - a[4]*c[1] + a[5]*c[0])

	inv[0] = f * (m[5]*c[5] - m[9]*c[4] + m[13]*c[3])
	inv[1] = f * (m[9]*c[2] - m[1]*c[5] - m[13]*c[1])
	inv[2] = f * (m[1]*c[4] - m[5]*c[2] + m[13]*c[0])
	inv[3] = f * (m[5]*c[1] - m[1]*c[3] - m[9]*c[0])
	inv[4] = f * (m[8]*c[4] - m[4]*c[5] - m[12]*c[3])
	inv[5] = f * (m[0]*c[5] - m[8]*c[2] + m[12]*c[1])
	inv[6] = f * (m[4]*c[2] - m[0]*c[4] - m[12]*c[0])
	inv[7] = f * (m[0]*c[3] - m[4]*c[1] + m[8]*c[0])
	inv[8] = f * (m[7]*a[5] - m[11]*a[4] + m[15]*a[3])
	inv[9] = f * (m[11]*a[2] - m[3]*a[5] - m[15]*a[1])
	inv[10] = f * (m[3]*a[4] - m[7]*a[2] + m[15]*a[0])
	inv[11] = f * (m[7]*a[1] - m[3]*a[3] - m[11]*a[0])
	inv[12] = f * (m[10]*a[4] - m[6]*a[5] - m[14]*a[3])
	inv[13] = f * (m[2]*a[5] - m[10]*a[2] + m[14]*a[1])
	inv[14] = f * (m[6]*a[2] - m[2]*a[4] - m[14]*a[0])
	inv[15] = f * (m[2]*a[3] - m[6]*a[1] + m[10]*a[0])
	return inv
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
