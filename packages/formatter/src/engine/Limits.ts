/** What one call of an operation may be given and make. A library that is slower than its text is long has a limit of its own, in its row. */
export const limits = {
  body_bytes: 262_144,
  string_bytes: 131_072,
  line_items: 1000,
  output_bytes: 524_288,
  warnings: 50,
  cpu_ms: 250
} as const

/** Microseconds that one element may take by what its operation is said to cost: the event loop is held that long. */
export const elementMicros = 40_000

/** Microseconds that all elements may take together. */
export const totalMicros = limits.cpu_ms * 1000
