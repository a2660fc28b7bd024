import { expect } from "vitest"
import { connectors } from "@tidegate/connectors/Connectors"
import type { DestinationConfig } from "../support/Contract.ts"
import { it as base } from "../support/it.ts"
import { Target } from "../support/Target.ts"

/** Destinations that call somebody's API, with a stand-in in its place. */

const origins = [
  "https://slack.com",
  "https://api.telegram.org",
  "https://api.sendgrid.com",
  "https://api.twilio.com"
] as const

const it = base
  .extend("api", { scope: "file" }, async ({}, { onCleanup }) => {
    const api = await Target.start()
    onCleanup(() => api.close())
    return api
  })
  .extend("settings", { scope: "file" }, ({ api }) => ({
    TIDEGATE_API_ORIGINS: origins.map((origin) => `${origin}=${api.origin}`).join(", ")
  }))

const auths = {
  CHAT_BOT_TOKEN: { bot_token: "123456:t0ken-of-a-bot" },
  EMAIL_API_KEY: { api_key: "SG.k3y-of-an-account" },
  MESSAGING_AUTH_TOKEN: { account_sid: "AC1", auth_token: "t0ken-of-an-account" },
  NO_AUTH: {}
} as const

type AuthType = keyof typeof auths

const secrets = ["t0ken-of-a-bot", "k3y-of-an-account", "t0ken-of-an-account", "t0ken-of-a-webhook"]

const calling = connectors.filter(
  ({ auths: [first], type }) => type !== "HTTP" && type !== "MOCK_API" && (first ?? "") in auths
)

const event = { message: "hello", id: 7, media_url: "https://93.184.216.34/a.png" }

it.for(calling.map((row) => [row.type, row] as const))(
  "%s: an event becomes a call of the API, and its trace shows no secret",
  async ([type, row], { api, gateway }) => {
    api.reset()
    api.reply = (response) => void response.writeHead(200, { "content-type": "application/json" }).end('{"ok":true}')
    const auth_type = row.auths[0] as AuthType
    const config: DestinationConfig = {
      ...(row.example["config"] as DestinationConfig),
      ...(type === "CHAT_WEBHOOK" ? { url: `${api.origin}/webhooks/1/t0ken-of-a-webhook` } : {}),
      auth_type,
      auth: auths[auth_type]
    }
    const source = await gateway.source()
    await gateway.connection(source, await gateway.destination(config, type))
    const answer = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: JSON.stringify(event) })
    const { request_id } = (await answer.json()) as { readonly request_id: string }
    const received = await gateway.eventually("the call", async () => api.received[0] ?? null)
    expect(received.method).toBe("POST")
    expect(received.body.length).toBeGreaterThan(0)
    const { attempts, events } = await gateway.eventually("the end of the attempt", async () => {
      const trace = await gateway.traced(request_id)
      return trace.events[0]?.status === "SUCCESSFUL" ? trace : null
    })
    expect(events[0]?.status).toBe("SUCCESSFUL")
    const told = JSON.stringify([attempts, events]) + (await gateway.logged())
    for (const secret of secrets) expect(told).not.toContain(secret)
  }
)

it("waits for as long as an API says in its body", async ({ api, gateway }) => {
  api.reset()
  const limited = { ok: false, error_code: 429, parameters: { retry_after: 3_600 } }
  api.reply = (response) =>
    void response.writeHead(429, { "content-type": "application/json" }).end(JSON.stringify(limited))
  const source = await gateway.source()
  const config = {
    chat_id: "1",
    text_template: "x",
    auth_type: "CHAT_BOT_TOKEN",
    auth: auths.CHAT_BOT_TOKEN
  } as const
  const retry = { type: "retry", strategy: "linear", interval: 1_000, count: 3 } as const
  await gateway.connection(source, await gateway.destination(config, "MESSENGER_MESSAGE"), [retry])
  const answer = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: "{}" })
  const { request_id } = (await answer.json()) as { readonly request_id: string }
  const wait = await gateway.eventually("the attempt", async () => {
    const [event] = (await gateway.traced(request_id)).events
    const [last, next] = [event?.last_attempt_at, event?.next_attempt_at]
    return typeof last === "string" && typeof next === "string" ? Date.parse(next) - Date.parse(last) : null
  })
  expect(wait).toBeGreaterThan(3_500_000)
})
