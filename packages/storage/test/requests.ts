import { derivedId, newId, prefixes } from "@tidegate/model/Ids"
import type { RequestRecord } from "../src/journal/RequestRecord.ts"

/** The record of a request that has just been accepted, and becomes one event. */
export const requestRecord = (
  given: Pick<RequestRecord, "teamId" | "sourceId"> & Partial<RequestRecord>,
  { connection, destination }: { readonly connection: string; readonly destination: string }
): RequestRecord => {
  const at = given.ingestedAt ?? Date.now()
  const id = given.id ?? newId(prefixes.request, at)
  return {
    id,
    version: 1,
    status: "accepted",
    verified: false,
    rejectionCause: null,
    method: "POST",
    path: "/",
    query: "",
    headers: "{}",
    presented: null,
    body: Buffer.from("body"),
    bodySize: 4,
    externalId: null,
    originalIp: null,
    ingestedAt: at,
    events: [
      {
        id: derivedId(prefixes.event, id, connection),
        connectionId: connection,
        destinationId: destination,
        shard: 1,
        dueAt: at,
        orderingKey: null
      }
    ],
    ignored: [],
    pending: [],
    runs: [],
    cliEvents: 0,
    ...given
  }
}
