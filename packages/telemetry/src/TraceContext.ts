/** The W3C trace context of a request: its trace, and the parent span. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  /** Whether the sender records this trace. */
  readonly sampled: boolean
}

/** The value of a header in a request's headers. */
type HeaderValue = string | ReadonlyArray<string> | undefined

const pattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const noTrace = "0".repeat(32)
const noSpan = "0".repeat(16)
/** Characters. A later version of the standard may add fields; none has yet. */
const longest = 256

/**
 * The context in a `traceparent` header; null if there is none, more than one, or an invalid one (W3C Trace Context, level 1): then there is
 * no trace to continue.
 */
export const parseTraceparent = (value: HeaderValue): TraceContext | null => {
  if (typeof value !== "string" || value.length > longest) return null
  const found = pattern.exec(value)
  if (found === null) return null
  const [, version, traceId, spanId, flags, more] = found
  if (version === "ff" || (version === "00" && more !== undefined)) return null
  if (traceId === noTrace || spanId === noSpan) return null
  return { traceId: traceId!, spanId: spanId!, sampled: (Number.parseInt(flags!, 16) & 1) === 1 }
}

export const formatTraceparent = ({ sampled, spanId, traceId }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`
