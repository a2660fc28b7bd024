import { Context } from "effect"

/** The largest number of live unclaimed bins in the whole installation; 0: bins are disabled. */
export const PublicBins = Context.Reference<{ readonly max: number }>("@tidegate/api/PublicBins", {
  defaultValue: () => ({ max: 1_000 })
})
