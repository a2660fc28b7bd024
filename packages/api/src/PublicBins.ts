import { Context } from "effect"

/** How many bins of strangers there may be at a time that live and nobody has claimed, in the whole installation; 0: none are made. */
export const PublicBins = Context.Reference<{ readonly most: number }>("@tidegate/api/PublicBins", {
  defaultValue: () => ({ most: 1_000 })
})
