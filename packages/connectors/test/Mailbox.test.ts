import { describe, expect, it } from "@effect/vitest"
import PostalMime from "postal-mime"
import type { Config } from "@tidegate/connectors/Settings"
import { event, faultsOf, opened, refusalOf, sent } from "./Opened.ts"

const to = "ops@example.com"
const mailbox = (config: Config = {}) => opened("MAILBOX_EMAIL", { to, ...config })

/** The letter of an event: its bytes, and as another library reads them. */
const letter = async (config: Config, payload: unknown) => {
  const { text } = sent(mailbox(config), event(payload))
  const { raw, ...rest } = JSON.parse(text) as { readonly raw: string }
  expect(rest).toEqual({})
  expect(raw).toMatch(/^[\w-]+$/)
  const written = Buffer.from(raw, "base64url").toString()
  const [head = ""] = written.split("\r\n\r\n", 1)
  return {
    written,
    names: [...head.matchAll(/^([\w-]+):/gm)].map(([, name]) => name),
    read: await PostalMime.parse(written)
  }
}

const hostile = [
  "x\r\nBcc: evil@example.com",
  "x\nBcc: evil@example.com\n\nbody",
  "x\rBcc: evil@example.com",
  "x\u2028Bcc: evil@example.com",
  "x\u0085Bcc: evil@example.com",
  "=?utf-8?Q?x=0D=0ABcc:_evil@example.com?=",
  "é\r\n Bcc: evil@example.com\u0000",
  `${"é ".repeat(300)}\r\nBcc: evil@example.com`
]

