import { useMutation } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { Client } from "@tidegate/client/source"
import { messageOf, type Row } from "../../gateway.ts"
import { lengthOf } from "../../parts/Time.tsx"
import { useSession } from "../../session.ts"
import type { Rule } from "./Rule.ts"
import { whyNot } from "./WhyNot.ts"

/** Requests that rules are tried on, and calls at the same time. A transformation costs a call for each request. */
const maxRequests = 100
const maxTransformed = 25
const together = 4

const isTried = (type: Rule["type"]): boolean => type === "deduplicate" || type === "transform" || type === "filter"

interface Tried {
  readonly id: string
  /** Null: the rules let it through. */
  readonly why: string | null
  /** The request that it repeats. */
  readonly repeats?: string
}

interface Trial {
  readonly tried: ReadonlyArray<Tried>
  /** What the gateway says about duplicates; undefined: there is no such rule. */
  readonly deduplication: Row<"DeduplicationTest"> | undefined
}

const duplicatesOf = async (
  client: Client,
  rules: ReadonlyArray<Rule>,
  id: string,
  limit: number
): Promise<Row<"DeduplicationTest"> | undefined> => {
  const rule = rules.find((one) => one.type === "deduplicate")
  if (rule === undefined) return undefined
  return client.post("/sources/{id}/deduplication-test", { params: { path: { id } }, body: { rule, limit } })
}

const times = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

/** The summary of the test of a deduplicate rule, which no single request shows. */
const Duplicates = ({ of }: { readonly of: Row<"DeduplicationTest"> }) => (
  <p className="muted">
    {times(of.duplicates.length, "duplicate")} among {times(of.tested, "compared request")}, if all others become
    events.
    {of.without_key === 0 ? "" : ` The rule does not apply to ${of.without_key} of them.`}
    {of.unavailable === 0 ? "" : ` ${times(of.unavailable, "more request")} could not be compared.`}
  </p>
)

/** Tries the rules that decide about requests, as they are written, on the newest requests of the source. Nothing is stored. */
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
  const limit = transforms ? maxTransformed : maxRequests
  const attempt = useMutation({
    mutationFn: async (chosen: ReadonlyArray<Rule>): Promise<Trial> => {
      const deduplication = await duplicatesOf(client, chosen, sourceId, limit)
      const first = new Map(deduplication?.duplicates.map((one) => [one.request_id, one]))
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
        const some = models.slice(at, at + together).map(async (request): Promise<Tried> => {
          const { id } = request
          const repeated = first.get(id)
          if (repeated === undefined) return { id, why: await whyNot(client, chosen, request) }
          const after = Date.parse(repeated.ingested_at) - Date.parse(repeated.first_ingested_at)
          return { id, why: `came ${lengthOf(after)} after the same`, repeats: repeated.first_request_id }
        })
        tried.push(...(await Promise.all(some)))
      }
      return { tried, deduplication }
    }
  })
  const hasTrial = rules?.some(({ type }) => isTried(type)) === true
  const others = attempt.data?.tried.filter(({ why }) => why !== null) ?? []
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
        {hasTrial ? null : (
          <span className="muted">Deduplication, a filter or a transformation can be tried on stored requests.</span>
        )}
        {hasTrial && sourceId === "" ? (
          <span className="muted">Choose a source, whose requests it is tried on.</span>
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
            {attempt.data.tried.length === 0
              ? "The source has no requests of the last 30 days."
              : `${attempt.data.tried.length - others.length} of ${attempt.data.tried.length} requests become events.`}
          </p>
          {attempt.data.deduplication === undefined ? null : <Duplicates of={attempt.data.deduplication} />}
          <ul className="plain">
            {others.slice(0, 20).map(({ id, repeats, why }) => (
              <li key={id}>
                <Link className="mono" to={`/requests/${id}`}>
                  {id}
                </Link>{" "}
                <bdi>{why}</bdi>
                {repeats === undefined ? null : (
                  <>
                    :{" "}
                    <Link className="mono" to={`/requests/${repeats}`}>
                      {repeats}
                    </Link>
                  </>
                )}
              </li>
            ))}
          </ul>
          {others.length > 20 ? <p className="muted">20 of {others.length} others are shown.</p> : null}
        </div>
      )}
    </>
  )
}
