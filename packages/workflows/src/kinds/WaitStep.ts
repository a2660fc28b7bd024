import { Schema } from "effect"
import { isJsonNumber, isSameJson } from "@tidegate/json/ExactNumber"
import type { Json } from "@tidegate/model/Rule"
import { isOfRequest } from "@tidegate/rules/Condition"
import { jsonLengthWithin } from "@tidegate/interpolation/JsonLength"
import { limits } from "../Limits.ts"
import { objectOf } from "../OutputNames.ts"
import { type Compiler, type Evaluate, memberOf, type Resumable, stepKind } from "../StepKind.ts"

const units = { minutes: 60_000, hours: 3_600_000, days: 86_400_000 } as const

/** Who decided. `name`: as a person who used a link gave it. */
export interface DecidedBy {
  readonly by: "user" | "api_key" | "link"
  readonly userId: string | null
  readonly name: string | null
}

/** The output of a step that somebody has decided. */
export const decided = (approves: boolean, comment: string | null, { by, name, userId }: DecidedBy, at: number) => ({
  decision: approves ? ("approved" as const) : ("rejected" as const),
  comment,
  decided_by: by,
  decided_by_user_id: userId,
  decided_by_name: name,
  decided_at: new Date(at).toISOString()
})

export const portsDecided = (approves: boolean): ReadonlyArray<string> => [approves ? "out" : "rejected"]

/** What somebody sends to the URL of a step that waits for it. */
export interface ReceivedCallback {
  readonly method: string
  readonly headers: { readonly [name: string]: Json }
  readonly query: { readonly [name: string]: Json }
  readonly body: Json
}

/** The signal of a callback: the output of its step, with its size. */
export const receivedAs = (callback: ReceivedCallback, at: number) => {
  const output = { ...callback, received_at: new Date(at).toISOString() }
  return { output, ports: ["out"], size: jsonLengthWithin(output, limits.valueLength) ?? limits.valueLength }
}

/** The request that a step waited for, as it is stored: credentials in it are masked. */
export interface MatchedRequest {
  readonly request_id: string
  readonly method: string
  readonly path: string
  readonly headers: { readonly [name: string]: Json }
  readonly query: { readonly [name: string]: Json }
  readonly body: Json
  /** When it arrived (Unix ms). */
  readonly receivedAt: number
}

/** The most characters of JSON of a request that becomes an output. Of a larger one the output has no body. */
const largestRequest = 262_144

/** The signal of a request that a step waited for: the output of its step, with its size. */
export const matchedAs = ({ body, receivedAt, ...request }: MatchedRequest) => {
  const received_at = new Date(receivedAt).toISOString()
  const whole = { ...request, body, body_omitted: false, received_at }
  const size = jsonLengthWithin(whole, largestRequest)
  if (size !== null) return { output: whole, ports: ["out"], size }
  const short = { ...whole, body: null, body_omitted: true }
  const rest = jsonLengthWithin(short, largestRequest)
  if (rest !== null) return { output: short, ports: ["out"], size: rest }
  const least = { ...short, headers: {}, query: {} }
  return { output: least, ports: ["out"], size: jsonLengthWithin(least, limits.valueLength) ?? limits.valueLength }
}

/**
 * Why the resolved filter of a step must not be used; null: it may. A template in it stands for a single value. Otherwise a sender could
 * put operators into the filter, and choose what it matches.
 */
export const filterFault = (written: unknown, resolved: unknown, path = "filter"): string | null => {
  if (typeof written === "string" && written.includes("{{")) {
    if (typeof resolved === "object" || resolved === undefined)
      return `${path}: its template gives no text, number or truth value`
    return null
  }
  if (typeof written !== "object" || written === null || typeof resolved !== "object" || resolved === null) {
    return isSameJson(written, resolved) ? null : `${path}: has to be written in the step itself`
  }
  if (isJsonNumber(written)) return isSameJson(written, resolved) ? null : `${path}: is another number`
  const names = Object.keys(written)
  if (names.length !== Object.keys(resolved).length) return `${path}: has to be written in the step itself`
  for (const name of names) {
    // Also an element of a list. What is not there is undefined, which no written value equals.
    const of = (value: object): unknown => (Object.hasOwn(value, name) ? value[name as keyof typeof value] : undefined)
    const fault = filterFault(of(written), of(resolved), `${path}.${name}`)
    if (fault !== null) return fault
  }
  return null
}

/** By what a step waits for: its ports, its output when nothing comes in time, and its output in tests. */
const awaited = {
  approval: {
    ports: ["out", "rejected", "timed_out"],
    nothing: {
      decision: null,
      comment: null,
      decided_by: null,
      decided_by_user_id: null,
      decided_by_name: null,
      decided_at: null
    },
    sample: { decision: "approved" }
  },
  callback: {
    ports: ["out", "timed_out"],
    nothing: { method: null, headers: null, query: null, body: null, received_at: null },
    sample: { method: "POST", headers: {}, query: {}, body: {}, received_at: "2026-01-01T00:00:00.000Z" }
  },
  event: {
    ports: ["out", "timed_out"],
    nothing: {
      request_id: null,
      method: null,
      path: null,
      headers: null,
      query: null,
      body: null,
      body_omitted: null,
      received_at: null
    },
    sample: {
      request_id: "req_sample",
      method: "POST",
      path: "/",
      headers: {},
      query: {},
      body: {},
      body_omitted: false,
      received_at: "2026-01-01T00:00:00.000Z"
    }
  }
} as const

