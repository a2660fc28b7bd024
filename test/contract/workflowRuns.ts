import { expect } from "vitest"
import type { Body, Gateway } from "../support/Gateway.ts"
import { request, type RequestParts } from "../support/RawHttp.ts"

/** Runs of workflows, from the request that begins one to what its steps gave. */

export const edge = (source: string | null, target: string, more: object = {}) => ({
  source_type: source === null ? "trigger" : "step",
  source_step_id: source,
  target_step_id: target,
  ...more
})

export interface Begun {
  readonly source: Body
  readonly workflow: Body
  /** Posts to the source, and answers the run that it began. */
  readonly post: (parts?: Partial<RequestParts>) => Promise<string>
}

/** An active workflow of a source of its own. */
export const begin = async (
  gateway: Gateway,
  steps: ReadonlyArray<object>,
  edges: ReadonlyArray<object>
): Promise<Begun> => {
  const source = await gateway.source()
  const answer = await gateway.call("POST", "/workflows", {
    name: gateway.name("workflow"),
    source_id: source.id,
    steps,
    edges
  })
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  const post = async (parts: Partial<RequestParts> = {}): Promise<string> => {
    const accepted = await request(gateway.port, {
      headers: [["content-type", "application/json"]],
      body: "{}",
      ...parts,
      path: `/e/${source.id}${parts.path ?? ""}`
    })
    expect(accepted.status).toBe(200)
    const { request_id } = JSON.parse(accepted.body)
    const [run] = await gateway.sql("select id from workflow_runs where request_id = $1", [request_id])
    return run.id
  }
  return { source, workflow: answer.body, post }
}

/** The run once it has ended, with what its steps gave in the end. */
export const ended = (gateway: Gateway, run: string) =>
  gateway.eventually(
    "the run has ended",
    async () => {
      const [row] = await gateway.sql("select * from workflow_runs where id = $1", [run])
      if (row === undefined) return null
      const parts = await gateway.sql("select steps, outputs from workflow_steps where run_id = $1 order by part", [
        run
      ])
      const outputs: Record<string, Body> = {}
      for (const { outputs: lines } of parts) {
        for (const line of String(lines ?? "")
          .split("\n")
          .filter(Boolean)) {
          const [step, given] = JSON.parse(line)
          outputs[step] = given
        }
      }
      return { row, outputs }
    },
    ({ row }) => row.finished_at !== null
  )
