import { expect } from "vitest"
import { it as gatewayIt } from "../support/it.ts"
import type { Reply, Target } from "../support/Target.ts"
import { begin, edge, ended } from "./workflowRuns.ts"

/** A target that refuses for now holds its destination, and the action that calls it: contract 13. */

const it = gatewayIt
  .extend("send", ({ gateway }) => async (source: { readonly id: string }, count: number) => {
    const ids: Array<string> = []
    for (let n = 0; n < count; n++) {
      const answer = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: JSON.stringify({ n }) })
      ids.push(((await answer.json()) as { readonly request_id: string }).request_id)
    }
    return ids
  })
  .extend("waiting", ({ gateway }) => async (destination: string): Promise<number> => {
    const { body } = await gateway.call("GET", `/events?destination_id=${destination}&limit=100&status=QUEUED`)
    return body.models.filter((event: { readonly attempts: number }) => event.attempts === 0).length
  })

const retry = [{ type: "retry", strategy: "linear", interval: 1_000, count: 1 }] as const
const refusing =
  (headers: Readonly<Record<string, string>>, status = 429): Reply =>
  (response) =>
    void response.writeHead(status, headers).end("slow down")

it("A temporary refusal holds a destination's other events, also in the next process, until it is changed", async ({
  gateway,
  send,
  target,
  waiting
}) => {
  target.reply = refusing({ "retry-after": "500" })
  const { destination, source } = await gateway.route(target, { rules: retry })
  await send(source, 1)
  await target.next(1)
  const held = await gateway.eventually("the hold is shown", async () => {
    const { body } = await gateway.call("GET", `/destinations/${destination.id}`)
    return body.held_until === null ? null : Date.parse(body.held_until)
  })
  expect(held - Date.now()).toBeGreaterThan(400_000)
  expect(held - Date.now()).toBeLessThan(501_000)

  await send(source, 20)
  await gateway.restart("SIGKILL")
  target.reply = (response) => void response.end("ok")
  // Whatever this process has to deliver first is delivered by the time that another destination has had its event.
  const other = await gateway.route(target, { rules: [] })
  await send(other.source, 1)
  await target.next(2)
  expect([target.received.length, await waiting(destination.id)]).toEqual([2, 20])

  await gateway.api("PATCH", `/destinations/${destination.id}`, { config: { max_concurrency: 10 } })
  await target.next(22)
  expect((await gateway.call("GET", `/destinations/${destination.id}`)).body.held_until).toBeNull()
  // What was refused is tried again when its target said, and not before.
  await gateway.eventually("all but the refused one have arrived", async () => {
    const { body } = await gateway.call("GET", `/events?destination_id=${destination.id}&limit=100`)
    const states = body.models.map((event: { readonly status: string }) => event.status)
    return states.filter((status: string) => status === "SUCCESSFUL").length === 20 ? states : null
  })
  expect(target.received).toHaveLength(22)
})

it("A refused step holds its destination's events and other runs' steps, also in the next process", async ({
  gateway,
  send,
  target,
  waiting
}) => {
  target.reply = refusing({ "retry-after": "500" })
  const { destination, source } = await gateway.route(target, { rules: retry })
  const step = { id: "to_it", kind: "destination", resource_id: destination.id }
  const { post } = await begin(gateway, [step], [edge(null, "to_it")])
  const refused = await ended(gateway, await post({ body: "{}" }))
  expect([refused.row.status, target.received.length]).toEqual(["failed", 1])
  await gateway.eventually("the hold is shown", async () => {
    const { body } = await gateway.call("GET", `/destinations/${destination.id}`)
    return body.held_until
  })
  await send(source, 3)
  const run = await post({ body: "{}" })
  await gateway.restart("SIGKILL")
  target.reply = (response) => void response.end("ok")
  const other = await gateway.route(target, { rules: [] })
  await send(other.source, 1)
  await target.next(2)
  expect([target.received.length, await waiting(destination.id)]).toEqual([2, 3])
  await gateway.api("PATCH", `/destinations/${destination.id}`, { config: { max_concurrency: 10 } })
  expect((await ended(gateway, run)).row.status).toBe("succeeded")
  await target.next(6)
})

/** Takes so many calls in a window of so many ms, and tells by its headers how many are left. */
const window = (target: Target, most: number, ms: number) => {
  const seen = { taken: 0, refused: 0 }
  let opened = 0
  let left = most
  target.reply = (response) => {
    const now = Date.now()
    if (now - opened >= ms) {
      opened = now
      left = most
    }
    const after = { "x-ratelimit-reset-after": String((opened + ms - now) / 1_000) }
    if (left === 0) {
      seen.refused++
      response.writeHead(429, { ...after, "retry-after": String(Math.ceil((opened + ms - now) / 1_000)) }).end()
      return
    }
    left--
    seen.taken++
    response.writeHead(200, { ...after, "x-ratelimit-remaining": String(left) }).end()
  }
  return seen
}

