/** Limits of one operation call's inputs and outputs. Operations whose library takes more than linear time have their own limits in their rows. */
export const limits = {
  body_bytes: 262_144,
  string_bytes: 131_072,
  line_items: 1000,
  output_bytes: 524_288,
  warnings: 50,
  cpu_ms: 250
} as const

/** Microseconds of one element by the operation's declared cost: the event loop is blocked for that long. */
export const elementMicros = 40_000

/** Microseconds of all elements together. */
export const totalMicros = limits.cpu_ms * 1000
