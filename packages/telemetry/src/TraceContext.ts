/** The W3C trace context of a request: whose trace it belongs to, and under which span. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 of them. */
  readonly spanId: string
  /** Whether its sender keeps what it records of this trace. */
  readonly sampled: boolean
}

/** What a header may be in a request's headers. */
type HeaderValue = string | ReadonlyArray<string> | undefined

const pattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const noTrace = "0".repeat(32)
const noSpan = "0".repeat(16)
/** A later version may have more fields; none has yet. */
const longest = 256

/**
 * The context that a `traceparent` header states; null when there is none, more than one, or it is not valid (W3C Trace
 * Context, level 1): whoever sent it then has no trace that could go on.
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