it("No event is lost at a target that accepts few calls at a time, even with only one retry", async ({
  gateway,
  send,
  target
}) => {
  const seen = window(target, 5, 400)
  const { destination, source } = await gateway.route(target, { rules: retry })
  await gateway.api("PATCH", `/destinations/${destination.id}`, { config: { max_concurrency: 4 } })
  await send(source, 30)
  const statuses = await gateway.eventually("the end of all events", async () => {
    const { body } = await gateway.call("GET", `/events?destination_id=${destination.id}&limit=100`)
    const all: ReadonlyArray<string> = body.models.map((event: { readonly status: string }) => event.status)
    return all.every((status) => ["SUCCESSFUL", "FAILED"].includes(status)) ? all : null
  })
  expect(new Set(statuses)).toEqual(new Set(["SUCCESSFUL"]))
  expect(seen.taken).toBe(30)
  expect(seen.refused).toBeLessThanOrEqual(30)
})

const post = { method: "POST", body: { n: "{{trigger.body.n}}" } }
const once = { config: { retry: { strategy: "linear", interval: 1_000, count: 1 } } }

it("No run is lost at a saved action that accepts few calls at a time, even with only one retry", async ({
  gateway,
  send,
  target
}) => {
  const seen = window(target, 5, 1_000)
  const action = await gateway.api("POST", "/actions", {
    name: gateway.name("action"),
    provider_key: "http",
    action_key: "request",
    inputs: { url: target.origin, ...post }
  })
  const step = { id: "call_it", kind: "action", resource_id: action.id, ...once }
  const { source } = await begin(gateway, [step], [edge(null, "call_it")])
  await send(source, 25)
  const statuses = await gateway.eventually("the end of all runs", async () => {
    const rows = await gateway.sql("select status from workflow_runs where source_id = $1", [source.id])
    return rows.every(({ status }) => ["succeeded", "failed"].includes(status))
      ? rows.map(({ status }) => status)
      : null
  })
  expect(statuses).toEqual(Array<string>(25).fill("succeeded"))
  expect(seen.taken).toBe(25)
  // Those that were under way when it began to refuse, and after each window the few that it let through too many.
  expect(seen.refused).toBeLessThanOrEqual(25)
})

it("A refused step holds its action in all runs and processes until the action is changed", async ({
  gateway,
  target
}) => {
  target.reply = refusing({ "retry-after": "500" })
  const action = await gateway.api("POST", "/actions", {
    name: gateway.name("action"),
    provider_key: "http",
    action_key: "request",
    inputs: { url: target.origin, ...post }
  })
  const inline = {
    id: "inline",
    kind: "action",
    action: { provider_key: "http", action_key: "request" },
    invocation_inputs: { url: `${target.origin}/inline`, ...post }
  }
  const saved = await begin(gateway, [{ id: "saved", kind: "action", resource_id: action.id }], [edge(null, "saved")])
  const written = await begin(gateway, [inline], [edge(null, "inline")])
  for (const { post } of [saved, written]) {
    expect((await ended(gateway, await post())).row).toMatchObject({ status: "failed", error_code: "BAD_RESPONSE" })
  }
  expect(target.received).toHaveLength(2)
  const held = await gateway.eventually("both holds are stored", async () => {
    const rows = await gateway.sql("select target from action_holds where held_until > now() and team_id = $1", [
      gateway.team
    ])
    return rows.length === 2 ? rows : null
  })
  expect(new Set(held.map(({ target }) => target))).toEqual(new Set([action.id, `http ${target.origin}`]))
  const shown = (await gateway.call("GET", `/actions/${action.id}`)).body.held_until
  expect(Date.parse(shown) - Date.now()).toBeGreaterThan(400_000)

  await gateway.restart("SIGKILL")
  target.reply = (response) => void response.end("ok")
  const waiting = [await saved.post(), await saved.post()]
  const other = await written.post()
  const statusOf = async (run: string): Promise<string> => {
    const [row] = await gateway.sql("select status from workflow_runs where id = $1", [run])
    return row.status
  }
  for (const run of [...waiting, other]) {
    await gateway.eventually("the run is at its step", async () => ((await statusOf(run)) === "running" ? true : null))
  }
  // Whatever this process has to call first is called by the time that another run has called elsewhere.
  const open = await gateway.api("POST", "/actions", {
    name: gateway.name("action"),
    provider_key: "http",
    action_key: "request",
    inputs: { url: target.origin, ...post }
  })
  const elsewhere = await begin(gateway, [{ id: "open", kind: "action", resource_id: open.id }], [edge(null, "open")])
  expect((await ended(gateway, await elsewhere.post())).row.status).toBe("succeeded")
  expect(target.received).toHaveLength(3)

  const changed = await gateway.api("PATCH", `/actions/${action.id}`, {
    inputs: { url: `${target.origin}/b`, ...post }
  })
  expect(changed.held_until).toBeNull()
  for (const run of waiting) expect((await ended(gateway, run)).row.status).toBe("succeeded")
  expect(target.received).toHaveLength(5)
  expect(await statusOf(other)).toBe("running")
})
