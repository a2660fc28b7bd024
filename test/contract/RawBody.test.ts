import { randomBytes } from "node:crypto"
import { describe, expect } from "vitest"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** What was received can be had again, byte for byte, and never runs in a browser. */

const it = gatewayIt
  /** Sends `body` to a new source; the id of the request that is stored. */
  .extend(
    "receive",
    ({ gateway }) =>
      async (body: Uint8Array, contentType: string, config: Record<string, unknown> = {}) => {
        const source = await gateway.source(config)
        await request(gateway.port, { path: `/e/${source.id}`, headers: [["Content-Type", contentType]], body })
        const [stored] = await gateway.requests(source.id)
        return stored.id as string
      }
  )
  .extend(
    "download",
    ({ gateway }) =>
      (id: string, method = "GET", headers: Record<string, string> = {}): Promise<Response> =>
        fetch(`${gateway.origin}/v1/requests/${id}/body`, {
          method,
          headers: { authorization: `Bearer ${gateway.key}`, ...headers }
        })
  )

describe("GET /requests/{id}/body", () => {
  it.for<[name: string, bytes: Buffer, contentType: string]>([
    ["any bytes", randomBytes(70_000), "application/octet-stream"],
    ["JSON as it was written", Buffer.from('{ "b" : 1,\r\n "a" : 1e3 }'), "application/json"],
    ["invalid UTF-8", Buffer.from([0xff, 0x00, 0xfe]), "text/plain"],
    ["an empty body", Buffer.alloc(0), "text/plain"],
    ["the largest body", randomBytes(10 * 1024 * 1024), "application/json"]
  ])("A raw body is returned byte for byte: %s", async ([, bytes, contentType], { download, receive }) => {
    const answer = await download(await receive(bytes, contentType))
    expect(answer.status).toBe(200)
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true)
    expect(answer.headers.get("content-length")).toBe(String(bytes.length))
  })

  it("A raw body that is a page is downloaded and not displayed", async ({ download, receive }) => {
    const id = await receive(Buffer.from("<script>alert(document.domain)</script>"), "text/html")
    const { headers } = await download(id)
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename="${id}.bin"`,
      "content-security-policy": "default-src 'none'; sandbox",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store"
    })
  })

  it("HEAD of a raw body has the same headers and no body", async ({ download, receive }) => {
    const id = await receive(Buffer.from("0123456789"), "text/plain")
    const [got, head] = [await download(id), await download(id, "HEAD")]
    expect([head.status, await head.text()]).toEqual([200, ""])
    for (const name of ["content-type", "content-length", "content-disposition", "content-security-policy"]) {
      expect(head.headers.get(name)).toBe(got.headers.get(name))
    }
    expect(head.headers.get("content-length")).toBe("10")
  })

  it("The raw body of a rejected request can be read", async ({ download, receive }) => {
    const id = await receive(Buffer.from("unproved"), "text/plain", {
      auth_type: "API_KEY",
      auth: { api_key: "sender-key" }
    })
    expect(await (await download(id)).text()).toBe("unproved")
  })

  it("A raw body that is unknown, expired or was too large is answered with 404", async ({
    download,
    gateway,
    receive
  }) => {
    const gone = await receive(Buffer.from("gone"), "text/plain")
    await gateway.sql("update requests set body = null where id = $1", [gone])
    const source = await gateway.source()
    const large = Buffer.alloc(10 * 1024 * 1024 + 1)
    const { status } = await request(gateway.port, { path: `/e/${source.id}`, body: large })
    expect(status).toBe(413)
    const [refused] = await gateway.requests(source.id)
    for (const id of [gone, refused.id, "req_00000000000000000000000000", source.id, "x"]) {
      for (const method of ["GET", "HEAD"]) expect((await download(id, method)).status, id).toBe(404)
      expect(await (await download(id)).json()).toMatchObject({ code: "NOT_FOUND", status: 404 })
    }
  })

  it("A raw body of another team is answered with 404, without a key with 401, and with its team with 403", async ({
    download,
    gateway,
    receive
  }) => {
    const id = await receive(Buffer.from("ours"), "text/plain")
    const { team: other } = await gateway.forTeam()
    await gateway.sql("update requests set team_id = $2 where id = $1", [id, other])
    expect((await download(id)).status).toBe(404)
    expect((await download(id, "GET", { authorization: "" })).status).toBe(401)
    expect((await download(id, "GET", { "x-team-id": other })).status).toBe(403)
    expect((await download(id, "PUT")).status).toBe(405)
  })
})
