import { Result, Schema } from "effect"
import * as SchemaBinary from "effect/encoding/SchemaBinary"
import type { Rpc } from "effect/rpc"
import { describe, expect, it } from "vitest"
import type { Members } from "@tidegate/resources/Input"
import { resources } from "../../resources/src/Resources.ts"
import type { AnyResource, Body } from "@tidegate/resources/Resource"
import { protocolOf } from "../src/Protocol.ts"

/** What goes to an actor in another process comes there as it was sent: the transport's layout does not take every schema. */

const ingress = { base: "https://hooks.test/e/" } as never

const overTheWire = (schema: Schema.Top, value: unknown): unknown => {
  const codec = SchemaBinary.toCodec(schema as Schema.Codec<unknown, unknown>)
  return Schema.decodeUnknownSync(codec)(Schema.encodeUnknownSync(codec)(value))
}

const judged = (body: Body<Schema.Codec<unknown>>, written: Schema.Json, id: string | null): unknown =>
  Result.getOrThrow(body.judge(written as Members, { id, now: new Date(0), ingress }))

describe.each(resources.map((one) => [one.name, one as AnyResource] as const))("Actor of a %s", (_, resource) => {
  const rpcs = protocolOf(resource).protocol.requests as ReadonlyMap<string, Rpc.AnyWithProps>
  const inputs: Readonly<Record<string, unknown>> = {
    Create: judged(resource.write, resource.example.body, null),
    Upsert: judged(resource.write, resource.example.body, null),
    Replace: judged(resource.write, resource.example.body, null),
    Update: judged(resource.patch, resource.example.patch, "id")
  }

  it.each([...rpcs.keys()])(`Command %s of a ${resource.name} is unchanged by the wire format`, (name) => {
    const rpc = rpcs.get(name)!
    const input = inputs[name]
    const payload = { team_id: "tm_a", command: "cmd", ...(input === undefined ? {} : { input }) }
    expect(overTheWire(rpc.payloadSchema, payload)).toEqual(payload)
    const { deleted, example } = resource
    const gone = deleted === undefined ? { id: "id" } : { id: "id", more: deleted.example }
    const answer = name === "Delete" ? gone : example.record
    expect(overTheWire(rpc.successSchema, answer)).toEqual(answer)
  })
})
