// Functions for the distribution of numbers. Numbers may be as large as a float64, so differences
// are computed from halves to avoid overflow.

// ends returns the minimum and maximum of some numbers.
export const ends = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

// share returns where v is between low and high, from 0 to 1. It returns 0 if low equals high.
export function share(v, low, high) {
  const half = high / 2 - low / 2;
  return half > 0 ? Math.max(0, Math.min(1, (v / 2 - low / 2) / half)) : 0;
}

// middle returns the range of the numbers, without the smallest and the largest fiftieth. It
// leaves out at least one number on each side, but none if there are fewer than five.
function middle(values) {
  const sorted = Float64Array.from(values).sort(), out = sorted.length < 5 ? 0 : Math.max(1, Math.floor(sorted.length / 50));
  return [sorted[out] ?? Infinity, sorted.at(-1 - out) ?? -Infinity];
}

// near returns a function that reports whether point i is close to the other points. A point is
// far if, on one axis, its distance from the middle range exceeds a limit. The limit is three
// times the width of the widest middle range. Each axis is an array with a number per point.
export function near(...axes) {
  const middles = axes.map(middle), reach = 6 * Math.max(...middles.map(([low, high]) => high / 2 - low / 2));
  if (!(reach > 0)) return () => true;
  return (i) => axes.every((values, k) => values[i] >= middles[k][0] - reach && values[i] <= middles[k][1] + reach);
}
