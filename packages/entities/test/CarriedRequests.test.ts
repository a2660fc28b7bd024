import { expect, it } from "@effect/vitest"
import { Schema } from "effect"
import type { RequestRecord } from "@tidegate/storage/Journal"
import { CarriedRequests, RequestsSchema } from "../src/commits/CarriedRequests.ts"

const record = (id: string, more: Partial<RequestRecord> = {}): RequestRecord => ({
  id,
  teamId: "tm_1",
  sourceId: "src_1",
  version: 3,
  status: "accepted",
  verified: true,
  rejectionCause: null,
  presented: null,
  method: "POST",
  path: "/ünï",
  query: "a=%20",
  headers: JSON.stringify({ "x-a": ["1", "2"], "x-quoted": '"\\' }),
  body: Buffer.from([0, 255, 10]),
  bodySize: 3,
  externalId: null,
  originalIp: "::1",
  ingestedAt: 1,
  events: [{ id: `evt_${id}`, connectionId: "web_1", destinationId: "des_1", shard: 5, dueAt: 2, orderingKey: "ü" }],
  ignored: [{ id: `ign_${id}`, connectionId: "web_2", cause: "FILTERED", meta: "[]" }],
  pending: [{ connectionId: "web_3", shard: 6, ordering: { key: null } }],
  runs: [{ id: `run_${id}`, workflowId: "wf_1", shard: 7, version: 1, steps: 2 }],
  cliEvents: 0,
  ...more
})

const carried = (records: ReadonlyArray<RequestRecord>): ReadonlyArray<RequestRecord> =>
  Schema.decodeSync(RequestsSchema)(Schema.encodeSync(RequestsSchema)(new CarriedRequests(records))).records

it("Requests arrive as they were sent, byte by byte", () => {
  const records = [
    record("req_1"),
    record("req_2", { body: null, bodySize: 12_000_000, status: "rejected", rejectionCause: "PAYLOAD_TOO_LARGE" }),
    record("req_3", {
      body: new Uint8Array(0),
      bodySize: 0,
      presented: "sealed",
      awaiting: [{ workflowId: "wf_2", shard: 1 }]
    }),
    record("req_4", { body: Buffer.from('{"n":12345678901234567890}'), silent: true })
  ]
  const plain = (all: ReadonlyArray<RequestRecord>) =>
    all.map(({ body, ...rest }) => ({ ...rest, body: body === null ? null : Buffer.from(body).toString("hex") }))
  expect(plain(carried(records))).toStrictEqual(plain(records))
})

it("A request keeps no more of the message in memory than its own body", () => {
  const [first] = carried([
    record("req_1", { body: Buffer.alloc(32_768, 1) }),
    record("req_2", { body: Buffer.alloc(32_768, 2) })
  ])
  expect(first!.body!.buffer.byteLength).toBe(32_768)
})
