import type { Client } from "@tidegate/client/source"
import { messageOf, type Row } from "../../gateway.ts"
import type { Rule, RuleOf } from "./Rule.ts"

type Request = Row<"Request">
type Explained = Row<"FilterTest">["explanation"][number]
type Sample = Row<"RequestSample">

const sentenceOf = ({ actual, expected, operator, path, target }: Explained): string =>
  `${path === "" ? target : `${target}.${path}`} ${operator ?? "must be"} ${JSON.stringify(expected)}, but it is ${
    actual === null ? "not there" : JSON.stringify(actual)
  }`

const transformed = async (
  client: Client,
  { transformation_id }: RuleOf<"transform">,
  { data, id, source_id }: Request
): Promise<Sample> => {
  if (data === null || data === undefined) throw new Error("its content is not kept any more")
  const { body, headers, method, parsed_query, path } = data
  const { error, request } = await client.post("/transformations/run", {
    body: {
      transformation_id,
      request: { body, headers, path, query: parsed_query, method: method as "POST" },
      context: { source_id, request_id: id }
    }
  })
  if (request === null) throw new Error(`the transformation fails: ${error?.message ?? "it returned no request"}`)
  return { body: request.body, headers: request.headers, path: request.path, query: request.parsed_query }
}

/** The first condition of a filter that the input does not meet, in words; null: it meets all. */
const refusal = async (client: Client, rule: RuleOf<"filter">, input: string | Sample): Promise<string | null> => {
  const { body, filter_id, headers, path, query } = rule
  const given = Object.entries({ body, headers, path, query }).filter(([, one]) => (one ?? null) !== null)
  const { explanation, matched } = await client.post("/filters/test", {
    body: {
      ...(filter_id === undefined ? { conditions: Object.fromEntries(given) } : { filter_id }),
      ...(typeof input === "string" ? { request_id: input } : { request: input })
    }
  })
  const fault = explanation.find((one) => !one.matched)
  return matched ? null : fault === undefined ? "its conditions do not match" : sentenceOf(fault)
}

/**
 * Applies the transformation and the filters of a connection to a stored request. Returns why the request does not pass, as the end of a
 * sentence; null: it passes.
 */
export const whyNot = async (client: Client, rules: ReadonlyArray<Rule>, request: Request): Promise<string | null> => {
  const transform = rules.find((rule) => rule.type === "transform")
  let input: string | Sample = request.id
  if (transform !== undefined) {
    try {
      input = await transformed(client, transform, request)
    } catch (error) {
      return messageOf(error)
    }
  }
  for (const rule of rules) {
    const why = rule.type === "filter" ? await refusal(client, rule, input) : null
    if (why !== null) return why
  }
  return null
}
