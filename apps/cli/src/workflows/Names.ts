import { Effect } from "effect"
import { CliFailure, usage } from "../Failure.ts"
import { call } from "../Gateway.ts"
import { plain } from "../Output.ts"
import { accountsByName, noAccount, severalAccounts } from "../transfer/Accounts.ts"
import { isObject } from "../transfer/Json.ts"
import type { Members, Written } from "./Files.ts"
import { resourceOfStep, type StepResource } from "./StepResources.ts"

/** What a workflow refers to by id may be written by name: a file then serves several gateways. */
const named = {
  source: { path: "/sources", prefix: "src_" },
  destination: { path: "/destinations", prefix: "des_" },
  transformation: { path: "/transformations", prefix: "trs_" },
  filter: { path: "/filters", prefix: "flt_" },
  action: { path: "/actions", prefix: "act_" },
  workflow: { path: "/workflows", prefix: "wfl_" }
} as const satisfies { readonly [kind in StepResource]: object }
type Named = keyof typeof named

const idOf = Effect.fnUntraced(function* (kind: Named, nameOrId: string) {
  const { path, prefix } = named[kind]
  if (nameOrId.startsWith(prefix)) return nameOrId
  const { models } = yield* call((client, signal) =>
    client.get(path, { params: { query: { name: nameOrId } }, signal })
  )
  const [found] = models as ReadonlyArray<{ readonly id: string }>
  if (found !== undefined) return found.id
  return yield* new CliFailure({ code: "missing", message: plain(`there is no ${kind} ${nameOrId}`) })
})

/** The accounts at providers, read when the first name is looked up. */
const accountsOfTeam = Effect.cached(call(accountsByName))
type Accounts = Effect.Success<typeof accountsOfTeam>

const accountId = Effect.fnUntraced(function* (accounts: Accounts, name: string) {
  const [id, ...others] = (yield* accounts).get(name) ?? []
  if (id === undefined) return yield* new CliFailure({ code: "missing", message: plain(noAccount(name)) })
  if (others.length > 0) return yield* usage(plain(severalAccounts(name, others.length + 1)))
  return id
})

const resolvedStep = Effect.fnUntraced(function* (accounts: Accounts, step: Members) {
  const { action, kind, resource_id } = step
  const resource = resourceOfStep(kind)
  const account = isObject(action) ? action["provider_account_id"] : undefined
  return {
    ...step,
    ...(resource !== null && typeof resource_id === "string"
      ? { resource_id: yield* idOf(resource, resource_id) }
      : {}),
    // The slash between provider and name is in no id.
    ...(isObject(action) && typeof account === "string" && account.includes("/")
      ? { action: { ...action, provider_account_id: yield* accountId(accounts, account) } }
      : {})
  }
})

/** Puts ids for the names in workflows. */
export const resolver = Effect.map(accountsOfTeam, (accounts) =>
  Effect.fnUntraced(function* (written: Written) {
    const { source_id, steps } = written
    return {
      ...written,
      ...(typeof source_id === "string" ? { source_id: yield* idOf("source", source_id) } : {}),
      ...(Array.isArray(steps)
        ? { steps: yield* Effect.forEach(steps as ReadonlyArray<Members>, (step) => resolvedStep(accounts, step)) }
        : {})
    }
  })
)
