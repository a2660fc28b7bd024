import { type Client, TidegateError } from "@tidegate/client/source"
import { failureOf, CliFailure } from "../Failure.ts"
import { type Kind, kindOf, kinds, singular } from "./Entries.ts"
import { type Inventory, several } from "./Inventory.ts"
import type { Row } from "./Kind.ts"
import type { Plan, Step } from "./Plan.ts"
import { referencesIn, type Target, targets, withIds } from "./References.ts"
import { referred } from "./Rules.ts"
import { isObject, type Json, type JsonObject, textOf } from "./Json.ts"

/** Ids of existing resources by name; extended as resources are created. */
type Ids = Readonly<Record<Kind, Map<string, string>>>

const linked = (rules: Json, ids: Ids): Json =>
  (rules as ReadonlyArray<Json>).map((rule) => {
    for (const { id, kind, name, type } of referred) {
      const named = isObject(rule) ? rule[name] : undefined
      if (named !== undefined) return { type, [id]: ids[kind].get(textOf(named)) ?? "" }
    }
    return rule
  })

/** The time member for a switch: now or null. Empty if the switch already has the wanted state. */
const since = (member: string, wanted: Json | undefined, is: boolean): JsonObject =>
  wanted === undefined || (wanted === true) === is
    ? {}
    : { [member]: wanted === true ? new Date().toISOString() : null }

/** The body to write for a step: for an existing resource only the members that differ. */
const bodyOf = (
  { changed, current, kind, wanted }: Step,
  ids: Ids,
  accounts: Inventory["provider_accounts"]
): JsonObject => {
  const idOf = (target: Target, name: string): string => {
    const list = targets[target]
    return (list === "provider_accounts" ? accounts.get(name)?.[0] : ids[list].get(name)) ?? ""
  }
  const { refers } = kindOf(kind)
  const said = Object.fromEntries(
    Object.entries(wanted)
      .filter(([name]) => current === null || name === "name" || changed.includes(name))
      .map(([name, value]) => [name, refers.includes(name) ? withIds(value, idOf) : value])
  )
  const { destination, disabled, paused, rules, slug: _, source, ...rest } = said
  if (kind !== "connections") return rest
  const before = current?.entry
  return {
    ...rest,
    ...(source === undefined ? {} : { source_id: ids.sources.get(textOf(source)) ?? "" }),
    ...(destination === undefined ? {} : { destination_id: ids.destinations.get(textOf(destination)) ?? "" }),
    ...(rules === undefined ? {} : { rules: linked(rules, ids) }),
    ...since("disabled_at", disabled, before?.["disabled"] === true),
    ...since("paused_at", paused, before?.["paused"] === true)
  }
}

/** Whether the result of a call is unknown. */
const isUnanswered = (error: unknown): boolean =>
  error instanceof TidegateError ? [502, 503, 504].includes(error.status) : failureOf(error).code === "unavailable"

/**
 * Creates a resource that did not exist when the plan was made. If it exists by now, somebody else has created it, and the call fails.
 * If there was no answer, our own call may have created it, so it is written again by name, which can be repeated.
 */
const create = async (client: Client, kind: Kind, body: JsonObject, signal: AbortSignal): Promise<unknown> => {
  try {
    return await client.post(`/${kind}`, { body: body as never, signal })
  } catch (error) {
    if (signal.aborted || !isUnanswered(error)) throw error
    return client.put(`/${kind}`, { body: body as never, signal })
  }
}

/** Creates a resource, or changes the members of an existing one. */
const write = async (client: Client, { current, kind }: Step, body: JsonObject, signal: AbortSignal): Promise<Row> => {
  const id = current?.row.id
  const answer =
    id === undefined
      ? await create(client, kind, body, signal)
      : await client.patch(`/${kind}/{id}` as "/sources/{id}", {
          params: { path: { id } },
          body,
          signal
        })
  return answer as Row
}

/** Makes the changes for which the API has separate calls, or which require the resource's id. */
const finish = async (client: Client, { changed, current, kind, wanted }: Step, row: Row, signal: AbortSignal) => {
  const path = { id: row.id }
  const isAsked = (member: string): boolean =>
    wanted[member] !== undefined && (current === null || changed.includes(member))
  if (kind === "destinations" && isAsked("disabled") && (current !== null || wanted["disabled"] === true)) {
    const call = wanted["disabled"] === true ? "/destinations/{id}/disable" : "/destinations/{id}/enable"
    await client.put(call, { params: { path }, signal })
  }
  if (kind === "sources" && isAsked("slug") && (current !== null || wanted["slug"] !== null)) {
    const slug = wanted["slug"]
    const url = slug === null ? null : `${textOf(row["url"]).replace(/[^/]*$/, "")}${textOf(slug)}`
    await client.patch("/sources/{id}", { params: { path }, body: { url }, signal })
  }
}

