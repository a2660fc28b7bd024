/**
 * Who may make a call. It is said once, of each endpoint; what checks callers, what documents the API and what tests that teams are
 * apart all read it there.
 */

/** What a person is to a team. */
export type Role = "member" | "owner"

/** What a project key can be given. None implies another; `control:execute` needs the exact route among the key's grants too. */
export const scopes = ["control:read", "control:edit", "control:execute", "tunnel:connect"] as const
export type Scope = (typeof scopes)[number]

export interface Principals {
  /**
   * What a signed-in user has to be at least. `self`: nothing, because the call concerns the user alone. A site admin is all of
   * them, in every team.
   */
  readonly user: "self" | Role | "admin"
  /** Whether the team's API key may. It acts as an owner. */
  readonly teamKey: boolean
  /** What a project key needs for it; null: no project key may. */
  readonly scope: Scope | null
  /** Whether it answers stored payloads: then a project key needs `control:read` as well. */
  readonly answersPayloads?: true
}

/** `public`: whoever knows the URL, without a credential or with one that belongs to what is asked for. */
export type Permission = "public" | Principals

const members = (scope: Scope): Principals => ({ user: "member", teamKey: true, scope })

/** Of reads. */
export const reading = members("control:read")
/** Of changes to resources. */
export const editing = members("control:edit")
/** Of what makes something happen with what is there. */
export const executing = members("control:execute")
/** Of holding a tunnel open, by which somebody's own machine receives what a destination is sent. */
export const tunneling = members("tunnel:connect")
/** Of what only those who answer for the team may do. */
export const administering: Principals = { user: "owner", teamKey: true, scope: null }
/** Of what concerns the signed-in user alone. */
export const ofOneself: Principals = { user: "self", teamKey: false, scope: null }

/** The same, of what answers stored payloads without being a read. */
export const answeringPayloads = (permission: Principals): Principals => ({ ...permission, answersPayloads: true })

/** What a project key has to hold for a call: all of them; empty: no project key may make it. */
export const scopesFor = ({ answersPayloads, scope }: Principals): ReadonlyArray<Scope> => {
  if (scope === null) return []
  return answersPayloads === true && scope !== "control:read" ? [scope, "control:read"] : [scope]
}

/** The same for people and for the team's own key, not for project keys. */
export const notByProjectKeys = (permission: Principals): Principals => ({ ...permission, scope: null })

/** The same for people, not for keys. */
export const bySessions = (permission: Principals): Principals => ({ ...permission, teamKey: false, scope: null })

/** The scopes that together are all that an owner may do by a key. */
const whole: ReadonlyArray<Scope> = ["control:read", "control:edit", "control:execute"]

/** What a key has been given. */
interface Rights {
  readonly isTeamKey: boolean
  readonly scopes: ReadonlyArray<Scope>
  /** Null: every route. */
  readonly grants: ReadonlyArray<string> | null
}

/** What a key lacks for a call. */
export type Lacking =
  | { readonly what: "session" }
  | { readonly what: "scope"; readonly scope: Scope }
  | { readonly what: "grant" }

/**
 * What a key lacks for a call of the route; null: nothing. What only owners may do needs a team's own key, and all scopes of it: one that has been
 * narrowed must not widen itself by new secrets.
 */
export const lackingOf = (permission: Principals, route: string, key: Rights): Lacking | null => {
  const { scope, teamKey, user } = permission
  if (key.isTeamKey ? !teamKey : scope === null) return { what: "session" }
  const needed = scope !== null ? scopesFor(permission) : user === "self" ? [] : whole
  const missing = needed.find((one) => !key.scopes.includes(one))
  if (missing !== undefined) return { what: "scope", scope: missing }
  return scope === "control:execute" && key.grants !== null && !key.grants.includes(route) ? { what: "grant" } : null
}
