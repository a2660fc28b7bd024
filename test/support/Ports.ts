import { randomInt } from "node:crypto"
import { createServer } from "node:net"

const given = new Set<number>()

/**
 * A free loopback port for a server that starts later or starts again. It is below the range that the system assigns to clients
 * and to servers that ask for any port, so no other process gets it meanwhile.
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
