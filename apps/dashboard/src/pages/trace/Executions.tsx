import { Link } from "@tanstack/react-router"
import { lazy, Suspense, useState } from "react"
import type { Row } from "../../gateway.ts"
import { Name } from "../../parts/Named.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { Loading } from "../../parts/States.tsx"
import { lengthOf } from "../../parts/Time.tsx"

type Execution = Row<"ExecutionDetail">
type Data = NonNullable<Execution["original_event_data"]>

const Diff = lazy(async () => ({ default: (await import("../../parts/Diff.tsx")).Diff }))

const textOf = ({ body, headers, method, parsed_query, path }: Data): string =>
  JSON.stringify({ method, path, query: parsed_query, headers, body }, null, 2)

const Changed = ({ execution: { original_event_data, transformed_event_data } }: { readonly execution: Execution }) => {
  const [isOpen, setOpen] = useState(false)
  if (original_event_data === null || transformed_event_data === null) return null
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>What changed</summary>
      {isOpen ? (
        <Suspense fallback={<Loading />}>
          <Diff label="What changed" before={textOf(original_event_data)} after={textOf(transformed_event_data)} />
        </Suspense>
      ) : null}
    </details>
  )
}

/** What the transformations of a request logged and changed. */
export const Executions = ({ of }: { readonly of: ReadonlyArray<Execution> }) =>
  of.length === 0 ? null : (
    <Panel title="Transformations">
      <div className="stack">
        {of.map((execution) => {
          const { connection_id, error_message, id, logs, stats, transformation_id } = execution
          return (
            <section key={id}>
              <p>
                <Link to={`/transformations/${transformation_id}`}>
                  <Name kind="transformations" id={transformation_id} />
                </Link>{" "}
                of <Name kind="connections" id={connection_id} />{" "}
                <span className={error_message === null ? "badge good" : "badge bad"}>
                  {error_message === null ? "Succeeded" : "Failed"}
                </span>{" "}
                after {lengthOf(stats.duration_ms)}
                {error_message === null ? null : (
                  <>
                    : <bdi>{error_message}</bdi>
                  </>
                )}
              </p>
              {logs.length === 0 ? null : (
                <pre className="text" tabIndex={0}>
                  <bdi>{logs.map(({ message, type }) => `${type}: ${message}`).join("\n")}</bdi>
                </pre>
              )}
              <Changed execution={execution} />
            </section>
          )
        })}
      </div>
    </Panel>
  )
