import { describe, expect, it } from "vitest"
import { runToEnd } from "@tidegate/runtime/Resumable"
import type { Schema } from "effect"
import { Redactor } from "../src/Redactor.ts"
import { withoutSecretLooks } from "../src/SecretValues.ts"
import { planted } from "./planted.ts"

/** What is told at a glance is what the whole work comes to: the glance may only ever spare it. */

const secret = "Tr0ub4dor-hunter2"
const words = [
  "ada@example.com",
  "order 17",
  "EUR",
  "Zürich, 3rd floor",
  "2026-11-23T10:00:00Z",
  "x".repeat(15),
  "a/b-c_d",
  "€ 12.50",
  ""
]
const looks = [
  "Bearer abcdefgh",
  "basic%20Zm9vOmJhcg",
  "https://u:p@host/x",
  "hooks.slack.com/services/T/B/x",
  "discord.com/api/webhooks/1/x",
  "api.telegram.org/bot123456:x",
  `12345678:${"a".repeat(35)}`,
  "sk_live_12345678",
  "glpat-1234567890",
  "AKIAABCDEFGHIJKLMNOP",
  `AIza${"b".repeat(30)}`,
  "ya29.abcdefghij",
  "SG.abcdefghij.abcdefghij",
  "eyJhbGciOiJI.x.y",
  "-----BEGIN RSA PRIVATE KEY-----",
  Buffer.from("password=hunter2!").toString("base64"),
  "password=x",
  "%70assword=x",
  '{"token":"x"}',
  "<secret>x</secret>",
  "--b\r\nname=password\r\n\r\nx"
]
const names = [
  "id",
  "name",
  "value",
  "password",
  "currency",
  "token",
  "key",
  "x-api-key",
  "data",
  "Bearer abcdefgh",
  "__proto__"
]

/** The same in every run. */
let state = 23
const below = (count: number): number => {
  state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
  return (state >>> 8) % count
}
const one = <A>(of: ReadonlyArray<A>): A => of[below(of.length)]!

const text = (): string =>
  Array.from({ length: 1 + below(3) }, () => (below(3) === 0 ? one(looks) : one(words))).join(
    one(["", " ", "-", "1", "_"])
  )

const value = (levels: number): Schema.Json => {
  const kind = below(levels > 0 ? 8 : 5)
  if (kind < 3) return text()
  if (kind === 3) return below(1_000)
  if (kind === 4) return one([null, true, false])
  if (kind === 5) return Array.from({ length: below(4) }, () => (below(4) === 0 ? one(names) : value(levels - 1)))
  return Object.fromEntries(Array.from({ length: below(4) }, () => [one(names), value(levels - 1)]))
}

const whole = (of: Schema.Json) => runToEnd(new Redactor().value(of))

describe("Quick check for plain values", () => {
  it("A value that passes the quick check is unchanged by the full redaction", () => {
    let plain = 0
    for (let i = 0; i < 20_000; i++) {
      const of = value(3)
      if (!new Redactor().isPlain(of)) continue
      plain++
      expect(whole(of)).toEqual(of)
    }
    expect(plain).toBeGreaterThan(2_000)
  })

  it("The quick check passes no value that contains a planted secret", () => {
    for (const { in: place, name, of = "body", value } of planted) {
      const written = { [of]: value(secret) }
      if (JSON.stringify(whole(written)) === JSON.stringify(written)) continue
      expect(new Redactor().isPlain(written), `${place} ${name}`).toBe(false)
    }
  })

  it("The quick check passes the usual headers, and follows the secret names each time", () => {
    const headers = {
      date: "Mon, 23 Nov 2026 10:28:37 GMT",
      "keep-alive": "timeout=120",
      "content-type": "a/b; charset=x"
    }
    const secretAge = (name: string): boolean => name === "max-age"
    const none = (): boolean => false
    for (let again = 0; again < 2; again++) {
      expect(new Redactor(none).isPlain(headers)).toBe(true)
      expect(new Redactor(none).isPlain("max-age=1")).toBe(true)
      expect(new Redactor(secretAge).isPlain("max-age=1")).toBe(false)
    }
    // More than are remembered.
    for (let i = 0; i < 3_000; i++) expect(new Redactor(none).isPlain(`max-age=${i}`)).toBe(true)
    expect(new Redactor(none).isPlain("max-age=1")).toBe(true)
  })

  it("The quick check passes no text that contains a secret pattern, at any position", () => {
    // A long text is looked through by each of the looks.
    const around = " . ".repeat(2_000)
    for (const look of looks) {
      for (const text of [look, `see ${look} there`, `a,${look}`, look.toUpperCase(), look.toLowerCase()]) {
        const slow = withoutSecretLooks(`${text} ${around}`)
        expect(slow.startsWith(withoutSecretLooks(text)), text).toBe(true)
      }
    }
  })
})
