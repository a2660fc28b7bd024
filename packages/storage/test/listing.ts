import type { ResourceQuery } from "../src/reads/ResourceLists.ts"

/** A list of everything that a team has of a resource, or of these ids, by name; `more` says what is asked for otherwise. */
export const listing = (ids: ReadonlyArray<string> = [], more: Partial<ResourceQuery> = {}): ResourceQuery => ({
  ids,
  name: undefined,
  type: undefined,
  includeDisabled: true,
  paused: undefined,
  among: {},
  counts: true,
  orderBy: "name",
  dir: "asc",
  key: "k",
  cursor: undefined,
  limit: 100,
  ...more
})
