/**
 * The shard of an operation as its row stores it: negative, so that a process of the previous version does not find it by its
 * shards. That version does not know all members of this version's filters, and would process more records than the filter
 * allows.
 */
export const placeOf = (shard: number): number => -shard

/** The stored values of these shards, to find their work, including rows of the previous version. */
export const placesOf = (shards: ReadonlyArray<number>): ReadonlyArray<number> => [...shards, ...shards.map(placeOf)]
