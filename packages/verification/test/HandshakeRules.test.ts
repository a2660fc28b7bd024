import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import * as handshakes from "../src/Handshakes.ts"
import type { HandshakeOf } from "@tidegate/verification/Provider"
import { providers } from "@tidegate/verification/Providers"
import { inbound } from "./providers/code/inbound.ts"

const plain = "text/plain; charset=utf-8"
const application = "application/json; charset=utf-8"

describe("Provider handshakes", () => {
  const all: ReadonlyArray<readonly [string, HandshakeOf]> = Object.entries(handshakes)

  it("Each handshake is attached to the rows of its provider and to no others", () => {
    const rows = new Map<unknown, ReadonlyArray<string>>()
    for (const { handshake, types } of providers) {
      if (handshake !== undefined) rows.set(handshake, [...(rows.get(handshake) ?? []), ...types].toSorted())
    }
    expect(rows).toEqual(
      new Map<unknown, ReadonlyArray<string>>([
        [handshakes.slackHandshake, ["SLACK"]],
        [handshakes.metaHandshake, ["META", "WHATSAPP"]],
        [handshakes.discordInteractionsHandshake, ["DISCORD"]],
        [handshakes.discordEventsHandshake, ["DISCORD_EVENTS"]],
        [handshakes.zoomHandshake, ["ZOOM"]],
        [handshakes.dropboxHandshake, ["DROPBOX"]],
        [handshakes.twitchHandshake, ["TWITCH"]],
        [handshakes.asanaHandshake, ["ASANA"]],
        [handshakes.notionHandshake, ["NOTION"]],
        // One function: all three of them only send HEAD.
        [handshakes.trelloHandshake, ["INTERCOM", "MAILCHIMP", "TRELLO"]],
        [handshakes.microsoftGraphHandshake, ["MICROSOFT_GRAPH"]],
        [handshakes.oktaHandshake, ["OKTA"]],
        [handshakes.snsHandshake, ["AWS_SNS"]],
        [handshakes.wooCommerceHandshake, ["WOO_COMMERCE"]]
      ])
    )
  })

  for (const [name, handshake] of all) {
    it.prop(
      `Handshake ${name} does not throw, and its answers are nothing that a browser renders`,
      { value: Schema.String, json: Schema.Json },
      (sample) => {
        const { json, value } = sample
        const query = new URLSearchParams({
          challenge: value,
          validationToken: value,
          "hub.mode": "subscribe",
          "hub.challenge": value,
          "hub.verify_token": "t"
        }).toString()
        const headers = {
          "x-hook-secret": value,
          "x-okta-verification-challenge": value,
          "twitch-eventsub-message-type": "webhook_callback_verification"
        }
        const message = {
          type: "url_verification",
          event: "endpoint.url_validation",
          challenge: value,
          payload: json,
          verification_token: value,
          Type: "SubscriptionConfirmation",
          SubscribeURL: value
        }
        for (const method of ["GET", "POST", "HEAD"]) {
          for (const body of ["", value, JSON.stringify(json), JSON.stringify(message)]) {
            const request = { ...inbound({ url: `https://hooks.example/src_1?${query}`, body, headers }), method }
            const answer = handshake(request, { verify_token: "t", webhook_secret_key: "s" })
            if (answer === null || answer === "refuse") continue
            expect([null, plain, application]).toContain(answer.contentType)
            expect(answer.body + JSON.stringify(answer.headers ?? {})).not.toMatch(/[<>\r\n]/)
            if (answer.contentType !== null) expect(answer.headers).toHaveProperty("x-content-type-options", "nosniff")
            expect(answer.body.length).toBeLessThanOrEqual(4096)
          }
        }
      }
    )
  }
})
