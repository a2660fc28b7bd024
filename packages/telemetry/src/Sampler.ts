import type { TraceContext } from "./TraceContext.ts"

/** The supported values of OTEL_TRACES_SAMPLER. */
export const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio"
] as const

export type SamplerName = (typeof samplers)[number]

/** Whether a trace is recorded: the same answer in every process with the same settings. The trace id is computed only on demand. */
export type Sampler = (traceId: () => string, parent: TraceContext | null) => boolean

/** `ratio`: OTEL_TRACES_SAMPLER_ARG, from 0 to 1. */
export const makeSampler = (name: SamplerName, ratio: number): Sampler => {
  // Uses the last 7 bytes, which are random in every version of the standard.
  const limit = ratio * 2 ** 56
  const byRatio = (traceId: () => string): boolean => Number(`0x${traceId().slice(18)}`) < limit
  const byName = { always_on: () => true, always_off: () => false, traceidratio: byRatio }
  const root = byName[name.replace("parentbased_", "") as keyof typeof byName]
  return name.startsWith("parentbased_")
    ? (traceId, parent) => (parent === null ? root(traceId) : parent.sampled)
    : (traceId) => root(traceId)
}
