import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Result } from "effect"
import { connectors, knownOrigins, settingsOf } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import { settings, SettingsError } from "../src/Settings.ts"

const read = (env: Record<string, string>) =>
  Effect.provideService(settings, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

const refusal = (env: Record<string, string>) =>
  Effect.map(Effect.flip(read(env)), (error) => {
    expect(error).toBeInstanceOf(SettingsError)
    return error.message
  })

describe("the settings of the gateway", () => {
  it.effect("send the calls of an API elsewhere", () =>
    Effect.gen(function* () {
      const pairs = [...knownOrigins].map((origin, i) => `${origin}=http://127.0.0.1:${9000 + i}`)
      const { apiOrigins } = yield* read({ TIDEGATE_API_ORIGINS: pairs.join(", ") })
      expect([...apiOrigins.keys()]).toEqual([...knownOrigins])
      expect(apiOrigins.get("https://slack.com")).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    })
  )

  it.effect("refuse an API that nothing calls, and tell those that are known", () =>
    Effect.gen(function* () {
      for (const origin of ["https://api.slack.com", "http://slack.com", "https://slack.com:444"]) {
        const message = yield* refusal({ TIDEGATE_API_ORIGINS: `${origin}=http://127.0.0.1:9000` })
        expect(message).toContain(`TIDEGATE_API_ORIGINS names ${origin}, which no destination calls`)
        for (const known of knownOrigins) expect(message).toContain(known)
      }
      expect(yield* refusal({ TIDEGATE_API_ORIGINS: "https://slack.com" })).toContain("must be pairs")
    })
  )

  it.effect("take the domains that the service sends from", () =>
    Effect.gen(function* () {
      expect((yield* read({})).senderDomains.size).toBe(0)
      const { senderDomains } = yield* read({ TIDEGATE_SENDER_DOMAINS: "service.example, Mail.example" })
      expect([...senderDomains]).toEqual(["service.example", "mail.example"])
      for (const wrong of ["a@service.example", "https://service.example", "service", "a/b.example", "x.example:25"]) {
        expect(yield* refusal({ TIDEGATE_SENDER_DOMAINS: wrong })).toContain("must be domains")
      }
    })
  )

  it.effect("say how many calls a workflow's runs have under way", () =>
    Effect.gen(function* () {
      expect((yield* read({})).workflowConcurrency).toBe(10)
      expect((yield* read({ TIDEGATE_WORKFLOW_CONCURRENCY: "1000" })).workflowConcurrency).toBe(1_000)
      for (const wrong of ["0", "1001", "2.5", "many"]) {
        yield* Effect.flip(read({ TIDEGATE_WORKFLOW_CONCURRENCY: wrong }))
      }
    })
  )

  it("know every origin that a type asks for", () => {
    for (const row of connectors) {
      const asked: Array<string> = []
      const settings = Result.getOrThrow(settingsOf(row, (row.example["config"] ?? {}) as Config))
      row.open(settings, { headers: {}, signing: null, settings: {} }, (origin) => {
        asked.push(origin)
        return origin
      })
      for (const origin of asked) expect(knownOrigins).toContain(origin)
    }
  })
})
