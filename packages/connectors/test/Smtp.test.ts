import { createHash, createPublicKey, generateKeyPairSync, verify } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import PostalMime from "postal-mime"
import { Brokers, type SmtpLetter } from "@tidegate/connectors/Brokers"
import { settingsOf, shownSettings } from "@tidegate/connectors/Connectors"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import type { Config } from "@tidegate/connectors/Settings"
import { SqlServers } from "@tidegate/connectors/SqlServers"
import { smtp } from "../src/Smtp.ts"
import { factsOf } from "./Facts.ts"
import { event, faultsOf } from "./Opened.ts"

const base = { host: "smtp.example.com", from: "orders@example.com", to: "ops@example.com" }

const keyOf = (modulusLength: number) =>
  generateKeyPairSync("rsa", {
    modulusLength,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" }
  })
const key = keyOf(2048)

/** What would be handed to the server, or why nothing is. */
const handed = (config: Config, payload: unknown): Promise<SmtpLetter | SessionFailure> => {
  const sender = smtp.open(
    Result.getOrThrow(settingsOf(smtp, { ...base, ...config })),
    { headers: {}, signing: null, settings: {} },
    (origin) => origin
  )
  if (sender.kind !== "session") throw new Error("it is none")
  let letter: SmtpLetter | null = null
  const message = event(payload)
  return Effect.runPromise(
    sender.connect.pipe(
      Effect.flatMap((session) =>
        session.send(message, factsOf(message, { createdAt: Date.UTC(2026, 0, 2) }), () => true)
      ),
      Effect.match({ onFailure: (failure) => failure, onSuccess: () => letter! }),
      Effect.provideService(SqlServers, { open: () => Effect.die("there is no database here") }),
      Effect.provideService(Brokers, {
        open: () =>
          Effect.succeed((sent) =>
            Effect.sync(() => {
              letter = sent as SmtpLetter
              return "250 queued"
            })
          )
      }),
      Effect.scoped
    )
  )
}

const letterOf = async (config: Config, payload: unknown = {}) => {
  const sent = await handed(config, payload)
  if ("code" in sent) throw new Error(sent.message)
  const written = Buffer.from(sent.content).toString()
  const end = written.indexOf("\r\n\r\n")
  return {
    ...sent,
    written,
    head: written.slice(0, end),
    body: written.slice(end + 4),
    read: await PostalMime.parse(written)
  }
}

