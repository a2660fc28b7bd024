import type { ControlCase } from "./Case.ts"

const open = (depth: number, text: string): string => text.repeat(depth)
const mebibyte = 1024 * 1024

/** Bodies that are no JSON object, or none that can be kept. */
const bodies: ReadonlyArray<readonly [name: string, body: string | Uint8Array, status: number, code: string]> = [
  ["empty", "", 400, "INVALID_JSON"],
  ["white space", " \n\t ", 400, "INVALID_JSON"],
  ["cut after the brace", "{", 400, "INVALID_JSON"],
  ["cut in a name", '{"na', 400, "INVALID_JSON"],
  ["cut after the colon", '{"name":', 400, "INVALID_JSON"],
  ["cut in a text", '{"name":"a', 400, "INVALID_JSON"],
  ["cut in an escape", '{"name":"\\u00', 400, "INVALID_JSON"],
  ["cut in a number", '{"name":1e', 400, "INVALID_JSON"],
  ["a byte order mark", "\ufeff{}", 400, "INVALID_JSON"],
  ["a comma at the end", '{"name":"a",}', 400, "INVALID_JSON"],
  ["a comma at the end of a list", '{"rules":[1,]}', 400, "INVALID_JSON"],
  ["no comma", '{"name":"a" "type":"WEBHOOK"}', 400, "INVALID_JSON"],
  ["single quotes", "{'name':'a'}", 400, "INVALID_JSON"],
  ["a name without quotes", "{name:1}", 400, "INVALID_JSON"],
  ["a comment", '{"name":"a"/* x */}', 400, "INVALID_JSON"],
  ["two values", '{"name":"a"}{}', 400, "INVALID_JSON"],
  ["text after the value", '{"name":"a"}x', 400, "INVALID_JSON"],
  ["NaN", '{"name":NaN}', 400, "INVALID_JSON"],
  ["Infinity", '{"name":-Infinity}', 400, "INVALID_JSON"],
  ["undefined", '{"name":undefined}', 400, "INVALID_JSON"],
  ["a hexadecimal number", '{"name":0x10}', 400, "INVALID_JSON"],
  ["a leading zero", '{"name":01}', 400, "INVALID_JSON"],
  ["a plus sign", '{"name":+1}', 400, "INVALID_JSON"],
  ["a bare point", '{"name":.5}', 400, "INVALID_JSON"],
  ["a control character in a text", '{"name":"a\u0001"}', 400, "INVALID_JSON"],
  ["a raw NUL", Buffer.from('{"name":"a\u0000"}'), 400, "INVALID_JSON"],
  ["a wrong escape", '{"name":"\\x41"}', 400, "INVALID_JSON"],
  ["form data", "name=a&type=WEBHOOK", 400, "INVALID_JSON"],
  ["XML", "<source><name>a</name></source>", 400, "INVALID_JSON"],
  ["bytes that are not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400, "INVALID_JSON"],
  ["an overlong form of a slash", Buffer.from('{"name":"\xc0\xaf"}', "latin1"), 400, "INVALID_JSON"],
  ["a surrogate in UTF-8", Buffer.from('{"name":"\xed\xa0\x80"}', "latin1"), 400, "INVALID_JSON"],
  ["UTF-16", Buffer.from('{"name":"a"}', "utf16le"), 400, "INVALID_JSON"],
  ["a gzip stream", Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]), 400, "INVALID_JSON"],
  ["ten thousand open lists", open(10_000, "["), 400, "VALIDATION_ERROR"],
  ["ten thousand open objects", open(10_000, '{"a":'), 400, "VALIDATION_ERROR"],
  ["a list", "[]", 400, "VALIDATION_ERROR"],
  ["a list of bodies", '[{"name":"a"}]', 400, "VALIDATION_ERROR"],
  ["null", "null", 400, "VALIDATION_ERROR"],
  ["a text", '"name"', 400, "VALIDATION_ERROR"],
  ["a number", "1", 400, "VALIDATION_ERROR"],
  ["true", "true", 400, "VALIDATION_ERROR"],
  ["ten thousand lists", `{"name":"a","x":${open(10_000, "[")}${open(10_000, "]")}}`, 400, "VALIDATION_ERROR"],
  ["ten thousand objects", `{"name":"a","x":${open(10_000, '{"a":')}1${open(10_000, "}")}}`, 400, "VALIDATION_ERROR"],
  ["65 levels", `{"name":"a","x":${open(65, "[")}${open(65, "]")}}`, 400, "VALIDATION_ERROR"],
  ["an infinite number", '{"name":"a","config":{"rate_limit":1e999}}', 400, "VALIDATION_ERROR"],
  ["a very long number", `{"name":"a","x":${"9".repeat(400)}}`, 400, "VALIDATION_ERROR"],
  ["a NUL", '{"name":"a\\u0000b"}', 400, "VALIDATION_ERROR"],
  ["a NUL in a name", '{"name":"a","x":{"\\u0000":1}}', 400, "VALIDATION_ERROR"],
  ["a high surrogate alone", '{"name":"a\\ud800"}', 400, "VALIDATION_ERROR"],
  ["a low surrogate alone", '{"name":"a","description":"\\udc00"}', 400, "VALIDATION_ERROR"],
  ["surrogates in the wrong order", '{"name":"\\udc00\\ud800"}', 400, "VALIDATION_ERROR"],
  ["__proto__ for a name", '{"__proto__":{"name":"inherited"}}', 400, "VALIDATION_ERROR"],
  ["__proto__ for config", '{"config":{"__proto__":{"url":"https://example.com/"}}}', 400, "VALIDATION_ERROR"],
  ["constructor", '{"constructor":{"prototype":{"name":"x"}}}', 400, "VALIDATION_ERROR"],
  ["a name twice, the second wrong", '{"name":"a","name":1}', 400, "VALIDATION_ERROR"],
  ["one byte too many", `{"name":"${"x".repeat(8 * mebibyte - 10)}"}`, 413, "PAYLOAD_TOO_LARGE"],
  ["one byte too many of white space", `{}${" ".repeat(8 * mebibyte - 1)}`, 413, "PAYLOAD_TOO_LARGE"]
]

