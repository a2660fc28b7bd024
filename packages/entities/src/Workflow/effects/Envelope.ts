import { Result, type Schema } from "effect"
import { parseQuery, type Message, type Values } from "@tidegate/model/Message"
import type { TransformRequest } from "@tidegate/sandbox/Sandbox"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { byLowerName, excessOf, givenOf, invalid, queryText, textOf, valuesOf } from "@tidegate/workflows/Envelope"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { StepError } from "@tidegate/workflows/StepKind"

/** Makes a request from the inputs of a step that takes the parts of a request. */

const given = ({ inputs }: StepEffect, name: string): Schema.Json | undefined => givenOf(inputs.values, name)

/** The headers of the run's request. The context has what was stored of them, without credentials. */
export const sentHeaders = ({ context }: StepEffect): Values => context.trigger.headers as Values

/** The request as a transformation's code receives it. */
export const requestOf = (effect: StepEffect, run: DueRun): Result.Result<TransformRequest, StepError> => {
  const excess = excessOf(effect.inputs.values)
  if (excess !== null) return Result.fail(excess)
  const { trigger } = effect.context
  const asked = given(effect, "query")
  const query = asked === undefined ? run.query : queryText(asked)
  const { body = trigger.body } = effect.inputs.values
  return Result.succeed({
    method: textOf(given(effect, "method") ?? run.method),
    path: textOf(given(effect, "path") ?? run.path),
    headers: byLowerName(valuesOf(given(effect, "headers") ?? trigger.headers)),
    body,
    query,
    parsed_query: parseQuery(query)
  })
}

const none = new Uint8Array(0)

const isName = (name: string): boolean => /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/.test(name)
/** A header value consists of characters of one byte, without control characters. */
const isValue = (value: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(value)

/**
 * The message for a destination. A body from the step's inputs is sent as text if it is a string, otherwise as JSON. `presented`:
 * the credentials that the sender presented. They are included only if headers and query are those of the trigger; masks of them
 * are never sent.
 */
export const messageOf = (
  effect: StepEffect,
  run: DueRun
): Result.Result<Message & { readonly presented: string | null }, StepError> => {
  const excess = excessOf(effect.inputs.values)
  if (excess !== null) return Result.fail(excess)
  const [body, headers, method, path, query] = ["body", "headers", "method", "path", "query"].map((name) =>
    given(effect, name)
  )
  const verb = method === undefined ? run.method : textOf(method).toUpperCase()
  if (!/^[A-Z]{1,16}$/.test(verb)) return Result.fail(invalid("method is no HTTP method"))
  const own = headers === undefined ? sentHeaders(effect) : byLowerName(valuesOf(headers))
  for (const [name, value] of headers === undefined ? [] : Object.entries(own)) {
    if (!isName(name)) return Result.fail(invalid("headers has a name that no header can have"))
    if (![value].flat().every(isValue)) return Result.fail(invalid(`headers.${name} holds what no header can carry`))
  }
  const where = path === undefined ? run.path : textOf(path)
  return Result.succeed({
    method: verb,
    path: where.startsWith("/") ? where : `/${where}`,
    query: query === undefined ? run.query : queryText(query),
    headers: body === undefined ? own : describing(body, own, headers !== undefined),
    body: body === undefined ? (run.body ?? none) : bytesOf(body),
    presented: headers === undefined && query === undefined ? run.presented : null
  })
}

const bytesOf = (body: Schema.Json): Uint8Array =>
  body === null ? none : Buffer.from(typeof body === "string" ? body : JSON.stringify(body))

/**
 * The headers for a body from the step's inputs. Those of the trigger describe another body, so they are replaced, unless they
 * say JSON, too.
 */
const describing = (body: Schema.Json, headers: Values, areGiven: boolean): Values => {
  const { "content-encoding": encoding, ...rest } = headers
  const kept = areGiven && encoding !== undefined ? headers : rest
  if (body === null || typeof body === "string") return kept
  const type = kept["content-type"]
  const says = typeof type === "string" && (areGiven || /[/+]json\b/i.test(type))
  return says ? kept : { ...kept, "content-type": "application/json" }
}
