import { Effect, type Layer, Predicate } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { stepOutputs } from "@tidegate/resources/workflow/StepOutputs"
import { publishedDocument } from "./PublishedDocument.ts"

/**
 * The JSON Schema of a workflow that is written in a file. Editors take it by the file's `$schema`. It is made of the schemas of
 * the published document that `WorkflowWrite` names, so a new kind of step is in it. `$defs` also has the outputs of the kinds of
 * steps: tools read there what later steps find in them.
 */

type Schemas = Readonly<Record<string, unknown>>

const prefix = "#/components/schemas/"

const made = (): unknown => {
  const { schemas } = publishedDocument()["components"] as { readonly schemas: Schemas }
  const named: Record<string, unknown> = { ...stepOutputs }
  const rewritten = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rewritten)
    if (!Predicate.isReadonlyObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([member, inner]) => {
        if (member !== "$ref" || typeof inner !== "string") return [member, rewritten(inner)]
        const name = inner.slice(prefix.length)
        if (!Object.hasOwn(named, name)) {
          // First the name: a schema may name itself.
          named[name] = true
          named[name] = rewritten(schemas[name])
        }
        return [member, `#/$defs/${name}`]
      })
    )
  }
  const root = rewritten(schemas["WorkflowWrite"]) as object
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Tidegate workflow",
    ...root,
    additionalProperties: false,
    $defs: named
  }
}

/** `GET /schemas/workflow.json`, without credentials, because an editor has none. */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter> = HttpRouter.use((router) =>
  Effect.gen(function* () {
    let response: HttpServerResponse.HttpServerResponse | null = null
    yield* router.add(
      "GET",
      "/schemas/workflow.json",
      Effect.sync(() => (response ??= HttpServerResponse.jsonUnsafe(made())))
    )
  })
)
