/** What one call of a transformation may use. The figures are part of the public contract. */
export const limits = {
  /** Milliseconds of wall time from the first line of the code to the last byte of the result. */
  wallMs: 1_000,
  /** MiB of heap, the parsed request included. V8 looks at it when it collects garbage: it may be exceeded for a moment. */
  memoryMib: 64,
  /** Bytes of UTF-8. */
  codeBytes: 1_048_576,
  /** Bytes of the result as JSON in UTF-8, body and headers together. */
  outputBytes: 10 * 1_048_576,
  logLines: 100,
  /** Bytes of UTF-8 of one line. */
  logLineBytes: 4_096,
  /** Levels of arrays and objects in a returned body. */
  depth: 1_000
} as const
