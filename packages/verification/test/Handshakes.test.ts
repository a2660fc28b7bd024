import { describe, expect, it } from "@effect/vitest"
import * as handshakes from "../src/Handshakes.ts"
import { inbound } from "./providers/code/inbound.ts"

const nosniff = { "x-content-type-options": "nosniff" }
const plain = "text/plain; charset=utf-8"
const application = "application/json; charset=utf-8"

const post = (value: unknown, headers = {}) =>
  inbound({ body: typeof value === "string" ? value : JSON.stringify(value), headers })
const get = (query: string, headers = {}) =>
  inbound({ method: "GET", url: `https://hooks.example/src_1?${query}`, headers })

/** Values that would be more than an echo of a token. */
const unfit = [
  "",
  "<script>alert(1)</script>",
  "a\r\nset-cookie: b=c",
  "größe",
  "\u0000",
  "x".repeat(1025),
  1,
  null,
  undefined,
  {},
  ["x"],
  true
]

describe("SLACK url_verification", () => {
  // The example of https://api.slack.com/events/url_verification.
  const message = {
    token: "Jhj5dZrVaK7ZwHHjRyZWjbDl",
    challenge: "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
    type: "url_verification"
  }
  it("The Slack handshake answers the challenge of a signed request", () => {
    expect(handshakes.slackHandshake(post(message), {})).toStrictEqual({
      kind: "url_verification",
      status: 200,
      contentType: application,
      body: '{"challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}',
      headers: nosniff,
      needsCheck: true
    })
  })
  it("The Slack handshake ignores every other request", () => {
    for (const challenge of unfit) expect(handshakes.slackHandshake(post({ ...message, challenge }), {})).toBeNull()
    for (const type of ["event_callback", undefined, ["url_verification"]]) {
      expect(handshakes.slackHandshake(post({ ...message, type }), {})).toBeNull()
    }
    expect(handshakes.slackHandshake(post({ event: message }), {})).toBeNull()
    expect(handshakes.slackHandshake(post(JSON.stringify(message).slice(1)), {})).toBeNull()
    expect(handshakes.slackHandshake({ ...post(message), method: "PUT" }, {})).toBeNull()
    expect(handshakes.slackHandshake(post({ ...message, padding: "x".repeat(16_384) }), {})).toBeNull()
  })
})

describe("META hub.mode=subscribe", () => {
  const auth = { webhook_secret_key: "app secret", verify_token: "meaty, größe" }
  // The example of https://developers.facebook.com/docs/graph-api/webhooks/getting-started, with our token.
  const query = (over: Readonly<Record<string, string>> = {}) =>
    new URLSearchParams({
      "hub.mode": "subscribe",
      "hub.challenge": "1158201444",
      "hub.verify_token": auth.verify_token,
      ...over
    }).toString()

  it("The Meta handshake echoes the challenge when the verify token is right", () => {
    expect(handshakes.metaHandshake(get(query()), auth)).toStrictEqual({
      kind: "subscribe",
      status: 200,
      contentType: plain,
      body: "1158201444",
      headers: nosniff,
      needsCheck: false
    })
  })
  it("The Meta handshake refuses a wrong verify token or an invalid challenge", () => {
    for (const token of ["", "meaty", `${auth.verify_token} `, "undefined", auth.webhook_secret_key]) {
      expect(handshakes.metaHandshake(get(query({ "hub.verify_token": token })), auth)).toBe("refuse")
    }
    expect(handshakes.metaHandshake(get("hub.mode=subscribe&hub.challenge=1"), auth)).toBe("refuse")
    const twice = `${query()}&hub.verify_token=x`
    expect(handshakes.metaHandshake(get(twice), auth)).toBe("refuse")
    for (const auth of [{}, { verify_token: "" }]) {
      expect(handshakes.metaHandshake(get(query({ "hub.verify_token": "" })), auth)).toBe("refuse")
      expect(handshakes.metaHandshake(get(query({ "hub.verify_token": "undefined" })), auth)).toBe("refuse")
    }
    for (const challenge of unfit.filter((value) => typeof value === "string")) {
      const request = get(query({ "hub.challenge": challenge }))
      expect(handshakes.metaHandshake(request, auth)).toBe("refuse")
    }
  })
  it("The Meta handshake ignores every other request", () => {
    expect(handshakes.metaHandshake(get(query({ "hub.mode": "unsubscribe" })), auth)).toBeNull()
    expect(handshakes.metaHandshake(get(`${query()}&hub.mode=subscribe`), auth)).toBeNull()
    expect(handshakes.metaHandshake(get(""), auth)).toBeNull()
    expect(handshakes.metaHandshake({ ...get(query()), method: "POST" }, auth)).toBeNull()
  })
})

