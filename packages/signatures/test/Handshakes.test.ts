import { assert, describe, it } from "@effect/vitest"
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
  it("answers the challenge of a signed request", () => {
    assert.deepStrictEqual(handshakes.slackHandshake(post(message), {}), {
      kind: "url_verification",
      status: 200,
      contentType: application,
      body: '{"challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}',
      headers: nosniff,
      needsCheck: true
    })
  })
  it("leaves everything else alone", () => {
    for (const challenge of unfit) assert.isNull(handshakes.slackHandshake(post({ ...message, challenge }), {}))
    for (const type of ["event_callback", undefined, ["url_verification"]]) {
      assert.isNull(handshakes.slackHandshake(post({ ...message, type }), {}))
    }
    assert.isNull(handshakes.slackHandshake(post({ event: message }), {}))
    assert.isNull(handshakes.slackHandshake(post(JSON.stringify(message).slice(1)), {}))
    assert.isNull(handshakes.slackHandshake({ ...post(message), method: "PUT" }, {}))
    assert.isNull(handshakes.slackHandshake(post({ ...message, padding: "x".repeat(16_384) }), {}))
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

  it("echoes the challenge to whoever knows the token", () => {
    assert.deepStrictEqual(handshakes.metaHandshake(get(query()), auth), {
      kind: "subscribe",
      status: 200,
      contentType: plain,
      body: "1158201444",
      headers: nosniff,
      needsCheck: false
    })
  })
  it("refuses everybody else", () => {
    for (const token of ["", "meaty", `${auth.verify_token} `, "undefined", auth.webhook_secret_key]) {
      assert.strictEqual(handshakes.metaHandshake(get(query({ "hub.verify_token": token })), auth), "refuse")
    }
    assert.strictEqual(handshakes.metaHandshake(get("hub.mode=subscribe&hub.challenge=1"), auth), "refuse")
    const twice = `${query()}&hub.verify_token=x`
    assert.strictEqual(handshakes.metaHandshake(get(twice), auth), "refuse")
    for (const auth of [{}, { verify_token: "" }]) {
      assert.strictEqual(handshakes.metaHandshake(get(query({ "hub.verify_token": "" })), auth), "refuse")
      assert.strictEqual(handshakes.metaHandshake(get(query({ "hub.verify_token": "undefined" })), auth), "refuse")
    }
    for (const challenge of unfit.filter((value) => typeof value === "string")) {
      const request = get(query({ "hub.challenge": challenge }))
      assert.strictEqual(handshakes.metaHandshake(request, auth), "refuse")
    }
  })
  it("leaves everything else alone", () => {
    assert.isNull(handshakes.metaHandshake(get(query({ "hub.mode": "unsubscribe" })), auth))
    assert.isNull(handshakes.metaHandshake(get(`${query()}&hub.mode=subscribe`), auth))
    assert.isNull(handshakes.metaHandshake(get(""), auth))
    assert.isNull(handshakes.metaHandshake({ ...get(query()), method: "POST" }, auth))
  })
})

