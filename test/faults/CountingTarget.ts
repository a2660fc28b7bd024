import { fork } from "node:child_process"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"

/** The number of deliveries that have arrived, and how many of them repeated an event that had arrived before. */
export interface Arrived {
  readonly deliveries: number
  readonly repeated: number
}

/** A target in a separate process, so that measurements in this process do not wait for it. */
export interface CountingTarget {
  readonly origin: string
  readonly arrived: () => Promise<Arrived>
  readonly close: () => void
}

const program = fileURLToPath(import.meta.url)

export const start = async (): Promise<CountingTarget> => {
  const child = fork(program)
  const said = <A>() => new Promise<A>((resolve) => child.once("message", (message) => resolve(message as A)))
  const port = await said<number>()
  return {
    origin: `http://127.0.0.1:${port}`,
    arrived: () => {
      const answer = said<Arrived>()
      child.send("arrived")
      return answer
    },
    close: () => void child.kill()
  }
}

if (process.argv[1] === program) {
  const seen = new Set<string>()
  let deliveries = 0
  const server = createServer((request, response) => {
    deliveries++
    seen.add(String(request.headers["x-gateway-event-id"]))
    request.resume()
    request.on("end", () => response.end())
  })
  server.listen(0, "127.0.0.1", () => process.send!((server.address() as AddressInfo).port))
  process.on("message", () => process.send!({ deliveries, repeated: deliveries - seen.size } satisfies Arrived))
  process.on("disconnect", () => process.exit(0))
}
