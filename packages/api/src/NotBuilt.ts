/**
 * Routes of the contract that this gateway does not have yet; `{}` is an id. To build one, remove its line. They are 404
 * ROUTE_NOT_FOUND like every unknown route (the contract has no code of its own for them), and the message says that the caller
 * made no mistake.
 */
export const notBuilt: ReadonlyArray<string> = []

const patterns = notBuilt.map((route) => {
  const [methods = "", path = ""] = route.split(" ")
  return {
    methods: new Set(methods.split(",").flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]))),
    pattern: new RegExp(`^${path.replaceAll("{}", "[^/]+")}/?$`, "i")
  }
})

/** Whether the contract has this route, and this gateway does not. */
export const isNotBuilt = (method: string, path: string): boolean =>
  patterns.some((route) => route.methods.has(method) && route.pattern.test(path))
