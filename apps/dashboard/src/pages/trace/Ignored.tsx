import { useMutation, useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { messageOf, type Row } from "../../gateway.ts"
import { useMay } from "../../may.ts"
import { NamedLink } from "../../parts/Named.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { useSession } from "../../session.ts"
import type { Rule, RuleType } from "../rules/Rule.ts"
import { whyNot } from "../rules/WhyNot.ts"
import { causes } from "./Causes.ts"

type Trace = Row<"Trace">
type IgnoredEvent = Trace["ignored_events"][number]

/** The trace says of the others as well that they were ignored. */
const maxShown = 20

/** The kind of rule that decides, by the cause. */
const deciding: Readonly<Record<string, RuleType>> = {
  FILTERED: "filter",
  DEDUPLICATED: "deduplicate",
  TRANSFORMATION_FAILED: "transform"
}

/** The gateway's record of the reason: the parts of the request that a filter did not match, and a text by its name. */
const notesOf = (meta: unknown) => {
  const all: ReadonlyArray<unknown> = Array.isArray(meta) ? meta : []
  const textOf = (name: string): string | undefined => {
    const values = all.map((one) =>
      typeof one === "object" && one !== null ? (one as Readonly<Record<string, unknown>>)[name] : undefined
    )
    return values.find((value) => typeof value === "string")
  }
  return { parts: all.filter((one) => typeof one === "string"), textOf }
}

/** A rule without what has not decided: the conditions of a filter on parts that match. */
const decisive = (rule: Rule, parts: ReadonlyArray<string>): object => {
  if (rule.type !== "filter") return rule
  const shown = Object.entries(rule).filter(([name]) => parts.includes(name))
  return shown.length === 0 ? rule : Object.fromEntries(shown)
}

/** The rule as its connection has it now, and which condition of it the request does not meet. */
const Decided = ({ of, request }: { readonly of: IgnoredEvent; readonly request: Trace["request"] }) => {
  const { client, team } = useSession()
  const may = useMay()
  const { cause, connection_id: id, created_at, meta } = of
  const { data: connection } = useQuery({
    queryKey: ["connection", team, id],
    queryFn: () => client.get("/connections/{id}", { params: { path: { id } } }),
    retry: false
  })
  const all = connection?.rules ?? []
  const condition = useMutation({ mutationFn: () => whyNot(client, all, request) })
  const rules = all.filter(({ type }) => type === deciding[cause])
  if (connection === undefined || rules.length === 0) return null
  const { parts } = notesOf(meta)
  const isTransformed = all.some(({ type }) => type === "transform")
  const mayTry = may("POST /filters/test") && (!isTransformed || may("POST /transformations/run"))
  return (
    <>
      {rules.map((rule) => (
        <pre key={JSON.stringify(rule)} className="text" tabIndex={0} aria-label={`The rule: ${rule.type}`}>
          <bdi>{JSON.stringify(decisive(rule, parts), null, 2)}</bdi>
        </pre>
      ))}
      {Date.parse(connection.updated_at) > Date.parse(created_at) ? (
        <p className="muted">The connection was changed later: this is the rule as it is now.</p>
      ) : null}
      {rules.map((rule) =>
        rule.type === "filter" && rule.filter_id !== undefined ? (
          <p key={rule.filter_id}>
            <Link to={`/filters/${rule.filter_id}`}>Show the stored filter</Link>
          </p>
        ) : null
      )}
      {cause !== "FILTERED" || !mayTry ? null : (
        <div className="bar">
          <button type="button" disabled={condition.isPending} onClick={() => condition.mutate()}>
            Which condition?
          </button>
          {condition.isIdle || condition.isPending ? null : (
            <span role="status">
              <bdi>
                {condition.isError
                  ? messageOf(condition.error)
                  : (condition.data ?? "By the rules as they are now, the request passes.")}
              </bdi>
            </span>
          )}
        </div>
      )}
    </>
  )
}

/** Why connections ignored a request: the reason in a sentence, and the rule that decided. */
export const Ignored = ({ of: { ignored_events, request } }: { readonly of: Trace }) =>
  ignored_events.length === 0 ? null : (
    <Panel title="Why connections ignored it">
      <div className="stack">
        {ignored_events.slice(0, maxShown).map((one) => {
          const { parts, textOf } = notesOf(one.meta)
          const [first, transformation, message] = ["first_request_id", "transformation_id", "message"].map(textOf)
          return (
            <section key={one.id} className="stack">
              <p>
                <NamedLink kind="connections" id={one.connection_id} />: {causes[one.cause] ?? one.cause}
                {parts.length === 0 ? "" : ` (${parts.join(", ")})`}
                {message === undefined ? null : (
                  <>
                    : <bdi>{message}</bdi>
                  </>
                )}
                {first === undefined ? null : (
                  <>
                    :{" "}
                    <Link className="mono" to={`/requests/${first}`}>
                      {first}
                    </Link>
                  </>
                )}
                {transformation === undefined ? null : (
                  <>
                    {" "}
                    (<NamedLink kind="transformations" id={transformation} />)
                  </>
                )}
              </p>
              <Decided of={one} request={request} />
            </section>
          )
        })}
        {ignored_events.length > maxShown ? (
          <p className="muted">
            The first {maxShown} of {ignored_events.length} are shown.
          </p>
        ) : null}
      </div>
    </Panel>
  )
