import { useMutation } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { Client } from "@tidegate/client/source"
import { messageOf, type Row } from "../../gateway.ts"
import { useSession } from "../../session.ts"
import type { Rule, RuleOf } from "./Rule.ts"

type Request = Row<"Request">
type Explained = Row<"FilterTest">["explanation"][number]
type Sample = Row<"RequestSample">

/** Requests that rules are tried on, and calls at the same time. A transformation costs a call for each request. */
const mostRequests = 100
const mostTransformed = 25
const together = 4

const sentenceOf = ({ actual, expected, operator, path, target }: Explained): string =>
  `${path === "" ? target : `${target}.${path}`} ${operator ?? "must be"} ${JSON.stringify(expected)}, but it is ${
    actual === null ? "not there" : JSON.stringify(actual)
  }`

interface Tried {
  readonly id: string
  /** Null: the rules let it through. */
  readonly why: string | null
}

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

const tryOne = async (client: Client, rules: ReadonlyArray<Rule>, request: Request): Promise<string | null> => {
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

/** Tries the transformation and the filters, as they are written, on the newest requests of the source. Nothing is stored. */
export const TryRules = ({
  rules,
  sourceId
}: {
  /** Null: they are not complete. */
  readonly rules: ReadonlyArray<Rule> | null
  readonly sourceId: string
}) => {
  const { client } = useSession()
  const transforms = rules?.some(({ type }) => type === "transform") === true
  const limit = transforms ? mostTransformed : mostRequests
  const attempt = useMutation({
    mutationFn: async (chosen: ReadonlyArray<Rule>): Promise<ReadonlyArray<Tried>> => {
      const { models } = await client.get("/requests", {
        params: {
          query: {
            source_id: [sourceId],
            from: "now-30d",
            status: "accepted",
            limit,
            ...(transforms ? { include: ["data"] } : {})
          }
        }
      })
      const tried: Array<Tried> = []
      for (let at = 0; at < models.length; at += together) {
        const some = models.slice(at, at + together).map(async (request): Promise<Tried> => ({
          id: request.id,
          why: await tryOne(client, chosen, request)
        }))
        tried.push(...(await Promise.all(some)))
      }
      return tried
    }
  })
  const hasTrial = rules?.some(({ type }) => type === "filter" || type === "transform") === true
  const others = attempt.data?.filter(({ why }) => why !== null) ?? []
  return (
    <>
      <div className="bar">
        <button
          type="button"
          disabled={attempt.isPending || !hasTrial || sourceId === ""}
          onClick={() => attempt.mutate(rules ?? [])}
        >
          {attempt.isPending ? "Trying…" : `Try them on the last ${limit} requests`}
        </button>
        {hasTrial ? null : <span className="muted">A filter or a transformation can be tried on stored requests.</span>}
        {hasTrial && sourceId === "" ? (
          <span className="muted">Choose a source, whose requests it is tried on.</span>
        ) : null}
        {hasTrial && rules?.some(({ type }) => type === "deduplicate") ? (
          <span className="muted">Deduplication is not part of the trial.</span>
        ) : null}
      </div>
      {attempt.isError ? (
        <p role="alert" className="notice bad">
          {messageOf(attempt.error)}
        </p>
      ) : null}
      {attempt.data === undefined ? null : (
        <div role="status">
          <p>
            {attempt.data.length === 0
              ? "The source has no requests of the last 30 days."
              : `${attempt.data.length - others.length} of ${attempt.data.length} requests become events.`}
          </p>
          <ul className="plain">
            {others.slice(0, 20).map(({ id, why }) => (
              <li key={id}>
                <Link className="mono" to={`/requests/${id}`}>
                  {id}
                </Link>{" "}
                <bdi>{why}</bdi>
              </li>
            ))}
          </ul>
          {others.length > 20 ? <p className="muted">20 of {others.length} others are shown.</p> : null}
        </div>
      )}
    </>
  )
}
