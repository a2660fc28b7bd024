/** What one call of a transformation may use. The figures are part of the public contract. */
export const callLimits = {
  /**
   * Milliseconds from the first line of the code to the last byte of the result. Code that had less than `dueMs` of the
   * processor in them, because the machine is busy, runs once again, and then for `longestMs` at most.
   */
  ms: 1_000,
  dueMs: 800,
  longestMs: 20_000,
  /** MiB of heap, the parsed request included. V8 looks at it when it collects garbage: it may be exceeded for a moment. */
  memoryMib: 64,
  /** Bytes of UTF-8. */
  codeBytes: 1_048_576,
  /** Bytes of the result as JSON in UTF-8, body and headers together. */
  outputBytes: 10 * 1_048_576,
  logLines: 100,
  /** Bytes of UTF-8 of one line. */
  logLineBytes: 4_096,
  /** Levels of arrays and objects in a returned body, and values (members, elements, the whole): the gateway parses it. */
  depth: 512,
  values: 100_000,
  /** Headers of a returned request; each value of a list counts. More, or longer ones, hardly any target takes. */
  headers: 500,
  headerNameBytes: 256,
  headerValueBytes: 32_768,
  /** Names and values of all headers together. */
  headersBytes: 65_536,
  /** As they are sent, that is percent-encoded. */
  pathBytes: 2_048,
  queryBytes: 16_384,
  queryValues: 1_000,
  /** Characters of all of a returned request but its body, as JSON: what the limits above allow, and more is not parsed. */
  membersLength: 1_048_576
} as const

/** What code finds beside the language. Part of the public contract, too. */
export const globals: ReadonlyArray<string> = [
  "addHandler",
  "console",
  "process.env",
  "URL",
  "URLSearchParams",
  "TextEncoder",
  "TextDecoder",
  "atob",
  "btoa",
  "crypto.hash",
  "crypto.hmac",
  "crypto.timingSafeEqual",
  "crypto.randomUUID"
]
