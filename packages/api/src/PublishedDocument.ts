import { readFileSync } from "node:fs"
import { Effect, type Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"

/**
 * The OpenAPI document as it is published: `openapi.json` of the client, which `npm test -- test/published -u` writes from the
 * contract. Generating it takes 0.4 s, and would be a third of the start of every process; a test compares the file with the contract.
 */
export interface PublishedDocument {
  readonly [member: string]: unknown
}

const file = new URL("../../client/openapi.json", import.meta.url)

let read: PublishedDocument | null = null

/** Reading it blocks for 20 ms, once: a server calls this before it holds a lease. */
export const publishedDocument = (): PublishedDocument =>
  (read ??= JSON.parse(readFileSync(file, "utf8")) as PublishedDocument)

/** `GET /openapi.json`. */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter> = HttpRouter.use((router) =>
  Effect.gen(function* () {
    let response: HttpServerResponse.HttpServerResponse | null = null
    yield* router.add(
      "GET",
      "/openapi.json",
      Effect.sync(() => (response ??= HttpServerResponse.jsonUnsafe(publishedDocument())))
    )
  })
)
