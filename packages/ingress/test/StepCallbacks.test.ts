import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { CallbackReceived } from "@tidegate/entities/Workflow/StepCallback"
import { makeStepLinks } from "@tidegate/entities/Workflow/StepLinks"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { callbackPath, ingressAt } from "@tidegate/model/Ingress"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import { Bodies } from "../src/Bodies.ts"
import { StepCallbacks } from "../src/callbacks/StepCallbacks.ts"
import { Refusals } from "../src/handler/Refusals.ts"
import { IngressTelemetry } from "../src/IngressTelemetry.ts"
import { listening } from "./listening.ts"

const links = makeStepLinks(["a key"], ingressAt("http://localhost"))
const waiting = { urls: new Map([["wait", ["callback_url"] as const]]) }
const run = { team_id: "team_1", workflow_id: "wfl_1", run_id: "wfr_1" }
const [token] = links.of(waiting, run)!.tokens

/** An ingress whose steps answer with `outcomes`, in turn; then they take what comes. */
const open = Effect.fnUntraced(function* (outcomes: Array<GatewayError> = []) {
  const received: Array<readonly [workflow: string, CallbackReceived]> = []
  const bodies = new Bodies(new TrustedProxies([]))
  const callbacks = new StepCallbacks({
    bodies,
    links,
    refusals: new Refusals(yield* IngressTelemetry.make(() => bodies.heldBytes)),
    run: Effect.runForkWith(yield* Effect.context()),
    steps: {
      receive: (workflow, callback) =>
        Effect.suspend(() => {
          const refused = outcomes.shift()
          if (refused !== undefined) return Effect.fail(refused)
          received.push([workflow, callback])
          return Effect.void
        })
    }
  })
  const port = yield* listening(callbackPath, (message, response) => callbacks.admit(message, response))
  const origin = `http://127.0.0.1:${port}`
  const ask = (path: string, init: RequestInit = {}) =>
    Effect.promise(async () => {
      const response = await fetch(origin + path, { method: "POST", ...init })
      await response.arrayBuffer()
      return response.status
    })
  return { ask, bodies, received }
})

const path = `${callbackPath}${token}`

describe("Callbacks for steps of runs", () => {
  it.effect("A callback is passed to the workflow of its token, with its method, query and body", () =>
    Effect.gen(function* () {
      const { ask, bodies, received } = yield* open()
      const headers = { "content-type": "application/json" }
      expect(yield* ask(`${path}?a=1`, { method: "PUT", body: '{"ok":true}', headers })).toBe(200)
      expect(received).toEqual([
        [
          "wfl_1",
          {
            team_id: "team_1",
            run_id: "wfr_1",
            step_id: "wait",
            method: "PUT",
            headers: expect.objectContaining(headers),
            query: "a=1",
            body: Buffer.from('{"ok":true}').toString("base64")
          }
        ]
      ])
      expect(bodies.heldBytes).toBe(0)
    })
  )

  it.effect("Unknown tokens, other methods and bodies above the limit reach no workflow", () =>
    Effect.gen(function* () {
      const { ask, received } = yield* open()
      const other = makeStepLinks(["another key"], ingressAt("http://localhost")).of(waiting, run)!
      for (const wrong of ["", "x", `${token}x`, token!.slice(0, -1), other.tokens[0]!]) {
        expect([wrong, yield* ask(`${callbackPath}${wrong}`)]).toEqual([wrong, 404])
      }
      for (const method of ["GET", "HEAD", "DELETE"])
        expect([method, yield* ask(path, { method })]).toEqual([method, 405])
      expect(yield* ask(path, { body: "x".repeat(65_537) })).toBe(413)
      expect(received).toEqual([])
      expect(yield* ask(path, { body: "x".repeat(65_536) })).toBe(200)
    })
  )

  it.effect("A used callback is gone, and one that could not be stored may be repeated", () =>
    Effect.gen(function* () {
      const outcomes = [
        fail("STEP_NOT_WAITING", "used"),
        fail("NOT_FOUND", "none"),
        fail("RUN_ACTIVE", "busy"),
        fail("QUEUE_UNAVAILABLE", "away")
      ]
      const { ask } = yield* open(outcomes)
      const answers = []
      for (let i = 0; i < 5; i++) answers.push(yield* ask(path))
      expect(answers).toEqual([410, 404, 503, 503, 200])
    })
  )
})
