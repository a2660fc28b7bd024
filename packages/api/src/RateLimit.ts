import { Context } from "effect"

/** Calls per minute: of each API key (0: unlimited), and failed authentications of each client address. */
export const RateLimits = Context.Reference<{ readonly perKey: number; readonly failedPerAddress: number }>(
  "@tidegate/api/RateLimits",
  { defaultValue: () => ({ perKey: 6_000, failedPerAddress: 60 }) }
)

const minuteMs = 60_000
/** Client addresses that a process counts separately: some hundred bytes each. */
const maxAddresses = 10_000

export const perMinute = (name: string, calls: number, maxKeys: number = maxAddresses) => ({
  name,
  calls,
  windowMs: minuteMs,
  maxKeys
})
