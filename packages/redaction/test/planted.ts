import type { Schema } from "effect"

/** A secret in every place that senders have been seen to put one. */
export interface Planted {
  readonly name: string
  readonly in: "header" | "query" | "path" | "json" | "text"
  /** A header's or parameter's name. */
  readonly of?: string
  readonly contentType?: string
  readonly value: (secret: string) => Schema.Json
}

const base64 = (text: string) => Buffer.from(text).toString("base64")
const base64url = (text: string) => Buffer.from(text).toString("base64url")
const escaped = (text: string) => JSON.stringify(text).slice(1, -1)

const headers: ReadonlyArray<readonly [of: string, before?: string]> = [
  ["authorization", "Bearer "],
  ["proxy-authorization", "Basic "],
  ["cookie", "session="],
  ["set-cookie"],
  ["x-api-key"],
  ["X_Api-Key"],
  ["x-gitlab-token"],
  ["x-hub-signature-256", "sha256="],
  ["stripe-signature", "t=1,v1="],
  ["x-shopify-hmac-sha256"],
  ["paypal-transmission-sig"],
  ["x-amz-security-token"],
  ["x-original-authorization"],
  ["ocp-apim-subscription-key-secret"],
  ["x-custom-mine"],
  ["referer", "https://example.com/cb?access_token="],
  ["x-forwarded-uri", "/cb?a=1&api_key="],
  ["link", "<https://u:"]
]

const names = [
  "authorization",
  "bearer",
  "token",
  "access_token",
  "refreshToken",
  "ID-Token",
  "password",
  "PassWd",
  "db_password_hash",
  "secret",
  "clientSecret",
  "private key",
  "API_KEY",
  "x-api-key",
  "ａｐｉ＿ｋｅｙ",
  "auth.token.value",
  "mine"
]

const json: ReadonlyArray<readonly [name: string, (secret: string) => Schema.Json]> = [
  ...names.map((name) => [`named ${name}`, (secret: string) => ({ a: [{ [name]: secret }] })] as const),
  ["a number", (secret) => ({ pin: secret, otp: 123 })],
  ["an object", (secret) => ({ credentials: { user: "u", nested: [secret] } })],
  ["a list", (secret) => ({ tokens: ["a", secret] })],
  ["a name and a value", (secret) => [{ name: "Authorization", value: secret }]],
  ["a value and a name", (secret) => ({ fields: [{ value: [secret], key: "password" }] })],
  ["a name before it", (secret) => ({ rawHeaders: ["Host", "x", "X-Api-Key", secret] })],
  ["JSON in JSON", (secret) => ({ payload: JSON.stringify({ user: { password: secret } }) })],
  ["JSON in JSON in JSON", (secret) => ({ a: JSON.stringify({ b: JSON.stringify({ token: secret }) }) })],
  ["base64 of JSON", (secret) => ({ data: base64(JSON.stringify({ token: secret })) })],
  ["base64url of JSON", (secret) => ({ data: base64url(JSON.stringify({ n: "ÿÿÿ~~~", token: secret })) })],
  ["base64 of base64 of JSON", (secret) => ({ data: base64(base64(JSON.stringify({ token: secret }))) })],
  [
    "base64 of many layers",
    (secret) => {
      let text = JSON.stringify({ token: secret })
      for (let layer = 0; layer < 12; layer++) text = base64(text)
      return { text }
    }
  ],
  [
    "base64 in lines",
    (secret) => base64(`${"x".repeat(80)} token=${secret} ${"y".repeat(80)}`).replaceAll(/.{76}/g, "$&\r\n")
  ],
  ["base64 of UTF-16", (secret) => Buffer.from(`password=${secret}`, "utf16le").toString("base64")],
  [
    "base64 of bytes",
    (secret) => Buffer.concat([Buffer.from([0xff, 1, 2]), Buffer.from(` token: ${secret}`)]).toString("base64")
  ],
  ["a data URL", (secret) => `data:application/json;base64,${base64(JSON.stringify({ password: secret }))}`],
  ["a Basic credential of its own", (secret) => `Basic ${base64(`user:${secret}`)}`],
  ["a form", (secret) => `a=1&password=${secret}&b=2`],
  ["percent-encoded JSON", (secret) => encodeURIComponent(JSON.stringify({ token: secret }))],
  ["percent-encoded twice", (secret) => encodeURIComponent(encodeURIComponent(`password=${secret}`))],
  ["the user of a URL", (secret) => ({ url: `postgres://user:${secret}@db.example.com/x` })],
  ["a password with an at sign", (secret) => ({ url: `amqp://u:p@${secret}@mq.example.com` })],
  ["a parameter of a URL", (secret) => ({ next: `https://example.com/x?page=2&sig=${secret}#top` })],
  ["a Bearer of any name", (secret) => ({ note: `try curl -H 'Bearer ${secret}'` })],
  ["a JSON web token", (secret) => ({ note: `eyJhbGciOiJIUzI1NiJ9.${base64url(secret)}.${secret}` })],
  ["half of one", (secret) => ({ note: `eyJhbGciOiJIUzI1NiJ9.${secret}` })],
  ["a PEM key", (secret) => ({ note: `-----BEGIN RSA PRIVATE KEY-----\n${secret}\n-----END RSA PRIVATE KEY-----` })],
  ["a PEM key that is cut off", (secret) => `x -----BEGIN OPENSSH PRIVATE KEY-----\n${secret}`],
  ["a key of a payment provider", (secret) => `key sk_live_${secret.replaceAll("-", "")}${secret}`.replace(secret, "")],
  ["a chat hook", (secret) => ({ u: `https://hooks.slack.com/services/T0/B0/${secret}` })],
  ["a bot's token", (secret) => ({ u: `https://api.telegram.org/bot123456789:${secret}/getMe` })],
  ["a member's name", (secret) => ({ [`Bearer ${secret}`]: 1 })]
]

