import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { expect } from "vitest"
import type { Body } from "../../../../test/support/Gateway.ts"
import { it as base } from "./it.ts"

/** `pull` with a gateway: what a consumer's program gets, and what becomes of the event. */

const it = base.extend("waiting", ({ gateway }) => async (bodies: ReadonlyArray<string>) => {
  const source = await gateway.source()
  const destination = await gateway.destination({}, "PULL")
  await gateway.connection(source, destination)
  for (const body of bodies) {
    const headers = { "content-type": "application/json" }
    const { status } = await fetch(`${source.url}/orders`, { method: "POST", headers, body })
    expect(status).toBe(200)
  }
  return destination
})

const sorted = (texts: Iterable<string>): ReadonlyArray<string> =>
  Array.from(texts).toSorted((a, b) => a.localeCompare(b))

const lines = (text: string): ReadonlyArray<Body> =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

it("Pull command prints each message as a line, and acknowledges it", async ({ gateway, tidegate, waiting }) => {
  const { id, name } = await waiting(['{"id":1}', '{"id":2}'])
  const { code, complained, said } = await tidegate(["pull", name, "--ack", "--max", "2"])
  expect({ code, complained }).toEqual({ code: 0, complained: "" })
  const messages = lines(said)
  expect(sorted(messages.map(({ body }) => body))).toEqual(['{"id":1}', '{"id":2}'])
  expect(sorted(Object.keys(messages[0])).join(" ")).toBe(
    "attempt_number body connection_id event_id headers method ordering_key path receipt request_id source_id"
  )
  const { models } = await gateway.api("GET", `/events?destination_id=${id}`)
  expect(models.map(({ status }: Body) => status)).toEqual(["SUCCESSFUL", "SUCCESSFUL"])
})

it("Pull command runs a program for each message, and its exit code decides about the event", async ({
  folder,
  gateway,
  tidegate,
  waiting
}) => {
  const { id } = await waiting(['{"good":true}', '{"good":false}'])
  const file = join(folder, "taken")
  const program = `grep 'good.*true' >> ${JSON.stringify(file)}`
  const { code, complained, said } = await tidegate(["pull", id, "--exec", program, "--max", "2", "--json"])
  expect([code, said]).toEqual([1, ""])
  expect(lines(complained)).toMatchObject([
    { type: "refused", event_id: expect.stringMatching(/^evt_/), reason: "exit code 1" },
    { error: "failed", message: "1 of 2 messages were refused" }
  ])
  expect(lines(await readFile(file, "utf8"))).toMatchObject([{ body: '{"good":true}', path: "/orders" }])
  const { models } = await gateway.api("GET", `/events?destination_id=${id}`)
  expect(sorted(models.map(({ status }: Body) => status))).toEqual(["FAILED", "SUCCESSFUL"])
  const { models: attempts } = await gateway.api("GET", `/attempts?destination_id=${id}&status=FAILED`)
  expect(attempts).toMatchObject([{ error_code: "BAD_RESPONSE" }])
})

it("Pull command that is interrupted asks its program to stop, and settles the message by how it ends", async ({
  gateway,
  starting,
  waiting
}) => {
  const { id } = await waiting(["1"])
  const program = "trap 'echo stopping; exit 0' TERM; cat > /dev/null; echo begun; while :; do sleep 0.05; done"
  const pulling = starting(["pull", id, "--exec", program])
  await pulling.line((line) => line === "begun")
  expect(await pulling.interrupt()).toMatchObject({ code: 0, said: "begun\nstopping\n" })
  const { models } = await gateway.api("GET", `/events?destination_id=${id}`)
  expect(models.map(({ status }: Body) => status)).toEqual(["SUCCESSFUL"])
})

it("Pull command ends when there is no message in its time, and tells what it cannot fetch from", async ({
  gateway,
  tidegate,
  waiting
}) => {
  const { id } = await waiting([])
  expect(await tidegate(["pull", id, "--ack", "--wait", "0"])).toEqual({ code: 0, said: "", complained: "" })
  const http = await gateway.destination({ url: "https://example.com/" })
  expect(await tidegate(["pull", http.name, "--ack"])).toMatchObject({
    code: 2,
    complained: expect.stringContaining("is of type HTTP: messages are fetched from destinations of type PULL")
  })
  expect(await tidegate(["pull", "des_00000000000000000000000000", "--ack"])).toMatchObject({ code: 4, said: "" })
})

it.for<[ReadonlyArray<string>, string]>([
  [[], "say when a message is acknowledged"],
  [["--ack", "--exec", "true"], "say when a message is acknowledged"],
  [["--ack", "--max", "0"], "must be at least 1"],
  [["--ack", "--wait", "86401"], "must be from 0 to 86400"]
])("Pull command refuses the flags %j, and fetches nothing", async ([flags, message], { tidegate }) => {
  const { code, complained, said } = await tidegate(["pull", "des_1", ...flags])
  expect([code, said + complained]).toEqual([2, expect.stringContaining(message)])
})

it("Pull command tells that the gateway is away, and waits for it", async ({ onTestFinished, starting }) => {
  let calls = 0
  const server = createServer((request, response) => {
    request.resume()
    const receipt = { receipt: "evt_1.1", event_id: "evt_1", headers: {}, body: "\u001b[31m" }
    const isPull = request.url?.endsWith("/pull") === true
    const answer = isPull ? { messages: [receipt] } : { settled: [], expired: ["evt_1.1"] }
    if (++calls === 1) response.writeHead(503).end()
    else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const pulling = starting(["pull", "des_1", "--ack", "--max", "1"], {
    env: { TIDEGATE_URL: `http://127.0.0.1:${port}` }
  })
  const { code, complained, said } = await pulling.ended
  expect([code, calls]).toEqual([0, 3])
  expect(JSON.parse(said)).toMatchObject({ body: "\u001b[31m" })
  expect(said).not.toContain("\u001b")
  expect(complained).toMatch(/^503 .*: retrying in \d\.\d s\nevt_1: the lease has ended: .* handed out again\n$/)
})
