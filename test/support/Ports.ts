import { randomInt } from "node:crypto"
import { createServer } from "node:net"

const given = new Set<number>()

/**
 * A port of loopback that nobody listens on, for whoever begins to later, or again. It is below those that the system gives to clients and
 * to servers that ask for any: nobody else gets it meanwhile.
 */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    if (given.has(port)) continue
    const free = await new Promise<boolean>((resolve) => {
      const server = createServer()
      server.once("error", () => resolve(false))
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
    })
    if (!free) continue
    given.add(port)
    return port
  }
}