describe("DISCORD PING", () => {
  it("A Discord ping is answered with a PONG for interactions and with an empty 204 for events", () => {
    expect(handshakes.discordInteractionsHandshake(post({ type: 1, id: "1", token: "t" }), {})).toStrictEqual({
      kind: "ping",
      status: 200,
      contentType: application,
      body: '{"type":1}',
      headers: nosniff,
      needsCheck: true
    })
    expect(handshakes.discordEventsHandshake(post({ version: 1, type: 0 }), {})).toStrictEqual({
      kind: "ping",
      status: 204,
      contentType: null,
      body: "",
      needsCheck: true
    })
  })
  it("The Discord handshakes ignore every other message type", () => {
    for (const type of [0, 2, 3, "1", true, null, [1], undefined]) {
      expect(handshakes.discordInteractionsHandshake(post({ type }), {})).toBeNull()
    }
    for (const type of [1, "0", false, null, [0], undefined]) {
      expect(handshakes.discordEventsHandshake(post({ type }), {})).toBeNull()
    }
    expect(handshakes.discordInteractionsHandshake(post([{ type: 1 }]), {})).toBeNull()
    expect(handshakes.discordInteractionsHandshake(post("1"), {})).toBeNull()
  })
})

describe("ZOOM endpoint.url_validation", () => {
  const auth = { webhook_secret_key: "JRpZ0ZzBQLyFN7vnrBp5Vw" }
  const message = (plainToken: unknown) => ({
    payload: { plainToken },
    event_ts: 1654503849680,
    event: "endpoint.url_validation"
  })
  // The plainToken of Zoom's documentation; the answer: printf qgg8vlvZRS6UYooatFL8Aw | openssl dgst -sha256 -hmac JRpZ0ZzBQLyFN7vnrBp5Vw
  it("The Zoom handshake answers a signed request with the HMAC of its token", () => {
    expect(handshakes.zoomHandshake(post(message("qgg8vlvZRS6UYooatFL8Aw")), auth)).toStrictEqual({
      kind: "endpoint.url_validation",
      status: 200,
      contentType: application,
      body: '{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"0c916abc4f5b52ec8915c33e8c8e3ef4681dd4eb4bde49e76ecd4a7d05355ad9"}',
      headers: nosniff,
      needsCheck: true
    })
  })
  it("The Zoom handshake does not sign a token that could be a signed message of Zoom", () => {
    for (const token of [...unfit, "v0:1893456000:{}", "a:b", "a b", "x".repeat(257)]) {
      expect(handshakes.zoomHandshake(post(message(token)), auth)).toBeNull()
    }
  })
  it("The Zoom handshake ignores every other request", () => {
    expect(handshakes.zoomHandshake(post({ ...message("qgg8"), event: "meeting.started" }), auth)).toBeNull()
    for (const payload of [null, "qgg8", ["qgg8"], undefined]) {
      expect(handshakes.zoomHandshake(post({ event: "endpoint.url_validation", payload }), auth)).toBeNull()
    }
    expect(handshakes.zoomHandshake(post(message("qgg8")), {})).toBeNull()
  })
})

