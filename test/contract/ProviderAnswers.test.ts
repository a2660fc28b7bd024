import { createHmac } from "node:crypto"
import { describe, expect } from "vitest"
import { getExpectedTwilioSignature } from "twilio/lib/webhooks/webhooks.js"
import type { Source } from "../support/Contract.ts"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"
import { meanwhile } from "../support/Meanwhile.ts"

/** What providers want of the answer, and the forms that they post, as they see it on the wire. */

const secret = "a-secret-0123456789"

const formType = { "Content-Type": "application/x-www-form-urlencoded; charset=utf-8" }
const customResponse = { custom_response: { content_type: "text", body: "mine" } }

/** The parts in the order of the members, as an encoder that is not ours writes them. */
const mail = async (fields: Readonly<Record<string, string | Blob>>) => {
  const data = new FormData()
  for (const [name, value] of Object.entries(fields)) data.append(name, value)
  const encoded = new Response(data)
  return { type: encoded.headers.get("content-type")!, body: Buffer.from(await encoded.arrayBuffer()) }
}

const it = gatewayIt
  .extend(
    "create",
    ({ gateway }) =>
      (type: string, config: Record<string, unknown> = {}): Promise<Source> =>
        gateway.api("POST", "/sources", {
          name: gateway.name("source"),
          type,
          config: { auth: { webhook_secret_key: secret }, ...config }
        })
  )
  .extend(
    "post",
    ({ gateway }) =>
      (source: Source, headers: Readonly<Record<string, string>>, body: string) =>
        request(gateway.port, { path: `/e/${source.id}`, headers: Object.entries(headers), body })
  )
  .extend("send", ({ gateway }) => async (source: Source, fields: Readonly<Record<string, string | Blob>>) => {
    const { body, type } = await mail(fields)
    const response = await fetch(`${gateway.origin}/e/${source.id}`, {
      method: "POST",
      headers: { "content-type": type },
      body
    })
    await response.arrayBuffer()
    return { status: response.status, body }
  })

describe("XERO", () => {
  const body = '{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}'
  const signed = { "x-xero-signature": createHmac("sha256", secret).update(body).digest("base64") }
  const forged = { "x-xero-signature": createHmac("sha256", "other").update(body).digest("base64") }

  it("A Xero intent to receive is answered with 200 or 401 without body, content type or cookie", async ({
    create,
    gateway,
    post
  }) => {
    const source = await create("XERO")
    for (const [headers, status] of [
      [signed, 200],
      [forged, 401],
      [{}, 401]
    ] as const) {
      const answer = await post(source, headers, body)
      expect([answer.status, answer.body, answer.headers["content-length"]]).toEqual([status, "", "0"])
      expect(answer.headers).not.toHaveProperty("content-type")
      expect(answer.headers).not.toHaveProperty("set-cookie")
    }
    expect((await gateway.requests(source.id)).map(({ status }) => status)).toEqual([
      "accepted",
      "rejected",
      "rejected"
    ])
    await gateway.api("POST", `/sources/${source.id}/disable`)
    expect(await post(source, signed, body)).toMatchObject({ status: 403, body: "" })
  })

  it("A custom response of a Xero source answers only accepted requests", async ({ create, post }) => {
    const source = await create("XERO", customResponse)
    expect(await post(source, signed, body)).toMatchObject({ status: 200, body: "mine" })
    expect(await post(source, forged, body)).toMatchObject({ status: 401, body: "" })
  })
})

describe("TWILIO", () => {
  const form = { From: "+15017122661", Body: "größe & more" }
  const sign = (source: Source) => ({
    ...formType,
    "X-Twilio-Signature": getExpectedTwilioSignature(secret, source.url, form)
  })

  it("A Twilio form is answered with empty TwiML", async ({ create, post }) => {
    const source = await create("TWILIO")
    const answer = await post(source, sign(source), new URLSearchParams(form).toString())
    expect([answer.status, answer.headers["content-type"]]).toEqual([200, "text/xml; charset=utf-8"])
    expect(answer.body).toBe('<?xml version="1.0" encoding="UTF-8"?><Response/>')
  })

  it("A custom response of a Twilio source replaces the TwiML", async ({ create, post }) => {
    const source = await create("TWILIO", {
      custom_response: { content_type: "xml", body: "<Response><Message>hi</Message></Response>" }
    })
    const answer = await post(source, sign(source), new URLSearchParams(form).toString())
    expect([answer.status, answer.body]).toEqual([200, "<Response><Message>hi</Message></Response>"])
  })
})

