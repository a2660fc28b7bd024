import { useMutation } from "@tanstack/react-query"
import { useState } from "react"
import { messageOf, type Row } from "../../gateway.ts"
import { exactJson } from "../../json.ts"
import { Diff } from "../../parts/Diff.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { lengthOf } from "../../parts/Time.tsx"
import { useLacking } from "../../may.ts"
import { useSession } from "../../session.ts"
import { type Sample, SampleChoice } from "./Sample.tsx"

type Run = Row<"TransformationRun">
type Fault = NonNullable<Run["error"]>

interface Outcome {
  readonly run: Run | null
  /** The error of the code. Null: the code returned a request. */
  readonly fault: Fault | null
  readonly before: string
  readonly after: string
}

const first: Sample["request"] = {
  method: "POST",
  path: "/",
  query: {},
  headers: { "content-type": "application/json" },
  body: { id: "1", total: 100 }
}

const laidOut = (value: unknown): string => JSON.stringify(value, null, 2)

const read = (text: string): Sample["request"] => {
  try {
    return exactJson.parse(text) as Sample["request"]
  } catch (error) {
    throw new Error(`The sample is not valid JSON: ${messageOf(error)}`, { cause: error })
  }
}

/** Runs code on a sample by the API's trial, and shows what it returned, what it logged, and what has changed. Nothing is stored. */
export const Trial = ({
  code,
  env,
  goTo,
  mark
}: {
  readonly code: string
  /** Throws if the variables are no object of texts. */
  readonly env: () => Record<string, string>
  readonly mark: (line: number | null) => void
  readonly goTo: (line: number) => void
}) => {
  const { client } = useSession()
  const lacking = useLacking()("POST /transformations/run")
  const [text, setText] = useState(() => laidOut(first))
  const [context, setContext] = useState<Sample["context"]>(null)
  const trial = useMutation({
    mutationFn: async (): Promise<Outcome> => {
      const request = read(text)
      const body = { code, env: env() }
      // It names the line of code that does not compile, which the trial refuses.
      const { error, valid } = await client.put("/transformations/validate", { body })
      if (!valid) return { run: null, fault: error, before: "", after: "" }
      const run = await client.post("/transformations/run", { body: { ...body, request, context: context ?? {} } })
      const { parsed_query: _, ...after } = run.request ?? { parsed_query: null }
      return { run, fault: run.error, before: laidOut(inOrder(request)), after: laidOut(inOrder(after)) }
    },
    onSuccess: ({ fault }) => mark(fault?.line ?? null),
    onError: () => mark(null)
  })
  const { data } = trial
  return (
    <Panel title="Try it">
      <div className="stack">
        <SampleChoice
          change={(sample) => {
            setText(laidOut(sample.request))
            setContext(sample.context)
          }}
        />
        <div className="field">
          <label htmlFor="sample">The sample as JSON</label>
          <textarea
            id="sample"
            className="mono"
            rows={10}
            spellCheck={false}
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
        </div>
        <div className="bar">
          {lacking === null ? (
            <button type="button" className="primary" disabled={trial.isPending} onClick={() => trial.mutate()}>
              {trial.isPending ? "Running…" : "Run it"}
            </button>
          ) : (
            <span className="muted">{lacking}</span>
          )}
          {data?.run ? (
            <span className="muted">
              {lengthOf(data.run.stats.duration_ms)}, {Math.ceil(data.run.stats.memory_bytes / 1024).toLocaleString()}{" "}
              KiB of memory
            </span>
          ) : null}
        </div>
        {trial.isError ? (
          <p role="alert" className="notice bad">
            {messageOf(trial.error)}
          </p>
        ) : null}
        {data === undefined ? null : (
          <div className="stack" role="status">
            {data.fault === null ? null : (
              <div className="notice bad">
                <bdi>
                  {data.fault.name}: {data.fault.message}
                </bdi>{" "}
                {data.fault.line === null ? null : (
                  <button type="button" className="link" onClick={() => goTo(data.fault!.line!)}>
                    Line {data.fault.line}
                  </button>
                )}
              </div>
            )}
            <Lines title="Warnings" of={data.run?.warnings ?? []} />
            <Lines title="Log" of={data.run?.console ?? []} />
            {data.run?.request ? (
              <section>
                <h3>What changed</h3>
                <Diff label="What changed" before={data.before} after={data.after} />
                <details>
                  <summary>The whole result</summary>
                  <pre className="text" tabIndex={0}>
                    <bdi>{data.after}</bdi>
                  </pre>
                </details>
              </section>
            ) : null}
          </div>
        )}
      </div>
    </Panel>
  )
}

const order = ["method", "path", "query", "headers", "body"] as const

/** The parts of a request in one order, so that only what differs is shown as changed. */
const inOrder = (request: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(order.flatMap((name) => (name in request ? [[name, request[name]] as const] : [])))

const Lines = ({ of, title }: { readonly title: string; readonly of: ReadonlyArray<string> }) =>
  of.length === 0 ? null : (
    <section>
      <h3>{title}</h3>
      <pre className="text" tabIndex={0}>
        <bdi>{of.join("\n")}</bdi>
      </pre>
    </section>
  )