/** What steps of kind `wait` wait for. */
export type Awaited = keyof typeof awaited

/** What may end the wait of a step. `run`: the run that it has begun. */
export type Signaller = Awaited | "run"

/** What a step waits for; null: it is of another kind. */
export const awaitedBy = ({ config, kind }: { readonly kind: string; readonly config?: unknown }): Signaller | null => {
  if (kind === "workflow") return "run"
  return kind === "wait" ? ((config as { readonly for: Awaited }).for ?? null) : null
}

/** The URLs of a step that waits, which the other steps of its run can send as `run.waits.<id>.<name>`. */
const urlsOfWaits = {
  approval: ["approve_url", "reject_url"],
  callback: ["callback_url"],
  /** A request, and the end of a run, find the step by themselves. */
  event: [],
  run: []
} as const satisfies { readonly [By in Signaller]: ReadonlyArray<string> }

export type UrlOfWait = (typeof urlsOfWaits)[Signaller][number]

/** The names of the URLs of steps that have some, by the ids of the steps. */
export const urlsByStep = (
  steps: ReadonlyArray<{ readonly id: string; readonly kind: string; readonly config?: unknown }>
): ReadonlyMap<string, ReadonlyArray<UrlOfWait>> =>
  new Map(
    steps.flatMap((step) => {
      const by = awaitedBy(step)
      const urls = by !== null && Object.hasOwn(urlsOfWaits, by) ? urlsOfWaits[by] : []
      return urls.length === 0 ? [] : [[step.id, urls] as const]
    })
  )

/** The signal that ends a step that has waited in vain, when it is due. */
export const waitingFor = (what: Awaited, until: number) => ({
  kind: "waits" as const,
  until,
  output: awaited[what].nothing,
  portsLate: ["timed_out"]
})

/** The longest time (ms) that a step waits, by its config. */
export const longestWait = ({ amount, unit }: { readonly amount: number; readonly unit: keyof typeof units }): number =>
  amount * units[unit]

/**
 * Waits for a decision of a person, for a call from outside, or for a request at a source of the team, for a limited time. Nothing stays in
 * memory meanwhile. A wait for a request has a row by which the request finds it, so that step leaves the process to write the row.
 */
export const waitKind = stepKind({
  kind: "wait",
  config: Schema.Struct({
    for: Schema.Literals(["approval", "callback", "event"]),
    amount: Schema.Int.annotate({ description: "How long to wait at most, in `unit`; at most 31 days" }),
    unit: Schema.Literals(["minutes", "hours", "days"])
  }),
  settings: [],
  resource: "src_",
  callsAction: false,
  notTaken: "path_not_taken",
  inline: true,
  inputs: (step) => (awaitedBy(step) === "event" ? ["filter"] : []),
  output: objectOf(...Object.values(awaited).flatMap(({ nothing }) => Object.keys(nothing)), "released_at"),
  ports: {
    by: "for",
    of: {
      approval: awaited.approval.ports,
      callback: awaited.callback.ports,
      event: awaited.event.ports
    } satisfies Record<Awaited, ReadonlyArray<string>>
  },
  portRequired: false,
  portsOf: (output) => {
    const decision = memberOf(output, "decision")
    if (decision === null || memberOf(output, "received_at") === null) return ["timed_out"]
    return portsDecided(decision !== "rejected")
  },
  sample: (config) => ({ ...awaited[config.for].nothing, ...awaited[config.for].sample }),
  *compile(step, config, compiler): Resumable<Evaluate> {
    const { amount, for: what, unit } = config
    const longest = longestWait({ amount, unit })
    if (!(longest > 0 && longest <= limits.longestDelay)) {
      compiler.issue("STEP_CONFIG_INVALID", "config.amount", "is more than nothing, and at most 31 days")
    }
    if (what === "event") {
      if (step.resource_id === null) {
        compiler.issue(
          "RESOURCE_REQUIRED",
          "resource_id",
          "takes the id of the source (src_…) at which the request arrives"
        )
      }
      const filter = step.invocation_inputs?.["filter"]
      if (filter !== undefined) yield* checkFilter(filter, compiler)
      return null
    }
    if (step.resource_id !== null) {
      compiler.issue(
        "STEP_CONFIG_INVALID",
        "resource_id",
        `has no effect where a step waits for ${what === "approval" ? "an approval" : "a callback"}`
      )
    }
    return ({ time }) => waitingFor(what, time.now + longest)
  }
})

/** A filter with templates is complete only in a run, where it is checked again. */
function* checkFilter(filter: Json, compiler: Compiler): Resumable<void> {
  const field = "invocation_inputs.filter"
  if (!isOfRequest(filter)) {
    compiler.issue("CONDITION_INVALID", field, "takes conditions about body, headers, query or path")
  } else if (!JSON.stringify(filter).includes("{{")) yield* compiler.condition(filter, field)
}
