import type { ConformanceRow } from "./Row.ts"

export const pull: ConformanceRow = {
  type: "PULL",
  mock: null,
  accepted: { status: 204 },
  failures: null,
  addresses: {},
  triedWith: "consumers that fetch, acknowledge, refuse, forget and hang up, beside a gateway that is killed"
}
