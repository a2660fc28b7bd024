import { it, beforeAll, afterAll } from "vitest"
import { Gateway } from "./Gateway.ts"
import { Target } from "./Target.ts"
import { request, talk, requestBytes } from "./RawHttp.ts"
let g: Gateway, t: Target
beforeAll(async () => { t = await Target.start(); g = await Gateway.start() })
afterAll(async () => { await g.close(); await t.close() })
const show = (x: unknown) => console.log(JSON.stringify(x)?.slice(0, 600))
it("probes", async () => {
  const r = await g.route(t, { destination: { url: t.origin + "/base/hooks?own=1" } })
  const p = `/e/${r.source.id}`
  for (const suffix of ["/../../admin", "/%2e%2e/x", "/a/./b/../c", "/x#y?z=1", "/a{b}|c\"<>^`", "/%zz%", "//evil.example/x", "/..;/x", "/\\..\\x", "?a=1&a=2&b=%20+'\"<>#x", "/?", "?", "/x?"]) {
    t.reset()
    const a = await request(g.port, { path: p + suffix, body: "x" }).catch((e) => ({ status: String(e), body: "" }))
    const d = await t.next(1, 1500).catch((e) => [{ url: String(e) }] as any)
    show([suffix, a.status, d[0].url])
  }
  // upgrade h2c
  t.reset()
  show(["h2c", await talk(g.port, [requestBytes({ path: p, headers: [["Connection", "Upgrade, HTTP2-Settings"], ["Upgrade", "h2c"], ["HTTP2-Settings", "AAMAAABkAAQAAP__"]], body: "hi" })], { answers: 1, patienceMs: 3000 }).then((c) => [c.answers]).catch((e) => String(e))])
  show(["h2c delivered", await t.next(1, 1000).then((d) => d[0]!.body.toString()).catch(String)])
  show(["absolute form", (await request(g.port, { path: `http://gateway.test${p}/abs`, body: "x" })).status])
  show(["websocket", await talk(g.port, [requestBytes({ path: p, method: "GET", headers: [["Connection", "Upgrade"], ["Upgrade", "websocket"], ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="], ["Sec-WebSocket-Version", "13"]] })], { answers: 1, patienceMs: 3000 }).then((c) => [c.answers]).catch((e) => String(e))])
  // >2000 headers
  t.reset()
  show(["3000 headers", (await request(g.port, { path: p, headers: Array.from({ length: 3000 }, (_, i) => [`h${i}`, "1"] as const), body: "x" })).status])
  show((await t.next(1, 2000).catch(() => [{ rawHeaders: [] }] as any))[0].rawHeaders.length / 2)
  // weird headers
  t.reset()
  show(["proto headers", (await request(g.port, { path: p, headers: [["constructor", "c"], ["__proto__", "p"], ["tostring", "t"], ["x-latin", "\xe9\xff"], ["empty", ""], ["x-many", "1"], ["x-many", "2"], ["Connection", "close, x-hop"], ["x-hop", "1"]], body: "x" })).status])
  show((await t.next(1, 2000).catch(() => [{ rawHeaders: [] }] as any))[0].rawHeaders)
  // 10MiB + 1 streaming
  for (const framing of ["length", "chunked"]) {
    const size = 10 * 1024 * 1024 + 1
    const body = Buffer.alloc(size, 120)
    const head = framing === "length" ? `Content-Length: ${size}\r\n` : "Transfer-Encoding: chunked\r\n"
    const parts: Array<string | Buffer> = [`POST ${p} HTTP/1.1\r\nHost: x\r\n${head}\r\n`]
    if (framing === "length") parts.push(body)
    else { for (let i = 0; i < size; i += 65536) { const c = body.subarray(i, i + 65536); parts.push(`${c.length.toString(16)}\r\n`, c, "\r\n") } parts.push("0\r\n\r\n") }
    show([framing, await talk(g.port, parts, { answers: 1 }).then((c) => c.answers).catch((e) => String(e).slice(0, 200))])
    show([framing, "fetch", await fetch(g.origin + p, { method: "POST", body: framing === "length" ? body : new Blob([body]).stream(), duplex: "half" } as any).then((r) => r.status).catch((e) => String(e.cause ?? e))])
  }
}, 60000)