const text: ReadonlyArray<readonly [name: string, (secret: string) => string, contentType?: string]> = [
  ["a form", (secret) => `a=1&client_secret=${secret}`, "application/x-www-form-urlencoded"],
  ["a form with brackets", (secret) => `user%5Bpassword%5D=${secret}&x=1`, "application/x-www-form-urlencoded"],
  ["a form with JSON", (secret) => `payload=${encodeURIComponent(JSON.stringify({ token: secret }))}`],
  ["a form with base64", (secret) => `state=${encodeURIComponent(base64(JSON.stringify({ token: secret })))}`],
  [
    "parts",
    (secret) => `--b1\r\nContent-Disposition: form-data; name="password"\r\n\r\n${secret}\r\n--b1--\r\n`,
    "multipart/form-data; boundary=b1"
  ],
  [
    "a part of JSON",
    (secret) => `--b1\r\nContent-Disposition: form-data; name="j"\r\n\r\n{"token":"${secret}"}\r\n--b1--`
  ],
  ["parts without an end", (secret) => `--b1\r\nContent-Disposition: form-data; name=api_key\r\n\r\n${secret}`],
  ["XML", (secret) => `<a><ns:Password type="text">${secret}</ns:Password></a>`, "application/xml"],
  ["XML with CDATA", (secret) => `<secret><![CDATA[<b>${secret}</b>]]></secret>`],
  ["XML that is cut off", (secret) => `<a><token>x ${secret}`],
  ["an attribute", (secret) => `<user name='u' password='${secret}'/>`],
  ["YAML", (secret) => `user: u\npassword: my ${secret} is long, and has a comma\nx: 1`],
  ["a block of YAML", (secret) => `private_key: |\n  one\n  ${secret}\n`],
  ["an environment file", (secret) => `A=1\nexport DB_PASSWORD="a b \\" ${secret}"\n`],
  ["headers", (secret) => `POST / HTTP/1.1\r\nAuthorization: Custom ${secret}\r\nHost: x\r\n\r\n`],
  ["a log line", (secret) => `12:00 INFO login {"user":"u","password":"${secret}"} ok`],
  [
    "a log line of escaped JSON",
    (secret) => `body="${escaped(JSON.stringify({ password: `a"${secret}` }))}" status=200`
  ],
  ["broken JSON", (secret) => `{"a":1,"pass\\u0077ord":"${secret}",}`, "application/json"],
  ["broken JSON with an object", (secret) => `{"secret":{"a":["]",{"b":"${secret}"}]},"c":1,}`],
  ["broken JSON, name and value", (secret) => `[{"name":"password","value":"${secret}"},]`],
  ["lines of JSON", (secret) => `{"a":1}\n{"fields":[{"value":"${secret}","name":"token"}]}\n`],
  ["JSON that says it is text", (secret) => JSON.stringify([{ value: secret, name: "password" }]), "text/plain"],
  ["Ruby", (secret) => `{:password=>"${secret}", :a=>1}`],
  ["PHP", (secret) => `$config['api_key'] = '${secret}';`],
  ["a command that signs in", (secret) => `curl -s -u ada:${secret} https://example.com`],
  ["a command that signs in, in quotes", (secret) => `$ curl --user "ada:${secret}" https://example.com`],
  ["a command that signs in, beside other flags", (secret) => `curl -sSu ada:${secret} https://example.com`],
  ["a command that signs in, in one word with other flags", (secret) => `curl -sSLuada:${secret} https://example.com`],
  [
    "a command that signs in by a password with spaces",
    (secret) => `curl -u 'ada:first ${secret}' https://example.com`
  ],
  [
    "a command that signs in by a password with quotes",
    (secret) => `curl -u "ada:a\\"b ${secret}" https://example.com`
  ],
  ["a command that signs in by a quoted password", (secret) => `curl -u ada:"first ${secret}" https://example.com`],
  ["a command that signs in by a quoted name", (secret) => `curl -U "ada":${secret} https://example.com`],
  ["a command's flag", (secret) => `mysql --host db --password ${secret} shop`],
  ["a column of CSV", (secret) => `name,password,note\nada,${secret},x\nbob,"${secret} ""q""\nmore",y\n`, "text/csv"],
  ["a column of CSV with semicolons", (secret) => `"name";"API key"\r\n"ada";${secret}\r\n`, "text/csv"],
  ["a column of CSV behind the line of its separator", (secret) => `sep=;\r\nid;passwd\r\n1;${secret}\r\n`, "text/csv"],
  ["a column of CSV behind blank lines", (secret) => `\n\nid,password\n1,${secret}\n`, "text/csv"],
  ["a column of TSV that has no end", (secret) => `id\ttoken\n1\t"${secret}\n2\t${secret}`],
  ["a command", (secret) => `curl -u user: -d token=${secret} https://example.com`],
  ["a long text", (secret) => `${"x ".repeat(30_000)}password: ${secret}\n${"y ".repeat(30_000)}`]
]

export const planted: ReadonlyArray<Planted> = [
  ...headers.map(([of, before = ""]): Planted => ({
    name: `the header ${of}`,
    in: "header",
    of,
    value: (secret) => (of === "link" ? `${before}${secret}@example.com>` : before + secret)
  })),
  ...names.map((of): Planted => ({ name: `the parameter ${of}`, in: "query", of, value: (secret) => secret })),
  { name: "a parameter that is JSON", in: "query", of: "q", value: (secret) => JSON.stringify({ token: secret }) },
  { name: "a parameter's name", in: "query", of: "Bearer", value: (secret) => secret },
  { name: "a step after a name", in: "path", value: (secret) => `/reset-password/${secret}/confirm` },
  { name: "a parameter in a path", in: "path", value: (secret) => `/x;token=${secret}/y` },
  { name: "base64 in a path", in: "path", value: (secret) => `/x/${base64url(JSON.stringify({ token: secret }))}` },
  ...json.map(([name, value]): Planted => ({ name: `JSON: ${name}`, in: "json", value })),
  ...text.map(([name, value, contentType = ""]): Planted => ({ name: `text: ${name}`, in: "text", value, contentType }))
]
