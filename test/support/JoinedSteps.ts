import { type Received, Target } from "./Target.ts"
import { sleep } from "./Waiting.ts"

/** A workflow whose steps wait for a callback, call another workflow, go over a list, store a value and are undone; and its target. */

/** In the order of the graph. The last two undo. */
export const steps = [
  "count",
  "pause",
  "reserve",
  "charge",
  "asking",
  "answer",
  "ship",
  "each",
  "confirm",
  "release",
  "refund"
] as const
export type Step = (typeof steps)[number]

/** The steps that call the target. `parcel` is a step of the called workflow. */
const calling = ["reserve", "charge", "asking", "each", "confirm", "release", "refund", "parcel"] as const
type Calling = (typeof calling)[number]

export const elements = [0, 1, 2, 3] as const

const send = (id: Calling, resource_id: string, config: object = {}, more: object = {}) => ({
  id,
  kind: "destination",
  resource_id,
  config,
  invocation_inputs: { body: { token: "{{trigger.body.token}}", ...more } }
})

const retry = { strategy: "linear", interval: 1_000, count: 3 }

const definition = (destinations: Readonly<Record<Calling, string>>, called: string) => ({
  steps: [
    { id: "count", kind: "store", config: { operation: "increment" }, invocation_inputs: { key: "runs" } },
    { id: "pause", kind: "delay", config: { mode: "for", amount: 1, unit: "seconds" } },
    send("reserve", destinations.reserve, { compensate: "release" }),
    send("charge", destinations.charge, { compensate: "refund", retry }),
    send("asking", destinations.asking, {}, { callback_url: "{{run.waits.answer.callback_url}}" }),
    { id: "answer", kind: "wait", config: { for: "callback", amount: 1, unit: "hours" } },
    {
      id: "ship",
      kind: "workflow",
      resource_id: called,
      invocation_inputs: { input: { token: "{{steps.answer.output.body.token}}" } }
    },
    send(
      "each",
      destinations.each,
      { for_each: "{{trigger.body.elements}}", concurrency: 2, retry },
      { element: "{{item}}" }
    ),
    send("confirm", destinations.confirm, {}, { parcel: "{{steps.ship.output.result.body.token}}" }),
    send("release", destinations.release),
    send("refund", destinations.refund)
  ],
  edges: steps
    .slice(0, steps.indexOf("release"))
    .map((id, n) =>
      n === 0
        ? { source_type: "trigger", target_step_id: id }
        : { source_type: "step", source_step_id: steps[n - 1], target_step_id: id }
    )
})

/** Makes the workflow, the one that it calls, its source and its destinations. `post` creates a resource of a list. */
export const create = async (
  post: (list: string, body: object) => Promise<{ readonly id: string }>,
  name: string,
  origin: string
): Promise<{ readonly source: string; readonly workflow: string; readonly called: string }> => {
  const source = await post("/sources", { name })
  const destinations: Array<readonly [Calling, string]> = []
  for (const step of calling) {
    const { id } = await post("/destinations", { name: `${name}-${step}`, config: { url: `${origin}/${step}` } })
    destinations.push([step, id])
  }
  const ids = Object.fromEntries(destinations) as Record<Calling, string>
  const called = await post("/workflows", {
    name: `${name}-ship`,
    source_id: null,
    triggers: {},
    steps: [send("parcel", ids.parcel)],
    edges: [{ source_type: "trigger", target_step_id: "parcel" }]
  })
  const workflow = await post("/workflows", { name, source_id: source.id, ...definition(ids, called.id) })
  return { source: source.id, workflow: workflow.id, called: called.id }
}

/** The body of a request. */
export const bodyOf = (token: string): string => JSON.stringify({ token, elements })

interface Body {
  readonly token: string
  readonly element?: number
  readonly callback_url?: string
}

export const sentIn = ({ body }: Received): Body => JSON.parse(body.toString()) as Body

/** What a request calls: a step, or an element of one. */
export const callOf = (one: Received): string => {
  const { element } = sentIn(one)
  return `${one.url.slice(1)}${element === undefined ? "" : `/${element}`}`
}

/** NaN for a token without a number, which no share has. */
const numberOf = (token: string): number => Number(token.replace("token-", ""))

/** A fifth of the runs fail in their last step. */
export const fails = (token: string): boolean => numberOf(token) % 5 === 4

/** The first attempt of a third of the charges and elements is refused. */
export const isRefusedAtFirst = (call: string, token: string): boolean =>
  call === "charge" || call.startsWith("each/") ? (numberOf(token) + Number(call.split("/")[1] ?? 0)) % 3 === 1 : false

/** The calls of an undisturbed run, and how often each one comes. */
export const usualCalls = (token: string): ReadonlyArray<{ readonly call: string; readonly usual: number }> =>
  [
    "reserve",
    "charge",
    "asking",
    "parcel",
    ...elements.map((element) => `each/${element}`),
    "confirm",
    ...(fails(token) ? ["refund", "release"] : [])
  ].map((call) => ({ call, usual: isRefusedAtFirst(call, token) ? 2 : 1 }))

/** Answers with the body that it received, after a delay of up to `longestMs`. `onAsked` is given each URL for a callback. */
export const answering = (longestMs: number, onAsked: (callbackUrl: string, token: string) => void) => {
  const seen = new Set<string>()
  return Target.start(async (response, received) => {
    const { callback_url, token } = sentIn(received)
    const call = callOf(received)
    const isFirst = !seen.has(`${token} ${call}`)
    seen.add(`${token} ${call}`)
    const isRefused = isFirst && isRefusedAtFirst(call, token)
    if (callback_url !== undefined) onAsked(callback_url, token)
    await sleep(Math.random() * longestMs)
    const status = call === "confirm" && fails(token) ? 400 : isRefused ? 503 : 200
    response.writeHead(status, { "content-type": "application/json" }).end(received.body)
  })
}
