import { readFileSync } from "node:fs"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import type { TLSSocket } from "node:tls"
import { expect } from "vitest"
import { it as gatewayIt } from "../support/it.ts"

/** Deliveries to a server that talks only to those who show a certificate that it knows. */

const fixture = (name: string): string =>
  readFileSync(new URL(`../../packages/egress/test/fixtures/${name}`, import.meta.url), "utf8")

const certificate = fixture("self-signed.pem")
const key = fixture("key.pem")

const it = gatewayIt
  /** A server behind TLS, and whose certificates it has seen. */
  .extend("server", async ({}, { onCleanup }) => {
    const seen: Array<string> = []
    const settings = { requestCert: true, rejectUnauthorized: true, ca: [certificate] }
    const server = createServer({ ...settings, key, cert: fixture("valid.pem") }, (incoming, response) => {
      seen.push((incoming.socket as TLSSocket).getPeerX509Certificate()!.toString())
      response.end("ok")
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    onCleanup(() => {
      server.closeAllConnections()
      server.close()
    })
    return { seen, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/` }
  })
  /** Sends one request to a destination, and returns how its first attempt ended. */
  .extend("attempted", ({ gateway }) => async (destination: { readonly id: string }) => {
    const source = await gateway.source()
    await gateway.connection(source, destination)
    const answer = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: "{}" })
    const { request_id } = (await answer.json()) as { readonly request_id: string }
    return gateway.eventually("the attempt", async () => (await gateway.traced(request_id)).attempts[0] ?? null)
  })

it("A server that demands a certificate gets the destination's own, and no answer shows its key", async ({
  attempted,
  gateway,
  server
}) => {
  const server_ca = fixture("authority.pem")
  const own = { url: server.url, server_ca, client_certificate: certificate, client_key: key }
  const destination = await gateway.destination(own)
  expect(await attempted(destination)).toMatchObject({ status: "SUCCESSFUL", response_status: 200 })
  expect(server.seen).toEqual([certificate])

  const path = `/destinations/${destination.id}`
  const read = await gateway.api("GET", `/destinations/${destination.id}`)
  expect(read.config).toMatchObject({ client_key: "****", client_certificate_expires_at: "2125-01-01T00:00:00.000Z" })
  // What was read may be written back, and keeps the key.
  const back = await gateway.call("PUT", path, { name: read.name, config: read.config })
  expect([back.status, back.body.message]).toEqual([200, undefined])
  const renamed = await gateway.call("PATCH", path, { name: gateway.name("renamed"), config: read.config })
  expect([renamed.status, renamed.body.message]).toEqual([200, undefined])
  await attempted(destination)
  expect(server.seen).toEqual([certificate, certificate])
  const stored = await gateway.sql("select config::text, auth from destinations where id = $1", [destination.id])
  expect(JSON.stringify([read, back.body, renamed.body, stored])).not.toContain(key.split("\n")[2])

  const bare = await gateway.destination({ url: server.url, server_ca })
  expect(await attempted(bare)).toMatchObject({ status: "FAILED", response_status: null })
  expect(server.seen).toHaveLength(2)
})

it("A key of another certificate is refused when it is written, with a message that shows nothing of it", async ({
  gateway
}) => {
  const written = { url: "https://api.example.com/", client_certificate: certificate, client_key: certificate }
  const refused = await gateway.call("POST", "/destinations", { name: gateway.name("wrong"), config: written })
  expect(refused.status).toBe(400)
  expect(JSON.stringify(refused.body)).toContain("must be a private key in PEM without a password")
  expect(JSON.stringify(refused.body)).not.toContain("BEGIN")
})
