import { expect, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { Sharding } from "effect/cluster"
import { callOf } from "@tidegate/actions/Providers"
import type { SendCall } from "@tidegate/actions/Call"
import { SenderDomains } from "@tidegate/connectors/SenderDomains"
import { Brokers } from "@tidegate/connectors/Brokers"
import { SqlServers } from "@tidegate/connectors/SqlServers"
import { Egress } from "@tidegate/egress/Egress"
import { Sandbox } from "@tidegate/sandbox/Sandbox"
import { HotSql, JournalSql, ReadSemaphores, ReportSql } from "@tidegate/storage/Database"
import { Secrets } from "@tidegate/storage/secrets/Secrets"
import { SecretTexts } from "@tidegate/workflows/SecretTexts"
import { stepKinds } from "@tidegate/workflows/StepKinds"
import { SqlClient } from "effect/sql"
import { makeSendCall } from "../src/Workflow/effects/SendCall.ts"
import * as StepEffects from "../src/Workflow/effects/StepEffects.ts"
import { carryingOut } from "../src/Workflow/RunWork.ts"

/** What leaves the process for a step, without anything that it would reach. */

const nothing = {} as never
let sent = 0
const outside = Layer.mergeAll(
  Layer.succeed(Egress, {
    deliver: () => {
      sent++
      return Promise.resolve({ status: 202, headers: {}, body: Buffer.alloc(0), errorCode: null, errorMessage: null })
    }
  } as never),
  Layer.succeed(SqlServers, nothing),
  Layer.succeed(Brokers, nothing),
  Layer.succeed(Sandbox, nothing),
  Layer.succeed(HotSql, nothing),
  Layer.succeed(JournalSql, nothing),
  Layer.succeed(ReportSql, nothing),
  Layer.succeed(ReadSemaphores, nothing),
  Layer.succeed(SqlClient.SqlClient, nothing),
  Layer.succeed(Secrets, nothing),
  Layer.succeed(Sharding.Sharding, { makeClient: () => Effect.succeed(() => nothing) } as never)
)

const run = {
  id: "wfr_1",
  team_id: "tm_1",
  request_id: "req_1",
  source_id: "src_1",
  source_name: "shop",
  headers: "{}"
}
const step = {
  id: "call",
  kind: "action",
  resource_id: null,
  action: { provider_key: "http", action_key: "request", version: "1.0.0", provider_account_id: null }
}
const effect = {
  start: { step: 0, attempt: 1, iteration: null },
  step: { step, timeoutMs: 1_000 },
  inputs: { values: null, warnings: [] },
  context: { workflow: { id: "wfl_1", name: "flow" } }
}

it.effect("A step that throws before its call fails, and its run continues", () =>
  Effect.gen(function* () {
    const carryOut = yield* carryingOut
    const call = { effect, run, key: "wse_1", texts: new SecretTexts() }
    expect(yield* carryOut(call as never)).toMatchObject({ type: "failed", step: 0, error: { code: "INTERNAL_ERROR" } })
  }).pipe(Effect.provide(Layer.provide(StepEffects.layer, outside)))
)

it.effect("No step can send e-mail with an address of the service itself", () =>
  Effect.gen(function* () {
    const carry = yield* makeSendCall
    const name = { provider_key: "email_api_email", action_key: "send", version: "1.0.0" }
    const mail = (from: string) =>
      Result.getOrThrow(
        callOf(name, { from, to: "ops@example.com" }, { mode: "email_api_key", values: { api_key: "SG.0000" } })
      ) as SendCall
    const of = { effect, run, key: "wse_1", now: 0, heard: () => Effect.void } as never
    for (const from of ["a@notify.service.example", "a@mail.NOTIFY.service.example"]) {
      expect(yield* Effect.flip(carry(mail(from), of))).toMatchObject({ code: "INPUT_INVALID", final: true })
    }
    // With a dot behind it, it is no address.
    expect(() => mail("a@notify.service.example.")).toThrow("must be an e-mail address")
    expect(sent).toBe(0)
    yield* carry(mail("a@example.com"), of)
    expect(sent).toBe(1)
  }).pipe(Effect.provideService(SenderDomains, new Set(["notify.service.example"])), Effect.provide(outside))
)

it("Every kind of step that leaves the process has an executor, or the table does not compile", () => {
  const carryOut: StepEffects.Executors["action"] = () => Effect.die("not called")
  const all: StepEffects.Executors = {
    action: carryOut,
    destination: carryOut,
    store: carryOut,
    transformation: carryOut,
    wait: carryOut,
    workflow: carryOut
  }
  // @ts-expect-error -- the executor of transformations is forgotten
  const forgotten: StepEffects.Executors = {
    action: carryOut,
    destination: carryOut,
    store: carryOut,
    wait: carryOut,
    workflow: carryOut
  }
  // @ts-expect-error -- a filter stays within the process
  const strange: StepEffects.Executors = { ...all, filter: carryOut }
  expect([all, forgotten, strange].map((table) => Object.keys(table).length)).toEqual([6, 5, 7])
  expect(Object.keys(all).toSorted()).toEqual(
    stepKinds
      // Of the kind "wait", only a step that waits for a request leaves the process.
      .filter(({ compile, kind }) => compile === null || kind === "wait")
      .map(({ kind }) => kind)
      .toSorted()
  )
})