const writes = ["POST /v1/sources", "PUT /v1/destinations", "POST /v1/connections", "PATCH /v1/sources/{source}"]

/** Every body to one route after the other, because all read theirs in the same way; a few to all. */
export const wrongJson: ReadonlyArray<ControlCase> = [
  ...bodies.map(([name, body, status, code], index): ControlCase => {
    // A change in part needs no name, so what is wrong only by not having one would be right there.
    const [method = "", path = ""] = writes[index % 3]!.split(" ")
    return { name: `body: ${name}`, method, path, body, status, code }
  }),
  ...bodies.slice(0, 3).map(([name, body, status, code]): ControlCase => {
    const [method = "", path = ""] = writes[3]!.split(" ")
    return { name: `body of a change: ${name}`, method, path, body, status, code }
  })
]

const typed = (type: string, status = 415, code = "UNSUPPORTED_CONTENT_TYPE"): ControlCase => ({
  name: `content type ${type}`,
  method: "POST",
  path: "/v1/sources",
  headers: [["Content-Type", type]],
  body: '{"name":"typed"}',
  status,
  code
})

export const wrongTypes: ReadonlyArray<ControlCase> = [
  ...[
    "text/plain",
    "text/html",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "application/octet-stream",
    "application/json; charset=utf-16",
    "application/json; charset=latin1",
    "application/jsonp",
    "text/json",
    "json",
    "application/json, text/plain",
    "*/*"
  ].map((type) => typed(type)),
  ...["gzip", "br", "deflate, gzip", "x"].map((encoding): ControlCase => ({
    name: `content encoding ${encoding}`,
    method: "POST",
    path: "/v1/sources",
    headers: [["Content-Encoding", encoding]],
    body: '{"name":"encoded"}',
    status: 415,
    code: "UNSUPPORTED_CONTENT_TYPE"
  })),
  ...["POST /v1/sources", "PUT /v1/sources", "PATCH /v1/connections/{connection}"].map((route): ControlCase => {
    const [method = "", path = ""] = route.split(" ")
    return { name: "no body", method, path, status: 400, code: "INVALID_JSON" }
  })
]