describe("Query echo handshakes", () => {
  it("The Dropbox handshake echoes the challenge of the query", () => {
    expect(handshakes.dropboxHandshake(get("challenge=3w_x-9%3D"), {})).toStrictEqual({
      kind: "challenge",
      status: 200,
      contentType: plain,
      body: "3w_x-9=",
      headers: nosniff,
      needsCheck: false
    })
    for (const query of ["", "challenge=", "challenge=a&challenge=b", "Challenge=a", "x=challenge"]) {
      expect(handshakes.dropboxHandshake(get(query), {})).toBeNull()
    }
    expect(handshakes.dropboxHandshake({ ...get("challenge=a"), method: "POST" }, {})).toBeNull()
  })

  it("The Microsoft Graph handshake echoes the validationToken of the query", () => {
    const request = inbound({
      url: "https://hooks.example/src_1?validationToken=Validation%3a+Testing+client+application+reachability"
    })
    expect(handshakes.microsoftGraphHandshake(request, {})).toStrictEqual({
      kind: "validationToken",
      status: 200,
      contentType: plain,
      body: "Validation: Testing client application reachability",
      headers: nosniff,
      needsCheck: false
    })
    const near = [
      { ...request, method: "GET" },
      { ...request, body: Buffer.from('{"value":[]}') },
      { ...request, query: "" },
      { ...request, query: "validationToken=a&validationToken=b" },
      { ...request, query: "validationToken=" }
    ]
    for (const request of near) expect(handshakes.microsoftGraphHandshake(request, {})).toBeNull()
  })

  it("The Dropbox and Microsoft Graph handshakes do not echo text that could be a page or a header", () => {
    for (const value of unfit.filter((value) => typeof value === "string")) {
      const query = new URLSearchParams({ challenge: value, validationToken: value }).toString()
      expect(handshakes.dropboxHandshake(get(query), {})).toBeNull()
      expect(handshakes.microsoftGraphHandshake({ ...get(query), method: "POST" }, {})).toBeNull()
    }
    expect(handshakes.dropboxHandshake(get(`challenge=${"x".repeat(1024)}`), {})).not.toBeNull()
  })
})

describe("TWITCH webhook_callback_verification", () => {
  const headers = { "twitch-eventsub-message-type": "webhook_callback_verification" }
  const message = { challenge: "pogchamp-kappa-360noscope-vohiyo", subscription: { id: "f1c2a387" } }
  it("The Twitch handshake echoes the challenge of a signed request", () => {
    expect(handshakes.twitchHandshake(post(message, headers), {})).toStrictEqual({
      kind: "webhook_callback_verification",
      status: 200,
      contentType: plain,
      body: message.challenge,
      headers: nosniff,
      needsCheck: true
    })
  })
  it("The Twitch handshake ignores every other request", () => {
    for (const type of ["notification", "revocation", undefined, ["webhook_callback_verification"]]) {
      const request = post(message, { "twitch-eventsub-message-type": type })
      expect(handshakes.twitchHandshake(request, {})).toBeNull()
    }
    for (const challenge of unfit) expect(handshakes.twitchHandshake(post({ challenge }, headers), {})).toBeNull()
  })
})

describe("ASANA X-Hook-Secret", () => {
  // The example of https://developers.asana.com/reference/createwebhook.
  const secret = "b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81"
  const hello = post("{}", { "x-hook-secret": secret })
  const answer = {
    kind: "hook_secret",
    status: 200,
    contentType: null,
    body: "",
    headers: { "x-hook-secret": secret },
    needsCheck: false
  }
  it("The Asana handshake stores the first secret and echoes it", () => {
    expect(handshakes.asanaHandshake(hello, {})).toStrictEqual({ ...answer, remember: secret })
    expect(handshakes.asanaHandshake(inbound({ headers: hello.headers }), {})).toStrictEqual({
      ...answer,
      remember: secret
    })
    expect(handshakes.asanaHandshake(hello, { webhook_secret_key: secret })).toStrictEqual(answer)
  })
  it("The Asana handshake refuses a different secret and an invalid one", () => {
    for (const stored of [`${secret}0`, secret.slice(1), ""]) {
      expect(handshakes.asanaHandshake(hello, { webhook_secret_key: stored })).toBe("refuse")
    }
    for (const wrong of ["short", "x".repeat(257), `${secret}\r\nset-cookie: a=b`, `${secret} `, "ü".repeat(20)]) {
      expect(handshakes.asanaHandshake(post("{}", { "x-hook-secret": wrong }), {})).toBe("refuse")
    }
  })
  it("The Asana handshake ignores every other request", () => {
    for (const wrong of [undefined, "", [secret, secret]]) {
      expect(handshakes.asanaHandshake(post("{}", { "x-hook-secret": wrong }), {})).toBeNull()
    }
    const signed = post("{}", { "x-hook-secret": secret, "x-hook-signature": "00" })
    expect(handshakes.asanaHandshake(signed, {})).toBeNull()
    expect(handshakes.asanaHandshake(post({ events: [] }, { "x-hook-signature": "00" }), {})).toBeNull()
    expect(handshakes.asanaHandshake({ ...hello, method: "GET" }, {})).toBeNull()
  })
})

