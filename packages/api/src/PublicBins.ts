import { Context } from "effect"

/** The largest number of live unclaimed bins in the whole installation; 0: bins are disabled. */
export const PublicBins = Context.Reference<{ readonly most: number }>("@tidegate/api/PublicBins", {
  defaultValue: () => ({ most: 1_000 })
})
