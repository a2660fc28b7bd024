import { formOf, headerOf, type No, type Oracle, posted } from "./Oracle.ts"

const [sid, token] = ["AC00000000000000000000000000000000", "t0ken-of-an-account"]
const media = ["https://media.example.com/a b.png?c=d&e", "https://media.example.com/2.png"]

const no = (what: string, status: number, code: number, verdict: No["verdict"]): No => ({
  what,
  answer: { status, body: { code, message: "no", more_info: `https://www.twilio.com/docs/errors/${code}`, status } },
  client: { status, code },
  verdict
})

export const twilio: Oracle = {
  type: "MESSAGING_MMS",
  config: {
    to: "+15005550006",
    from: "+15005550001",
    body_template: "50 % & {{message}} — ok",
    media_urls: ["https://media.example.com/a%20b.png?c=d&e", "{{media_url}}"]
  },
  auth: {
    headers: { authorization: `Basic ${Buffer.from(`${sid}:${token}`).toString("base64")}` },
    signing: null,
    settings: { account_sid: sid }
  },
  payload: { message: "more", media_url: media[1] },
  call: async (origin) => {
    const { default: make } = await import("twilio")
    const httpClient = new make.RequestClient()
    const request = httpClient.request.bind(httpClient)
    httpClient.request = (options) =>
      request(Object.assign({}, options, { uri: options.uri.replace("https://api.twilio.com", origin) }))
    return make(sid, token, { httpClient }).messages.create({
      to: "+15005550006",
      from: "+15005550001",
      body: "50 % & more — ok",
      mediaUrl: media.map((one) => one.replace(" ", "%20"))
    })
  },
  meaning: (request) => {
    posted(request, `/2010-04-01/Accounts/${sid}/Messages.json`)
    return { authorization: headerOf(request, "authorization"), ...formOf(request) }
  },
  expected: {
    To: "+15005550006",
    From: "+15005550001",
    Body: "50 % & more — ok",
    MediaUrl: media.map((one) => one.replace(" ", "%20"))
  },
  accepted: { status: 201, body: { sid: "MM1", status: "queued", error_code: null } },
  noes: [
    no("a number that is none", 400, 21_211, { code: "BAD_RESPONSE", final: true }),
    no("a queue that is full", 400, 21_611, { code: "BAD_RESPONSE", final: false }),
    no("a token that is wrong", 401, 20_003, { code: "AUTH_REJECTED", final: false }),
    no("an account that is not there", 404, 20_404, { code: "AUTH_REJECTED", final: false }),
    no("too many", 429, 20_429, { code: "BAD_RESPONSE", final: false }),
    no("trouble", 503, 20_503, { code: "BAD_RESPONSE", final: false }),
    {
      what: "a message that has failed, in a 201",
      answer: { status: 201, body: { sid: "MM1", status: "failed", error_code: 30_007, error_message: "filtered" } },
      client: null,
      verdict: { code: "BAD_RESPONSE", final: true }
    }
  ]
}