describe("MAILBOX_EMAIL destination", () => {
  it("MAILBOX_EMAIL destination sends the payload as text from the mailbox's account", async () => {
    const { headers, method, shownUrl, url } = sent(mailbox(), event({ a: 1 }))
    expect([method, shownUrl, url]).toEqual([
      "POST",
      ...Array<string>(2).fill("https://stand-in-of-gmail.googleapis.com/gmail/v1/users/me/messages/send")
    ])
    expect(headers).toMatchObject({ authorization: "Bearer t0ken-of-an-account" })
    const { names, read } = await letter({}, { a: 1 })
    expect(read).toMatchObject({
      to: [{ address: to }],
      subject: "Event evt_1",
      text: '{"a":1}',
      date: "2026-01-02T00:00:00.000Z",
      messageId: "<evt_1@tidegate.invalid>"
    })
    expect(read.from).toBeUndefined()
    expect(new Set(names)).toEqual(
      new Set(["Content-Transfer-Encoding", "Content-Type", "Date", "MIME-Version", "Message-ID", "Subject", "To"])
    )
  })

  it("MAILBOX_EMAIL destination sends copies, a reply address, text and HTML with escaped values", async () => {
    const text = `— ${"длинный текст ".repeat(200)}\r\n.\r\n--evt_1`
    const { read } = await letter(
      {
        to: ["{{payload.to}}", "b@example.com"],
        cc: "c@example.com",
        bcc: ["d@example.com"],
        reply_to: "e@example.com",
        subject: "Заказ {{payload.id}} 😀",
        text_template: "{{payload.text}}",
        html_template: "<p>{{payload.html}}</p>"
      },
      { to: "a@example.com", id: 7, text, html: "<script>" }
    )
    expect(read.to?.map(({ address }) => address)).toEqual(["a@example.com", "b@example.com"])
    expect([read.cc, read.bcc, read.replyTo].map((list) => list?.map(({ address }) => address))).toEqual([
      ["c@example.com"],
      ["d@example.com"],
      ["e@example.com"]
    ])
    expect(read.subject).toBe("Заказ 7 😀")
    expect(read.text?.trim()).toBe(text)
    expect(read.html?.trim()).toBe("<p>&lt;script&gt;</p>")
    expect(read.attachments).toEqual([])
  })

  it("MAILBOX_EMAIL destination sends the same message at each attempt", async () => {
    const config = { html_template: "<p>{{payload.id}}</p>", text_template: "x" }
    const [first, second] = [await letter(config, { id: 1 }), await letter(config, { id: 1 })]
    expect(first.written).toBe(second.written)
  })

  it.each(hostile.map((text) => [text.slice(0, 50), text] as const))(
    "MAILBOX_EMAIL subject cannot add headers or recipients: %j",
    async (_, text) => {
      const { names, read } = await letter(
        { subject: "New {{payload.text}}", html_template: "{{payload.text}}" },
        { text }
      )
      expect(names).not.toContain("Bcc")
      expect(new Set(names).size).toBe(names.length)
      expect(read.to?.map(({ address }) => address)).toEqual([to])
      expect(read.bcc).toBeUndefined()
    }
  )

  it("MAILBOX_EMAIL subject that looks like an encoded word is shown as it was written", async () => {
    for (const subject of ["=?utf-8?Q?evil?=", `=?utf-8?B?ZXZpbA==?= ${"é".repeat(100)}`]) {
      const { read } = await letter({ subject: "{{payload.text}}" }, { text: subject })
      expect(read.subject).toBe(subject)
    }
  })

  it("MAILBOX_EMAIL destination refuses an address that decodes to other addresses", () => {
    const word = "=?utf-8?q?ops=40evil.test=2C?=@example.com"
    expect(refusalOf(mailbox({ to: "{{payload.to}}" }), event({ to: word })).code).toBe("TEMPLATE_ERROR")
    for (const address of [word, "a@=?utf-8?q?evil.test?=", "a\u200b@example.com"]) {
      expect(faultsOf("MAILBOX_EMAIL", { to: address })).toHaveLength(1)
    }
    expect(faultsOf("MAILBOX_EMAIL", { to: "a+b=c@example.com" })).toEqual([])
  })

  it("MAILBOX_EMAIL destination accepts letters of any script and refuses signs that look like separators", async () => {
    // Each looks like an ASCII character, or becomes one by normalization.
    for (const sign of ["\uff20", "\uff0c", "\ufe13", "\uff1c", "\ufe54", "\uff1d\uff1f"]) {
      const address = `ops${sign}evil.test@example.com`
      expect(
        refusalOf(mailbox({ to: "{{payload.user}}@example.com" }), event({ user: `ops${sign}evil.test` })).code
      ).toBe("TEMPLATE_ERROR")
      expect(faultsOf("MAILBOX_EMAIL", { to: address })).toHaveLength(1)
    }
    for (const domain of ["a/b", "a|b", "x.", ".x", "a..b", "a\u3002b", "a\uff0eb", "?", "a%b"]) {
      expect(faultsOf("MAILBOX_EMAIL", { to: `ops@${domain}` })).toHaveLength(1)
    }
    const many = ["a@bücher.example", "δοκιμή@παράδειγμα.example", "o'neil+x=y@mail-1.example.com", "root@localhost"]
    const { read } = await letter({ to: many }, {})
    expect(read.to).toHaveLength(4)
  })

  const nobody = ["a@example.com, b@example.com", "A <a@example.com>", "a@example.com\u0000", "", "a@b@c.example"]
  it.each([...hostile, ...nobody].map((text) => [text.slice(0, 50), text] as const))(
    "MAILBOX_EMAIL destination refuses the recipient %j",
    (_, text) => {
      for (const name of ["to", "cc", "bcc", "reply_to"]) {
        const refusal = refusalOf(mailbox({ [name]: "{{payload.text}}" }), event({ text }))
        expect(refusal.code).toBe("TEMPLATE_ERROR")
        expect(refusal.message).not.toContain("example.com")
      }
    }
  )

  it("MAILBOX_EMAIL message has lines of at most 998 bytes", async () => {
    const local = `${"a".repeat(60)}@example.com`
    const { written } = await letter(
      {
        to: Array.from({ length: 10 }, (_, i) => `${i}${local}`),
        subject: "{{payload}}",
        text_template: "{{payload}}"
      },
      "é".repeat(20_000)
    )
    for (const line of written.split("\r\n")) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(998)
    expect(written.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/)
  })

  it("MAILBOX_EMAIL destination refuses more than ten recipients and invalid addresses", () => {
    const many = Array.from({ length: 11 }, (_, i) => `${i}@example.com`)
    expect(faultsOf("MAILBOX_EMAIL", { to: many.slice(5), cc: many.slice(0, 5) })).toEqual([
      "config.to must be at most 10 recipients with cc and bcc"
    ])
    expect(faultsOf("MAILBOX_EMAIL", { to, reply_to: "nobody" })).toHaveLength(1)
  })

  it.each([
    [200, { id: "18c", threadId: "18c", labelIds: ["SENT"] }, "successful"],
    [200, {}, ["BAD_RESPONSE", false]],
    [400, { error: { code: 400, status: "FAILED_PRECONDITION" } }, ["BAD_RESPONSE", true]],
    [401, { error: { code: 401, status: "UNAUTHENTICATED" } }, ["AUTH_REJECTED", false]],
    [403, { error: { code: 403, errors: [{ reason: "insufficientPermissions" }] } }, ["AUTH_REJECTED", false]],
    [403, { error: { code: 403, errors: [{ reason: "rateLimitExceeded" }] } }, ["BAD_RESPONSE", false]],
    [429, { error: { code: 429, errors: [{ reason: "rateLimitExceeded" }] } }, ["BAD_RESPONSE", false]],
    [500, { error: { code: 500, status: "INTERNAL" } }, ["BAD_RESPONSE", false]]
  ])("MAILBOX_EMAIL destination judges the answer %i %j as %j", (status, body, expected) => {
    const verdict = mailbox().judge({
      status,
      headers: {},
      body: Buffer.from(JSON.stringify(body)),
      bodyTruncated: false
    })
    expect(verdict === "successful" ? verdict : [verdict.code, verdict.final]).toEqual(expected)
  })
})
