import { bearer, headerOf, jsonOf, type No, type Oracle, posted } from "./Oracle.ts"

const key = "SG.k3y-of-an-account"
const html = "<p>&lt;7&gt;</p>"

const no = (
  what: string,
  status: number,
  verdict: No["verdict"],
  headers: Readonly<Record<string, string>> = {}
): No => ({
  what,
  answer: { status, headers, body: { errors: [{ message: "no", field: null, help: null }] } },
  client: { code: status, response: { body: { errors: [{ message: "no" }] } } },
  verdict
})

export const sendGrid: Oracle = {
  type: "EMAIL_API_EMAIL",
  config: {
    from: "orders@example.com",
    from_name: "Orders",
    to: ["a@example.com", "{{payload.to}}"],
    cc: "c@example.com",
    bcc: "d@example.com",
    reply_to: "e@example.com",
    subject: "Order {{payload.id}}",
    text_template: "It is {{payload.id}}",
    html_template: "<p>{{payload.html}}</p>"
  },
  auth: { ...bearer, headers: { authorization: `Bearer ${key}` } },
  payload: { id: 7, to: "b@example.com", html: "<7>" },
  call: async (origin) => {
    const [{ default: service }, { default: client }] = await Promise.all([
      import("@sendgrid/mail"),
      import("@sendgrid/client")
    ])
    service.setClient(client)
    service.setApiKey(key)
    client.setDefaultRequest("baseUrl", origin)
    return service.send({
      from: { email: "orders@example.com", name: "Orders" },
      to: ["a@example.com", "b@example.com"],
      cc: "c@example.com",
      bcc: "d@example.com",
      replyTo: "e@example.com",
      subject: "Order 7",
      text: "It is 7",
      html
    })
  },
  meaning: (request) => {
    posted(request, "/v3/mail/send")
    return { authorization: headerOf(request, "authorization"), ...jsonOf(request) }
  },
  expected: {
    authorization: `Bearer ${key}`,
    from: { email: "orders@example.com", name: "Orders" },
    subject: "Order 7",
    content: [
      { type: "text/plain", value: "It is 7" },
      { type: "text/html", value: html }
    ]
  },
  accepted: { status: 202 },
  noes: [
    no("a sender that is not verified", 403, { code: "AUTH_REJECTED", final: false }),
    no("a key that is wrong", 401, { code: "AUTH_REJECTED", final: false }),
    no("a letter that is none", 400, { code: "BAD_RESPONSE", final: true }),
    no(
      "too many",
      429,
      { code: "BAD_RESPONSE", final: false, retryAfter: 42 },
      { date: "Fri, 02 Jan 2026 00:00:00 GMT", "x-ratelimit-reset": String(Date.UTC(2026, 0, 2) / 1000 + 42) }
    ),
    no("trouble", 500, { code: "BAD_RESPONSE", final: false })
  ]
}