/** The warnings of a write, as texts. */
export const warningsOf = ({ warnings }: { readonly [member: string]: unknown }): ReadonlyArray<string> =>
  Array.isArray(warnings) ? warnings.flatMap((one: Json) => (isObject(one) ? [textOf(one["message"] ?? "")] : [])) : []

/** A new workflow without steps, which others can already refer to. */
const begun = (name: string): JsonObject => ({ name, source_id: null, status: "draft", steps: [], edges: [] })

/**
 * Workflows that call new ones, or name one to run when they fail, come after these. If workflows call each other in a circle, one of them is created first without its steps:
 * `begun` has these.
 */
const inOrder = (
  steps: ReadonlyArray<Step>
): { readonly ordered: ReadonlyArray<Step>; readonly begun: ReadonlyArray<Step> } => {
  const isNew = new Map(steps.filter(({ current }) => current === null).map((step) => [step.wanted.name, step]))
  const ordered: Array<Step> = []
  const begun = new Set<Step>()
  const state = new Map<Step, "under way" | "done">()
  const visit = (step: Step): void => {
    state.set(step, "under way")
    for (const { name, target } of referencesIn([step.wanted["steps"] ?? null, step.wanted["triggers"] ?? null])) {
      const called = target === "workflow" ? isNew.get(name) : undefined
      if (called === undefined) continue
      if (state.get(called) === "under way") begun.add(called)
      else if (!state.has(called)) visit(called)
    }
    state.set(step, "done")
    ordered.push(step)
  }
  for (const step of steps) if (!state.has(step)) visit(step)
  return { ordered, begun: [...begun] }
}

/** Deletes a resource. One that is gone already is no failure. */
const remove = async (client: Client, { current, kind }: Step, signal: AbortSignal): Promise<void> => {
  try {
    const path = `/${kind}/{id}` as "/sources/{id}"
    await client.delete(path, { params: { path: { id: current!.row.id } }, signal })
  } catch (error) {
    if (!(error instanceof TidegateError && error.status === 404)) throw error
  }
}

/**
 * Carries out the plan, one kind after the other, and deletes at the end, in the opposite order. `onDone` is called for each step, with its
 * warnings. The first failure ends it, with the line of the failed step.
 */
export const apply = async (
  client: Client,
  { steps }: Plan,
  inventory: Inventory,
  name: string,
  onDone: (step: Step, warnings: ReadonlyArray<string>) => void,
  signal: AbortSignal
): Promise<void> => {
  const ids = Object.fromEntries(
    kinds.map((kind) => [kind, new Map([...inventory[kind]].map(([name, { row }]) => [name, row.id]))])
  ) as unknown as Ids
  const attempt = async (step: Step, run: () => Promise<void>): Promise<void> => {
    try {
      await run()
    } catch (error) {
      const { code, data, message, reason } = failureOf(error)
      throw new CliFailure({
        code,
        message: `${name}:${step.line}: ${singular[step.kind]} ${step.wanted.name}: ${message}`,
        ...(reason === undefined ? {} : { reason }),
        data
      })
    }
  }
  const carryOut = (step: Step): Promise<void> =>
    attempt(step, async () => {
      const row = await write(client, step, bodyOf(step, ids, inventory.provider_accounts), signal)
      ids[step.kind].set(step.wanted.name, row.id)
      await finish(client, step, row, signal)
      onDone(step, warningsOf(row))
    })
  const todo = (kind: Kind): ReadonlyArray<Step> =>
    steps.filter((step) => step.kind === kind && (step.action === "create" || step.action === "update"))
  for (const kind of kinds.filter((kind) => kind !== "workflows")) await several(todo(kind), carryOut)

  const workflows = inOrder(todo("workflows"))
  const begunAs = new Map<Step, Step>()
  for (const step of workflows.begun) {
    await attempt(step, async () => {
      const row = (await create(client, step.kind, begun(step.wanted.name), signal)) as Row
      ids.workflows.set(step.wanted.name, row.id)
      begunAs.set(step, { ...step, current: { row, entry: step.wanted }, changed: Object.keys(step.wanted) })
    })
  }
  for (const step of workflows.ordered) await carryOut(begunAs.get(step) ?? step)

  for (const kind of kinds.toReversed()) {
    const deleted = steps.filter((step) => step.kind === kind && step.action === "delete")
    await several(deleted, (step) =>
      attempt(step, async () => {
        await remove(client, step, signal)
        onDone(step, [])
      })
    )
  }
}
