import { Schema } from "effect"
import { HttpUrl, setting } from "./Settings.ts"

/** The origin of a service. */
export const Endpoint = HttpUrl(512).check(
  Schema.makeFilter((written: string) => {
    const url = URL.parse(written)
    return (url?.pathname === "/" && url.search === "") || "must be an origin: without a path and a query"
  })
)

/** The setting for the origin of a service that is not at its usual address. */
export const endpointOf = (description: string) => setting(Endpoint.annotate({ description }), null)
