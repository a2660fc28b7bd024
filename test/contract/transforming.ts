import { expect } from "vitest"
import type { DestinationConfig, Execution, Rules, Source, Transformation } from "../support/Contract.ts"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** Code between a source and a destination: through the API, by real requests, as the target sees it. */

export const handler = (body: string): string => `addHandler("transform", (request, context) => {\n${body}\n})`
export const identity = handler("return request")

export interface Sent {
  readonly method?: string
  readonly suffix?: string
  readonly headers?: ReadonlyArray<readonly [string, string]>
  readonly body?: string | Uint8Array
}

export const json = ["Content-Type", "application/json"] as const

export const it = gatewayIt
  .extend(
    "transformation",
    ({ gateway }) =>
      (code: string, env: Record<string, string> = {}): Promise<Transformation> =>
        gateway.api("POST", "/transformations", { name: gateway.name("transformation"), code, env })
  )
  /** A source whose only connection runs `code`. */
  .extend(
    "through",
    ({ gateway, target, transformation }) =>
      async (
        code: string,
        options: {
          readonly env?: Record<string, string>
          readonly rules?: Rules
          readonly destination?: DestinationConfig
        } = {}
      ) => {
        const made = await transformation(code, options.env)
        const rules: Rules = [{ type: "transform", transformation_id: made.id }, ...(options.rules ?? [])]
        const route = await gateway.route(target, {
          rules,
          ...(options.destination === undefined ? {} : { destination: options.destination })
        })
        return { ...route, transformation: made }
      }
  )
  /** Sends; the request's id. */
  .extend(
    "send",
    ({ gateway }) =>
      async (source: Source, { suffix = "", body = "{}", headers = [json], ...parts }: Sent = {}) => {
        const answer = await request(gateway.port, { ...parts, headers, path: `/e/${source.id}${suffix}`, body })
        expect(answer.status).toBe(200)
        return String(JSON.parse(answer.body).request_id)
      }
  )
  .extend(
    "executions",
    ({ gateway }) =>
      async ({ id }: Transformation): Promise<ReadonlyArray<Execution>> =>
        (await gateway.api("GET", `/transformations/${id}/executions`)).models
  )