describe("DISCORD PING", () => {
  it("1 wants a PONG from interactions, 0 an empty 204 from events", () => {
    assert.deepStrictEqual(handshakes.discordInteractionsHandshake(post({ type: 1, id: "1", token: "t" }), {}), {
      kind: "ping",
      status: 200,
      contentType: application,
      body: '{"type":1}',
      headers: nosniff,
      needsCheck: true
    })
    assert.deepStrictEqual(handshakes.discordEventsHandshake(post({ version: 1, type: 0 }), {}), {
      kind: "ping",
      status: 204,
      contentType: null,
      body: "",
      needsCheck: true
    })
  })
  it("other types are ordinary", () => {
    for (const type of [0, 2, 3, "1", true, null, [1], undefined]) {
      assert.isNull(handshakes.discordInteractionsHandshake(post({ type }), {}))
    }
    for (const type of [1, "0", false, null, [0], undefined]) {
      assert.isNull(handshakes.discordEventsHandshake(post({ type }), {}))
    }
    assert.isNull(handshakes.discordInteractionsHandshake(post([{ type: 1 }]), {}))
    assert.isNull(handshakes.discordInteractionsHandshake(post("1"), {}))
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
  it("answers a signed request with the HMAC of its token", () => {
    assert.deepStrictEqual(handshakes.zoomHandshake(post(message("qgg8vlvZRS6UYooatFL8Aw")), auth), {
      kind: "endpoint.url_validation",
      status: 200,
      contentType: application,
      body: '{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"0c916abc4f5b52ec8915c33e8c8e3ef4681dd4eb4bde49e76ecd4a7d05355ad9"}',
      headers: nosniff,
      needsCheck: true
    })
  })
  it("signs nothing that Zoom itself would sign", () => {
    for (const token of [...unfit, "v0:1893456000:{}", "a:b", "a b", "x".repeat(257)]) {
      assert.isNull(handshakes.zoomHandshake(post(message(token)), auth))
    }
  })
  it("leaves everything else alone", () => {
    assert.isNull(handshakes.zoomHandshake(post({ ...message("qgg8"), event: "meeting.started" }), auth))
    for (const payload of [null, "qgg8", ["qgg8"], undefined]) {
      assert.isNull(handshakes.zoomHandshake(post({ event: "endpoint.url_validation", payload }), auth))
    }
    assert.isNull(handshakes.zoomHandshake(post(message("qgg8")), {}))
  })
})

describe("echoes of a query", () => {
  it("DROPBOX challenge", () => {
    assert.deepStrictEqual(handshakes.dropboxHandshake(get("challenge=3w_x-9%3D"), {}), {
      kind: "challenge",
      status: 200,
      contentType: plain,
      body: "3w_x-9=",
      headers: nosniff,
      needsCheck: false
    })
    for (const query of ["", "challenge=", "challenge=a&challenge=b", "Challenge=a", "x=challenge"]) {
      assert.isNull(handshakes.dropboxHandshake(get(query), {}))
    }
    assert.isNull(handshakes.dropboxHandshake({ ...get("challenge=a"), method: "POST" }, {}))
  })

  it("MICROSOFT_GRAPH validationToken", () => {
    const request = inbound({
      url: "https://hooks.example/src_1?validationToken=Validation%3a+Testing+client+application+reachability"
    })
    assert.deepStrictEqual(handshakes.microsoftGraphHandshake(request, {}), {
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
    for (const request of near) assert.isNull(handshakes.microsoftGraphHandshake(request, {}))
  })

  it("neither echoes what could be a page or a header", () => {
    for (const value of unfit.filter((value) => typeof value === "string")) {
      const query = new URLSearchParams({ challenge: value, validationToken: value }).toString()
      assert.isNull(handshakes.dropboxHandshake(get(query), {}))
      assert.isNull(handshakes.microsoftGraphHandshake({ ...get(query), method: "POST" }, {}))
    }
    assert.isNotNull(handshakes.dropboxHandshake(get(`challenge=${"x".repeat(1024)}`), {}))
  })
})

describe("TWITCH webhook_callback_verification", () => {
  const headers = { "twitch-eventsub-message-type": "webhook_callback_verification" }
  const message = { challenge: "pogchamp-kappa-360noscope-vohiyo", subscription: { id: "f1c2a387" } }
  it("echoes the challenge of a signed request", () => {
    assert.deepStrictEqual(handshakes.twitchHandshake(post(message, headers), {}), {
      kind: "webhook_callback_verification",
      status: 200,
      contentType: plain,
      body: message.challenge,
      headers: nosniff,
      needsCheck: true
    })
  })
  it("leaves everything else alone", () => {
    for (const type of ["notification", "revocation", undefined, ["webhook_callback_verification"]]) {
      const request = post(message, { "twitch-eventsub-message-type": type })
      assert.isNull(handshakes.twitchHandshake(request, {}))
    }
    for (const challenge of unfit) assert.isNull(handshakes.twitchHandshake(post({ challenge }, headers), {}))
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
  it("remembers the first secret, and repeats it", () => {
    assert.deepStrictEqual(handshakes.asanaHandshake(hello, {}), { ...answer, remember: secret })
    assert.deepStrictEqual(handshakes.asanaHandshake(inbound({ headers: hello.headers }), {}), {
      ...answer,
      remember: secret
    })
    assert.deepStrictEqual(handshakes.asanaHandshake(hello, { webhook_secret_key: secret }), answer)
  })
  it("refuses another secret, and one that is none", () => {
    for (const stored of [`${secret}0`, secret.slice(1), ""]) {
      assert.strictEqual(handshakes.asanaHandshake(hello, { webhook_secret_key: stored }), "refuse")
    }
    for (const wrong of ["short", "x".repeat(257), `${secret}\r\nset-cookie: a=b`, `${secret} `, "ü".repeat(20)]) {
      assert.strictEqual(handshakes.asanaHandshake(post("{}", { "x-hook-secret": wrong }), {}), "refuse")
    }
  })
  it("leaves everything else alone", () => {
    for (const wrong of [undefined, "", [secret, secret]]) {
      assert.isNull(handshakes.asanaHandshake(post("{}", { "x-hook-secret": wrong }), {}))
    }
    const signed = post("{}", { "x-hook-secret": secret, "x-hook-signature": "00" })
    assert.isNull(handshakes.asanaHandshake(signed, {}))
    assert.isNull(handshakes.asanaHandshake(post({ events: [] }, { "x-hook-signature": "00" }), {}))
    assert.isNull(handshakes.asanaHandshake({ ...hello, method: "GET" }, {}))
  })
})

describe("NOTION verification_token", () => {
  // The example of https://developers.notion.com/reference/webhooks.
  const token = "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"
  const answer = { kind: "verification_token", status: 200, contentType: null, body: "", needsCheck: false }
  it("remembers the first token", () => {
    const hello = post({ verification_token: token })
    assert.deepStrictEqual(handshakes.notionHandshake(hello, {}), { ...answer, remember: token })
    assert.deepStrictEqual(handshakes.notionHandshake(hello, { webhook_secret_key: token }), answer)
  })
  it("refuses another token, and one that is none", () => {
    const stored = { webhook_secret_key: token }
    assert.strictEqual(handshakes.notionHandshake(post({ verification_token: `${token}x` }), stored), "refuse")
    for (const wrong of ["", "short", `${token} `, "x".repeat(257)]) {
      assert.strictEqual(handshakes.notionHandshake(post({ verification_token: wrong }), {}), "refuse")
    }
  })
  it("leaves events alone", () => {
    assert.isNull(handshakes.notionHandshake(post({ type: "page.created", verification_token: token }), {}))
    for (const wrong of [1, null, undefined, [token]]) {
      assert.isNull(handshakes.notionHandshake(post({ verification_token: wrong }), {}))
    }
    assert.isNull(handshakes.notionHandshake({ ...post({ verification_token: token }), method: "PUT" }, {}))
  })
})

describe("requests that only want 200", () => {
  const { intercomHandshake, mandrillHandshake, trelloHandshake } = handshakes
  for (const [name, handshake] of Object.entries({ intercomHandshake, mandrillHandshake, trelloHandshake })) {
    it(`${name} answers HEAD, and nothing else`, () => {
      assert.deepStrictEqual(handshake(inbound({ method: "HEAD" }), {}), {
        kind: "head",
        status: 200,
        contentType: null,
        body: "",
        needsCheck: false
      })
      for (const method of ["GET", "POST", "head", ""]) assert.isNull(handshake(inbound({ method }), {}))
    })
  }

  it("the ping of WooCommerce", () => {
    const form = { "content-type": "application/x-www-form-urlencoded" }
    assert.deepStrictEqual(handshakes.wooCommerceHandshake(post("webhook_id=7", form), {}), {
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
      assert.isNull(handshakes.wooCommerceHandshake(post(body, form), {}))
    }
    assert.isNull(handshakes.wooCommerceHandshake(post("webhook_id=7", { "x-wc-webhook-signature": "AA==" }), {}))
    assert.isNull(handshakes.wooCommerceHandshake({ ...post("webhook_id=7"), method: "PUT" }, {}))
  })
})

describe("OKTA x-okta-verification-challenge", () => {
  // The example of https://support.okta.com, "Unable to verify event hook": it carries the configured secret too.
  const challenge = "Me_rShK8JHsTnbyYrWXCEoMGbM_zsZ6k0hLPZ_Pg"
  it("answers in JSON, when the secret is right", () => {
    const request = get("", { "x-okta-verification-challenge": challenge, authorization: "my-shared-secret" })
    assert.deepStrictEqual(handshakes.oktaHandshake(request, {}), {
      kind: "verification",
      status: 200,
      contentType: application,
      body: `{"verification":"${challenge}"}`,
      headers: nosniff,
      needsCheck: true
    })
    assert.isNull(handshakes.oktaHandshake({ ...request, method: "POST" }, {}))
  })
  it("leaves everything else alone", () => {
    for (const value of [...unfit.filter((value) => typeof value === "string"), undefined, [challenge, challenge]]) {
      assert.isNull(handshakes.oktaHandshake(get("", { "x-okta-verification-challenge": value }), {}))
    }
  })
})
