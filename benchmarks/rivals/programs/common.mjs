/** What the programs of rivals have in common: the way out, an address to send to, and the steps of the flow. */
import { createServer } from "node:http"
import { Pool } from "undici"

const target = new URL(process.env.TARGET_URL)
const pool = new Pool(target.origin, { connections: 100, pipelining: 1, keepAliveTimeout: 60_000 })

/** Posts to the target; throws if it does not take it. */
export const deliver = async (body) => {
  const answer = await pool.request({
    method: "POST",
    path: target.pathname,
    headers: { "content-type": "application/json" },
    body
  })
  await answer.body.dump()
  if (answer.statusCode >= 300) throw new Error(`the target answered ${answer.statusCode}`)
}

/** Takes requests at PORT, and answers each when `accept` has completed. */
export const listen = (accept) => {
  const server = createServer((request, response) => {
    const chunks = []
    request.on("data", (chunk) => chunks.push(chunk))
    request.on("end", () => {
      if (request.method === "GET") {
        response.end("ready")
        return
      }
      accept(Buffer.concat(chunks).toString()).then(
        () => response.end("{}"),
        (error) => response.writeHead(503).end(String(error))
      )
    })
  })
  server.keepAliveTimeout = 120_000
  server.listen(Number(process.env.PORT), "127.0.0.1")
}

/** The five pure steps of the flow, as the gateway's benchmark has them: each takes the request's body and what the steps before it gave. */
export const steps = [
  ["read", (body) => body.customer.email.toUpperCase()],
  ["only_eur", (body) => body.currency === "EUR"],
  ["upper", (_, read) => read.toUpperCase()],
  ["again", (body, upper) => `${body.type} of ${upper}`.toUpperCase()],
  ["done", (_, again) => again.toUpperCase()]
]

/** Runs the steps one after the other by `step`, which stores each result, and then delivers the body. */
export const flow = async (body, step) => {
  let text = ""
  for (const [name, run] of steps) {
    const result = await step(name, async () => run(body, text))
    if (result === false) return
    if (typeof result === "string") text = result
  }
  await step("send", () => deliver(JSON.stringify(body)))
}
