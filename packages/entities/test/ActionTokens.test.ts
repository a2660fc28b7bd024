import { expect, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import type { SendCall } from "@tidegate/actions/Call"
import { callOf } from "@tidegate/actions/Providers"
import { noServers } from "../../connectors/test/TestConnectors.ts"
import { Egress } from "@tidegate/egress/Egress"
import { makeSendCall } from "../src/Workflow/effects/SendCall.ts"

/** The tokens that calls of actions carry, of a provider that is asked by the way out and a target that takes some of them. */

interface World {
  /** What the provider was asked for, and how it answers. */
  asked: number
  gives: (count: number) => { readonly status: number; readonly body: string }
  /** The tokens that the target was sent, and those that it refuses. */
  readonly sent: Array<string>
  readonly refused: Set<string>
}

const given = (token: string, life = 3_600) => ({
  status: 200,
  body: JSON.stringify({ access_token: token, token_type: "Bearer", expires_in: life })
})

const makeWorld = (): World => ({
  asked: 0,
  gives: (count) => given(`access-token-${count}`),
  sent: [],
  refused: new Set()
})

const answer = (status: number, body: string) => ({
  status,
  headers: {},
  body: Buffer.from(body),
  bodyTruncated: false,
  errorCode: null,
  errorMessage: null
})

const tokenUrl = "https://id.example.com/token"

const outside = (world: World) =>
  Layer.mergeAll(
    Layer.succeed(Egress, {
      deliver: ({ headers, url }: { readonly url: string; readonly headers: ReadonlyArray<string> }) => {
        if (url === tokenUrl) {
          const { body, status } = world.gives(++world.asked)
          return Promise.resolve(answer(status, body))
        }
        const token = headers[headers.indexOf("authorization") + 1]!.replace("Bearer ", "")
        world.sent.push(token)
        return Promise.resolve(
          world.refused.has(token)
            ? answer(401, JSON.stringify({ error: `not ${token}` }))
            : answer(200, JSON.stringify({ updates: { updatedRows: 1 }, echo: token }))
        )
      }
    } as never),
    noServers
  )

const row = Result.getOrThrow(
  callOf(
    { provider_key: "spreadsheet", action_key: "send", version: "1.0.0" },
    { spreadsheet_id: "1BxiMVs0XRA5nFMd", values: [1] },
    {
      mode: "oauth_refresh_token",
      values: { token_url: tokenUrl, client_id: "gateway", client_secret: "secret", refresh_token: "refresh" }
    }
  )
) as SendCall

const stepOf = (team_id: string, key: string) =>
  ({
    effect: {
      start: { step: 0, attempt: 1, iteration: null },
      step: { step: { id: "append", resource_id: "act_1" }, timeoutMs: 1_000 },
      context: { workflow: { id: "wfl_1", name: "flow" } }
    },
    run: { id: "wfr_1", team_id, request_id: "req_1", source_id: "src_1", source_name: "shop", headers: "{}" },
    key,
    now: 0,
    heard: () => Effect.void
  }) as never

const test = (
  name: string,
  body: (
    world: World,
    call: (key?: string, team?: string) => Effect.Effect<unknown, unknown>
  ) => Effect.Effect<void, unknown>
) =>
  it.effect(name, () => {
    const world = makeWorld()
    return Effect.gen(function* () {
      const carry = yield* makeSendCall
      yield* body(world, (key = "wse_1", team = "tm_1") => carry(row, stepOf(team, key)))
    }).pipe(Effect.provide(outside(world)))
  })

const all = (call: (key: string) => Effect.Effect<unknown, unknown>, count: number) =>
  Effect.all(
    Array.from({ length: count }, (_, i) => Effect.result(call(`wse_${i}`))),
    { concurrency: "unbounded" }
  )

test("A hundred steps that start at once ask for only one token", (world, call) =>
  Effect.gen(function* () {
    const ended = yield* all(call, 100)
    expect(ended.every(Result.isSuccess)).toBe(true)
    expect(world.asked).toBe(1)
    expect(new Set(world.sent)).toEqual(new Set(["access-token-1"]))
    expect(JSON.stringify(ended)).not.toContain("access-token-1")
    yield* TestClock.adjust("59 minutes")
    yield* call()
    expect([world.asked, world.sent.at(-1)]).toEqual([2, "access-token-2"])
  }))

test("A rejected token is dropped, and the call is repeated once with another token", (world, call) =>
  Effect.gen(function* () {
    yield* call()
    world.refused.add("access-token-1")
    const ended = yield* all(call, 20)
    expect(ended.every(Result.isSuccess)).toBe(true)
    expect(world.asked).toBe(2)
    yield* call()
    expect(world.sent.at(-1)).toBe("access-token-2")
  }))

test("A target that rejects every token causes only a few token requests", (world, call) =>
  Effect.gen(function* () {
    world.gives = (count) => {
      world.refused.add(`access-token-${count}`)
      return given(`access-token-${count}`)
    }
    expect(yield* Effect.flip(call())).toMatchObject({ code: "AUTH_REJECTED", status: 401 })
    expect(world.sent).toEqual(["access-token-1", "access-token-2"])
    yield* all(call, 100)
    expect(world.asked).toBe(2)
    yield* TestClock.adjust("10 seconds")
    yield* all(call, 100)
    expect(world.asked).toBe(3)
  }))

test("A token provider that fails is left alone for a while, and no step is sent", (world, call) =>
  Effect.gen(function* () {
    world.gives = () => ({ status: 503, body: "" })
    const ended = yield* all(call, 100)
    for (const one of ended) {
      expect(one).toMatchObject({ failure: { code: "OAUTH2_HANDSHAKE_FAILED", retry_after_ms: expect.any(Number) } })
    }
    yield* all(call, 100)
    expect(world.asked).toBe(1)
    // Twice as long each time.
    for (let second = 0; second < 60; second++) {
      yield* TestClock.adjust("1 second")
      yield* all(call, 10)
    }
    expect(world.asked).toBeGreaterThan(3)
    expect(world.asked).toBeLessThan(8)
    expect(world.sent).toEqual([])
    world.gives = () => given("token")
    yield* TestClock.adjust("5 minutes")
    yield* call()
    expect(world.sent).toEqual(["token"])
  }))

test("Teams never share tokens, even with equal credentials", (world, call) =>
  Effect.gen(function* () {
    yield* call("wse_1", "tm_1")
    yield* call("wse_2", "tm_2")
    expect(world.sent).toEqual(["access-token-1", "access-token-2"])
  }))