describe("SMTP destination", () => {
  it("SMTP letter has sender, recipients, subject, text, HTML and the event's time and id", async () => {
    const { from, head, read, to, written } = await letterOf(
      {
        from: "{{payload.shop}}@example.com",
        from_name: "Orders of «{{payload.shop}}»",
        cc: "c@bücher.example",
        bcc: ["d@example.com", "ops@example.com"],
        reply_to: "r@example.com",
        subject: "Order {{payload.id}}",
        text_template: ".\r\n{{payload.id}}\n.",
        html_template: "<p>{{payload.html}}</p>"
      },
      { shop: "north", id: 7, html: "<script>" }
    )
    expect(from).toBe("north@example.com")
    expect(to).toEqual(["ops@example.com", "c@xn--bcher-kva.example", "d@example.com"])
    expect(read).toMatchObject({
      from: { name: "Orders of «north»", address: "north@example.com" },
      to: [{ address: "ops@example.com" }],
      replyTo: [{ address: "r@example.com" }],
      subject: "Order 7",
      date: "2026-01-02T00:00:00.000Z",
      messageId: "<evt_1@example.com>"
    })
    expect([read.text?.trim(), read.html?.trim()]).toEqual([".\r\n7\n.", "<p>&lt;script&gt;</p>"])
    // Nobody else learns of a recipient of bcc.
    expect(head).not.toMatch(/bcc/i)
    expect(written).not.toContain("d@example.com")
    expect((await letterOf({}, {})).written).toBe((await letterOf({}, {})).written)
  })

  it.each([
    "x\r\nBcc: evil@example.com",
    "x\n.\nMAIL FROM:<evil@example.com>",
    "x\u2028Bcc: evil@example.com",
    "=?utf-8?Q?x=0D=0ABcc:_evil@example.com?=",
    `é${"x ".repeat(400)}\r\nBcc: evil@example.com\u0000`
  ])("Payload adds no header and no recipient to an SMTP letter: %j", async (text) => {
    const { head, read, to } = await letterOf(
      { subject: "{{payload.text}}", from_name: "{{payload.text}}", text_template: "{{payload.text}}" },
      { text }
    )
    expect(to).toEqual(["ops@example.com"])
    const names = [...head.matchAll(/^([\w-]+):/gm)].map(([, name]) => name)
    expect(new Set(names)).toEqual(
      new Set([
        "From",
        "To",
        "Subject",
        "Date",
        "Message-ID",
        "MIME-Version",
        "Content-Type",
        "Content-Transfer-Encoding"
      ])
    )
    expect(names.length).toBe(8)
    expect([read.from?.address, read.to?.map(({ address }) => address)]).toEqual(["orders@example.com", to])
    for (const name of ["to", "cc", "bcc", "reply_to"]) {
      expect(await handed({ [name]: "{{payload.text}}" }, { text })).toMatchObject({
        code: "TEMPLATE_ERROR",
        final: true
      })
    }
    expect(await handed({ from: "{{payload.text}}@example.com" }, { text })).toMatchObject({ code: "TEMPLATE_ERROR" })
  })

  it("SMTP destination refuses an address of more than 320 bytes and a domain that an event would choose", async () => {
    const long = { to: `${"a".repeat(310)}@example.com` }
    expect(await handed({ to: "{{payload.to}}" }, long)).toMatchObject({ code: "TEMPLATE_ERROR", final: true })
    expect(faultsOf("SMTP", { ...base, ...long })).toHaveLength(1)
    expect(faultsOf("SMTP", { ...base, from: "orders@{{payload.domain}}" })).toHaveLength(1)
    const many = Array.from({ length: 11 }, (_, i) => `${i}@example.com`)
    expect(faultsOf("SMTP", { ...base, to: many.slice(5), bcc: many.slice(0, 5) })).toHaveLength(1)
  })

  it("SMTP destination uses TLS from the beginning at port 465, by STARTTLS elsewhere, or as tls_first says", () => {
    const urlOf = (config: Config): string => {
      const settings = Result.getOrThrow(settingsOf(smtp, { ...base, ...config }))
      const sender = smtp.open(settings, { headers: {}, signing: null, settings: {} }, (origin) => origin)
      return sender.kind === "session" ? sender.shownUrl : ""
    }
    expect(urlOf({})).toBe("smtp://smtp.example.com:587")
    expect(urlOf({ port: 465 })).toBe("smtps://smtp.example.com:465")
    expect(urlOf({ port: 465, tls_first: false })).toBe("smtp://smtp.example.com:465")
    expect(urlOf({ port: 2465, tls_first: true })).toBe("smtps://smtp.example.com:2465")
    expect(urlOf({ port: 465, tls_mode: "disable" })).toBe("smtp://smtp.example.com:465")
    expect(faultsOf("SMTP", { ...base, tls_first: true, tls_mode: "disable" })).toEqual([
      "config.tls_first must not be true without TLS"
    ])
  })

  it("SMTP letter is signed by DKIM, for the domain of the sender or of the settings", async () => {
    const config = {
      from: "δοκιμή@example.com",
      subject: `Заказ ${"7 ".repeat(100)}`,
      html_template: "<p>  a \t b </p>\n\n\n",
      text_template: "{{payload.id}}",
      dkim_selector: "key1",
      dkim_private_key: key.privateKey
    }
    for (const [change, domain] of [
      [{}, "example.com"],
      [{ dkim_domain: "mail.example.com" }, "mail.example.com"]
    ] as const) {
      const { body, head } = await letterOf({ ...config, ...change }, { id: 7 })
      const fields = head.split(/\r\n(?![ \t])/)
      const relaxed = (field: string): string => {
        const colon = field.indexOf(":")
        const value = field.slice(colon + 1).replaceAll("\r\n", "")
        return `${field.slice(0, colon).toLowerCase().trim()}:${value.replaceAll(/[ \t]+/g, " ").trim()}`
      }
      const [signature = ""] = fields
      const tags = Object.fromEntries(
        relaxed(signature)
          .slice("dkim-signature:".length)
          .split(";")
          .map((tag): [string, string] => {
            const equals = tag.indexOf("=")
            return [tag.slice(0, equals).trim(), tag.slice(equals + 1).replaceAll(" ", "")]
          })
      )
      expect(tags).toMatchObject({ v: "1", a: "rsa-sha256", c: "relaxed/relaxed", d: domain, s: "key1" })
      const canonical = body
        .split("\r\n")
        .map((line) => line.replaceAll(/[ \t]+/g, " ").replace(/ $/, ""))
        .join("\r\n")
        .replace(/(\r\n)+$/, "")
      expect(createHash("sha256").update(`${canonical}\r\n`).digest("base64")).toBe(tags["bh"])
      const names = tags["h"]!.split(":")
      expect(names).toEqual(expect.arrayContaining(["from", "to", "subject", "date", "message-id", "content-type"]))
      const signed = [
        ...names.map((name) => relaxed(fields.find((field) => field.toLowerCase().startsWith(`${name}:`))!)),
        relaxed(signature).replace(/ b=.*$/, " b=")
      ].join("\r\n")
      const proof = Buffer.from(tags["b"]!, "base64")
      const publicKey = createPublicKey(key.publicKey)
      expect(verify("sha256", Buffer.from(signed), publicKey, proof)).toBe(true)
      expect(verify("sha256", Buffer.from(signed.replace("from:", "from: evil")), publicKey, proof)).toBe(false)
    }
  })

  it("SMTP destination refuses a DKIM key that cannot sign, and shows a stored one masked", () => {
    const dkim = (change: Config) => faultsOf("SMTP", { ...base, dkim_selector: "key1", ...change })
    const notKey = ["config.dkim_private_key must be an RSA key of 2048 to 4096 bits, in PEM without a password"]
    expect(dkim({ dkim_private_key: "s3cret" })).toEqual(notKey)
    expect(dkim({ dkim_private_key: keyOf(1024).privateKey })).toEqual(notKey)
    expect(dkim({})).toEqual(["config.dkim_private_key is required with dkim_selector and dkim_domain"])
    expect(dkim({ dkim_private_key: key.privateKey, dkim_selector: null })).toEqual([
      "config.dkim_selector is required with dkim_private_key"
    ])
    expect(dkim({ dkim_private_key: key.privateKey })).toEqual([])
    const shown = shownSettings("SMTP", { ...base, dkim_selector: "key1", dkim_private_key: key.privateKey })
    expect(shown["dkim_private_key"]).toBe("****")
    expect(JSON.stringify(shown)).not.toContain("PRIVATE")
  })
})
