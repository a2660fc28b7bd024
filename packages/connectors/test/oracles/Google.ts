import MailComposer from "nodemailer/lib/mail-composer"
import PostalMime from "postal-mime"
import { bearer, headerOf, jsonOf, type No, type Oracle, posted, secret } from "./Oracle.ts"

const no = (
  what: string,
  status: number,
  name: string,
  verdict: No["verdict"],
  details: ReadonlyArray<object> = []
): No => ({
  what,
  answer: { status, body: { error: { code: status, message: "no", status: name, details } } },
  client: { status },
  verdict
})

const noes: ReadonlyArray<No> = [
  no("what cannot be read", 400, "INVALID_ARGUMENT", { code: "BAD_RESPONSE", final: true }),
  no("a token that is over", 401, "UNAUTHENTICATED", { code: "AUTH_REJECTED", final: false }),
  no("somebody else's", 403, "PERMISSION_DENIED", { code: "AUTH_REJECTED", final: false }),
  {
    what: "too many, in a 403",
    answer: {
      status: 403,
      body: {
        error: { code: 403, message: "no", errors: [{ domain: "usageLimits", reason: "userRateLimitExceeded" }] }
      }
    },
    client: { status: 403 },
    verdict: { code: "BAD_RESPONSE", final: false }
  },
  no("not there", 404, "NOT_FOUND", { code: "BAD_RESPONSE", final: true }),
  no("too many", 429, "RESOURCE_EXHAUSTED", { code: "BAD_RESPONSE", final: false, retryAfter: 20 }, [
    { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "19.2s" }
  ]),
  no("trouble", 503, "UNAVAILABLE", { code: "BAD_RESPONSE", final: false })
]

const spreadsheetId = "1BxiMVs0XRA5nFMd"
const cells = ["evt_1", 7, true, "=1+2", 'a "b"\nc']

export const sheets: Oracle = {
  type: "SPREADSHEET",
  config: { spreadsheet_id: spreadsheetId, sheet_name: "It's 2026", columns: ["event_id", "id", "paid", "f", "text"] },
  auth: bearer,
  payload: { id: 7, paid: true, f: "=1+2", text: 'a "b"\nc' },
  call: async (origin) => {
    const { auth, sheets: make } = await import("@googleapis/sheets")
    const client = new auth.OAuth2()
    client.setCredentials({ access_token: secret })
    return make({ version: "v4", auth: client, rootUrl: `${origin}/` }).spreadsheets.values.append(
      {
        spreadsheetId,
        range: "'It''s 2026'!A1",
        valueInputOption: "RAW",
        insertDataOption: "INSERT_ROWS",
        requestBody: { majorDimension: "ROWS", values: [cells] }
      },
      { retry: false }
    )
  },
  meaning: (request) => {
    const { searchParams } = posted(request, `/v4/spreadsheets/${spreadsheetId}/values/'It''s 2026'!A1:append`)
    return {
      authorization: headerOf(request, "authorization"),
      asked: Object.fromEntries(searchParams),
      row: jsonOf(request)
    }
  },
  expected: {
    authorization: `Bearer ${secret}`,
    asked: { valueInputOption: "RAW", insertDataOption: "INSERT_ROWS" },
    row: { values: [cells] }
  },
  accepted: {
    status: 200,
    body: {
      spreadsheetId,
      updates: { spreadsheetId, updatedRange: "'It''s 2026'!A2:E2", updatedRows: 1, updatedCells: 5 }
    }
  },
  noes: [
    ...noes,
    {
      what: "nothing written, in a 200",
      answer: { status: 200, body: { spreadsheetId, tableRange: "A1:E1" } },
      client: null,
      verdict: { code: "BAD_RESPONSE", final: false }
    }
  ]
}

const letter = {
  to: ["a@example.com", "b@example.com"],
  cc: "c@example.com",
  bcc: "d@example.com",
  replyTo: "e@example.com",
  subject: "Заказ 7 😀",
  text: "It is 7: ‘é’",
  html: "<p>&lt;7&gt;</p>"
}

export const gmail: Oracle = {
  type: "MAILBOX_EMAIL",
  config: {
    to: ["a@example.com", "{{payload.to}}"],
    cc: letter.cc,
    bcc: letter.bcc,
    reply_to: letter.replyTo,
    subject: "Заказ {{payload.id}} 😀",
    text_template: "It is {{payload.id}}: ‘é’",
    html_template: "<p>{{payload.html}}</p>"
  },
  auth: bearer,
  payload: { id: 7, to: "b@example.com", html: "<7>" },
  call: async (origin) => {
    const { auth, gmail: make } = await import("@googleapis/gmail")
    const client = new auth.OAuth2()
    client.setCredentials({ access_token: secret })
    // Written by the library itself, where ours is written without its streams.
    const node = new MailComposer(letter).compile()
    node.keepBcc = true
    const raw = (await node.build()).toString("base64url")
    return make({ version: "v1", auth: client, rootUrl: `${origin}/` }).users.messages.send(
      { userId: "me", requestBody: { raw } },
      { retry: false }
    )
  },
  meaning: async (request) => {
    posted(request, "/gmail/v1/users/me/messages/send")
    const { raw, ...rest } = jsonOf(request)
    const { bcc, cc, from, html, replyTo, subject, text, to } = await PostalMime.parse(
      Buffer.from(String(raw), "base64url")
    )
    const authorization = headerOf(request, "authorization")
    return { authorization, rest, bcc, cc, from, html: html?.trim(), replyTo, subject, text: text?.trim(), to }
  },
  expected: {
    authorization: `Bearer ${secret}`,
    rest: {},
    subject: letter.subject,
    text: letter.text,
    html: letter.html
  },
  accepted: { status: 200, body: { id: "18c", threadId: "18c", labelIds: ["SENT"] } },
  noes
}
