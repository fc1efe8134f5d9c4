// Where numbers lie. They may be as large as a float64, so differences are those of halves.

// ends returns the least and the greatest of some numbers.
export const ends = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

// share returns how far v lies from low to high: 0 to 1, and 0 if the two are one.
export function share(v, low, high) {
  const half = high / 2 - low / 2;
  return half > 0 ? Math.max(0, Math.min(1, (v / 2 - low / 2) / half)) : 0;
}

// middle returns the ends of numbers without the fiftieth of them at either end, or one at least.
function middle(values) {
  const sorted = Float64Array.from(values).sort(), out = sorted.length < 5 ? 0 : Math.max(1, Math.floor(sorted.length / 50));
  return [sorted[out] ?? Infinity, sorted.at(-1 - out) ?? -Infinity];
}

// near returns which of some points lie together. A point is far if it lies three times as far from the middle of
// all on one axis as the middle is wide. Each axis is an array of numbers, one for each point.
export function near(...axes) {
  const middles = axes.map(middle), reach = 6 * Math.max(...middles.map(([low, high]) => high / 2 - low / 2));
  if (!(reach > 0)) return () => true;
  return (i) => axes.every((values, k) => values[i] >= middles[k][0] - reach && values[i] <= middles[k][1] + reach);
}
