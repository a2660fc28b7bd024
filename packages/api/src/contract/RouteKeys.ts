import type { HttpApiEndpoint } from "effect/http-api"
import { Api } from "./Api.ts"
import { leaksPayloads, permissionOf } from "./Authorization.ts"

/** The canonical names of routes in the grants and the audit of keys: `POST:/v1/events/:id/retry`, however they were called. */

type Named = Pick<HttpApiEndpoint.Top, "method" | "path">

const written = ({ method, path }: Named): string => `${method}:/v1${path}`

const endpoints: ReadonlyArray<HttpApiEndpoint.Top> = Object.values(Api.groups).flatMap((group) =>
  Object.values(group.endpoints as Readonly<Record<string, HttpApiEndpoint.Top>>)
)

for (const endpoint of endpoints) {
  if (leaksPayloads(endpoint))
    throw new Error(`${written(endpoint)} returns payloads, but does not require control:read`)
}

const executed = endpoints.filter((endpoint) => {
  const permission = permissionOf(endpoint)
  return permission !== "public" && permission.scope === "control:execute"
})

/** A route that may be called with PUT and with POST is one route. */
const canonical: ReadonlyMap<string, string> = new Map(
  executed.map((endpoint) => {
    const twin = executed.some(({ method, path }) => method === "POST" && path === endpoint.path)
    return [written(endpoint), written(twin ? { method: "POST", path: endpoint.path } : endpoint)] as const
  })
)

export const routeKeyOf = (endpoint: Named): string => {
  const key = written(endpoint)
  return canonical.get(key) ?? key
}

/** The routes that a key can be granted, each once. */
export const grantable: ReadonlyArray<string> = [...new Set(canonical.values())].toSorted()

const id = /^[a-z]{2,4}_[0-9a-z]{26}$/

/** A route for one object: the id takes the place of `:id`. Other ids of the route stay open. */
export const narrowedTo = (route: string, object: string): string => route.replace("/:id", () => `/${object}`)

/** The canonical name of a granted route, or of a route for one object; null: there is no such route. */
export const grantOf = (text: string): string | null => {
  const route = canonical.get(text)
  if (route !== undefined) return route
  const object = text.split("/").find((part) => id.test(part))
  const open = object === undefined ? undefined : canonical.get(text.replace(`/${object}`, "/:id"))
  return open === undefined ? null : narrowedTo(open, object!)
}
