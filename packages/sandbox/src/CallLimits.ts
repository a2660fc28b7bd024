/** Limits of one transformation call. The numbers are part of the public contract. */
export const callLimits = {
  /**
   * Milliseconds from the first line of the code to the last byte of the result. If the code received less than `dueMs` of processor time
   * in them, because the machine is busy, it runs once more, for at most `longestMs`.
   */
  ms: 1_000,
  dueMs: 800,
  longestMs: 20_000,
  /** MiB of heap, including the parsed request. V8 checks this when it collects garbage: it may be exceeded for a moment. */
  memoryMib: 64,
  /** UTF-8 bytes. */
  codeBytes: 1_048_576,
  /** Bytes of the result as JSON in UTF-8, body and headers together. */
  outputBytes: 10 * 1_048_576,
  logLines: 100,
  /** UTF-8 bytes of one line. */
  logLineBytes: 4_096,
  /** Nesting levels of a returned body, and its number of values (members, elements and the whole). Limited because the gateway parses it. */
  depth: 512,
  values: 100_000,
  /** Headers of a returned request; each value of a list counts. Hardly any target accepts more or longer ones. */
  headers: 500,
  headerNameBytes: 256,
  headerValueBytes: 32_768,
  /** Bytes of the names and values of all headers together. */
  headersBytes: 65_536,
  /** Bytes of the percent-encoded path. */
  pathBytes: 2_048,
  queryBytes: 16_384,
  queryValues: 1_000,
  /** Characters of a returned request as JSON, without its body. The limits above fit into this; more is not parsed. */
  membersLength: 1_048_576
} as const

/** Globals that code has beside the language. They are part of the public contract, too. */
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
