import { roleAddress, tokenAddresses, tokenNotReached } from "./Auths.ts"
import type { ConformanceRow, Failing } from "./Row.ts"

/** Whatever it is, a target may think better of it: the retry rule says which statuses are final. */
const status = (status: number): Failing => ({ status, code: "BAD_RESPONSE", final: false })

export const http: ConformanceRow = {
  type: "HTTP",
  mock: (origin) => ({ config: { url: `${origin}/hooks` } }),
  accepted: { status: 204 },
  failures: {
    credentials: [status(401), status(403)],
    tooMuch: [{ ...status(429), headers: { "retry-after": "7" } }, status(503)],
    refused: [status(301), status(400), status(404), status(410), status(413)],
    trouble: [status(500), status(502), status(504)]
  },
  addresses: {
    url: ({ url }) => ({ config: { url } }),
    ...tokenAddresses({ url: "https://target.example.com/hooks" }),
    ...roleAddress({ url: "https://target.example.com/hooks" })
  },
  notReached: { ...tokenNotReached, server_ca: "certificates, and nobody is asked for them" },
  triedWith: "servers of node:http, raw sockets and TLS with good and bad certificates"
}
