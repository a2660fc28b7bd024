/**
 * The shard of an operation, as its row has it. The version before does not know all that the filters of this one may say, and would do more than it
 * was told to: it looks for its own shards, and these it does not have.
 */
export const placeOf = (shard: number): number => -shard

/** The places of shards, for whoever looks for what is to be done on them: those of the version before, too. */
export const placesOf = (shards: ReadonlyArray<number>): ReadonlyArray<number> => [...shards, ...shards.map(placeOf)]
