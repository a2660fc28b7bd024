/** How long a bin lives that nobody claims. */
export const binLife = { seconds: 3_600 } as const

/** What a bin takes until it is claimed. */
export const binLimits = {
  /** Requests that are stored, of all its life. */
  requests: 500,
  /** Requests that are stored in a minute of the clock. */
  perMinute: 60,
  /** Bytes of a body. */
  body: 1024 * 1024
} as const