describe("NOTION verification_token", () => {
  // The example of https://developers.notion.com/reference/webhooks.
  const token = "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"
  const answer = { kind: "verification_token", status: 200, contentType: null, body: "", needsCheck: false }
  it("The Notion handshake stores the first verification token", () => {
    const hello = post({ verification_token: token })
    expect(handshakes.notionHandshake(hello, {})).toStrictEqual({ ...answer, remember: token })
    expect(handshakes.notionHandshake(hello, { webhook_secret_key: token })).toStrictEqual(answer)
  })
  it("The Notion handshake refuses a different token and an invalid one", () => {
    const stored = { webhook_secret_key: token }
    expect(handshakes.notionHandshake(post({ verification_token: `${token}x` }), stored)).toBe("refuse")
    for (const wrong of ["", "short", `${token} `, "x".repeat(257)]) {
      expect(handshakes.notionHandshake(post({ verification_token: wrong }), {})).toBe("refuse")
    }
  })
  it("The Notion handshake ignores events", () => {
    expect(handshakes.notionHandshake(post({ type: "page.created", verification_token: token }), {})).toBeNull()
    for (const wrong of [1, null, undefined, [token]]) {
      expect(handshakes.notionHandshake(post({ verification_token: wrong }), {})).toBeNull()
    }
    expect(handshakes.notionHandshake({ ...post({ verification_token: token }), method: "PUT" }, {})).toBeNull()
  })
})

describe("Handshakes that need only a 200", () => {
  const { intercomHandshake, mandrillHandshake, trelloHandshake } = handshakes
  for (const [name, handshake] of Object.entries({ intercomHandshake, mandrillHandshake, trelloHandshake })) {
    it(`Handshake ${name} answers HEAD and ignores every other method`, () => {
      expect(handshake(inbound({ method: "HEAD" }), {})).toStrictEqual({
        kind: "head",
        status: 200,
        contentType: null,
        body: "",
        needsCheck: false
      })
      for (const method of ["GET", "POST", "head", ""]) expect(handshake(inbound({ method }), {})).toBeNull()
    })
  }

  it("The WooCommerce ping is answered with 200, and other forms are ignored", () => {
    const form = { "content-type": "application/x-www-form-urlencoded" }
    expect(handshakes.wooCommerceHandshake(post("webhook_id=7", form), {})).toStrictEqual({
      kind: "ping",
      status: 200,
      contentType: null,
      body: "",
      needsCheck: false
    })
    for (const body of [
      "",
      "webhook_id=",
      "webhook_id=x",
      "webhook_id=7&a=1",
      "webhook_id=7\n",
      `webhook_id=${"7".repeat(60)}`
    ]) {
      expect(handshakes.wooCommerceHandshake(post(body, form), {})).toBeNull()
    }
    expect(handshakes.wooCommerceHandshake(post("webhook_id=7", { "x-wc-webhook-signature": "AA==" }), {})).toBeNull()
    expect(handshakes.wooCommerceHandshake({ ...post("webhook_id=7"), method: "PUT" }, {})).toBeNull()
  })
})

describe("OKTA x-okta-verification-challenge", () => {
  // The example of https://support.okta.com, "Unable to verify event hook": it carries the configured secret too.
  const challenge = "Me_rShK8JHsTnbyYrWXCEoMGbM_zsZ6k0hLPZ_Pg"
  it("The Okta handshake answers the challenge in JSON and requires the secret", () => {
    const request = get("", { "x-okta-verification-challenge": challenge, authorization: "my-shared-secret" })
    expect(handshakes.oktaHandshake(request, {})).toStrictEqual({
      kind: "verification",
      status: 200,
      contentType: application,
      body: `{"verification":"${challenge}"}`,
      headers: nosniff,
      needsCheck: true
    })
    expect(handshakes.oktaHandshake({ ...request, method: "POST" }, {})).toBeNull()
  })
  it("The Okta handshake ignores an invalid challenge", () => {
    for (const value of [...unfit.filter((value) => typeof value === "string"), undefined, [challenge, challenge]]) {
      expect(handshakes.oktaHandshake(get("", { "x-okta-verification-challenge": value }), {})).toBeNull()
    }
  })
})