describe("SLACK", () => {
  const sign = (body: string) => {
    const at = String(Math.floor(Date.now() / 1000))
    const digest = createHmac("sha256", secret).update(`v0:${at}:${body}`).digest("hex")
    return { "X-Slack-Request-Timestamp": at, "X-Slack-Signature": `v0=${digest}` }
  }

  it("A Slack command or interaction gets an empty 200, and an event gets the acknowledgement", async ({
    create,
    post
  }) => {
    const source = await create("SLACK")
    for (const body of ["command=%2Forder&text=7", `payload=${encodeURIComponent('{"type":"view_submission"}')}`]) {
      const answer = await post(source, { ...formType, ...sign(body) }, body)
      expect([answer.status, answer.body, answer.headers["content-type"]]).toEqual([200, "", undefined])
    }
    const event = '{"type":"event_callback"}'
    const answer = await post(source, { "Content-Type": "application/json", ...sign(event) }, event)
    expect(JSON.parse(answer.body)).toMatchObject({ ok: true, queued: true })
  })
})

describe("MICROSOFT_TEAMS", () => {
  it("A Microsoft Teams mention is answered with a message", async ({ create, post }) => {
    const key = Buffer.from(secret).toString("base64")
    const source = await create("MICROSOFT_TEAMS", { auth: { webhook_secret_key: key } })
    const body = '{"type":"message","text":"<at>gateway</at> hi"}'
    const authorization = `HMAC ${createHmac("sha256", secret).update(body).digest("base64")}`
    const answer = await post(source, { "Content-Type": "application/json", Authorization: authorization }, body)
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { type: "message", text: "Received." }])
  })
})

describe("MAILGUN", () => {
  const signatureAt = (timestamp: string) => {
    const token = "e0b5477167110d68991efc6b9f89f0a11066af27834600e123"
    return {
      timestamp,
      token,
      signature: createHmac("sha256", secret)
        .update(timestamp + token)
        .digest("hex")
    }
  }
  const now = () => Math.floor(Date.now() / 1000)

  const attachment = new File([Buffer.alloc(500_000, 250)], "größe.pdf", { type: "application/pdf" })

  it("A Mailgun mail with attachments is verified and delivered unchanged, and a forged one is refused", async ({
    create,
    gateway,
    send,
    target
  }) => {
    const source = await create("MAILGUN")
    await gateway.connection(source, await gateway.destination({ url: target.origin }))
    const good = { subject: "größe", "attachment-1": attachment, ...signatureAt(String(now())) }
    const sent = await send(source, good)
    expect(sent.status).toBe(200)
    const [delivery] = await target.next()
    expect(delivery!.body.equals(sent.body)).toBe(true)
    expect(delivery!.headers["x-gateway-verified"]).toBe("true")
    for (const bad of [
      { ...good, token: "0".repeat(50) },
      { ...good, signature: "0".repeat(64) },
      { ...good, timestamp: String(now() + 1) },
      { subject: "x", "attachment-1": attachment }
    ]) {
      expect((await send(source, bad)).status).toBe(401)
    }
  })

  it("A Mailgun retry is verified up to eight hours later, and not after", async ({ create, send }) => {
    const source = await create("MAILGUN")
    expect((await send(source, signatureAt(String(now() - 8 * 3600)))).status).toBe(200)
    expect((await send(source, signatureAt(String(now() - 9 * 3600)))).status).toBe(401)
  })

  it("Hostile Mailgun forms of 10 MiB are refused while other senders are served", async ({
    create,
    gateway,
    post
  }) => {
    const source = await create("MAILGUN")
    const plain = await gateway.source()
    const forms = [
      ["multipart/form-data; boundary=XX", "--XX\r\n\r\n\r\n"],
      [
        "multipart/form-data; boundary=XX",
        '--XX\r\nContent-Disposition: form-data; name="t"; filename="x"\r\n\r\nv\r\n'
      ],
      ["application/x-www-form-urlencoded", "&"],
      ["application/x-www-form-urlencoded", "+"]
    ] as const
    const hostile = () =>
      Promise.all(
        forms.flatMap(([type, unit]) => {
          const body = Buffer.alloc(10 * 1024 * 1024 - 1024, unit)
          return Array.from({ length: 2 }, () =>
            fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", headers: { "content-type": type }, body })
          )
        })
      )
    const answers = await meanwhile(async () => expect((await post(plain, {}, "{}")).status).toBe(200), hostile)
    // Refused with 503 when ingress has too many at once; never verified.
    for (const { status } of answers) expect([401, 503]).toContain(status)
  })
})

describe("AWS_SNS", () => {
  it("An SNS message that is too old is refused before its certificate is fetched", async ({ gateway, post }) => {
    const source = await gateway.api("POST", "/sources", { name: gateway.name("source"), type: "AWS_SNS" })
    const message = {
      Type: "Notification",
      MessageId: "m-1",
      TopicArn: "arn:aws:sns:eu-west-1:123456789012:orders",
      Message: "x",
      Timestamp: new Date(Date.now() - 9 * 3600_000).toISOString(),
      SignatureVersion: "2",
      Signature: Buffer.from("signature").toString("base64"),
      SigningCertURL: "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-7ff5.pem"
    }
    const answer = await post(source, { "Content-Type": "text/plain; charset=UTF-8" }, JSON.stringify(message))
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([401, "SOURCE_AUTH_FAILED"])
  })
})
